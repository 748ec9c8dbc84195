"""Which instructions contribute to anything a kernel leaves behind."""

from __future__ import annotations

from collections.abc import Collection

from asmevo.isa.effects import has_side_effects
from asmevo.isa.registers import ALL_AGPR_MASK, ALL_VGPR_MASK, SGPR_LIMIT, VCC_MASK
from asmevo.propose.rule import RuleContext

# Mode-like state that nearly every vector instruction reads does not tie a chain together.
_DATA = ALL_VGPR_MASK | ALL_AGPR_MASK | VCC_MASK | ((1 << SGPR_LIMIT) - 1)


def useless(context: RuleContext, ignored: Collection[int] = ()) -> frozenset[int]:
    """Instructions without side effects whose results reach no instruction that matters.

    Strong liveness: a use counts only when the user itself is useful, so whole chains, and
    accumulators that feed nothing but themselves around a loop, are found at once. ``ignored``
    instructions are taken as already removed (and are part of the answer).
    """
    program = context.program
    removed = frozenset(ignored)
    needed = [
        index not in removed and (
            has_side_effects(i) or not i.writes or i.is_branch or index in context.fences)
        for index, i in enumerate(program.instructions)
    ]
    blocks = context.cfg.blocks
    live_in = [0] * len(blocks)
    useful = [False] * len(program)
    changed = True
    while changed:
        changed = False
        for number in range(len(blocks) - 1, -1, -1):
            block = blocks[number]
            live = 0
            for successor in block.successors:
                live |= live_in[successor]
            for index in range(block.end - 1, block.start - 1, -1):
                fact = context.effects[index]
                if index in removed or not (needed[index] or fact.writes & live):
                    continue
                useful[index] = True
                live = live & ~fact.kills | fact.reads
            if live != live_in[number]:
                live_in[number] = live
                changed = True
    return frozenset(i for i, flag in enumerate(useful) if not flag)


def chains(context: RuleContext, indices: Collection[int]) -> list[tuple[int, ...]]:
    """Split instructions into groups that share no register: independent removals."""
    groups: list[tuple[int, set[int]]] = []
    for index in sorted(indices):
        i = context.program.instructions[index]
        registers, group = i.reads & _DATA | i.writes, {index}
        rest: list[tuple[int, set[int]]] = []
        for other_registers, other in groups:
            writes_other = _writes(context, other)
            if i.reads & writes_other or i.writes & other_registers:
                registers |= other_registers
                group |= other
            else:
                rest.append((other_registers, other))
        groups = [*rest, (registers, group)]
    return sorted((tuple(sorted(group)) for _, group in groups), key=lambda g: g[0])


def _writes(context: RuleContext, indices: Collection[int]) -> int:
    out = 0
    for index in indices:
        out |= context.program.instructions[index].writes
    return out & _DATA

