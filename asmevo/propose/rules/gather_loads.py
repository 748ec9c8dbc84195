"""Lets loads for some lanes each be under way together."""

from __future__ import annotations

from collections.abc import Iterator

from asmevo.isa.instruction import Unit
from asmevo.propose.gathering import Gathering, is_early
from asmevo.propose.masked_chain import MaskedChain, masked_chains
from asmevo.propose.proposal import Direction, Proposal
from asmevo.propose.repair import is_clean, repair
from asmevo.propose.rule import Rule, RuleContext


class GatherLoads(Rule):
    """Each conditional load is waited for before the condition of the next one is looked at.

    What uses the loaded values moves behind the last of the conditional stretches, where the same
    lanes are on. Registers that the stretches share get names of their own. What stood inside of a
    stretch is computed for all lanes and kept for those that were on. The stretches lose the branch
    over them, so that waits can count on their loads: each use waits for its own load, while the
    others are still under way. Or they keep it, and only what stood between them moves.
    """

    name = "gather-loads"
    direction = Direction.LATENCY_HIDING

    def matches(self, context: RuleContext) -> Iterator[Proposal]:
        chains = [c for c in masked_chains(context)
                  if any(is_early(context.program.instructions[i]) for i in c.inner)
                  and not context.cold & {c.trace[0], c.last}]
        if not chains:
            return
        for straight in (True, False):
            yield from self._gathered(context, chains, straight)
        if len(chains) > 1:
            for chain in sorted(chains, key=lambda c: -context.weight(c.trace)):
                for straight in (True, False):
                    yield from self._gathered(context, [chain], straight)

    def _gathered(
        self, context: RuleContext, chains: list[MaskedChain], straight: bool,
    ) -> Iterator[Proposal]:
        """``straight``: stretches may lose the branch over them."""
        instructions = context.program.instructions
        rewrite = context.rewrite()
        moved = 0
        assumptions: dict[str, None] = {}
        for chain in chains:
            plan = Gathering.of(context, chain, straight)
            if plan is None:
                continue
            moved += len(plan.sunk)
            for index, line in plan.lines.items():
                if line != context.lines[index]:
                    rewrite.replace(index, line)
            for index, line in plan.copies.items():
                rewrite.insert(index, line)
            rewrite.delete((*plan.sunk, *plan.removed))
            rewrite.replace(chain.last, context.lines[chain.last], *plan.behind)
            if any(instructions[i].is_store and instructions[i].unit is not Unit.LDS
                   for i in plan.sunk):
                assumptions["accesses to different buffers do not overlap"] = None
            if plan.unskipped and any(instructions[i].unit is Unit.SMEM for i in chain.inner):
                assumptions["scalars can be loaded when no lane needs them"] = None
        if not moved:
            return
        preview = repair(context, context.preview.apply(rewrite.edits(self.name)))
        if is_clean(context, preview):
            yield self.proposal(
                preview,
                f"{moved} use(s) of what is loaded under conditions move behind the last of these"
                " loads: their latencies overlap", "; ".join(assumptions))

