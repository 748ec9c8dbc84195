"""Decoded instructions to the records that the emulator's core executes.

The core's operation table decides what exists and how its operands are laid out; this module knows
how LLVM writes each operand shape. Whatever does not fit raises `UnsupportedError` by name.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import asmevo_core as core
import numpy as np
import numpy.typing as npt

from asmevo.device.device import UnsupportedError
from asmevo.device.emulator import memory_shapes
from asmevo.device.emulator.record import (
    OPERATIONS,
    NotModelledError,
    Operation,
    Record,
    allow,
    expect,
    number,
    register,
)
from asmevo.isa import registers
from asmevo.isa.instruction import Instruction, Operand, OperandKind
from asmevo.isa.parse import parse
from asmevo.isa.program import Program

_TARGET = np.dtype({
    "names": ["target"], "formats": ["<i4"], "itemsize": core.RECORD_SIZE,
    "offsets": [offset for name, offset, _, _ in core.RECORD_FIELDS if name == "target"],
})

# DPP modifier -> (base of the control value, whether the number is added to it).
_DPP_CONTROLS = {
    "row_shl": 0x100, "row_shr": 0x110, "row_ror": 0x120, "row_newbcast": 0x150,
    "wave_shl": 0x12F, "wave_rol": 0x133, "wave_shr": 0x137, "wave_ror": 0x13B,
}
_DPP_FIXED = {"row_mirror": 0x140, "row_half_mirror": 0x141}
_DPP_BROADCASTS = {15: 0x142, 31: 0x143}
_DPP_MODIFIERS = frozenset({
    *_DPP_CONTROLS, *_DPP_FIXED, "quad_perm", "row_bcast", "row_mask", "bank_mask", "bound_ctrl"})


def _scalar(record: Record, instruction: Instruction, operation: Operation) -> None:
    allow(instruction, frozenset())
    operands = list(instruction.operands)
    if operation.has("reads_dst"):
        operands.insert(1, operands[0])
    if operation.dst_words:
        record.values["dst"] = register(operands.pop(0), operation.dst_words)
    words = [w for w in operation.src_words if w]
    expect(tuple(operands), len(words))
    for slot, (operand, count) in enumerate(zip(operands, words, strict=True)):
        record.source(slot, operand, count)
    if operation.has("simm16"):
        slot = len(words) - 1
        value = operands[-1].value
        if operands[-1].kind is not OperandKind.CONSTANT:
            raise NotModelledError("the immediate is missing")
        signed = (value & 0xFFFF) - ((value & 0x8000) << 1)
        record.values[f"literal_lo{slot}"] = signed & 0xFFFFFFFF


def _branch(record: Record, instruction: Instruction, operation: Operation) -> None:
    allow(instruction, frozenset())


def _control(record: Record, instruction: Instruction, operation: Operation) -> None:
    allow(instruction, frozenset())
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


# SDWA select -> its code (CDNA3 ISA, "SDWA").
_SDWA_SELECTS = {name: code for code, name in enumerate(
    ("BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"))}
_SDWA_UNUSED = {"UNUSED_PAD": 0, "UNUSED_SEXT": 1, "UNUSED_PRESERVE": 2}
_SDWA_MODIFIERS = frozenset({"src0_sel", "src1_sel", "dst_sel", "dst_unused"})
_VECTOR_MODIFIERS = frozenset({"clamp"}) | _DPP_MODIFIERS | _SDWA_MODIFIERS
_PACKED_MODIFIERS = frozenset({"clamp", "op_sel", "op_sel_hi", "neg_lo", "neg_hi"})


def _vector(record: Record, instruction: Instruction, operation: Operation) -> None:
    operands = list(instruction.operands)
    dst = operands.pop(0)
    record.values["dst"] = register(dst, operation.dst_words)
    if operation.has("carry_out"):
        record.values["sdst"] = register(operands.pop(0), 2)
    if operation.has("accumulate"):
        operands.append(dst)
    if operation.has("packed"):
        allow(instruction, _PACKED_MODIFIERS)
        _packed(record, instruction, operands)
    else:
        selects = frozenset({"op_sel"}) if operation.has("op_sel") else frozenset[str]()
        allow(instruction, _VECTOR_MODIFIERS | selects)
        if instruction.modifier("op_sel") is not None:
            _halves(record, instruction)
    if instruction.encoding == "sdwa":
        operands = _sdwa(record, instruction, operands)
    words = [w for w in operation.src_words if w]
    expect(tuple(operands), len(words))
    for slot, (operand, count) in enumerate(zip(operands, words, strict=True)):
        record.source(slot, operand, count)
    if instruction.op == "v_cvt_f32_f16" and "." in operands[0].text:
        raise NotModelledError("f16 constants are not modelled")
    if instruction.modifier("clamp"):
        record.flag("clamp")
    if instruction.encoding == "dpp":
        _dpp(record, instruction)


def _packed(record: Record, instruction: Instruction, operands: list[Operand]) -> None:
    for operand in operands:
        # Which half of a packed operand an inline constant fills is not documented for 32-bit
        # elements; zero is the same either way.
        if operand.kind is OperandKind.CONSTANT and operand.value:
            raise NotModelledError("non-zero constants of packed operations are not modelled")
    for name, key, default in (("op_sel", "op_sel", 0), ("op_sel_hi", "op_sel_hi", 7),
                               ("neg_lo", "neg", 0), ("neg_hi", "neg_hi", 0)):
        value = instruction.modifier(name)
        bits = value if isinstance(value, tuple) else ()
        if value is not None and len(bits) < len(operands):
            raise NotModelledError(f"modifier '{name}' has too few elements")
        record.values[key] = (
            sum((bit & 1) << slot for slot, bit in enumerate(bits)) if bits else default)


def _halves(record: Record, instruction: Instruction) -> None:
    """op_sel of VOP3: the half of each source, then of the destination."""
    bits = instruction.modifier("op_sel")
    if not isinstance(bits, tuple) or len(bits) != len(instruction.operands):
        raise NotModelledError("modifier 'op_sel' is not modelled in this form")
    *sources, dst = bits
    # The conversions to pairs write either half of whole sources; packing takes halves.
    if instruction.op.startswith("v_cvt") and any(sources):
        raise NotModelledError("op_sel of these sources is not modelled")
    if instruction.op.startswith("v_pack") and dst:
        raise NotModelledError("op_sel of this destination is not modelled")
    record.values["op_sel"] = sum(bit << slot for slot, bit in enumerate(sources)) | dst << 3


def _sdwa(record: Record, instruction: Instruction, operands: list[Operand]) -> list[Operand]:
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


def _dpp(record: Record, instruction: Instruction) -> None:
    record.flag("dpp")
    record.values["row_mask"] = number(instruction, "row_mask", 0xF)
    record.values["bank_mask"] = number(instruction, "bank_mask", 0xF)
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
    raise NotModelledError("this DPP control is not modelled")


def _compare(record: Record, instruction: Instruction, operation: Operation) -> None:
    allow(instruction, frozenset())
    if instruction.encoding not in ("e32", "e64"):
        raise NotModelledError("compares are modelled in their e32 and e64 encodings only")
    expect(instruction.operands, 3)
    record.values["dst"] = register(instruction.operands[0], 2)
    for slot in range(2):
        record.source(slot, instruction.operands[slot + 1], 1)


def _lane(record: Record, instruction: Instruction, operation: Operation) -> None:
    allow(instruction, frozenset())
    count = 1 + sum(1 for w in operation.src_words if w)
    expect(instruction.operands, count)
    record.values["dst"] = register(instruction.operands[0], 1)
    for slot in range(count - 1):
        record.source(slot, instruction.operands[slot + 1], 1)


def _matrix(record: Record, instruction: Instruction, operation: Operation) -> None:
    sparse, blocks = operation.has("reads_dst"), operation.has("broadcasts_a")
    names = {"cbsz", "abid"} if sparse or blocks else set[str]()
    names |= {"blgp"} if operation.has("permutes_b") else set()
    names |= {"neg"} if operation.has("mods") else set()
    allow(instruction, frozenset(names))
    expect(instruction.operands, 4)
    cbsz, abid = number(instruction, "cbsz"), number(instruction, "abid")
    if blocks and (1 << cbsz > _blocks(instruction.op) or abid >= 1 << cbsz):
        raise NotModelledError("cbsz and abid name a block that the operation does not have")
    # Without cbsz, abid selects one of the index register's sets: four of 8 bits, or two of 16.
    sets = 2 if instruction.op.endswith("8") else 4
    if sparse and cbsz == 0 and abid >= sets:
        raise NotModelledError(f"abid names one of {sets} sets of indices")
    record.values["imm0"] = cbsz
    record.values["imm1"] = abid | number(instruction, "blgp") << 4
    record.values["dst"] = register(instruction.operands[0], operation.dst_words)
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


_SHAPES: dict[str, Callable[[Record, Instruction, Operation], None]] = {
    "scalar": _scalar, "branch": _branch, "control": _control, "vector": _vector,
    "compare": _compare, "read_lane": _lane, "write_lane": _lane, "matrix": _matrix,
    "scalar_load": memory_shapes.scalar_load, "buffer": memory_shapes.buffer,
    "global": memory_shapes.global_segment, "flat": memory_shapes.flat,
    "scratch": memory_shapes.scratch, "lds": memory_shapes.lds, "cache": memory_shapes.cache,
}


@lru_cache(maxsize=1 << 16)
def _lowered(text: str) -> bytes:
    """The record of one instruction, its branch target left 0."""
    instruction = parse(text)
    operation = OPERATIONS.get(instruction.op)
    if operation is None:
        raise NotModelledError(f"operation '{instruction.op}' is not modelled")
    if instruction.encoding == "sdwa" and operation.shape != "vector":
        raise NotModelledError("SDWA is not modelled for this operation")
    for operand in instruction.operands:
        if operand.first == registers.SCC:
            raise NotModelledError("SCC as an operand is not modelled")
    record = Record()
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
        except NotModelledError as refusal:
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
