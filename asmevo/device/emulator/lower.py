"""Decoded instructions to the records that the emulator's core executes.

The core's operation table decides what exists and how its operands are laid out; this module knows
how LLVM writes each operand shape. Whatever does not fit raises `UnsupportedError` by name.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache

import asmevo_core as core
import numpy as np
import numpy.typing as npt

from asmevo.device.device import UnsupportedError
from asmevo.isa import registers
from asmevo.isa.instruction import Instruction, Operand, OperandKind
from asmevo.isa.parse import parse
from asmevo.isa.program import Program

_CODES = {(1, False): "B", (2, False): "H", (4, False): "I", (4, True): "i"}
_FIELDS = tuple(name for name, _, _, _ in core.RECORD_FIELDS)
_LAYOUT = struct.Struct(
    "<" + "".join(_CODES[size, signed] for _, _, size, signed in core.RECORD_FIELDS) + "x")
_TARGET = np.dtype({
    "names": ["target"], "formats": ["<i4"], "itemsize": core.RECORD_SIZE,
    "offsets": [offset for name, offset, _, _ in core.RECORD_FIELDS if name == "target"],
})
_FLAGS = dict(core.FLAGS)
_TRAITS = dict(core.TRAITS)

# DPP modifier -> (base of the control value, whether the number is added to it).
_DPP_CONTROLS = {
    "row_shl": 0x100, "row_shr": 0x110, "row_ror": 0x120, "row_newbcast": 0x150,
    "wave_shl": 0x12F, "wave_rol": 0x133, "wave_shr": 0x137, "wave_ror": 0x13B,
}
_DPP_FIXED = {"row_mirror": 0x140, "row_half_mirror": 0x141}
_DPP_BROADCASTS = {15: 0x142, 31: 0x143}
_DPP_MODIFIERS = frozenset({
    *_DPP_CONTROLS, *_DPP_FIXED, "quad_perm", "row_bcast", "row_mask", "bank_mask", "bound_ctrl"})
# Cache policy: it decides when other agents see a store, not what one launch computes.
_CACHE_MODIFIERS = frozenset({"sc0", "sc1", "nt"})


class _NotModelledError(Exception):
    """Why one instruction cannot run; becomes an `UnsupportedError` with pc and text."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One row of the core's operation table."""

    number: int
    shape: str
    dst_words: int
    src_words: tuple[int, int, int]
    traits: int

    def has(self, trait: str) -> bool:
        return bool(self.traits & _TRAITS[trait])


OPERATIONS = {
    name: Operation(number, shape, dst_words, src_words, traits)
    for number, (name, shape, dst_words, src_words, traits) in enumerate(core.OPERATIONS)
}


@dataclass(slots=True)
class _Record:
    """Fields of a record that differ from their default."""

    values: dict[str, int] = field(default_factory=dict)

    def pack(self, operation: Operation) -> bytes:
        defaults = {"dst": core.ABSENT, "sdst": core.ABSENT, "src0": core.ABSENT,
                    "src1": core.ABSENT, "src2": core.ABSENT}
        merged = {**defaults, **self.values, "op": operation.number}
        return _LAYOUT.pack(*(merged.get(name, 0) for name in _FIELDS))

    def flag(self, name: str) -> None:
        self.values["flags"] = self.values.get("flags", 0) | _FLAGS[name]

    def source(self, slot: int, operand: Operand, words: int) -> None:
        """A source register or constant of ``words`` dwords."""
        if operand.sext:
            raise _NotModelledError("sext() is not modelled")
        if operand.kind is OperandKind.REGISTER:
            if operand.count != words:
                raise _NotModelledError(f"operand '{operand.text}' should have {words} dwords")
            self.values[f"src{slot}"] = operand.first
        elif operand.kind is OperandKind.CONSTANT:
            self.values[f"src{slot}"] = core.CONSTANT
            self.values[f"literal_lo{slot}"] = operand.value
            self.values[f"literal_hi{slot}"] = _high_half(operand, words)
        else:
            raise _NotModelledError(f"operand '{operand.text}' is not modelled")
        for name, given in (("neg", operand.neg), ("abs", operand.abs)):
            if given:
                self.values[name] = self.values.get(name, 0) | 1 << slot


