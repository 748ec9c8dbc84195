"""Which operands of a memory instruction are its address and its data."""

from __future__ import annotations

from dataclasses import dataclass

from asmevo.isa.instruction import Instruction, Operand, OperandKind, Unit


@dataclass(frozen=True, slots=True)
class MemoryOperands:
    """``base`` is a 64-bit address or a buffer resource, ``offsets`` are added to it."""

    base: Operand
    offsets: tuple[Operand, ...]
    data: Operand | None
    resource: bool


def memory_operands(instruction: Instruction) -> MemoryOperands | None:
    """The operands of an access to global memory; ``None`` for LDS, scratch and everything else."""
    op, operands = instruction.op, instruction.operands
    if not instruction.accesses_memory or instruction.unit is Unit.LDS or not operands:
        return None
    if instruction.unit is Unit.SMEM:
        if len(operands) < 3:
            return None
        return MemoryOperands(operands[1], operands[2:], None, operands[1].count == 4)
    if op.startswith("buffer_"):
        resource = next((i for i, o in enumerate(operands)
                         if o.kind is OperandKind.REGISTER and o.count == 4 and o.first < 256
                         and i > 0), None)
        if resource is None:
            return None
        data = operands[0] if not instruction.is_load else None
        around = (*operands[1 if resource > 1 else 0:resource], *operands[resource + 1:])
        return MemoryOperands(operands[resource], around, data, True)
    if op.startswith("global_load_lds"):
        return _global(operands[0], operands[1], None)
    if op.startswith("global_"):
        rest = operands if instruction.is_store or len(operands) < 4 else operands[1:]
        if instruction.is_load:
            return _global(operands[1], operands[2], None) if len(operands) > 2 else None
        return _global(rest[0], rest[2], rest[1]) if len(rest) > 2 else None
    if op.startswith("flat_"):
        if instruction.is_load:
            return MemoryOperands(operands[1], (), None, False)
        address = next((o for o in operands if o.count == 2 and o.first >= 256), None)
        if address is None:
            return None
        at = operands.index(address)
        return MemoryOperands(address, (), operands[at + 1], False)
    return None


def _global(vector: Operand, scalar: Operand, data: Operand | None) -> MemoryOperands:
    if scalar.kind is OperandKind.OFF:
        return MemoryOperands(vector, (), data, False)
    return MemoryOperands(scalar, (vector,), data, False)
