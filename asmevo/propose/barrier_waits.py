"""Waits that kernels need for what no register shows: LDS that other waves read and write.

`asmevo.isa.waits` reports stores and loads to LDS in flight at a barrier, and a candidate is told
from its base by the texts of what is in flight. In a loop that a person has pipelined such a load
is in flight at most barriers, on purpose, and lacks its wait at another one unnoticed; nor is a
read of LDS reported that is in flight when another wave may write there.
"""

from __future__ import annotations

from collections import Counter

from asmevo.isa.instruction import Unit
from asmevo.isa.ordering import loads_to_lds
from asmevo.isa.program import Program
from asmevo.isa.recent import Recent
from asmevo.isa.waits import Outstanding, outstanding
from asmevo.propose.preview import Preview
from asmevo.propose.rewrite import Rewrite
from asmevo.propose.waits import bounds_of, tighten, wait_text

_Points = list[tuple[int, list[Outstanding]]]
# Many candidates are compared with one base.
_recent: Recent[_Points] = Recent(4)


def guard_barriers(before: Preview, after: Preview, *, reads: bool = False) -> Preview:
    """Wait in front of barriers for what was not in flight there before and what other waves may
    see, or overwrite in LDS; both have the same barriers in the same order.

    With ``reads`` also in front of LDS operations, for loads to LDS that the wave may read there;
    then these have to be in the same order, too.
    """
    program = after.program
    rewrite = Rewrite(after.kernel, program)
    for (_, old), (point, new) in zip(
            _looked_at(before.program, reads), _looked_at(program, reads), strict=True):
        known = Counter(before.program.instructions[o.index].text for o in old)
        found = Counter(program.instructions[o.index].text for o in new)
        bounds: dict[str, int] = {}
        for o in new:
            text = program.instructions[o.index].text
            if found[text] > known[text]:
                tighten(bounds, o.counter, o.position if o.ordered else 0)
        if not bounds:
            continue
        wait = program.instructions[point - 1].wait if point else None
        if wait is None or point in rewrite.labelled:
            rewrite.insert(point, wait_text(bounds))
            continue
        for counter, bound in bounds_of(wait).items():
            tighten(bounds, counter, bound)
        rewrite.replace(point - 1, wait_text(bounds))
    return after.apply(rewrite.edits("waits"))


def _looked_at(program: Program, reads: bool) -> _Points:
    """Where memory is looked at, and what is in flight there that matters."""
    return _recent.get(lambda: _points(program, reads), program, reads)


def _points(program: Program, reads: bool) -> _Points:
    instructions = program.instructions
    points = [k for k, i in enumerate(instructions)
              if i.unit is Unit.BARRIER or (reads and i.unit is Unit.LDS)]
    found = outstanding(program, points)

    def matters(at: int, o: Outstanding) -> bool:
        i = instructions[o.index]
        if instructions[at].unit is Unit.BARRIER:
            return o.publishes or i.unit is Unit.LDS
        return loads_to_lds(i)

    return [(k, [o for o in found[k] if matters(k, o)]) for k in points]