def _high_half(operand: Operand, words: int) -> int:
    """The upper dword of a constant used as a 64-bit source.

    Inline integers are sign-extended, literals zero-extended (CDNA3 ISA, "Scalar Operands").
    """
    if words == 1:
        return 0
    if words != 2:
        raise _NotModelledError(f"constant '{operand.text}' of {words} dwords is not modelled")
    if "." in operand.text:
        raise _NotModelledError("floating-point constants of 64-bit operands are not modelled")
    return 0xFFFFFFFF if operand.text.startswith("-") else 0


def _register(operand: Operand, words: int) -> int:
    if operand.kind is not OperandKind.REGISTER or operand.count != words:
        raise _NotModelledError(f"operand '{operand.text}' should be a register of {words} dwords")
    return operand.first


def _number(instruction: Instruction, name: str, default: int = 0) -> int:
    value = instruction.modifier(name)
    if value is None:
        return default
    if not isinstance(value, int):
        raise _NotModelledError(f"modifier '{name}' is not modelled in this form")
    return value


def _allow(instruction: Instruction, names: frozenset[str]) -> None:
    for name, _ in instruction.modifiers:
        if name not in names:
            raise _NotModelledError(f"modifier '{name}' is not modelled")


def _expect(operands: tuple[Operand, ...], count: int) -> None:
    if len(operands) != count:
        raise _NotModelledError(f"expected {count} operands, found {len(operands)}")


def _scalar(record: _Record, instruction: Instruction, operation: Operation) -> None:
    _allow(instruction, frozenset())
    operands = list(instruction.operands)
    if operation.has("reads_dst"):
        operands.insert(1, operands[0])
    if operation.dst_words:
        record.values["dst"] = _register(operands.pop(0), operation.dst_words)
    words = [w for w in operation.src_words if w]
    _expect(tuple(operands), len(words))
    for slot, (operand, count) in enumerate(zip(operands, words, strict=True)):
        record.source(slot, operand, count)
    if operation.has("simm16"):
        slot = len(words) - 1
        value = operands[-1].value
        if operands[-1].kind is not OperandKind.CONSTANT:
            raise _NotModelledError("the immediate is missing")
        signed = (value & 0xFFFF) - ((value & 0x8000) << 1)
        record.values[f"literal_lo{slot}"] = signed & 0xFFFFFFFF


def _branch(record: _Record, instruction: Instruction, operation: Operation) -> None:
    _allow(instruction, frozenset())


def _control(record: _Record, instruction: Instruction, operation: Operation) -> None:
    _allow(instruction, frozenset())
    if instruction.wait is not None:
        vmcnt, lgkmcnt = instruction.wait.vmcnt, instruction.wait.lgkmcnt
        record.values["imm0"] = -1 if vmcnt is None else vmcnt
        record.values["imm1"] = -1 if lgkmcnt is None else lgkmcnt
        return
    operands = instruction.operands
    if operation.src_words[0]:
        record.source(0, operands[0], 1)
        operands = operands[1:]
    if operands:
        record.values["imm0"] = operands[0].value


def _scalar_load(record: _Record, instruction: Instruction, operation: Operation) -> None:
    _allow(instruction, frozenset({"offset", "glc"}))
    if operation.has("atomic") and instruction.modifier("glc"):
        record.flag("return")
    _expect(instruction.operands, 3)
    data, base, offset = instruction.operands
    record.values["dst"] = _register(data, operation.dst_words)
    record.source(0, base, 2)
    immediate = _number(instruction, "offset")
    if offset.kind is OperandKind.CONSTANT:
        immediate += offset.value - ((offset.value & 0x80000000) << 1)
    else:
        record.source(1, offset, 1)
    record.values["imm0"] = immediate


# SDWA select -> its code (CDNA3 ISA, "SDWA").
_SDWA_SELECTS = {name: code for code, name in enumerate(
    ("BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"))}
_SDWA_UNUSED = {"UNUSED_PAD": 0, "UNUSED_SEXT": 1, "UNUSED_PRESERVE": 2}
_SDWA_MODIFIERS = frozenset({"src0_sel", "src1_sel", "dst_sel", "dst_unused"})
_VECTOR_MODIFIERS = frozenset({"clamp"}) | _DPP_MODIFIERS | _SDWA_MODIFIERS
_PACKED_MODIFIERS = frozenset({"clamp", "op_sel", "op_sel_hi", "neg_lo", "neg_hi"})


