"""Straight lines of code in which some stretches are for some lanes only.

Compilers turn ``if (inside) x = a[i];`` into a change of EXEC, a branch over the load that is taken
when no lane is left, the load, and the instruction that switches the other lanes on again. A chain
is a sequence of such stretches one behind another: whatever is outside of the stretches executes
under one and the same EXEC, wherever along the chain it stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from asmevo.isa.instruction import OperandKind
from asmevo.isa.registers import EXEC_MASK
from asmevo.propose.rule import RuleContext


@dataclass(frozen=True)
class MaskedChain:
    """``trace`` are the instructions in the order of a wave that skips nothing.

    ``outside`` are those that execute under the chain's own EXEC, without the instructions that
    change EXEC and the branches; ``inner`` gives for each instruction of a stretch the stretch's
    number. ``last`` is the instruction that ends the last one: behind it the chain's own EXEC
    holds. Per stretch, ``narrowing`` is the instruction that switches lanes off, ``skips`` the
    branch over it and ``joins`` the instruction that ends it.
    """

    trace: tuple[int, ...]
    outside: frozenset[int]
    inner: dict[int, int]
    last: int
    narrowing: tuple[int, ...]
    skips: tuple[int, ...]
    joins: tuple[int, ...]


def masked_chains(context: RuleContext) -> Iterator[MaskedChain]:
    """All chains, as long as they can be, by address."""
    stretches = {s.before: s for number in range(len(context.cfg.blocks))
                 if (s := _stretch(context, number)) is not None}
    inside = {s.after for s in stretches.values() if s.after in stretches}
    for number in sorted(stretches):
        if number in inside:
            continue
        links = [stretches[number]]
        while links[-1].after in stretches and len(links) <= len(stretches):
            links.append(stretches[links[-1].after])
        yield _chain(context, links)


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Blocks by number, and the instruction that narrows EXEC."""

    before: int
    body: int
    after: int
    narrowing: int


def _stretch(context: RuleContext, number: int) -> _Stretch | None:
    blocks, instructions = context.cfg.blocks, context.program.instructions
    block = blocks[number]
    branch = block.end - 1
    if instructions[branch].op != "s_cbranch_execz" or block.end >= len(context.program):
        return None
    target = context.program.targets[branch]
    body = context.cfg.block_of[block.end]
    if target is None or blocks[body].start != block.end:
        return None
    after = context.cfg.block_of[target]
    narrowing = next((i for i in range(branch - 1, block.start - 1, -1)
                      if instructions[i].writes & EXEC_MASK), None)
    if (narrowing is None or instructions[narrowing].op != "s_and_saveexec_b64"
            or any(instructions[i].reads & EXEC_MASK for i in range(narrowing + 1, branch))):
        return None
    saved = instructions[narrowing].operands[0]
    restore = instructions[target]
    if (blocks[after].start != target or after == number or saved.kind is not OperandKind.REGISTER
            or restore.text != f"s_or_b64 exec, exec, {saved.text}"
            or set(blocks[after].predecessors) != {number, body}
            or blocks[body].predecessors != (number,) or blocks[body].successors != (after,)):
        return None
    for index in range(narrowing + 1, blocks[body].end):
        if index in context.indexed or index in context.cfg.unknown:
            return None
        written = instructions[index].writes
        if written & EXEC_MASK or written >> saved.first & 3:
            return None
    return _Stretch(number, body, after, narrowing)


def _chain(context: RuleContext, links: list[_Stretch]) -> MaskedChain:
    blocks, instructions = context.cfg.blocks, context.program.instructions
    trace: list[int] = []
    outside: set[int] = set()
    inner: dict[int, int] = {}
    joins: list[int] = []
    start = _start(context, links[0])
    for number, link in enumerate(links):
        outside.update(range(start, link.narrowing))
        trace += range(start, blocks[link.before].end)
        trace += range(blocks[link.body].start, blocks[link.body].end)
        inner.update(dict.fromkeys(range(blocks[link.body].start, blocks[link.body].end), number))
        start = blocks[link.after].start
        joins.append(start)
        trace.append(start)
        start += 1
    kept = frozenset(
        i for i in outside if not (instructions[i].writes & EXEC_MASK or instructions[i].is_branch))
    return MaskedChain(
        tuple(trace), kept, inner, start - 1, tuple(link.narrowing for link in links),
        tuple(blocks[link.before].end - 1 for link in links), tuple(joins))


def _start(context: RuleContext, link: _Stretch) -> int:
    """Where the first link's EXEC begins to hold."""
    block = context.cfg.blocks[link.before]
    instructions = context.program.instructions
    start = block.start
    for index in range(block.start, link.narrowing):
        if instructions[index].writes & EXEC_MASK or index in context.indexed:
            start = index + 1
    return start
