"""What each processor has: LLVM's disassembler over the whole opcode space is the reference."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator

import pytest

from asmevo.codeobject import disassemble
from asmevo.codeobject.target import Target
from asmevo.isa import opcodes
from asmevo.isa.errors import TargetError
from asmevo.isa.hazards import hazards
from asmevo.isa.instruction import Instruction, Unit
from asmevo.isa.matrix_timing import MatrixClass, matrix_class, passes
from asmevo.isa.parse import parse
from asmevo.isa.program import Program
from asmevo.isa.targets import TARGETS, model, operations, targets_of

# A register number that starts a tuple of any size in both files, and its code as VALU source.
_REGISTER = 16
_VECTOR = 256 + _REGISTER
_NOP = 0xBF800000


def _word(*fields: tuple[int, int]) -> int:
    """An instruction word from (value, lowest bit) pairs."""
    word = 0
    for value, position in fields:
        word |= value << position
    return word


def _scalar() -> Iterator[list[int]]:
    """SOP1, SOP2, SOPC, SOPK, SOPP and SMEM (CDNA3 ISA, "Microcode Formats")."""
    for op in range(256):
        yield [_word((0b101111101, 23), (_REGISTER, 16), (op, 8), (_REGISTER, 0))]
        for immediate in (0, 1):
            yield [_word((0b110000, 26), (op, 18), (immediate, 17), (_REGISTER, 6),
                         (_REGISTER // 2, 0)), 0]
    for op in range(128):
        yield [_word((0b10, 30), (op, 23), (_REGISTER, 16), (_REGISTER, 8), (_REGISTER, 0))]
        yield [_word((0b101111110, 23), (op, 16), (_REGISTER, 8), (_REGISTER, 0))]
        for immediate in (0, 1):
            yield [_word((0b101111111, 23), (op, 16), (immediate, 0))]
    for op in range(32):
        yield [_word((0b1011, 28), (op, 23), (_REGISTER, 16), (1, 0))]


def _vector() -> Iterator[list[int]]:
    """VOP1, VOP2, VOPC, VOP3 and VOP3P; unused operand fields must be zero."""
    for op in range(256):
        yield [_word((0b0111111, 25), (_REGISTER, 17), (op, 9), (_VECTOR, 0))]
        yield [_word((0b0111110, 25), (op, 17), (_REGISTER, 9), (_VECTOR, 0))]
    for op in range(62):
        yield [_word((op, 25), (_REGISTER, 17), (_REGISTER, 9), (_VECTOR, 0)), _NOP]
    for op in range(1024):
        for second, third in ((_VECTOR, _VECTOR), (_VECTOR, _REGISTER), (_REGISTER, 0),
                              (_VECTOR, 0), (0, 0)):
            yield [_word((0b110100, 26), (op, 16), (_REGISTER, 0)),
                   _word((_VECTOR, 0), (second, 9), (third, 18))]
        yield [_word((0b110100, 26), (op, 16), (_REGISTER, 8), (_REGISTER, 0)),
               _word((_VECTOR, 0), (_VECTOR, 9), (_VECTOR, 18))]
        yield [_word((0b110100, 26), (op, 16)), 0]
    for op in range(128):
        for high in (0, 3):
            yield [_word((0b110100111, 23), (op, 16), (high & 1, 14), (_REGISTER, 0)),
                   _word((_VECTOR, 0), (_VECTOR, 9), (_VECTOR, 18), (high, 27))]
    for op in (0x2D, 0x2E):
        # Two more words in front give scales to a matrix operation.
        yield [_word((0b110100111, 23), (0x2C, 16)), _word((_VECTOR, 0), (_VECTOR, 9)),
               _word((0b110100111, 23), (op, 16), (1, 11), (_REGISTER, 0)),
               _word((_VECTOR, 0), (_VECTOR, 9), (_VECTOR, 18))]


def _memory() -> Iterator[list[int]]:
    """DS, MUBUF, MTBUF and FLAT with all subsets of operands."""
    for op, gds in itertools.product(range(256), (0, 1)):
        for data in itertools.product((_REGISTER, 0), repeat=4):
            yield [_word((0b110110, 26), (op, 17), (gds, 16)),
                   _word(*zip(data, (24, 16, 8, 0), strict=True))]
    for op in range(128):
        yield [_word((0b111000, 26), (op, 18)), 0]
        for lds, returning in itertools.product((0, 1), repeat=2):
            yield [_word((0b111000, 26), (op, 18), (lds, 16), (returning, 14), (1, 12)),
                   _word((_REGISTER, 24), (_REGISTER // 4, 16), (_REGISTER, 8), (_REGISTER, 0))]
        for segment, returning in itertools.product(range(3), (0, 1)):
            for address in (_REGISTER, 0x7F, 0):
                yield [_word((0b110111, 26), (op, 18), (returning, 16), (segment, 14)),
                       _word((_REGISTER, 24), (address, 16), (_REGISTER, 8), (_REGISTER, 0))]
    for op in range(16):
        yield [_word((0b111010, 26), (4, 23), (1, 19), (op, 15), (1, 12)),
               _word((_REGISTER, 24), (_REGISTER // 4, 16), (_REGISTER, 8), (_REGISTER, 0))]


def _decoded(isa: str) -> dict[str, str]:
    """Every mnemonic that LLVM prints for a processor, with one text."""
    words = [word for item in itertools.chain(_scalar(), _vector(), _memory())
             for word in (*item, _NOP, _NOP)]
    found: dict[str, str] = {}
    for _, _, text in disassemble.rows(struct.pack(f"<{len(words)}I", *words), Target(isa)):
        if not text.startswith("."):
            found.setdefault(text.partition(" ")[0], text)
    return found


@pytest.mark.parametrize("isa", TARGETS)
def test_the_table_has_what_llvm_decodes_and_nothing_else(isa: str) -> None:
    decoded = _decoded(isa)
    assert len(decoded) > 1300
    known = {opcodes.find(mnemonic) for mnemonic in decoded}
    ops = {entry[0] for entry in known if entry is not None}
    assert {m for m in decoded if opcodes.find(m) is None} == {
        op for op in opcodes.UNMODELLED if op in decoded}
    assert ops == set(operations(isa))
    for mnemonic, text in decoded.items():
        if mnemonic not in opcodes.UNMODELLED and text != "s_endpgm 1":
            assert parse(text).text == text


def test_every_unmodelled_operation_exists_somewhere() -> None:
    decoded = {mnemonic for isa in TARGETS for mnemonic in _decoded(isa)}
    assert decoded >= opcodes.UNMODELLED


def test_processors() -> None:
    assert model("gfx941") == "gfx942"
    assert targets_of("v_mfma_f32_32x32x8f16") == {"gfx90a"}
    assert targets_of("v_mfma_f32_32x32x4_xf32") == {"gfx942"}
    assert targets_of("v_permlane16_swap_b32") == {"gfx950"}
    assert targets_of("v_add_f32") == set(TARGETS)
    with pytest.raises(TargetError, match="gfx1100"):
        operations("gfx1100")
    program = Program.from_disassembly([(0, 4, "s_endpgm")], {}, isa="gfx908")
    with pytest.raises(TargetError, match="gfx908"):
        hazards(program)


# AMD's matrix instruction calculator, "Execution cycles" divided by four.
@pytest.mark.parametrize(("isa", "text", "expected", "kind"), [
    ("gfx90a", "v_mfma_f32_16x16x16f16 v[0:3], v[4:5], v[6:7], v[0:3]", 8, "xdl"),
    ("gfx942", "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3]", 4, "xdl"),
    ("gfx90a", "v_mfma_f32_32x32x2f32 v[0:15], v16, v17, v[0:15]", 16, "xdl"),
    ("gfx942", "v_mfma_f32_32x32x2_f32 v[0:15], v16, v17, v[0:15]", 16, "f32"),
    ("gfx90a", "v_mfma_f64_16x16x4f64 v[0:7], v[8:9], v[10:11], v[0:7]", 8, "f64-16x16"),
    ("gfx942", "v_mfma_f64_16x16x4_f64 v[0:7], v[8:9], v[10:11], v[0:7]", 8, "f64-16x16"),
    ("gfx950", "v_mfma_f64_16x16x4_f64 v[0:7], v[8:9], v[10:11], v[0:7]", 16, "f64-16x16"),
    ("gfx950", "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], v[0:3]", 8, "xdl"),
    ("gfx950", "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:9], v[12:15], v[0:3] cbsz:2 blgp:4",
     4, "xdl"),
    ("gfx950", "v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[16:21], v[24:31], v[0:15] cbsz:2 blgp:1",
     16, "xdl"),
])
def test_passes(isa: str, text: str, expected: int, kind: str) -> None:
    instruction = parse(text)
    assert passes(instruction, isa) == expected
    assert matrix_class(instruction.op, isa) is MatrixClass(kind)


def test_only_matrix_operations_have_passes() -> None:
    instruction: Instruction = parse("v_add_f32_e32 v0, v1, v2")
    assert instruction.unit is Unit.VALU
    with pytest.raises(ValueError, match="v_add_f32"):
        passes(instruction, "gfx942")
