"""Edits that leave what the launch decides alone, and edits after which one must look again."""

from __future__ import annotations

import pytest

from asmevo.gates.launch_uses import LaunchUses
from asmevo.gates.operand_uses import OperandUses
from asmevo.gates.skeleton import Skeletons
from asmevo.isa.registers import EXEC_HI, EXEC_LO, VGPR0
from asmevo.isa.value_numbers import Numbers, Taint
from asmevo.isa.values import KERNARG_POINTER, Source, Values
from tests.gates.listing import written

ENTRY = {
    0: Source(f"{KERNARG_POINTER} word 0", Taint.KERNARG),
    1: Source(f"{KERNARG_POINTER} word 1", Taint.KERNARG),
    2: Source("workgroup id x", Taint.WORKGROUP), VGPR0: Source("work-item id", Taint.WORK_ITEM),
    EXEC_LO: Source("exec", value=-1), EXEC_HI: Source("exec", value=-1),
}

ORIGINAL = """
    s_load_dword s6, s[0:1], 0x10
    s_waitcnt lgkmcnt(0)
    v_lshlrev_b32_e32 v1, 2, v0
    v_cmp_gt_u32_e32 vcc, s6, v1
    s_and_saveexec_b64 s[8:9], vcc
    s_cbranch_execz end
    v_mov_b32_e32 v2, 0
    ds_read_b32 v3, v1
    again:
    v_add_f32_e32 v2, v3, v2
    s_sub_u32 s6, s6, 1
    s_cmp_lg_u32 s6, 0
    s_cbranch_scc1 again
    end:
    s_endpgm
"""


def same(*changes: tuple[str, str], original: str = ORIGINAL) -> bool:
    """Whether the gate would take the original's findings for the candidate's."""
    text = original
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    before = written(original)
    values = Values(before, ENTRY, Numbers())
    LaunchUses.of(values)
    OperandUses.of(values, (), original=True)
    skeletons = Skeletons(values.followed, values.carriers)
    return skeletons.of(before) == skeletons.of(written(text))


@pytest.mark.parametrize("changes", [
    (),
    (("v_mov_b32_e32 v2, 0", "s_nop 0\n v_mov_b32_e32 v2, 0"),),
    (("v_mov_b32_e32 v2, 0\n    ds_read_b32 v3, v1",
      "ds_read_b32 v3, v1\n    v_mov_b32_e32 v2, 0"),),
    (("v_add_f32_e32 v2, v3, v2", "v_add_f32_e32 v2, v2, v3"),),
    (("s_waitcnt lgkmcnt(0)", "s_waitcnt vmcnt(0) lgkmcnt(0)"),),
])
def test_what_leads_to_no_decision_may_change(changes: tuple[tuple[str, str], ...]) -> None:
    assert same(*changes)


@pytest.mark.parametrize("changes", [
    (("v_lshlrev_b32_e32 v1, 2, v0", "v_lshlrev_b32_e32 v1, 3, v0"),),
    (("v_add_f32_e32 v2, v3, v2", "v_add_f32_e32 v2, v3, v1"),),
    (("ds_read_b32 v3, v1", "ds_read_b32 v3, v2"),),
    (("v_mov_b32_e32 v2, 0\n    ds_read_b32 v3, v1",
      "ds_read_b32 v3, v1\n v_add_u32_e32 v1, 4, v1\n v_mov_b32_e32 v2, 0"),),
    (("v_mov_b32_e32 v2, 0", "v_mov_b32_e32 v1, 0"),),
    (("s_sub_u32 s6, s6, 1", "s_sub_u32 s6, s6, 2"),),
    (("again:\n    v_add_f32_e32 v2, v3, v2\n    s_sub_u32 s6, s6, 1",
      "v_add_f32_e32 v2, v3, v2\n    s_sub_u32 s6, s6, 1\n    again:"),),
    (("s_cbranch_scc1 again", "s_cbranch_scc0 again"),),
    (("ds_read_b32 v3, v1", "v_mov_b32_e32 v3, s6"),),
    (("v_mov_b32_e32 v2, 0", "v_readfirstlane_b32 s6, v2\n v_mov_b32_e32 v2, 0"),),
    (("s_cbranch_execz end\n", ""),),
    (("v_mov_b32_e32 v2, 0", "s_memtime s[20:21]\n v_mov_b32_e32 v2, 0"),),
])
def test_what_may_lead_to_one_is_looked_at(changes: tuple[tuple[str, str], ...]) -> None:
    assert not same(*changes)


def test_with_indexed_registers_everything_counts() -> None:
    indexed = ORIGINAL.replace("v_mov_b32_e32 v2, 0", "s_set_gpr_idx_on s6, gpr_idx(DST)\n"
                               "v_mov_b32_e32 v2, 0\n s_set_gpr_idx_off")
    assert same(original=indexed)
    assert not same(("v_mov_b32_e32 v2, 0", "v_mov_b32_e32 v5, 0"), original=indexed)
