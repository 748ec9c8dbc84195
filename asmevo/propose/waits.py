"""Puts waits where an edited kernel needs them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from asmevo.codeobject.assembly import Edit
from asmevo.isa.cfg import Cfg
from asmevo.isa.instruction import Instruction, Unit, WaitCount
from asmevo.isa.violation import Violation
from asmevo.isa.waits import loosest_waits
from asmevo.propose.preview import Preview
from asmevo.propose.rewrite import Rewrite
from asmevo.propose.rule import RuleContext

COUNTERS = ("vmcnt", "expcnt", "lgkmcnt")
# What the fields of s_waitcnt hold (CDNA3 ISA, "S_WAITCNT").
LIMITS = {"vmcnt": 63, "expcnt": 7, "lgkmcnt": 15}

# Older than every producer.
_NOTHING = (-1, -1)

_Bounds = dict[str, int]


def bounds_of(wait: WaitCount) -> _Bounds:
    """The counters that a wait bounds."""
    return {c: b for c in COUNTERS if (b := getattr(wait, c)) is not None}


def wait_text(bounds: _Bounds) -> str:
    """The ``s_waitcnt`` that imposes these bounds."""
    return "s_waitcnt " + " ".join(f"{c}({bounds[c]})" for c in COUNTERS if c in bounds)


def without_waits(context: RuleContext, removed: Collection[int]) -> Preview:
    """The context's kernel without some of its waits."""
    rewrite = context.rewrite()
    rewrite.delete(removed)
    return context.preview.apply(rewrite.edits("waits"))


def lower_waits(context: RuleContext, preview: Preview) -> Preview:
    """Lower the counts of waits between producers and consumers that lack one now.

    Waits stay where they stand; what has no wait in between is left to `place_waits`.
    """
    changed: dict[int, _Bounds] = {}
    for violation in context.new_missing(preview):
        counter = _counter(violation)
        place = _wait_between(preview, violation, counter, max(violation.needed, 0))
        if place is not None:
            index, bound = place
            wait = preview.program.instructions[index].wait
            assert wait is not None
            tighten(changed.setdefault(index, bounds_of(wait)), counter, bound)
    rewrite = Rewrite(preview.kernel, preview.program)
    for index, bounds in changed.items():
        rewrite.replace(index, wait_text(bounds))
    return preview.apply(rewrite.edits("waits"))


def place_waits(context: RuleContext, preview: Preview, span: int = 0) -> Preview:
    """Put a wait right before each first consumer that lacks one.

    With ``span`` > 0, waits on one counter that lie no more than ``span`` instructions apart are
    merged into the first: fewer instructions issued against waiting a little longer.
    """
    for _ in range(8):
        missing = context.new_missing(preview)
        if not missing:
            break
        rewrite = Rewrite(preview.kernel, preview.program)
        for index, bounds in _first_consumers(preview, missing, span):
            rewrite.insert(index, wait_text(bounds))
        preview = _pruned(preview.apply(rewrite.edits("waits")))
    return preview


def _first_consumers(
    preview: Preview, missing: list[Violation], span: int,
) -> Iterator[tuple[int, _Bounds]]:
    """Where to wait, walking the violations by consumer and skipping what earlier waits cover."""
    program, cfg = preview.program, preview.cfg
    planned: dict[int, _Bounds] = {}
    placed: dict[tuple[str, int], int] = {}
    covered = _Covered(cfg)
    for violation in sorted(missing, key=lambda v: (v.consumer, v.needed)):
        counter, consumer = _counter(violation), violation.consumer
        needed, block = max(violation.needed, 0), cfg.block_of[consumer]
        # SMEM returns in any order: only a wait for zero covers it.
        ordered = program.instructions[violation.producer].unit is not Unit.SMEM
        age = _age(violation.producer, consumer)
        if age <= covered.youngest(counter, ordered, block):
            continue
        at = placed.get((counter, block), -1)
        between = _issued(program.instructions[at:consumer], counter)
        if (at >= 0 and consumer - at <= span and needed >= between
                and violation.producer not in range(at, consumer)):
            needed -= between
        else:
            at = consumer
            placed[counter, block] = at
        tighten(planned.setdefault(at, {}), counter, needed)
        if needed == 0:
            covered.add(counter, False, block, (1, at - 1))
            age = max(age, (1, at - 1))
        covered.add(counter, True, block, age)
    return iter(sorted(planned.items()))


class _Covered:
    """The youngest producer whose result planned waits make sure of, per counter and block."""

    def __init__(self, cfg: Cfg) -> None:
        self._cfg = cfg
        self._youngest: dict[tuple[str, bool, int], tuple[int, int]] = {}

    def youngest(self, counter: str, ordered: bool, block: int) -> tuple[int, int]:
        """What a block can count on, from the blocks before it where each is the only one."""
        while (counter, ordered, block) not in self._youngest:
            previous = self._cfg.blocks[block].predecessors
            if len(previous) != 1 or previous[0] >= block:
                return _NOTHING
            block = previous[0]
        return self._youngest[counter, ordered, block]

    def add(self, counter: str, ordered: bool, block: int, age: tuple[int, int]) -> None:
        known = self.youngest(counter, ordered, block)
        self._youngest[counter, ordered, block] = max(known, age)


def _age(producer: int, consumer: int) -> tuple[int, int]:
    """Issue order of producers seen from one straight-line range: a larger index is younger, but
    those behind the consumer were issued in an earlier turn of a loop."""
    return (1, producer) if producer < consumer else (0, producer)


def _wait_between(
    preview: Preview, violation: Violation, counter: str, needed: int,
) -> tuple[int, int] | None:
    """The last wait before the consumer that can be lowered instead, and its new bound."""
    program = preview.program
    begin = preview.cfg.blocks[preview.cfg.block_of[violation.consumer]].start
    if begin <= violation.producer < violation.consumer:
        begin = violation.producer + 1
    for index in range(violation.consumer - 1, begin - 1, -1):
        wait = program.instructions[index].wait
        if wait is not None and getattr(wait, counter) is not None:
            bound = needed - _issued(program.instructions[index:violation.consumer], counter)
            return (index, bound) if bound >= 0 else None
    return None


def _pruned(preview: Preview) -> Preview:
    """Drop new waits that others make unnecessary."""
    program = preview.program
    # From the last to the first: those in front are the ones that have to stay.
    new = [
        index for index in reversed(range(len(program)))
        if program.instructions[index].wait is not None and preview.origins[index] is None]
    edits: list[Edit] = []
    for index, loosest in loosest_waits(program, new).items():
        wait = program.instructions[index].wait
        assert wait is not None
        allowed, bounds = bounds_of(loosest), bounds_of(wait)
        kept = {c: max(b, allowed[c]) for c, b in bounds.items() if c in allowed}
        if kept != bounds:
            texts = (wait_text(kept),) if kept else ()
            edits.append(Edit(preview.kernel, index, index + 1, texts, "waits"))
    return preview.apply(edits)


def _issued(instructions: Collection[Instruction], counter: str) -> int:
    return sum(int(getattr(i, counter)) for i in instructions)


def tighten(bounds: _Bounds, counter: str, bound: int) -> None:
    """Bound a counter by no more than this."""
    bounds[counter] = min(bounds.get(counter, LIMITS[counter]), bound)


def _counter(violation: Violation) -> str:
    return violation.kind.split("-")[1]
