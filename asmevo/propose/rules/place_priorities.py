"""Moves changes of a wave's priority to where matrix operations run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from asmevo.propose.matrix_runs import MatrixRun, matrix_runs
from asmevo.propose.proposal import Direction, Proposal
from asmevo.propose.repair import is_clean, repair
from asmevo.propose.rewrite import Rewrite
from asmevo.propose.rule import Rule, RuleContext

_OP = "s_setprio"
_LEVELS = frozenset(range(4))
_REASON = "results do not depend on which wave issues first"


class PlacePriorities(Rule):
    """Waves of a higher priority issue first (CDNA3 ISA, "S_SETPRIO"): those that feed the matrix
    cores should.

    G1 counts ``s_setprio`` and its levels, so the kernel's own ones move: those of a pair in one
    block to the ends of the matrix runs that they overlap, or all of them to the hottest runs.
    Those that set what is set already go. With ``add`` runs get pairs of their own, which G1 lets
    pass when the user lists ``s_setprio`` in ``gates.extra_ops``.

    A run are matrix operations with fewer than ``apart`` instructions between two of them, at least
    ``smallest`` of them.
    """

    name = "place-priorities"
    direction = Direction.LATENCY_HIDING

    def __init__(self, apart: int = 6, smallest: int = 4, add: bool = False) -> None:
        self._apart = apart
        self._smallest = smallest
        self._add = add

    def matches(self, context: RuleContext) -> Iterator[Proposal]:
        settings = _settings(context)
        runs = sorted(
            matrix_runs(context, self._apart, self._smallest),
            key=lambda run: (-context.weight(range(run.first, run.last + 1)), -run.count,
                             run.first))
        useless = [s for s in settings if s.is_useless]
        pairs = _pairs([s for s in settings if not s.is_useless])
        enclosing = {run: pair for pair in pairs if (run := _around(pair, runs)) is not None}
        if enclosing:
            yield from self._changed(
                context, useless, [(pair, run) for run, pair in enclosing.items()],
                f"{len(enclosing)} raised priority(s) enclose the matrix operations next to them")
        if useless:
            yield from self._changed(
                context, useless, [], f"{len(useless)} s_setprio set what is set already")
        if settings:
            yield from self._pooled(context, settings, runs)
            yield from self._changed(context, settings, [], "all waves of one priority")
        elif self._add and runs:
            yield from self._raised(context, runs)
            for run in runs if len(runs) > 1 else ():
                yield from self._raised(context, [run])

    def _pooled(self, context: RuleContext, settings: Sequence[_Setting], runs: Sequence[MatrixRun]
                ) -> Iterator[Proposal]:
        """All the kernel's settings where matrix operations are hottest."""
        levels = [s.level for s in settings]
        low, high = min(levels), max(levels)
        count = min(levels.count(low), levels.count(high))
        if low != high and runs:
            yield from self._changed(
                context, settings, [(_Pair(low, high), run) for run in runs[:count]],
                f"the {min(count, len(runs))} hottest run(s) of matrix operations have priority")

    def _raised(self, context: RuleContext, runs: Sequence[MatrixRun]) -> Iterator[Proposal]:
        yield from self._changed(
            context, [], [(_Pair(0, 1), run) for run in runs],
            f"{len(runs)} run(s) of matrix operations get priority over other waves' work")

    def _changed(self, context: RuleContext, dropped: Sequence[_Setting],
                 placed: Sequence[tuple[_Pair, MatrixRun]], rationale: str) -> Iterator[Proposal]:
        rewrite = context.rewrite()
        rewrite.delete(s.index for s in dropped)
        for pair, run in placed:
            pair.place(context, rewrite, run)
        preview = repair(context, context.preview.apply(rewrite.edits(self.name)))
        if preview.lines != context.lines and is_clean(context, preview):
            yield self.proposal(preview, f"{rationale}; {_REASON}")


@dataclass(frozen=True)
class _Setting:
    """An ``s_setprio`` and the levels that may be set in front of it; useless where that is its
    own, or is replaced at once."""

    index: int
    block: int
    level: int
    before: frozenset[int]
    is_useless: bool


@dataclass(frozen=True)
class _Pair:
    """A level, and the higher one that a run gets; at which instructions they are set now."""

    low: int
    high: int
    raised: int | None = None
    lowered: int | None = None

    def place(self, context: RuleContext, rewrite: Rewrite, run: MatrixRun) -> None:
        rewrite.delete(k for k in (self.raised, self.lowered) if k is not None)
        rewrite.insert(run.first, f"{_OP} {self.high}")
        # In front of a label that may follow.
        rewrite.replace(run.last, context.lines[run.last], f"{_OP} {self.low}")


def _settings(context: RuleContext) -> list[_Setting]:
    instructions, entered = context.program.instructions, _levels(context)
    out: list[_Setting] = []
    for number, block in enumerate(context.cfg.blocks):
        levels = entered.get(number, _LEVELS)
        for index in range(block.start, block.end):
            level = _level(context, index)
            if level is None:
                continue
            if index in context.cold or index in context.indexed:
                levels = _LEVELS
                continue
            replaced = index + 1 < block.end and instructions[index + 1].op == _OP
            out.append(_Setting(index, number, level, levels, replaced or levels == {level}))
            if not replaced:
                levels = frozenset((level,))
    return out


def _levels(context: RuleContext) -> dict[int, frozenset[int]]:
    """Per block, the levels that may be set when it is entered: a wave starts at 0."""
    cfg = context.cfg
    entered = {cfg.entry: frozenset((0,))}
    pending = [cfg.entry]
    while pending:
        number = pending.pop()
        block = cfg.blocks[number]
        levels = entered[number]
        for index in range(block.start, block.end):
            level = _level(context, index)
            if index in cfg.unknown:
                levels = _LEVELS
            elif level is not None:
                levels = levels | {level} if index in context.indexed else frozenset((level,))
        for successor in block.successors:
            known = entered.get(successor)
            if known is None or not levels <= known:
                entered[successor] = levels | (known or frozenset())
                pending.append(successor)
    return entered


def _level(context: RuleContext, index: int) -> int | None:
    i = context.program.instructions[index]
    return int(i.operands[0].text, 0) & 3 if i.op == _OP else None


def _pairs(settings: Sequence[_Setting]) -> list[_Pair]:
    """A raised level and, behind it in the same block, the level that was there before."""
    return [
        _Pair(lowered.level, raised.level, raised.index, lowered.index)
        for raised, lowered in pairwise(settings)
        if raised.block == lowered.block and raised.before == {lowered.level}
        and raised.level > lowered.level]


def _around(pair: _Pair, runs: Sequence[MatrixRun]) -> MatrixRun | None:
    """What a pair of a block should enclose: all runs that it overlaps, or the nearest one."""
    raised, lowered = pair.raised, pair.lowered
    if raised is None or lowered is None:
        return None
    own = [run for run in runs if run.start <= raised < run.stop]
    met = [run for run in own if run.first < lowered and run.last > raised]
    if not met:
        met = sorted(own, key=lambda r: min(abs(r.first - lowered), abs(r.last - raised)))[:1]
    if not met:
        return None
    return MatrixRun(met[0].start, met[0].stop, min(r.first for r in met),
                     max(r.last for r in met), sum(r.count for r in met))
