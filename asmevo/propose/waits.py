"""Puts waits where an edited kernel needs them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from asmevo.isa.cfg import Cfg
from asmevo.isa.instruction import Instruction, Unit, WaitCount
from asmevo.isa.violation import Violation
from asmevo.isa.waits import loosest_wait
from asmevo.propose.preview import Preview
from asmevo.propose.rewrite import Rewrite
from asmevo.propose.rule import RuleContext

COUNTERS = ("vmcnt", "expcnt", "lgkmcnt")
# What the fields of s_waitcnt hold (CDNA3 ISA, "S_WAITCNT").
LIMITS = {"vmcnt": 63, "expcnt": 7, "lgkmcnt": 15}

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
            _tighten(changed.setdefault(index, bounds_of(wait)), counter, bound)
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
    # The youngest producer waited for, per counter and block.
    covered: dict[tuple[str, int], tuple[int, int]] = {}
    for violation in sorted(missing, key=lambda v: (v.consumer, v.needed)):
        counter, consumer = _counter(violation), violation.consumer
        needed, block = max(violation.needed, 0), cfg.block_of[consumer]
        key = counter, block
        if key not in covered:
            covered[key] = _inherited(cfg, counter, block, covered)
        age = _age(violation.producer, consumer)
        # SMEM returns in any order: waiting for one does not cover another.
        if age <= covered[key] and program.instructions[violation.producer].unit is not Unit.SMEM:
            continue
        at = placed.get(key)
        if at is not None and consumer - at <= span:
            between = _issued(program.instructions[at:consumer], counter)
            if needed >= between and violation.producer not in range(at, consumer):
                _tighten(planned[at], counter, needed - between)
                covered[key] = max(covered[key], age)
                continue
        if planned.get(consumer, {}).get(counter, LIMITS[counter] + 1) > needed:
            _tighten(planned.setdefault(consumer, {}), counter, needed)
            placed[key] = consumer
        covered[key] = max(covered[key], age)
    return iter(sorted(planned.items()))


def _inherited(
    cfg: Cfg, counter: str, block: int, covered: dict[tuple[str, int], tuple[int, int]],
) -> tuple[int, int]:
    """What a block can count on from the one before it, where there is exactly one."""
    previous = cfg.blocks[block].predecessors
    while len(previous) == 1 and previous[0] < block:
        if (counter, previous[0]) in covered:
            return covered[counter, previous[0]]
        block = previous[0]
        previous = cfg.blocks[block].predecessors
    return _NOTHING


# Older than every producer.
_NOTHING = (-1, -1)


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
    index = len(preview.lines)
    while index > 0:
        index -= 1
        wait = preview.program.instructions[index].wait
        if wait is None or preview.origins[index] is not None:
            continue
        loosest = bounds_of(loosest_wait(preview.program, index))
        bounds = bounds_of(wait)
        kept = {c: max(b, loosest[c]) for c, b in bounds.items() if c in loosest}
        if kept != bounds:
            rewrite = Rewrite(preview.kernel, preview.program)
            if kept:
                rewrite.replace(index, wait_text(kept))
            else:
                rewrite.delete((index,))
            preview = preview.apply(rewrite.edits("waits"))
    return preview


def _issued(instructions: Collection[Instruction], counter: str) -> int:
    return sum(int(getattr(i, counter)) for i in instructions)


def _tighten(bounds: _Bounds, counter: str, bound: int) -> None:
    bounds[counter] = min(bounds.get(counter, LIMITS[counter]), bound)


def _counter(violation: Violation) -> str:
    return violation.kind.split("-")[1]
