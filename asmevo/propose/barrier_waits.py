"""Waits that kernels need for what no register shows: LDS that other waves read and write.

`asmevo.isa.waits` reports stores and loads to LDS in flight at a barrier, and a candidate is told
from its base by the texts of what is in flight. In a loop that a person has pipelined such a load
is in flight at most barriers, on purpose, and lacks its wait at another one unnoticed; nor is a
read of LDS reported that is in flight when another wave may write there.
"""

from __future__ import annotations

from collections import Counter

from asmevo.isa.instruction import Unit
from asmevo.isa.program import Program
from asmevo.isa.waits import Outstanding, outstanding
from asmevo.propose.preview import Preview
from asmevo.propose.rewrite import Rewrite
from asmevo.propose.waits import bounds_of, tighten, wait_text


def guard_barriers(before: Preview, after: Preview) -> Preview:
    """Wait in front of barriers for what was not in flight there before and what other waves may
    see, or overwrite in LDS; both have the same barriers in the same order."""
    program = after.program
    rewrite = Rewrite(after.kernel, program)
    for (_, old), (barrier, new) in zip(
            _at_barriers(before.program), _at_barriers(program), strict=True):
        known = Counter(before.program.instructions[o.index].text for o in old)
        found = Counter(program.instructions[o.index].text for o in new)
        bounds: dict[str, int] = {}
        for o in new:
            text = program.instructions[o.index].text
            if found[text] > known[text]:
                tighten(bounds, o.counter, o.position if o.ordered else 0)
        if not bounds:
            continue
        wait = program.instructions[barrier - 1].wait if barrier else None
        if wait is None or barrier in rewrite.labelled:
            rewrite.insert(barrier, wait_text(bounds))
            continue
        for counter, bound in bounds_of(wait).items():
            tighten(bounds, counter, bound)
        rewrite.replace(barrier - 1, wait_text(bounds))
    return after.apply(rewrite.edits("waits"))


def _at_barriers(program: Program) -> list[tuple[int, list[Outstanding]]]:
    instructions = program.instructions
    barriers = [k for k, i in enumerate(instructions) if i.unit is Unit.BARRIER]
    found = outstanding(program, barriers)
    return [(k, [o for o in found[k] if o.publishes or instructions[o.index].unit is Unit.LDS])
            for k in barriers]
