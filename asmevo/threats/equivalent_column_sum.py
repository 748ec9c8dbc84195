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
    return ("v_add_u32_e32 v8, 4, v2", "global_load_dword v12, v8, s[6:7]", *_JOIN,
            *SELECTED, *lines, f"v_cndmask_b32_e64 v8, v8, v13, {mask}")


def row(*fix: str) -> tuple[str, ...]:
    """An element and the next row; ``fix`` changes the sign of the index."""
    return ("v_ashrrev_i32_e32 v5, 31, v4", *fix, "v_lshl_add_u64 v[6:7], v[4:5], 2, s[6:7]",
            "global_load_dword v10, v[6:7], off", "s_add_i32 s11, s11, -1",
            "v_add_u32_e32 v4, s9, v4", "s_waitcnt vmcnt(0)", "v_add_f32_e32 v3, v3, v10")


def batched(*fix: str) -> tuple[str, ...]:
    """Two rows at a time while there are more than two; ``fix`` changes the second one."""
    return ("s_mov_b32 s11, s8", "s_cmp_gt_u32 s11, 2", "s_cbranch_scc0 .Lrest", ".Lbatch:",
            *row(), *row(*fix), "s_cmp_gt_u32 s11, 2", "s_cbranch_scc1 .Lbatch", ".Lrest:")


THREATS = (
    equal("two rows at a time by a signed index", "column_sum", edited(
        replaced("s_mov_b32 s11, s8", *batched()))),
    equal("what is loaded under a condition is selected by its mask", "column_sum", edited(
        replaced(_BRANCH, *gathered("s[14:15]"), nth=1, drop=6))),
    equal("the mask of a selection is kept elsewhere", "column_sum", edited(
        before("s_and_saveexec_b64 s[16:17]", "s_mov_b64 s[20:21], s[14:15]"),
        replaced(_BRANCH, *gathered("s[20:21]"), nth=1, drop=6))),
    equal("an address is copied as a pair", "column_sum", edited(
        replaced("global_load_dword v10", "v_mov_b64_e32 v[14:15], v[6:7]",
                 "global_load_dword v10, v[14:15], off"))),
    equal("the end of a loop somewhere else", "column_sum", edited(
        replaced("s_cbranch_scc1", "s_cbranch_scc0 .Lout", "s_branch .Lagain", ".Lout:"),
        replaced("v_ashrrev_i32_e32 v5", ".Lagain:", "v_ashrrev_i32_e32 v5, 31, v4"))),
)
