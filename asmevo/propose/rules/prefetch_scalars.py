"""Loads the scalars of a loop's next round before this round's are used."""

from __future__ import annotations

from collections.abc import Iterator

from asmevo.isa.instruction import Unit
from asmevo.propose.loop_copies import LoopCopies
from asmevo.propose.pipelined_loop import PipelinedLoop, pipelined_loops
from asmevo.propose.proposal import Direction, Proposal
from asmevo.propose.repair import is_clean, repair
from asmevo.propose.rule import Rule, RuleContext


class PrefetchScalars(Rule):
    """A loop that waits for its scalar loads in each round could have issued them a round earlier.

    What is fetched goes to registers of its own, from which the round that uses it takes it over.
    The loop's own condition is asked in front of each fetch: nothing is loaded that the loop would
    not have loaded.
    """

    name = "prefetch-scalars"
    direction = Direction.LATENCY_HIDING

    def __init__(self, longest: int = 1200) -> None:
        self._longest = longest

    def matches(self, context: RuleContext) -> Iterator[Proposal]:
        instructions = context.program.instructions
        loops = [x for x in pipelined_loops(context) if x.drains and x.count is not None
                 and any(instructions[i].unit is Unit.SMEM for i in x.loads)
                 and 2 * (len(x.ahead) + len(x.behind)) <= self._longest]
        loops.sort(key=lambda x: (-context.weight(range(x.start, x.latch)), x.start))
        if len(loops) > 1:
            yield from self._prefetched(context, loops)
        for loop in loops:
            yield from self._prefetched(context, [loop])

    def _prefetched(
        self, context: RuleContext, loops: list[PipelinedLoop],
    ) -> Iterator[Proposal]:
        rewrite = context.rewrite()
        labels = iter(context.preview.fresh_labels(2 * len(loops)))
        done: list[PipelinedLoop] = []
        for loop in loops:
            built = LoopCopies(context, loop, 2, labels).one_ahead()
            if built is None:
                continue
            before, body, behind = built
            rewrite.replace(loop.start - 1, context.lines[loop.start - 1], *before)
            rewrite.delete(range(loop.start, loop.latch))
            rewrite.replace(loop.start, *body)
            rewrite.replace(loop.latch, *behind)
            done.append(loop)
        if not done:
            return
        preview = repair(context, context.preview.apply(rewrite.edits(self.name)))
        stores = any(context.program.instructions[i].is_store for x in done for i in x.behind)
        if is_clean(context, preview):
            yield self.proposal(
                preview, f"{len(done)} loop(s) load the scalars of the next round before they use"
                " those of this one: the wait is as long as the use shorter",
                "what a round stores the next round does not load" if stores else "")
