"""How LLVM writes the operands of memory operations."""

from __future__ import annotations

from asmevo.device.emulator.record import (
    NotModelledError,
    Operation,
    Record,
    allow,
    expect,
    number,
    register,
)
from asmevo.isa.instruction import Instruction, OperandKind

# Cache policy: it decides when other agents see a store, not what one launch computes.
_CACHE_MODIFIERS = frozenset({"sc0", "sc1", "nt"})


def scalar_load(record: Record, instruction: Instruction, operation: Operation) -> None:
    allow(instruction, frozenset({"offset", "glc"}))
    if operation.has("atomic") and instruction.modifier("glc"):
        record.flag("return")
    expect(instruction.operands, 3)
    data, base, offset = instruction.operands
    record.values["dst"] = register(data, operation.dst_words)
    record.source(0, base, 2)
    immediate = number(instruction, "offset")
    if offset.kind is OperandKind.CONSTANT:
        immediate += offset.value - ((offset.value & 0x80000000) << 1)
    else:
        record.source(1, offset, 1)
    record.values["imm0"] = immediate


def buffer(record: Record, instruction: Instruction, operation: Operation) -> None:
    allow(instruction, _CACHE_MODIFIERS | {"offen", "idxen", "offset", "lds"})
    operands = instruction.operands
    if instruction.modifier("lds"):
        record.flag("lds")
        expect(operands, 3)
    else:
        expect(operands, 4)
        record.values["dst"] = register(operands[0], operation.dst_words)
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
        record.values["src0"] = register(address, words)
    elif address.kind is not OperandKind.OFF:
        raise NotModelledError("an address register without offen or idxen")
    record.source(1, resource, 4)
    record.source(2, soffset, 1)
    record.values["imm0"] = number(instruction, "offset")


def global_segment(record: Record, instruction: Instruction, operation: Operation) -> None:
    allow(instruction, _CACHE_MODIFIERS | {"offset"})
    operands = instruction.operands
    if operation.has("atomic") and instruction.modifier("sc0"):
        record.flag("return")
        record.values["sdst"] = register(operands[0], operation.dst_words)
        operands = operands[1:]
    expect(operands, 3)
    data, address = (operands[1], operands[0]) if operation.has("store") else operands[:2]
    base = operands[2]
    record.values["dst"] = register(data, operation.dst_words)
    if base.kind is OperandKind.OFF:
        record.values["src0"] = register(address, 2)
    else:
        record.values["src0"] = register(address, 1)
        record.source(1, base, 2)
    record.values["imm0"] = number(instruction, "offset")


def lds(record: Record, instruction: Instruction, operation: Operation) -> None:
    two = "2" in instruction.op.split("_")[1]
    allow(instruction, frozenset({"offset0", "offset1"} if two else {"offset"}))
    operands = list(instruction.operands)
    if operation.dst_words:
        record.values["dst"] = register(operands.pop(0), operation.dst_words)
    words = [w for w in operation.src_words if w]
    expect(tuple(operands), len(words))
    for slot, (operand, count) in enumerate(zip(operands, words, strict=True)):
        record.values[f"src{slot}"] = register(operand, count)
    record.values["imm0"] = number(instruction, "offset0" if two else "offset")
    record.values["imm1"] = number(instruction, "offset1")
