"""Decoded instructions to the records that the emulator's core executes.

The core's operation table decides what exists and how its operands are laid out; this module knows
how LLVM writes each operand shape. Whatever does not fit raises `UnsupportedError` by name.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Container
from dataclasses import dataclass
from functools import lru_cache

import asmevo_core as core
import numpy as np
import numpy.typing as npt

from asmevo.device.device import UnsupportedError
from asmevo.device.emulator import memory_shapes, vector_shapes
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
from asmevo.isa.instruction import Instruction, OperandKind
from asmevo.isa.parse import parse
from asmevo.isa.program import Program

_OFFSETS = {name: offset for name, offset, _, _ in core.RECORD_FIELDS}
# What depends on an instruction's place in the program.
_PLACE = np.dtype({
    "names": ["target", "literal_lo0", "literal_hi0"], "formats": ["<i4", "<u4", "<u4"],
    "itemsize": core.RECORD_SIZE,
    "offsets": [_OFFSETS[name] for name in ("target", "literal_lo0", "literal_hi0")],
})

_READS_PROGRAM_COUNTER = frozenset({"s_getpc_b64", "s_call_b64"})
# A record that the core refuses: no operation has this number.
_UNKNOWN = struct.pack("<H", 0xFFFF).rjust(_OFFSETS["op"] + 2, b"\0").ljust(core.RECORD_SIZE, b"\0")
_INDIRECT = frozenset({"s_setpc_b64", "s_swappc_b64"})
_HWREG_MODE = 1


def _scalar(record: Record, instruction: Instruction, operation: Operation) -> None:
    allow(instruction, frozenset())
    operands = list(instruction.operands)
    if operation.has("reads_dst"):
        operands.insert(1, operands[0])
    if instruction.op.startswith("s_setreg"):
        operands.reverse()  # the immediate comes last in a record
    if operation.dst_words:
        record.values["dst"] = register(operands.pop(0), operation.dst_words)
    words = [w for w in operation.src_words if w]
    expect(tuple(operands), len(words))
    immediate = operands.pop() if operation.has("simm16") else None
    for slot, operand in enumerate(operands):
        record.source(slot, operand, words[slot], operation.source_types[slot])
    if immediate is not None:
        if immediate.kind not in (OperandKind.CONSTANT, OperandKind.NAMED):
            raise NotModelledError("the immediate is missing")
        if "reg" in instruction.op and immediate.value & 63 != _HWREG_MODE:
            raise NotModelledError(f"{immediate.text} is not modelled, only HW_REG_MODE is")
        slot = len(words) - 1
        value = immediate.value
        signed = (value & 0xFFFF) - ((value & 0x8000) << 1)
        record.values[f"src{slot}"] = core.CONSTANT
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


def _program_counter(record: Record, instruction: Instruction, operation: Operation) -> None:
    record.values["dst"] = register(instruction.operands[0], 2)
    record.values["src0"] = core.CONSTANT


_SHAPES: dict[str, Callable[[Record, Instruction, Operation], None]] = {
    "scalar": _scalar, "branch": _branch, "control": _control, "vector": vector_shapes.vector,
    "compare": vector_shapes.compare, "read_lane": _lane, "write_lane": _lane, "matrix": _matrix,
    "scalar_load": memory_shapes.scalar_load, "buffer": memory_shapes.buffer,
    "global": memory_shapes.global_segment, "flat": memory_shapes.flat,
    "scratch": memory_shapes.scratch, "lds": memory_shapes.lds, "cache": memory_shapes.cache,
    "program_counter": _program_counter,
}


@lru_cache(maxsize=1 << 16)
def _lowered(text: str) -> bytes:
    """The record of one instruction, its branch target left 0."""
    instruction = parse(text)
    operation = OPERATIONS.get(instruction.op)
    if operation is None:
        raise NotModelledError(f"operation '{instruction.op}' is not modelled")
    record = Record()
    _SHAPES[operation.shape](record, instruction, operation)
    return record.pack(operation)


def reads_program_counter(program: Program) -> bool:
    """Whether a program computes addresses from its own."""
    return any(i.op in _READS_PROGRAM_COUNTER for i in program.instructions)


def jumps_indirectly(program: Program) -> bool:
    """Whether a program calls functions or jumps to addresses that it computed."""
    return any(i.op in _INDIRECT or i.op == "s_call_b64" for i in program.instructions)


@dataclass(frozen=True, slots=True)
class Lowered:
    """The records of a program, and why those that cannot run, none of the kernel's own, do not."""

    records: npt.NDArray[np.uint8]
    refused: dict[int, str]


def lower(program: Program, code_address: int | None = None) -> npt.NDArray[np.uint8]:
    """The records of a program whose offset 0 is at ``code_address``, back to back.

    Raises `UnsupportedError` naming the first instruction the emulator does not model.
    """
    return lower_object(program, code_address, range(len(program)), frozenset()).records


def lower_object(program: Program, code_address: int | None, own: range,
                 other_kernels: Container[int]) -> Lowered:
    """The records of a kernel with everything around it.

    Which functions a kernel calls through computed addresses is not known, so what cannot run is
    refused only among its ``own`` instructions; elsewhere the record is one that the core refuses.
    Raises `UnsupportedError` as `lower` does.
    """
    parts: list[bytes] = []
    refused: dict[int, str] = {}
    for index, instruction in enumerate(program.instructions):
        try:
            if index in other_kernels:
                raise NotModelledError("it is another kernel's code")
            if instruction.op in _READS_PROGRAM_COUNTER | _INDIRECT and code_address is None:
                raise NotModelledError("the code has no address")
            parts.append(_lowered(instruction.text))
        except NotModelledError as refusal:
            if index in own:
                raise unsupported(program, index, str(refusal)) from None
            refused[index] = str(refusal)
            parts.append(_UNKNOWN)
    records = np.frombuffer(bytearray(b"".join(parts)), dtype=np.uint8)
    places = records.view(_PLACE)
    for index, (instruction, target) in enumerate(
            zip(program.instructions, program.targets, strict=True)):
        if target is not None:
            places["target"][index] = target
        if instruction.op in _READS_PROGRAM_COUNTER and index not in refused:
            assert code_address is not None
            following = code_address + program.offsets[index + 1]
            places["literal_lo0"][index] = following & 0xFFFFFFFF
            places["literal_hi0"][index] = following >> 32
    return Lowered(records, refused)


def unsupported(program: Program, index: int, what: str) -> UnsupportedError:
    """The error that names instruction ``index``."""
    return UnsupportedError(
        f"the emulator cannot run '{program.instructions[index].text}' at offset "
        f"{program.offsets[index]:#x}: {what}")
