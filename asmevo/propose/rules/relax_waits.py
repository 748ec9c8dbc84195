"""Waits later, for less, or not at all."""

from __future__ import annotations

from collections.abc import Iterator

from asmevo.isa.waits import loosest_wait
from asmevo.propose.barrier_waits import guard_barriers
from asmevo.propose.preview import Preview
from asmevo.propose.proposal import Direction, Proposal
from asmevo.propose.repair import is_clean, separate
from asmevo.propose.rule import Rule, RuleContext
from asmevo.propose.waits import bounds_of, place_waits, wait_text, without_waits


class RelaxWaits(Rule):
    """A wait that stands earlier, or asks for more, than the first use of what is outstanding.

    Three forms: waits in place with the loosest counts that dataflow allows; waits moved to just
    before the first instruction that needs them, one wait becoming several staged ones where
    results are used in the order they arrive; and the same with nearby stages merged. Waits in
    front of barriers and atomics stay, for what they protect does not show in registers.
    """

    name = "relax-waits"
    direction = Direction.LATENCY_HIDING

    def __init__(self, spans: tuple[int, ...] = (0, 4, 16)) -> None:
        self._spans = tuple(spans)

    def matches(self, context: RuleContext) -> Iterator[Proposal]:
        waits = [
            index for index, i in enumerate(context.program.instructions)
            if i.wait is not None and index not in context.guards and index not in context.cold
        ]
        if not waits:
            return
        movable = not any(i.modifier("lds") for i in context.program.instructions)
        if movable:
            for span in self._spans:
                yield from self._moved(context, tuple(waits), span)
        loosened = [(w, text) for w in waits if (text := _loosened(context, w)) is not None]
        # Of two waits for the same operation each can go, but not both.
        if loosened and is_clean(context, (together := self._loosen(context, loosened))):
            yield self._in_place(context, loosened, together)
        candidates = [
            (change[:1], self._in_place(context, [change], self._loosen(context, [change])))
            for change in loosened]
        if movable:
            for wait in waits:
                for proposal in self._moved(context, (wait,), 0):
                    candidates.append(((wait,), proposal))
        yield from context.by_weight(candidates)

    def _moved(
        self, context: RuleContext, waits: tuple[int, ...], span: int,
    ) -> Iterator[Proposal]:
        preview = separate(context, place_waits(context, without_waits(context, waits), span))
        preview = guard_barriers(context.preview, preview)
        if not is_clean(context, preview) or _touches_cold(context, preview):
            return
        before = sum(i.wait is not None for i in context.program.instructions)
        after = sum(i.wait is not None for i in preview.program.instructions)
        what = f"all {len(waits)} waits" if len(waits) > 1 else f"'{context.lines[waits[0]]}'"
        merged = f", stages up to {span} instructions apart merged" if span else ""
        yield self.proposal(
            preview,
            f"{what} can wait until just before the first use of each result{merged}"
            f" ({before} waits become {after})")

    def _loosen(self, context: RuleContext, loosened: list[tuple[int, str]]) -> Preview:
        rewrite = context.rewrite()
        for index, text in loosened:
            if text:
                rewrite.replace(index, text)
            else:
                rewrite.delete((index,))
        preview = separate(context, context.preview.apply(rewrite.edits(self.name)))
        return guard_barriers(context.preview, preview, reads=True)

    def _in_place(self, context: RuleContext, loosened: list[tuple[int, str]],
                  preview: Preview) -> Proposal:
        parts = [f"'{context.lines[index]}' -> {text or 'nothing'}" for index, text in loosened]
        return self.proposal(
            preview, "dataflow needs less than these waits ask for: " + "; ".join(parts))


def _touches_cold(context: RuleContext, preview: Preview) -> bool:
    """Whether a wait has come to stand in code that no profile has seen executed."""
    return any(k in context.cold for edit in preview.edits("")
               for k in range(edit.start, max(edit.stop, edit.start + 1)))


def _loosened(context: RuleContext, index: int) -> str | None:
    """The text of the loosest sufficient wait, empty for none at all, ``None`` for no change."""
    wait = context.program.instructions[index].wait
    assert wait is not None
    old = bounds_of(wait)
    loosest = bounds_of(loosest_wait(context.program, index))
    if not any(i.expcnt for i in context.program.instructions):
        # Only GDS raises EXPCNT on gfx942.
        loosest.pop("expcnt", None)
    new = {c: max(b, loosest[c]) for c, b in old.items() if c in loosest}
    if new == old:
        return None
    return wait_text(new) if new else ""
