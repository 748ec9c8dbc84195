"""Controls that must pass: a loop whose lanes leave one by one, unrolled and pipelined."""

from __future__ import annotations

from asmevo.threats.equivalent import equal
from asmevo.threats.trick import before, edited, replaced

_LOAD, _LOOP = "global_load_dword v3", "s_cbranch_execnz"


def _fetch(address: int, data: int) -> tuple[str, ...]:
    """Half of a turn: what is loaded, where it goes, and whether there is a turn behind it."""
    return (f"v_mov_b32_e32 v{address}, v2", f"global_load_dword v{data}, v2, s[6:7]",
            "v_add_u32_e32 v1, s9, v1", "v_cmp_le_u32_e32 vcc, s8, v1",
            "s_or_b64 s[16:17], vcc, s[16:17]", "v_add_u32_e32 v2, s14, v2",
            "s_andn2_b64 exec, exec, s[16:17]")


def _use(address: int, data: int) -> tuple[str, ...]:
    return ("s_waitcnt vmcnt(0)", f"v_mul_f32_e32 v4, s10, v{data}",
            f"global_store_dword v{address}, v4, s[4:5]")


_TURN = (
    "global_load_dword v3, v2, s[6:7]", "v_add_u32_e32 v1, s9, v1", "v_cmp_le_u32_e32 vcc, s8, v1",
    "s_or_b64 s[16:17], vcc, s[16:17]", "s_waitcnt vmcnt(0)", "v_mul_f32_e32 v4, s10, v3",
    "global_store_dword v2, v4, s[4:5]", "v_add_u32_e32 v2, s14, v2",
    "s_andn2_b64 exec, exec, s[16:17]",
)
_OUT = replaced("s_endpgm", ".Lout:", "s_endpgm")

THREATS = (
    equal("two turns of a loop that lanes leave", "strided_scale", edited(
        before(_LOOP, "s_cbranch_execz .Lout", *_TURN), _OUT)),
    equal("the first turn of such a loop in front of it", "strided_scale", edited(
        replaced("s_mov_b64 s[16:17], 0", "s_mov_b64 s[16:17], 0", *_TURN,
                 "s_cbranch_execz .Lout"), _OUT)),
    equal("two turns of such a loop under way", "strided_scale", edited(
        # Lanes without a second turn have their first one under way twice.
        replaced(_LOAD, "v_mov_b32_e32 v8, v2", "global_load_dword v9, v2, s[6:7]",
                 *_fetch(6, 7), "s_cbranch_execz .Ldrain",
                 *_fetch(8, 9), "s_cbranch_execz .Ldrain", ".Lhead:",
                 *_use(6, 7), *_fetch(6, 7), "s_cbranch_execz .Ldrain",
                 *_use(8, 9), *_fetch(8, 9), "s_cbranch_execnz .Lhead", ".Ldrain:",
                 "s_or_b64 exec, exec, s[16:17]", *_use(6, 7), *_use(8, 9), drop=10))),
)