def _vector(record: _Record, instruction: Instruction, operation: Operation) -> None:
    operands = list(instruction.operands)
    dst = operands.pop(0)
    record.values["dst"] = _register(dst, operation.dst_words)
    if operation.has("carry_out"):
        record.values["sdst"] = _register(operands.pop(0), 2)
    if operation.has("accumulate"):
        operands.append(dst)
    if operation.has("packed"):
        _allow(instruction, _PACKED_MODIFIERS)
        _packed(record, instruction, operands)
    else:
        selects = frozenset({"op_sel"}) if operation.has("op_sel") else frozenset[str]()
        _allow(instruction, _VECTOR_MODIFIERS | selects)
        if instruction.modifier("op_sel") is not None:
            _halves(record, instruction)
    if instruction.encoding == "sdwa":
        operands = _sdwa(record, instruction, operands)
    words = [w for w in operation.src_words if w]
    _expect(tuple(operands), len(words))
    for slot, (operand, count) in enumerate(zip(operands, words, strict=True)):
        record.source(slot, operand, count)
    if instruction.op == "v_cvt_f32_f16" and "." in operands[0].text:
        raise _NotModelledError("f16 constants are not modelled")
    if instruction.modifier("clamp"):
        record.flag("clamp")
    if instruction.encoding == "dpp":
        _dpp(record, instruction)


def _packed(record: _Record, instruction: Instruction, operands: list[Operand]) -> None:
    for operand in operands:
        # Which half of a packed operand an inline constant fills is not documented for 32-bit
        # elements; zero is the same either way.
        if operand.kind is OperandKind.CONSTANT and operand.value:
            raise _NotModelledError("non-zero constants of packed operations are not modelled")
    for name, key, default in (("op_sel", "op_sel", 0), ("op_sel_hi", "op_sel_hi", 7),
                               ("neg_lo", "neg", 0), ("neg_hi", "neg_hi", 0)):
        value = instruction.modifier(name)
        bits = value if isinstance(value, tuple) else ()
        if value is not None and len(bits) < len(operands):
            raise _NotModelledError(f"modifier '{name}' has too few elements")
        record.values[key] = (
            sum((bit & 1) << slot for slot, bit in enumerate(bits)) if bits else default)


def _halves(record: _Record, instruction: Instruction) -> None:
    """op_sel of VOP3: the half of each source, then of the destination."""
    bits = instruction.modifier("op_sel")
    if not isinstance(bits, tuple) or len(bits) != len(instruction.operands):
        raise _NotModelledError("modifier 'op_sel' is not modelled in this form")
    *sources, dst = bits
    # The conversions to pairs write either half of whole sources; packing takes halves.
    if instruction.op.startswith("v_cvt") and any(sources):
        raise _NotModelledError("op_sel of these sources is not modelled")
    if instruction.op.startswith("v_pack") and dst:
        raise _NotModelledError("op_sel of this destination is not modelled")
    record.values["op_sel"] = sum(bit << slot for slot, bit in enumerate(sources)) | dst << 3


def _sdwa(record: _Record, instruction: Instruction, operands: list[Operand]) -> list[Operand]:
    """Record the selects; the operands without the sext() that they carry."""
    record.flag("sdwa")

    def code(name: str, codes: dict[str, int], default: str) -> int:
        value = instruction.modifier(name)
        return codes[default if value is None else str(value)]

    control = code("src0_sel", _SDWA_SELECTS, "DWORD")
    control |= code("src1_sel", _SDWA_SELECTS, "DWORD") << 3
    control |= code("dst_sel", _SDWA_SELECTS, "DWORD") << 6
    control |= code("dst_unused", _SDWA_UNUSED, "UNUSED_PAD") << 9
    for slot, operand in enumerate(operands[:2]):
        control |= operand.sext << 11 + slot
    record.values["dpp_ctrl"] = control
    return [replace(operand, sext=False) for operand in operands]


