"""Spreads other work between matrix operations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from asmevo.isa.instruction import Unit
from asmevo.isa.matrix_timing import passes
from asmevo.isa.targets import model
from asmevo.propose.issue_slots import slots_between
from asmevo.propose.matrix_runs import MatrixRun, matrix_runs
from asmevo.propose.proposal import Direction, Proposal
from asmevo.propose.reordering import reordered
from asmevo.propose.rule import Rule, RuleContext

# Issue slots from the end of a matrix operation's passes until its result can be used (the rows of
# "Required User-Inserted NOPs", CDNA3 ISA, need passes + 3 or so; the scheduler takes the same).
_AFTER_PASSES = 5
# Slots of the vector ALU: transcendental operations run at a quarter of the rate.
_QUARTER = 4


class InterleaveMatrix(Rule):
    """A matrix operation occupies its pipe for its passes of four cycles, a slot each, during which
    the wave can issue other work.

    Matrix operations keep their order and come as soon as the pipe is free; in between come the
    operations that stand behind them, or in front of them as well, in their order, as far as
    dependences allow and their operands are there. Waits and ``s_nop`` are placed anew, except
    those that order accesses to LDS (`asmevo.propose.barrier_waits`). Blocks count that have
    ``smallest`` matrix operations with fewer than ``apart`` others between two of them.
    """

    name = "interleave-matrix"
    direction = Direction.DEPENDENCY_CHAINS

    def __init__(self, apart: int = 2, smallest: int = 4, span: int = 4) -> None:
        self._apart = apart
        self._smallest = smallest
        self._span = span

    def matches(self, context: RuleContext) -> Iterator[Proposal]:
        blocks: dict[int, MatrixRun] = {}
        for run in matrix_runs(context, self._apart, self._smallest):
            blocks.setdefault(run.start, run)
        runs = sorted(blocks.values(), key=lambda r: (
            -context.weight(range(r.start, r.stop)), r.first))
        for in_front in (False, True):
            yield from self._interleaved(context, runs, in_front)
        for run in runs if len(runs) > 1 else ():
            for in_front in (False, True):
                yield from self._interleaved(context, [run], in_front)

    def _interleaved(self, context: RuleContext, runs: Sequence[MatrixRun], in_front: bool
                     ) -> Iterator[Proposal]:
        ranges = [range(run.start if in_front else run.first, run.stop) for run in runs]
        preview = reordered(context, self.name, self._span, [
            (r, _Interleaving.of(context, r.start, r.stop).order()) for r in ranges])
        if preview is not None:
            where = (f"instructions {runs[0].first} to {runs[0].stop}" if len(runs) == 1
                     else f"{len(runs)} blocks")
            what = "in front of and behind" if in_front else "behind"
            yield self.proposal(
                preview, f"{where}: between matrix operations as much of the work {what} them as"
                " their passes cover")


@dataclass(frozen=True)
class _Interleaving:
    """What is ordered: a range without its waits and nops, with predecessors and successors."""

    context: RuleContext
    before: dict[int, set[int]]
    after: dict[int, list[int]]

    @staticmethod
    def of(context: RuleContext, start: int, stop: int) -> _Interleaving:
        instructions = context.program.instructions
        graph = context.dependences(start, stop, assume_disjoint=False)
        indices = [
            k for k in range(start, stop) if k in context.kept_waits or not (
                instructions[k].wait is not None or instructions[k].op == "s_nop")]
        kept = set(indices)
        before = {k: graph.predecessors[k] & kept for k in indices}
        last = -1
        for k in indices:
            if instructions[k].unit is Unit.MFMA:
                before[k] |= {last} & kept
                last = k
        after: dict[int, list[int]] = {k: [] for k in indices}
        for k in indices:
            for p in before[k]:
                after[p].append(k)
        return _Interleaving(context, before, after)

    def order(self) -> list[int]:
        """Of what can be issued first a matrix operation, or else the first in the old order, in
        which everything stays behind the last matrix operation."""
        ready_at = dict.fromkeys(self.before, 0)
        waiting = {k: len(self.before[k]) for k in self.before}
        ready = {k for k in self.before if not waiting[k]}
        matrix = {k: self._passes(k) for k in self.before if self._unit(k) is Unit.MFMA}
        left = len(matrix)
        order: list[int] = []
        time = pipe_free = 0

        def rank(k: int) -> tuple[int, bool, int]:
            start = max(ready_at[k], pipe_free) if k in matrix else ready_at[k]
            return max(start - time, 0), k not in matrix, k

        while ready:
            chosen = min(ready, key=rank if left else None)
            ready.remove(chosen)
            order.append(chosen)
            time += rank(chosen)[0]
            if chosen in matrix:
                pipe_free = time + matrix[chosen]
                left -= 1
            for s in self.after[chosen]:
                ready_at[s] = max(ready_at[s], time + self._distance(chosen, s))
                waiting[s] -= 1
                if not waiting[s]:
                    ready.add(s)
            time += _QUARTER if self._unit(chosen) is Unit.TRANS else 1
        return order

    def _distance(self, producer: int, consumer: int) -> int:
        first, second = (self.context.program.instructions[k] for k in (producer, consumer))
        if first.unit is Unit.MFMA and first.writes & second.reads:
            # The next operation on an accumulator need not wait for it to be written.
            return self._passes(producer) + (second.unit is not Unit.MFMA) * _AFTER_PASSES
        return slots_between(first, second)

    def _passes(self, index: int) -> int:
        program = self.context.program
        return passes(program.instructions[index], model(program.isa))

    def _unit(self, index: int) -> Unit:
        return self.context.program.instructions[index].unit
