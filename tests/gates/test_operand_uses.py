"""Which values of the launch reach vector and memory instructions."""

from __future__ import annotations

import pytest

from asmevo.gates.operand_uses import OperandUses, changed_operands
from asmevo.isa.program import Program
from asmevo.isa.registers import EXEC_HI, EXEC_LO, VGPR0
from asmevo.isa.value_numbers import Numbers, Taint
from asmevo.isa.values import KERNARG_POINTER, Source, Values

ENTRY = {
    0: Source(f"{KERNARG_POINTER} word 0", Taint.KERNARG),
    1: Source(f"{KERNARG_POINTER} word 1", Taint.KERNARG),
    2: Source("workgroup id x", Taint.WORKGROUP), VGPR0: Source("work-item id", Taint.WORK_ITEM),
    EXEC_LO: Source("exec", value=-1), EXEC_HI: Source("exec", value=-1),
}
POINTERS = {0, 4}

# A buffer of 2 GiB, rows of 1 KiB times the argument at 0x10, and one argument for the data.
ORIGINAL = """
s_load_dwordx2 s[4:5], s[0:1], 0x0
s_load_dword s6, s[0:1], 0x10
s_load_dword s7, s[0:1], 0x14
s_waitcnt lgkmcnt(0)
s_mov_b32 s8, s4
s_mov_b32 s9, s5
s_mov_b32 s10, 0x80000000
s_mov_b32 s11, 0x20000
s_mul_i32 s12, s2, s6
s_lshl_b32 s12, s12, 10
v_lshlrev_b32_e32 v1, 2, v0
v_add_u32_e32 v1, s12, v1
v_mov_b32_e32 v2, s7
buffer_store_dword v2, v1, s[8:11], 0 offen
s_endpgm
"""


def uses(text: str, numbers: Numbers, *, original: bool) -> tuple[OperandUses, Program]:
    lines = text.strip().splitlines()
    program = Program.from_disassembly([(4 * i, 4, line) for i, line in enumerate(lines)], {})
    return OperandUses.of(Values(program, ENTRY, numbers), POINTERS, original=original), program


def found(*edits: tuple[str, str]) -> list[str]:
    candidate = ORIGINAL
    for old, new in edits:
        assert old in candidate
        candidate = candidate.replace(old, new)
    numbers = Numbers()
    before, _ = uses(ORIGINAL, numbers, original=True)
    after, program = uses(candidate, numbers, original=False)
    return [code for code, _ in changed_operands(before, after, program, numbers)]


def test_the_original_changes_nothing() -> None:
    assert found() == []


@pytest.mark.parametrize("edits", [
    # The length of the buffer: linear, and zero at chosen sizes.
    (("s_mov_b32 s10, 0x80000000",
      "s_mul_i32 s10, s6, 0xffe00000\ns_add_u32 s10, s10, 0x80000000"),),
    (("s_mov_b32 s10, 0x80000000",
      "s_add_u32 s13, s6, -2\ns_add_u32 s14, s6, -4\ns_mul_i32 s13, s13, s14\n"
      "s_add_u32 s10, s13, 0x80000000"),),
    # The address of the buffer.
    (("s_mov_b32 s8, s4", "s_add_u32 s8, s4, s6"),),
    (("s_mov_b32 s8, s4", "s_add_u32 s8, s4, s2"),),
    # Offsets and data.
    (("v_add_u32_e32 v1, s12, v1", "s_add_u32 s12, s12, s6\nv_add_u32_e32 v1, s12, v1"),),
    (("v_mov_b32_e32 v2, s7", "s_mul_i32 s7, s7, s6\nv_mov_b32_e32 v2, s7"),),
    (("v_mov_b32_e32 v2, s7", "v_mov_b32_e32 v2, s6"),),
    # Arguments as data of a vector load.
    (("v_mov_b32_e32 v2, s7", "v_mov_b32_e32 v3, 0\nglobal_load_dword v2, v3, s[0:1]"),),
    # Through LDS.
    (("s_mov_b32 s10, 0x80000000",
      "v_mov_b32_e32 v4, 0\nds_read_b32 v5, v4\nv_readfirstlane_b32 s10, v5"),),
    (("v_mov_b32_e32 v2, s7", "v_mov_b32_e32 v2, s7\nv_mov_b32_e32 v4, 0\nds_write_b32 v4, v2\n"
                               "ds_read_b32 v5, v4\nv_add_u32_e32 v1, v1, v5"),),
    # Another argument, of which the original makes the same elsewhere.
    (("s_mul_i32 s12, s2, s6", "s_mul_i32 s13, s2, s6\ns_mul_i32 s12, s2, s7"),),
    # The same arguments, in another sum.
    (("v_add_u32_e32 v1, s12, v1", "v_add_u32_e32 v1, s12, v1\nv_add_u32_e32 v1, s12, v1"),),
    # The length and the format, constants as before.
    (("s_mov_b32 s10, 0x80000000", "s_mov_b32 s10, 0x200000"),),
    (("s_mov_b32 s11, 0x20000", "s_mov_b32 s11, 0x24000"),),
])
def test_values_that_the_original_does_not_use(edits: tuple[tuple[str, str], ...]) -> None:
    assert set(found(*edits)) & {"new-launch-operand", "new-launch-address"}


@pytest.mark.parametrize("edits", [
    (("s12", "s20"),),
    (("s_lshl_b32 s12, s12, 10", "s_mul_i32 s12, s12, 0x400"),),
    (("s_mul_i32 s12, s2, s6\ns_lshl_b32 s12, s12, 10",
      "s_lshl_b32 s12, s6, 10\ns_mul_i32 s12, s12, s2"),
     ("s_mul_i32 s12, s12, s2", "s_mul_i32 s12, s2, s6\ns_mul_i32 s12, s12, 0x400")),
    (("s_mov_b32 s8, s4\ns_mov_b32 s9, s5\n", "s_mov_b32 s9, s5\ns_mov_b32 s8, s4\n"),),
    (("v_lshlrev_b32_e32 v1, 2, v0\nv_add_u32_e32 v1, s12, v1", "v_lshl_add_u32 v1, v0, 2, s12"),),
    (("s_mov_b32 s10, 0x80000000", "s_mov_b32 s10, 1\ns_lshl_b32 s10, s10, 31"),),
    (("0 offen", "0 offen offset:0"),),
    # The same sum, in other parts.
    (("v_add_u32_e32 v1, s12, v1\n", ""), ("s[8:11], 0 offen", "s[8:11], s12 offen")),
    (("v_add_u32_e32 v1, s12, v1", "v_add_u32_e32 v1, s12, v1\nv_add_u32_e32 v1, -16, v1"),
     ("0 offen", "0 offen offset:16")),
])
def test_other_ways_to_write_the_same(edits: tuple[tuple[str, str], ...]) -> None:
    assert found(*edits) == []
