"""Whether the events of a run claim a speedup that its stored timings bear out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from asmevo.device.device import Timing, TimingSource
from asmevo.gates.latency import geometric_mean
from asmevo.gates.verdict import Gate
from asmevo.registry.errors import RegistryError
from asmevo.registry.records import CandidateRecord

_SAME = 1e-9
# Of a measuring device the original is timed anew beside every candidate, and stored once for a
# run: a clock that has changed since is not an alteration.
_DRIFT = 1.5


class ProvenSpeedup:
    """Compares with timings of the original, which a run has stored."""

    def __init__(self, baseline: Sequence[Timing]) -> None:
        self._original: dict[str, float] = {}
        for timing in baseline:  # each sitting of a run may have timed it
            self._original.setdefault(timing.dispatch, timing.median_us)

    def demand(self, what: str, speedup: float, candidate: CandidateRecord) -> None:
        """Raise `RegistryError`, which names ``what``, unless evidence agrees with ``speedup``."""
        for where, found, factor in self._evidence(candidate):
            if not (math.isfinite(speedup) and speedup > 0
                    and abs(math.log(speedup / found)) <= math.log(factor)):
                raise RegistryError(
                    f"{what} has a speedup of {speedup:g}, but {where} candidate '{candidate.id}' "
                    f"give {found:g}: the registry was altered")

    def _evidence(self, candidate: CandidateRecord) -> list[tuple[str, float, float]]:
        timings = candidate.timings
        pairs = [(self._original.get(timing.dispatch, 0.0), timing.median_us)
                 for timing in timings]
        if not pairs or not all(0.0 < us < math.inf for pair in pairs for us in pair):
            raise RegistryError(f"candidate '{candidate.id}' of the run has a speedup, but the "
                                "registry lacks its timings or those of the original")
        modelled = all(timing.source is TimingSource.MODELLED for timing in timings)
        found = [("the timings of", geometric_mean([old / new for old, new in pairs]),
                  1.0 + _SAME if modelled else _DRIFT)]
        for said in (_said(v.evidence) for v in candidate.verdicts if v.gate is Gate.G3):
            if said is not None:
                found.append(("the verdicts on", said, 1.0 + _SAME))
        return found


def _said(evidence: Mapping[str, object]) -> float | None:
    value = evidence.get("speedup")
    if isinstance(value, int | float) and math.isfinite(value) and value > 0:
        return float(value)
    return None
