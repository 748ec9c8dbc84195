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
from asmevo.isa.instruction import Instruction, Operand, OperandKind

# Cache policy: it decides when other agents see a store, not what one launch computes.
_CACHE_MODIFIERS = frozenset({"sc0", "sc1", "nt"})


def cache(record: Record, instruction: Instruction, operation: Operation) -> None:
    allow(instruction, _CACHE_MODIFIERS)
    expect(instruction.operands, 0)


def scalar_load(record: Record, instruction: Instruction, operation: Operation) -> None:
    allow(instruction, frozenset({"offset", "glc"}))
    if operation.has("atomic") and instruction.modifier("glc"):
        record.flag("return")
    expect(instruction.operands, 3)
    data, base, offset = instruction.operands
    record.values["dst"] = register(data, operation.dst_words)
    record.source(0, base, operation.src_words[0])
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
    operands = _flat_data(record, instruction, operation)
    expect(operands, 2)
    address, base = operands
    if base.kind is OperandKind.OFF:
        record.values["src0"] = register(address, 2)
    else:
        record.values["src0"] = register(address, 1)
        record.source(1, base, 2)


def flat(record: Record, instruction: Instruction, operation: Operation) -> None:
    operands = _flat_data(record, instruction, operation)
    expect(operands, 1)
    record.values["src0"] = register(operands[0], 2)


def scratch(record: Record, instruction: Instruction, operation: Operation) -> None:
    operands = _flat_data(record, instruction, operation)
    expect(operands, 2)
    address, base = operands
    if address.kind is not OperandKind.OFF:
        record.values["src0"] = register(address, 1)
    if base.kind is not OperandKind.OFF:
        record.source(1, base, 1)


def _flat_data(
        record: Record, instruction: Instruction, operation: Operation) -> tuple[Operand, ...]:
    """Record offset, data and returned data; the address operands, which are left."""
    allow(instruction, _CACHE_MODIFIERS | {"offset"})
    record.values["imm0"] = number(instruction, "offset")
    operands = list(instruction.operands)
    if operation.has("atomic") and instruction.modifier("sc0"):
        record.flag("return")
        returned = operation.dst_words // 2 if operation.has("returns_half") else \
            operation.dst_words
        record.values["sdst"] = register(operands.pop(0), returned)
    if operation.dst_words:
        # LLVM writes what a store takes behind its address.
        data = operands.pop(1 if operation.has("store") else 0)
        record.values["dst"] = register(data, operation.dst_words)
    return tuple(operands)


def lds(record: Record, instruction: Instruction, operation: Operation) -> None:
    two = instruction.op.split("_")[1] in ("read2", "write2", "wrxchg2", "read2st64", "write2st64",
                                           "wrxchg2st64")
    allow(instruction, frozenset({"offset0", "offset1"} if two else {"offset"}))
    operands = list(instruction.operands)
    if operation.dst_words:
        record.values["dst"] = register(operands.pop(0), operation.dst_words)
    slots = [(slot, words) for slot, words in enumerate(operation.src_words) if words]
    expect(tuple(operands), len(slots))
    for (slot, words), operand in zip(slots, operands, strict=True):
        record.values[f"src{slot}"] = register(operand, words)
    pattern = instruction.modifier("offset")
    if isinstance(pattern, str) and instruction.op == "ds_swizzle_b32":
        record.values["imm0"] = swizzle_pattern(pattern)
    else:
        record.values["imm0"] = number(instruction, "offset0" if two else "offset")
    record.values["imm1"] = number(instruction, "offset1")


def swizzle_pattern(text: str) -> int:
    """The offset field of ``ds_swizzle_b32`` that LLVM writes as ``swizzle(MODE,...)``.

    Source: LLVM, "AMDGPU Instruction Modifiers", ``pattern``; the encodings are those of SIDefines.
    """
    mode, *values = text.removeprefix("swizzle(").removesuffix(")").replace(" ", "").split(",")
    try:
        match mode, values:
            case "QUAD_PERM", [_, _, _, _]:
                return 0x8000 | sum((int(v) & 3) << 2 * i for i, v in enumerate(values))
            case "BITMASK_PERM", [mask]:
                bits = mask.strip('"')
                keep, set_, flip = (
                    sum((c in chosen) << 4 - i for i, c in enumerate(bits))
                    for chosen in ("pi", "1", "i"))
                return keep | set_ << 5 | flip << 10
            case "BROADCAST", [size, lane]:
                return 32 - int(size) | int(lane) << 5
            case "SWAP", [size]:
                return 31 | int(size) << 10
            case "REVERSE", [size]:
                return 31 | int(size) - 1 << 10
            case "ROTATE", [direction, distance]:
                return 0xC000 | int(direction) << 10 | int(distance) << 5
            case "FFT", [mask]:
                return 0xE000 | int(mask)
    except ValueError:
        pass
    raise NotModelledError(f"swizzle pattern '{text}' is not modelled")