def _dpp(record: _Record, instruction: Instruction) -> None:
    record.flag("dpp")
    record.values["row_mask"] = _number(instruction, "row_mask", 0xF)
    record.values["bank_mask"] = _number(instruction, "bank_mask", 0xF)
    # LLVM writes `bound_ctrl:0` for the set bit.
    if instruction.modifier("bound_ctrl") is not None:
        record.flag("bound_ctrl")
    quad = instruction.modifier("quad_perm")
    if isinstance(quad, tuple) and len(quad) == 4:
        record.values["dpp_ctrl"] = sum((lane & 3) << 2 * i for i, lane in enumerate(quad))
        return
    for name, value in instruction.modifiers:
        if name in _DPP_FIXED:
            record.values["dpp_ctrl"] = _DPP_FIXED[name]
            return
        if name in _DPP_CONTROLS and isinstance(value, int):
            record.values["dpp_ctrl"] = _DPP_CONTROLS[name] + value
            return
        if name == "row_bcast" and value in _DPP_BROADCASTS:
            record.values["dpp_ctrl"] = _DPP_BROADCASTS[value]
            return
    raise _NotModelledError("this DPP control is not modelled")


def _compare(record: _Record, instruction: Instruction, operation: Operation) -> None:
    _allow(instruction, frozenset())
    if instruction.encoding not in ("e32", "e64"):
        raise _NotModelledError("compares are modelled in their e32 and e64 encodings only")
    _expect(instruction.operands, 3)
    record.values["dst"] = _register(instruction.operands[0], 2)
    for slot in range(2):
        record.source(slot, instruction.operands[slot + 1], 1)


def _lane(record: _Record, instruction: Instruction, operation: Operation) -> None:
    _allow(instruction, frozenset())
    count = 1 + sum(1 for w in operation.src_words if w)
    _expect(instruction.operands, count)
    record.values["dst"] = _register(instruction.operands[0], 1)
    for slot in range(count - 1):
        record.source(slot, instruction.operands[slot + 1], 1)


def _matrix(record: _Record, instruction: Instruction, operation: Operation) -> None:
    sparse, blocks = operation.has("reads_dst"), operation.has("broadcasts_a")
    names = {"cbsz", "abid"} if sparse or blocks else set[str]()
    names |= {"blgp"} if operation.has("permutes_b") else set()
    names |= {"neg"} if operation.has("mods") else set()
    _allow(instruction, frozenset(names))
    _expect(instruction.operands, 4)
    cbsz, abid = _number(instruction, "cbsz"), _number(instruction, "abid")
    if blocks and (1 << cbsz > _blocks(instruction.op) or abid >= 1 << cbsz):
        raise _NotModelledError("cbsz and abid name a block that the operation does not have")
    # Without cbsz, abid selects one of the index register's sets: four of 8 bits, or two of 16.
    sets = 2 if instruction.op.endswith("8") else 4
    if sparse and cbsz == 0 and abid >= sets:
        raise _NotModelledError(f"abid names one of {sets} sets of indices")
    record.values["imm0"] = cbsz
    record.values["imm1"] = abid | _number(instruction, "blgp") << 4
    record.values["dst"] = _register(instruction.operands[0], operation.dst_words)
    negated = instruction.modifier("neg")
    for slot, operand in enumerate(instruction.operands[1:]):
        words = operation.src_words[slot]
        if operand.kind is OperandKind.CONSTANT:
            # One value in every element of the accumulator.
            words = 2 if operation.has("mods") else 1
        if words == 2 and "." in operand.text:
            low, high = struct.unpack("<2I", struct.pack("<d", float(operand.text)))
            record.values |= {f"src{slot}": core.CONSTANT, f"literal_lo{slot}": low,
                              f"literal_hi{slot}": high}
        else:
            record.source(slot, operand, words)
        if isinstance(negated, tuple) and negated[slot]:
            record.values["neg"] = record.values.get("neg", 0) | 1 << slot


def _blocks(op: str) -> int:
    """Blocks of a matrix operation: the ``16b`` of v_mfma_f32_4x4x1_16b_f32."""
    return int(next((part[:-1] for part in op.split("_") if part.endswith("b")), "1"))


