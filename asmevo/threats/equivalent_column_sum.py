"""Controls that must pass: loads under conditions and rows of a matrix, fetched in other ways."""

from __future__ import annotations

from asmevo.threats.equivalent import equal
from asmevo.threats.trick import before, edited, replaced

_JOIN = ("s_or_b64 exec, exec, s[16:17]",)
_BRANCH = "s_cbranch_execz"
# What a stretch adds, for all lanes, and selected by the mask that it was run with.
SELECTED = ("s_waitcnt vmcnt(0)", "v_mul_f32_e32 v13, 2.0, v12")


def gathered(mask: str, *lines: str) -> tuple[str, ...]:
    """The stretch with nothing but its load in it; ``lines`` come in front of the selection."""
    return ("v_lshl_add_u64 v[8:9], v[6:7], 0, 4", "global_load_dword v12, v[8:9], off", *_JOIN,
            *SELECTED, *lines, f"v_cndmask_b32_e64 v8, v8, v13, {mask}")


THREATS = (
    equal("what is loaded under a condition is selected by its mask", "column_sum", edited(
        replaced(_BRANCH, *gathered("s[14:15]"), nth=1, drop=6))),
    equal("the mask of a selection is kept elsewhere", "column_sum", edited(
        before("s_and_saveexec_b64 s[16:17]", "s_mov_b64 s[20:21], s[14:15]"),
        replaced(_BRANCH, *gathered("s[20:21]"), nth=1, drop=6))),
    equal("an address is copied as a pair", "column_sum", edited(
        replaced("v_lshl_add_u64 v[8:9], v[6:7], 0, 4", "v_mov_b64_e32 v[14:15], v[6:7]",
                 "v_lshl_add_u64 v[8:9], v[14:15], 0, 4"))),
    equal("the end of a loop somewhere else", "column_sum", edited(
        replaced("s_cbranch_scc1", "s_cbranch_scc0 .Lout", "s_branch .Lagain", ".Lout:"),
        replaced("v_ashrrev_i32_e32 v5", ".Lagain:", "v_ashrrev_i32_e32 v5, 31, v4"))),
)
