"""Fetches for the next rounds of a loop while this one computes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from asmevo.propose.loop_copies import NEUTRAL, LoopCopies, restoring
from asmevo.propose.pipelined_loop import PipelinedLoop, pipelined_loops
from asmevo.propose.proposal import Direction, Proposal
from asmevo.propose.repair import is_clean, repair
from asmevo.propose.rule import Rule, RuleContext

# Sums that do not mind a term twice.
_REPEATABLE = ("v_max", "v_min", "v_pk_max", "v_pk_min", "v_med3", "v_or_b32", "v_and_b32", "v_cmp",
               "v_cndmask", "s_")


class PipelineLoops(Rule):
    """Each round of a loop waits for its own loads; those of later rounds could be under way.

    The loop becomes ``depth`` copies of itself, each with the loop's own condition. A copy uses
    what was fetched ``depth`` rounds before and fetches for as many rounds ahead, always for rounds
    that the condition has found to take place, so that nothing else is read. What is under way when
    the condition ends the loop is used behind it. Where lanes leave one by one, a lane may have
    less under way than others: its copies then hold its first element once more, if using it twice
    changes nothing, or a value that a sum does not notice. Loops whose rounds can be counted are
    left to `BatchLoops`.
    """

    name = "pipeline-loops"
    direction = Direction.LATENCY_HIDING

    def __init__(
        self, depths: Sequence[int] = (8, 12, 16, 6, 4, 3, 2), longest: int = 2400,
    ) -> None:
        self._depths = tuple(depths)
        self._longest = longest

    def matches(self, context: RuleContext) -> Iterator[Proposal]:
        loops = [x for x in pipelined_loops(context) if x.drains and x.count is None]
        if not loops:
            return
        if len(loops) > 1:
            for depth in self._depths:
                yield from self._together(context, loops, depth)
        hottest = sorted(
            loops, key=lambda x: (-context.weight(range(x.start, x.latch)), x.start))
        for loop in hottest:
            for depth in self._depths:
                for filling in fillings(context, loop):
                    yield from self._pipelined(context, [(loop, filling)], depth)

    def _together(
        self, context: RuleContext, loops: list[PipelinedLoop], depth: int,
    ) -> Iterator[Proposal]:
        choices = [fillings(context, loop) for loop in loops]
        for number in range(max(map(len, choices))):
            yield from self._pipelined(context, [
                (loop, found[min(number, len(found) - 1)])
                for loop, found in zip(loops, choices, strict=True) if found], depth)

    def _built(
        self, context: RuleContext, loop: PipelinedLoop, depth: int, filling: str,
        labels: Iterator[str],
    ) -> tuple[list[str], list[str], list[str]] | None:
        """The loop at this depth, or the largest below it that registers and code size allow."""
        for smaller in sorted({d for d in self._depths if d <= min(depth, _most(loop))},
                              reverse=True):
            users = smaller if loop.masked else smaller * smaller
            if len(loop.ahead) * 2 * smaller + len(loop.behind) * users <= self._longest:
                built = LoopCopies(context, loop, smaller, labels, filling).with_exits()
                if built is not None:
                    return built
        return None

    def _pipelined(
        self, context: RuleContext, loops: list[tuple[PipelinedLoop, str]], depth: int,
    ) -> Iterator[Proposal]:
        rewrite = context.rewrite()
        assumptions: dict[str, None] = {}
        done = 0
        labels = iter(context.preview.fresh_labels(len(loops) * 8 * (1 + 2 * depth)))
        for loop, filling in loops:
            built = self._built(context, loop, depth, filling, labels)
            if built is None:
                continue
            before, body, behind = built
            rewrite.replace(loop.start - 1, context.lines[loop.start - 1], *before)
            for index in range(loop.start, loop.latch):
                rewrite.delete((index,))
            rewrite.replace(loop.start, *body)
            restore = restoring(context, loop)
            if loop.masked and restore is None:
                rewrite.replace(loop.latch)
                rewrite.replace(
                    loop.latch + 1, *behind[:1], context.lines[loop.latch + 1], *behind[1:])
            else:
                rewrite.replace(loop.latch, *behind)
            done += 1
            assumptions.update(dict.fromkeys(_assumptions(context, loop, filling)))
        if not done:
            return
        preview = repair(context, context.preview.apply(rewrite.edits(self.name)), 0)
        if is_clean(context, preview):
            yield self.proposal(
                preview,
                f"{done} loop(s) fetch up to {depth} rounds ahead of their use: latencies of memory"
                " overlap", "; ".join(assumptions))


def _most(loop: PipelinedLoop) -> float:
    """A depth beyond which there would be nothing left to fetch ahead for."""
    return math.inf if loop.rounds is None else max(loop.rounds - 1, 2)


def fillings(context: RuleContext, loop: PipelinedLoop) -> list[str]:
    """What copies of a lane may hold that has nothing under way; one empty text for no need."""
    if not loop.masked:
        return [""]
    instructions = [context.program.instructions[i] for i in loop.behind]
    if not any(i.writes & loop.summed and not i.op.startswith(_REPEATABLE) for i in instructions):
        return ["again"]
    if any(i.is_store for i in instructions):
        return []
    exponents = any(i.op == "v_exp_f32" for i in instructions)
    return list(NEUTRAL)[::-1] if exponents else list(NEUTRAL)


def _assumptions(context: RuleContext, loop: PipelinedLoop, filling: str) -> Iterator[str]:
    if any(context.program.instructions[i].is_store for i in loop.behind):
        yield "what a round stores no later round of the loop loads"
    if filling in NEUTRAL:
        yield f"a sum does not notice {filling}"
    if loop.summed and loop.masked:
        yield "a sum in another order is close enough: rounding changes"
