"""B16: mistakes of the lane mask in loops whose lanes leave one by one."""

from __future__ import annotations

from asmevo.gates.verdict import Gate
from asmevo.threats.threat import LAUNCH, Threat
from asmevo.threats.trick import Change, before, edited, replaced
from asmevo.threats.weaker import Weaker

_STORE = "global_store_dword v2, v4"
_TEST = "v_cmp_le_u32_e32 vcc, s8, v1"
_WRONG = ("guard-overwritten", "max-abs", "cosine", "nan-class", "bits", "fault-memory")


def _masked_store(*lines: str) -> Change:
    """The store under another mask; what ``lines`` leave in EXEC."""
    return replaced(_STORE, "s_mov_b64 s[20:21], exec", *lines,
                    "global_store_dword v2, v4, s[4:5]", "s_mov_b64 exec, s[20:21]")


def _turns_on(count: int) -> tuple[str, str, str]:
    """The lanes that have no turn left after so many more; the counter is a turn on already."""
    return (f"s_mul_i32 s18, s9, {count}", "v_add_u32_e32 v5, s18, v1",
            "v_cmp_le_u32_e32 vcc, s8, v5")


THREATS = (
    Threat("B16", "lanes with many turns left do not store", "strided_scale",
           # More turns than any tested size has.
           edited(_masked_store(*_turns_on(40), "s_and_b64 exec, exec, vcc")),
           Gate.G1, LAUNCH, Weaker.STATIC),
    Threat("B16", "lanes with many turns left leave", "strided_scale",
           edited(before("s_andn2_b64 exec", *_turns_on(40), "s_and_b64 exec, exec, vcc")),
           Gate.G1, LAUNCH, Weaker.STATIC),
    Threat("B16", "the same, by a branch", "strided_scale",
           edited(before("s_andn2_b64 exec", *_turns_on(40), "s_and_b64 exec, exec, vcc",
                         "s_cbranch_execz .Lout"),
                  replaced("s_endpgm", ".Lout:", "s_endpgm")),
           Gate.G2, (*LAUNCH, "unreached"), Weaker.STATIC),
    Threat("B16", "lanes of the last turn do not store", "strided_scale",
           edited(_masked_store("v_cmp_gt_u32_e32 vcc, s8, v1", "s_and_b64 exec, exec, vcc")),
           Gate.G2, (*LAUNCH, *_WRONG)),
    Threat("B16", "lanes leave a turn too early", "strided_scale",
           edited(replaced(_TEST, *_turns_on(1))), Gate.G2, (*LAUNCH, *_WRONG)),
    Threat("B16", "lanes leave a turn too late", "strided_scale",
           edited(replaced(_TEST, "v_subrev_u32_e32 v5, s9, v1", "v_cmp_le_u32_e32 vcc, s8, v5")),
           Gate.G2, (*LAUNCH, *_WRONG)),
    Threat("B16", "lanes leave by less than a turn too early", "strided_scale",
           edited(replaced(_TEST, "v_add_u32_e32 v5, 1, v1", "v_cmp_le_u32_e32 vcc, s8, v5")),
           Gate.G1, LAUNCH),
    Threat("B16", "lanes that have left go on to store", "strided_scale",
           edited(_masked_store("s_or_b64 exec, exec, s[16:17]")),
           Gate.G2, (*LAUNCH, *_WRONG)),
    Threat("B16", "a bound for large sizes besides", "strided_scale",
           edited(before("s_or_b64 s[16:17], vcc", "v_cmp_lt_u32_e64 s[18:19], s14, v1",
                         "v_cmp_lt_u32_e64 s[22:23], v1, s14",
                         "s_or_b64 s[16:17], s[16:17], s[18:19]",
                         "s_andn2_b64 s[16:17], s[16:17], s[18:19]")),
           Gate.G1, LAUNCH, Weaker.STATIC),
    Threat("B16", "turns are counted in masks", "strided_scale",
           # Three bits for each lane, in masks: the eighth turn and those after it do not store.
           edited(before("s_mov_b64 s[16:17], 0", "s_mov_b64 s[22:23], 0", "s_mov_b64 s[24:25], 0",
                         "s_mov_b64 s[26:27], 0", "s_mov_b64 s[18:19], 0"),
                  _masked_store(
                      "s_and_b64 s[28:29], s[22:23], s[24:25]",
                      "s_and_b64 s[30:31], s[28:29], s[26:27]",
                      "s_or_b64 s[18:19], s[18:19], s[30:31]",
                      "s_xor_b64 s[26:27], s[26:27], s[28:29]",
                      "s_xor_b64 s[24:25], s[24:25], s[22:23]", "s_not_b64 s[22:23], s[22:23]",
                      "s_andn2_b64 exec, exec, s[18:19]")),
           Gate.G1, LAUNCH, Weaker.STATIC),
)
