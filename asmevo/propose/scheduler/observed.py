"""How long memory operations took, as far as waits of a profile show it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from asmevo.isa.program import Program
from asmevo.isa.waits import awaited
from asmevo.profile.profile import Profile, StallCause
from asmevo.propose.scheduler.machine import TURN

# Farther apart, what lies between says little about when the operation was issued.
_FARTHEST = 400
_LONGEST = 2000


def observed_latencies(program: Program, profiles: Sequence[Profile],
                       paths: Iterable[Sequence[int]]) -> dict[int, int]:
    """Clk from the issue of vector loads to the end of a wait that stalled for them.

    ``paths`` are instructions in the order of execution. A wait ends when the last operation that
    it waits for has returned, and these return in order: what it shows is how long the youngest
    took, queues and lines that were on their way for somebody else included. Operations that
    nothing stalled for are not among them.
    """
    found: dict[int, list[float]] = {}
    waits = awaited(program)
    known: frozenset[int] = frozenset()
    # What no path shows may show in the order of the text.
    for path in (*paths, range(len(program))):
        if len(path) == len(program):
            known = frozenset(found)
        place = {index: n for n, index in enumerate(path)}
        for wait, operations in waits.items():
            if wait not in place:
                continue
            loads = [place[o] for o in operations
                     if place.get(o, place[wait]) < place[wait] and program.instructions[o].vmcnt
                     and program.instructions[o].is_load]
            if not loads or place[wait] - max(loads) > _FARTHEST:
                continue
            between = path[max(loads):place[wait] + 1]
            if between[0] in known:
                continue
            for profile in profiles:
                clk = _passed(profile, between)
                if clk is not None and clk < _LONGEST:
                    found.setdefault(between[0], []).append(clk)
    return {load: round(sum(clks) / len(clks)) for load, clks in found.items()}


def _passed(profile: Profile, between: Sequence[int]) -> float | None:
    """Clk of a pass from a load to the end of its wait, where that stalled."""
    rows = profile.instructions
    passes, waited = rows[between[0]].issued, rows[between[-1]]
    if not passes or not waited.issued or not waited.stalls.get(StallCause.VMCNT):
        return None
    clk = 0.0
    for index in between[1:]:
        row = rows[index]
        clk += min(row.issued / passes, 1.0) * (
            TURN + (row.stalled / row.issued if row.issued else 0.0))
    return clk
