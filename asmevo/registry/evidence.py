"""Whether what the registry holds on a candidate justifies calling it a replacement."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from asmevo.gates.verdict import Gate
from asmevo.registry.records import Source

if TYPE_CHECKING:
    from asmevo.registry.records import CandidateRecord

REQUIRED_PASSES = {Gate.G0: 1, Gate.G1: 1, Gate.G2: 3, Gate.G3: 1, Gate.G4: 1}
"""Verdicts that a replacement needs (spec section 5: G2 is verified three times)."""


def missing_evidence(candidate: CandidateRecord) -> str | None:
    """What a candidate lacks to be a replacement, as the rest of a sentence; None if nothing.

    One verdict that is not a pass, of whatever gate, makes the evidence incomplete.
    """
    passes = Counter(v.gate for v in candidate.verdicts if v.passed)
    for verdict in candidate.verdicts:
        if not verdict.passed:
            return f"gate {verdict.gate} says {verdict.outcome} ({verdict.code})"
    for gate, required in REQUIRED_PASSES.items():
        if passes[gate] < required:
            return f"gate {gate} has {passes[gate]} of {required} passes"
    if candidate.object_sha256 is None:
        return "no object was built"
    if candidate.object_sha256 == candidate.original_sha256:
        return "it is the original itself"
    if not candidate.timings:
        return "no timing is recorded"
    if len({t.device for t in candidate.timings}) > 1:
        return "its timings come from different devices"
    return None


def timing_source(candidate: CandidateRecord) -> Source:
    """``measured`` only if every timing of the candidate is."""
    measured = all(t.source == "measured" for t in candidate.timings)
    return "measured" if measured and candidate.timings else "modelled"
