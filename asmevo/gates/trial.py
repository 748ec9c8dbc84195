"""One candidate on its way through the gates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from asmevo.codeobject.assembly import Assembly
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.toolchain import Toolchain
from asmevo.device.device import LoadedKernel, Timing
from asmevo.gates.baseline import Baseline
from asmevo.gates.verdict import Gate, Verdict


@dataclass
class Trial:
    """A candidate and what earlier gates made of it.

    ``assembly`` is set for a candidate that still has to be built (G0 adds the padding when it
    patches in place), ``code_object`` by G0 (or from the start when an existing object is
    verified). ``loaded`` is the kernel on the device (G2), ``timings`` pairs the original's and the
    candidate's timing for each timed dispatch (G3) and ``speedup`` is the geometric mean of their
    ratios. ``exposed_by`` is the index of the dispatch that showed it to be wrong (G2), which a
    verdict may not say of a held-out one.
    """

    baseline: Baseline
    toolchain: Toolchain
    assembly: Assembly | None = None
    code_object: CodeObject | None = None
    loaded: LoadedKernel | None = None
    timings: list[tuple[Timing, Timing]] = field(default_factory=list)
    speedup: float | None = None
    exposed_by: int | None = None


class CandidateGate(Protocol):
    """A gate that decides from a trial alone. G2 is asked ``repeats`` times."""

    @property
    def gate(self) -> Gate: ...

    @property
    def repeats(self) -> int: ...

    def judge(self, trial: Trial, repeat: int) -> Verdict:
        """The verdict; never raises for something the candidate did."""
        ...
