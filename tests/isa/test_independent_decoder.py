"""Lengths, names and registers against a decoder that shares nothing with LLVM.

The `tinygrad` wheel decodes CDNA3 and CDNA4 machine code by tables generated from AMD's
machine-readable ISA description. What is compared goes through LLVM's text and our parser on one
side, and through those tables on the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from tinygrad.renderer.amd import decode_inst
from tinygrad.renderer.amd.dsl import Inst, Reg

from asmevo.codeobject import disassemble
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.target import Target
from asmevo.codeobject.toolchain import ZigToolchain
from asmevo.isa.instruction import Instruction, OperandKind
from asmevo.isa.parse import parse
from asmevo.isa.registers import AGPR0, M0, VCC_MASK, VGPR0, mask
from asmevo.isa.targets import targets_of

_EXAMPLES = Path(__file__).with_name("operations.s")
_LONGEST = 16

Encoded = list[tuple[bytes, Instruction]]

# Known differences. The decoder does not try typed buffers and has no vector operand for a global
# barrier; it calls mixed-precision operations by the names of an older architecture.
_NOT_DECODED = re.compile(r"tbuffer_\w+|ds_gws_(?:init|barrier|sema_br)")
_OTHER_NAMES = {"v_fma_mix_f32": "v_mad_mix_f32", "v_fma_mixlo_f16": "v_mad_mixlo_f16",
                "v_fma_mixhi_f16": "v_mad_mixhi_f16"}
# Its fields for memory addresses have fixed widths and exist where an operation has none.
_ALU_FORMATS = ("SOP", "VOP", "DS")
# VCC where the encoding fixes it, the scalar result in a vector field, xf32 and scales.
_NOT_IN_FIELDS = re.compile(r"v_readfirstlane_b32|v_mfma_\w+_xf32|v_mfma_scale_\w+")


@pytest.fixture(scope="module", params=["gfx942", "gfx950"])
def examples(request: pytest.FixtureRequest) -> Encoded:
    """One instruction of every operation."""
    target = Target(request.param)
    lines = [line for line in _EXAMPLES.read_text().splitlines() if not line.startswith("//")]
    lines = [line for line in lines if request.param in targets_of(parse(line).op)]
    relocatable = ZigToolchain().assemble("\n".join([*lines, ""]), target)
    section = ELFFile(BytesIO(relocatable)).get_section_by_name(".text")
    assert section is not None
    return _encoded(section.data(), target)


def _encoded(code: bytes, target: Target) -> Encoded:
    return [(code[offset:offset + size], parse(text))
            for offset, size, text in disassemble.rows(code, target)]


def _decode(code: bytes) -> Inst:
    return decode_inst(code.ljust(_LONGEST, b"\0"), "cdna")


def _name(inst: Inst) -> str:
    name = re.sub(r"_e(?:32|64)$", "", inst.op_name.lower())
    return f"{name}_b32" if name in ("v_accvgpr_read", "v_accvgpr_write") else name


def _registers(inst: Inst) -> int:
    """All registers in operand fields; AGPRs count as VGPRs of the same number."""
    found = 0
    for field, count in inst.op_regs.items():
        value = getattr(inst, field, None)
        if isinstance(value, Reg) and (value.offset < 102 or value.offset in (106, 126, M0)
                                       or value.offset >= VGPR0):
            found |= mask(value.offset, count)
    return found


def _written(instruction: Instruction) -> int:
    found = 0
    for operand in instruction.operands:
        if operand.kind is OperandKind.REGISTER:
            first = operand.first - (AGPR0 - VGPR0 if operand.first >= AGPR0 else 0)
            found |= mask(first, operand.count)
    return found


def test_every_operation_decodes_to_its_length_and_name(examples: Encoded) -> None:
    refused = set()
    for code, instruction in examples:
        if _NOT_DECODED.fullmatch(instruction.op):
            refused.add(instruction.op)
            with pytest.raises(ValueError, match="unknown cdna format"):
                _decode(code)
            continue
        inst = _decode(code)
        assert inst.size() == len(code), instruction.text
        assert _name(inst) == _OTHER_NAMES.get(instruction.op, instruction.op)
    assert len(refused) == 19


def test_alu_operands_are_the_registers_of_the_encoding(examples: Encoded) -> None:
    compared = 0
    for code, instruction in examples:
        if _NOT_DECODED.fullmatch(instruction.op) or _NOT_IN_FIELDS.fullmatch(instruction.op):
            continue
        inst = _decode(code)
        if not type(inst).__name__.startswith(_ALU_FORMATS):
            continue
        implied = VCC_MASK if instruction.encoding in ("e32", "dpp", "sdwa") else 0
        assert _registers(inst) & ~implied == _written(instruction) & ~implied, instruction.text
        compared += 1
    assert compared > 800


@pytest.mark.parametrize("isa", ["gfx942", "gfx950"])
def test_real_code_decodes_to_the_same_instructions(
        families: Callable[[str], list[CodeObject]], isa: str) -> None:
    seen: dict[str, tuple[bytes, Instruction]] = {}
    for code_object in families(isa):
        for kernel in code_object.kernels:
            for code, instruction in _encoded(code_object.code(kernel), code_object.target):
                seen.setdefault(re.sub(r"\d+", "0", instruction.text), (code, instruction))
    assert len(seen) > 200
    for code, instruction in seen.values():
        inst = _decode(code)
        assert inst.size() == len(code), instruction.text
        assert _name(inst) == instruction.op