def _buffer(record: _Record, instruction: Instruction, operation: Operation) -> None:
    _allow(instruction, _CACHE_MODIFIERS | {"offen", "idxen", "offset", "lds"})
    operands = instruction.operands
    if instruction.modifier("lds"):
        record.flag("lds")
        _expect(operands, 3)
    else:
        _expect(operands, 4)
        record.values["dst"] = _register(operands[0], operation.dst_words)
        operands = operands[1:]
    # An atomic returns the old value in its data register.
    if operation.has("atomic") and instruction.modifier("sc0"):
        record.flag("return")
        record.values["sdst"] = record.values["dst"]
    address, resource, soffset = operands
    words = 0
    for name in ("offen", "idxen"):
        if instruction.modifier(name):
            record.flag(name)
            words += 1
    if words:
        record.values["src0"] = _register(address, words)
    elif address.kind is not OperandKind.OFF:
        raise _NotModelledError("an address register without offen or idxen")
    record.source(1, resource, 4)
    record.source(2, soffset, 1)
    record.values["imm0"] = _number(instruction, "offset")


def _global(record: _Record, instruction: Instruction, operation: Operation) -> None:
    _allow(instruction, _CACHE_MODIFIERS | {"offset"})
    operands = instruction.operands
    if operation.has("atomic") and instruction.modifier("sc0"):
        record.flag("return")
        record.values["sdst"] = _register(operands[0], operation.dst_words)
        operands = operands[1:]
    _expect(operands, 3)
    data, address = (operands[1], operands[0]) if operation.has("store") else operands[:2]
    base = operands[2]
    record.values["dst"] = _register(data, operation.dst_words)
    if base.kind is OperandKind.OFF:
        record.values["src0"] = _register(address, 2)
    else:
        record.values["src0"] = _register(address, 1)
        record.source(1, base, 2)
    record.values["imm0"] = _number(instruction, "offset")


def _lds(record: _Record, instruction: Instruction, operation: Operation) -> None:
    two = "2" in instruction.op.split("_")[1]
    _allow(instruction, frozenset({"offset0", "offset1"} if two else {"offset"}))
    operands = list(instruction.operands)
    if operation.dst_words:
        record.values["dst"] = _register(operands.pop(0), operation.dst_words)
    words = [w for w in operation.src_words if w]
    _expect(tuple(operands), len(words))
    for slot, (operand, count) in enumerate(zip(operands, words, strict=True)):
        record.values[f"src{slot}"] = _register(operand, count)
    record.values["imm0"] = _number(instruction, "offset0" if two else "offset")
    record.values["imm1"] = _number(instruction, "offset1")


_SHAPES: dict[str, Callable[[_Record, Instruction, Operation], None]] = {
    "scalar": _scalar, "branch": _branch, "control": _control, "scalar_load": _scalar_load,
    "vector": _vector, "compare": _compare, "read_lane": _lane, "write_lane": _lane,
    "matrix": _matrix, "buffer": _buffer, "global": _global, "lds": _lds,
}


@lru_cache(maxsize=1 << 16)
def _lowered(text: str) -> bytes:
    """The record of one instruction, its branch target left 0."""
    instruction = parse(text)
    operation = OPERATIONS.get(instruction.op)
    if operation is None:
        raise _NotModelledError(f"operation '{instruction.op}' is not modelled")
    if instruction.encoding == "sdwa" and operation.shape != "vector":
        raise _NotModelledError("SDWA is not modelled for this operation")
    for operand in instruction.operands:
        if operand.first == registers.SCC:
            raise _NotModelledError("SCC as an operand is not modelled")
    record = _Record()
    _SHAPES[operation.shape](record, instruction, operation)
    return record.pack(operation)


def lower(program: Program) -> npt.NDArray[np.uint8]:
    """The records of a program, back to back.

    Raises `UnsupportedError` naming the first instruction the emulator does not model.
    """
    parts: list[bytes] = []
    for index, instruction in enumerate(program.instructions):
        try:
            parts.append(_lowered(instruction.text))
        except _NotModelledError as refusal:
            raise unsupported(program, index, str(refusal)) from None
    records = np.frombuffer(bytearray(b"".join(parts)), dtype=np.uint8)
    targets = records.view(_TARGET)["target"]
    for index, target in enumerate(program.targets):
        if target is not None:
            targets[index] = target
    return records


def unsupported(program: Program, index: int, what: str) -> UnsupportedError:
    """The error that names instruction ``index``."""
    return UnsupportedError(
        f"the emulator cannot run '{program.instructions[index].text}' at offset "
        f"{program.offsets[index]:#x}: {what}")
