"""The opcode table against LLVM's assembler and disassembler."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from asmevo.codeobject import disassemble
from asmevo.codeobject.target import Target
from asmevo.codeobject.toolchain import ZigToolchain
from asmevo.isa import opcodes
from asmevo.isa.instruction import Instruction, Unit
from asmevo.isa.matrix_timing import passes
from asmevo.isa.parse import parse
from asmevo.isa.program import Program
from asmevo.isa.targets import TARGETS, operations, targets_of

_EXAMPLES = Path(__file__).with_name("operations.s")


def _through_llvm(lines: list[str], isa: str = "gfx942") -> list[Instruction]:
    """What LLVM prints for the machine code it makes of each line."""
    target = Target(isa)
    relocatable = ZigToolchain().assemble("\n".join([*lines, ""]), target)
    section = ELFFile(BytesIO(relocatable)).get_section_by_name(".text")
    assert section is not None
    texts = [text for _, _, text in disassemble.rows(section.data(), target)]
    assert len(texts) == len(lines)
    printed = [parse(text) for text in texts]
    assert [instruction.text for instruction in printed] == texts
    return printed


@pytest.mark.parametrize("isa", TARGETS)
def test_llvm_knows_every_operation_and_its_operands(isa: str) -> None:
    lines = [line for line in _EXAMPLES.read_text().splitlines() if not line.startswith("//")]
    assert [parse(line).op for line in lines] == list(opcodes.OPCODES)
    lines = [line for line in lines if isa in targets_of(parse(line).op)]
    written = [parse(line) for line in lines]
    assert tuple(i.op for i in written) == operations(isa)
    for ours, llvm in zip(written, _through_llvm(lines, isa), strict=True):
        assert (ours.mnemonic, ours.reads, ours.writes, ours.unit) == (
            llvm.mnemonic, llvm.reads, llvm.writes, llvm.unit)


@pytest.mark.parametrize("line", [
    "v_add_f32 v0, v1, v2", "v_add_f32 v0, 0x1234, v2", "v_add_f32 v0, v1, s2",
    "v_add_f32 v0, -v1, v2", "v_add_f32 v0, |v1|, v2", "v_add_f32 v0, v1, v2 clamp",
    "v_add_f32 v0, v1, v2 mul:2", "v_mov_b32 v0, s1", "v_rcp_f32 v0, -v1", "v_fmac_f32 v0, s1, v2",
    "v_fmac_f32 v0, v1, s2", "v_cmp_lt_u32 vcc, s0, v1", "v_cmp_lt_u32 vcc, v1, s0",
    "v_cmp_lt_u32 s[0:1], v1, v2", "v_cndmask_b32 v0, v1, v2, vcc", "v_cndmask_b32 v0, 0, 1, vcc",
    "v_cndmask_b32 v0, v1, v2, s[0:1]", "v_add_co_u32 v0, vcc, v1, v2",
    "v_add_co_u32 v0, s[0:1], v1, v2", "v_addc_co_u32 v0, vcc, v1, v2, vcc",
    "v_addc_co_u32 v0, vcc, 0, 0, vcc", "v_addc_co_u32 v0, s[0:1], v1, v2, vcc",
    "v_mov_b32 v0, v1 row_shr:1 row_mask:0xf bank_mask:0xf",
    "v_add_u32 v0, v1, v2 dst_sel:BYTE_0 dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:WORD_1",
    "v_ldexp_f16 v0, v1, v2", "v_not_b32 v0, v1", "v_mul_lo_u32 v0, v1, v2", "v_mov_b64 v[0:1], 0"])
def test_a_missing_suffix_is_the_one_llvm_chooses(line: str) -> None:
    ours, (llvm,) = parse(line), _through_llvm([line])
    assert (ours.mnemonic, ours.encoding, ours.reads, ours.writes) == (
        llvm.mnemonic, llvm.encoding, llvm.reads, llvm.writes)


def test_suffixes_of_real_code_are_found_again(small_kernels: list[Program]) -> None:
    suffixed = {i for p in small_kernels for i in p.instructions if i.encoding in ("e32", "e64")}
    assert len(suffixed) > 400
    for instruction in suffixed:
        bare = instruction.text.replace(instruction.mnemonic, instruction.op, 1)
        found = parse(bare)
        if found.encoding != instruction.encoding:
            # The author asked for e64 where e32 would do.
            assert (instruction.encoding, found.encoding) == ("e64", "e32")
        assert (found.reads, found.writes) == (instruction.reads, instruction.writes)


@pytest.mark.parametrize(("isa", "counts"), [
    ("gfx90a", {2, 4, 8, 16}), ("gfx942", {2, 4, 8, 16}), ("gfx950", {2, 4, 8, 16})])
def test_every_matrix_operation_has_a_duration(isa: str, counts: set[int]) -> None:
    lines = [line for line in _EXAMPLES.read_text().splitlines() if not line.startswith("//")]
    matrix = [i for i in map(parse, lines) if i.unit is Unit.MFMA and isa in targets_of(i.op)]
    assert len(matrix) > 25
    assert {passes(i, isa) for i in matrix} == counts
