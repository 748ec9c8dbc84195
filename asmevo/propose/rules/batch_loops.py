"""Runs several rounds of a counted loop at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from asmevo.propose.loop_copies import LoopCopies
from asmevo.propose.pipelined_loop import PipelinedLoop, pipelined_loops
from asmevo.propose.proposal import Direction, Proposal
from asmevo.propose.repair import is_clean, repair
from asmevo.propose.rule import Rule, RuleContext

# Clocks for ranking only: a load from L2 or beyond, and the issue of an instruction.
_LATENCY, _ISSUE = 900, 5


class BatchLoops(Rule):
    """Each round of a loop waits for its own loads; those of later rounds could be under way.

    In front of the loop comes another one of ``depth`` rounds at a time, entered when more than
    twice as many are left and left when no more than ``depth`` are: each round uses what was
    fetched ``depth`` rounds before, and fetches for as many rounds ahead. The loop itself does the
    rest, at least one round. Everything happens in the order that it had.
    """

    name = "batch-loops"
    direction = Direction.LATENCY_HIDING

    def __init__(self, depths: Sequence[int] = tuple(range(16, 1, -1)), tried: int = 4,
                 longest: int = 2400) -> None:
        self._depths = tuple(depths)
        self._tried = tried
        self._longest = longest

    def matches(self, context: RuleContext) -> Iterator[Proposal]:
        loops = [(x, depths) for x in pipelined_loops(context)
                 if x.count is not None and (depths := self._ranked(x))]
        if not loops:
            return
        if len(loops) > 1:
            for number in range(self._tried):
                yield from self._batched(
                    context, [(x, depths[number:] or depths[-1:]) for x, depths in loops])
        loops.sort(key=lambda x: (-context.weight(range(x[0].start, x[0].latch)), x[0].start))
        for loop, depths in loops:
            for number in range(min(self._tried, len(depths))):
                yield from self._batched(context, [(loop, depths[number:])])

    def _ranked(self, loop: PipelinedLoop) -> list[int]:
        """Depths that can be reached, shortest estimated time first."""
        body = len(loop.ahead) + len(loop.behind)
        allowed = [d for d in self._depths if 3 * d * body <= self._longest]
        rounds = loop.rounds
        if rounds is None:
            return sorted(allowed, key=lambda d: abs(d - 8))

        def clocks(depth: int) -> float:
            rest = (rounds - 1) % depth + 1
            return (1 + rest) * _LATENCY + (rounds - rest) * max(
                _ISSUE * body, _LATENCY / depth)

        return sorted((d for d in allowed if 2 * d < rounds), key=clocks)

    def _batched(
        self, context: RuleContext, loops: list[tuple[PipelinedLoop, list[int]]],
    ) -> Iterator[Proposal]:
        rewrite = context.rewrite()
        labels = iter(context.preview.fresh_labels(3 * sum(len(d) for _, d in loops)))
        done: list[int] = []
        stores = False
        for loop, depths in loops:
            for depth in depths:
                before = LoopCopies(context, loop, depth, labels).in_batches()
                if before is not None:
                    rewrite.replace(loop.start - 1, context.lines[loop.start - 1], *before)
                    done.append(depth)
                    stores = stores or any(
                        context.program.instructions[i].is_store for i in loop.behind)
                    break
        if not done:
            return
        preview = repair(context, context.preview.apply(rewrite.edits(self.name)))
        if is_clean(context, preview):
            yield self.proposal(
                preview,
                f"{len(done)} loop(s) fetch {', '.join(map(str, done))} rounds ahead of their use:"
                " latencies of memory overlap",
                "what a round stores no later round of the loop loads" if stores else "")
