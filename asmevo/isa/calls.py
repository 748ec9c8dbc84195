"""Where calls and indirect jumps go, as far as the code itself tells.

Compilers reach code through ``s_getpc_b64`` and a 64-bit addition of a constant, also for branches
that are too far for 16 bits. Addresses that come from memory, from arguments or from another basic
block stay unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from asmevo.isa.instruction import Instruction, Operand, OperandKind, Unit
from asmevo.isa.program import Program
from asmevo.isa.registers import EVERYTHING, mask, members

CALLS = frozenset({"s_swappc_b64", "s_call_b64"})
_WORD = 4
# Calls whose address another call keeps are found a round later.
_ROUNDS = 8
# Instructions looked at to find what functions write; hostile code has functions share code.
_STEP_LIMIT = 1 << 20


@dataclass(frozen=True, slots=True)
class _Half:
    """Half of a code address; ``offset`` is that of the whole address in the program."""

    high: bool
    offset: int


def link_register(instruction: Instruction) -> int:
    """The first register of the pair in which a call leaves its return address."""
    return instruction.operands[0].first


def jump_targets(program: Program) -> Mapping[int, int | None]:
    """Instruction reached by each call and ``s_setpc_b64``; ``None`` where the code does not tell.

    An address that is known but lies outside the program counts as unknown. Addresses survive a
    call of known code that leaves their registers alone.
    """
    found: dict[int, int | None] = {}
    if not any(i.op in CALLS or i.op == "s_setpc_b64" for i in program.instructions):
        return found
    for _ in range(_ROUNDS):
        clobbers = _clobbers_by_call(program, found)
        known, found = found, _pass(program, clobbers)
        if found == known:
            break
    return found


def _pass(program: Program, clobbers: Mapping[int, int]) -> dict[int, int | None]:
    """One pass in address order; ``clobbers`` are registers that a call may write."""
    found: dict[int, int | None] = {}
    index_of = {offset: index for index, offset in enumerate(program.offsets[:-1])}
    offset_of = {name: program.offsets[index] for index, name in program.labels.items()}
    joins = {target for target in program.targets if target is not None} | set(program.labels)
    halves: dict[int, _Half] = {}
    sums: dict[int, int] = {}
    for index, instruction in enumerate(program.instructions):
        if index in joins:
            halves, sums = {}, {}
        if instruction.op == "s_call_b64":
            found[index] = program.targets[index]
        elif instruction.op in ("s_swappc_b64", "s_setpc_b64"):
            address = _address(instruction.operands[-1], halves)
            found[index] = None if address is None else index_of.get(address)
        _step(instruction, program.offsets[index], offset_of, halves, sums)
        if instruction.op in CALLS:
            written = clobbers.get(index, EVERYTHING)
            halves = {n: half for n, half in halves.items() if not written & mask(n)}
            sums = {}
        elif instruction.unit is Unit.OPAQUE or (
                instruction.is_branch and not instruction.is_conditional):
            halves, sums = {}, {}
    return found


def _clobbers_by_call(program: Program, jumps: Mapping[int, int | None]) -> dict[int, int]:
    by_function: dict[int, int] = {}
    budget = _STEP_LIMIT
    for index, target in jumps.items():
        if target is not None and target not in by_function and (
                program.instructions[index].op in CALLS):
            by_function[target], budget = _clobbers(program, jumps, target, budget)
    return {index: by_function[target] for index, target in jumps.items()
            if target is not None and target in by_function}


def _clobbers(program: Program, jumps: Mapping[int, int | None], function: int,
              budget: int) -> tuple[int, int]:
    """Registers that a function may write before it returns, and the steps left for others."""
    written = 0
    seen: set[int] = set()
    pending = [function]
    while pending:
        if len(seen) >= budget:
            return EVERYTHING, 0
        index = pending.pop()
        if index in seen:
            continue
        seen.add(index)
        i = program.instructions[index]
        target = jumps.get(index, program.targets[index])
        if i.unit is Unit.OPAQUE or (i.op in CALLS and target is None):
            return EVERYTHING, budget - len(seen)
        written |= i.writes
        if target is not None:
            pending.append(target)
        falls_through = not i.is_branch or i.is_conditional or i.op in CALLS
        if falls_through and not i.ends_program and index + 1 < len(program):
            pending.append(index + 1)
    return written, budget - len(seen)


def _address(pair: Operand, halves: Mapping[int, _Half]) -> int | None:
    low, high = halves.get(pair.first), halves.get(pair.first + 1)
    if low is None or high is None or low.high or not high.high or low.offset != high.offset:
        return None
    return low.offset


def _step(i: Instruction, offset: int, offset_of: Mapping[str, int], halves: dict[int, _Half],
          sums: dict[int, int]) -> None:
    """Follow one instruction; ``sums`` maps an address before an addition to the one after it,
    as long as SCC still holds that addition's carry."""
    new: dict[int, _Half] = {}
    pending: dict[int, int] = {}
    match i.op:
        case "s_getpc_b64":
            new = {i.operands[0].first + n: _Half(bool(n), offset + _WORD) for n in (0, 1)}
            pending = dict(sums)
        case "s_mov_b64" | "s_mov_b32":
            source, target = i.operands[1], i.operands[0]
            new = {target.first + n: halves[source.first + n] for n in range(target.count)
                   if source.first + n in halves}
            pending = dict(sums)
        case "s_add_u32":
            half = halves.get(i.operands[1].first)
            added = _displacement(i.operands[2], offset, offset_of)
            if half is not None and not half.high and added is not None:
                new = {i.operands[0].first: _Half(False, half.offset + added)}
                pending = {half.offset: half.offset + added}
        case "s_addc_u32":
            half = halves.get(i.operands[1].first)
            if half is not None and half.high and half.offset in sums:
                total = sums[half.offset]
                if _extends(i.operands[2], total - half.offset):
                    new = {i.operands[0].first: _Half(True, total)}
    if i.writes:
        for register in members(i.writes):
            halves.pop(register, None)
        sums.clear()
        sums.update(pending)
    halves.update(new)


def _displacement(operand: Operand, offset: int, offset_of: Mapping[str, int]) -> int | None:
    """What the low addition at ``offset`` adds; its literal lies one word behind."""
    if operand.kind is OperandKind.CONSTANT:
        return operand.value - (1 << 32 if operand.value >> 31 else 0)
    if operand.kind is OperandKind.SYMBOL and "@rel32@lo" in operand.text:
        name = operand.text.partition("@")[0]
        if name in offset_of:
            return offset_of[name] + operand.value - (offset + _WORD)
    return None


def _extends(operand: Operand, displacement: int) -> bool:
    """Whether the high addition adds the sign of what the low one added."""
    if operand.kind is OperandKind.SYMBOL:
        return "@rel32@hi" in operand.text
    return operand.kind is OperandKind.CONSTANT and operand.value == (
        0xFFFFFFFF if displacement < 0 else 0)
