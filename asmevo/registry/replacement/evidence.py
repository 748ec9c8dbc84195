"""Whether what the registry holds on a candidate justifies calling it a replacement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from asmevo.gates.verdict import Gate, Outcome
from asmevo.registry.records import Source

if TYPE_CHECKING:
    from asmevo.gates.verdict import Verdict
    from asmevo.registry.records import CandidateRecord

REQUIRED_PASSES = {Gate.G0: 1, Gate.G1: 1, Gate.G2: 3, Gate.G3: 1, Gate.G4: 1}
"""Verdicts that a replacement needs (spec section 5: G2 is verified three times)."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One verdict; ``dispatches`` are the inputs that G2 ran, where it says so, and ``sanitizer``
    marks its look at what equality hides, which is no verification."""

    gate: str
    outcome: str
    code: str
    dispatches: object = None
    sanitizer: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a candidate; ``timings`` are the source and device of each."""

    original_sha256: str
    object_sha256: str | None
    verdicts: Sequence[Judged]
    timings: Sequence[tuple[str, str]]

    @classmethod
    def of_candidate(cls, candidate: CandidateRecord) -> Evidence:
        """The evidence of a recorded candidate."""
        return cls(candidate.original_sha256, candidate.object_sha256,
                   tuple(map(_judged, candidate.verdicts)),
                   tuple((t.source, t.device) for t in candidate.timings))

    @classmethod
    def of_statement(cls, document: Mapping[str, Any]) -> Evidence:
        """The evidence that a statement gives."""
        candidate = document["candidate"]
        return cls(candidate["original_sha256"], candidate["object_sha256"],
                   tuple(Judged(v["gate"], v["outcome"], v["code"], v["dispatches"],
                                v["sanitizer"]) for v in document["verdicts"]),
                   tuple((t["source"], t["device"]) for t in document["timings"]))

    @property
    def source(self) -> Source:
        """``measured`` only if every timing is."""
        measured = all(source == "measured" for source, _ in self.timings)
        return "measured" if measured and self.timings else "modelled"

    def missing(self) -> str | None:
        """What it lacks, as the rest of a sentence; None if nothing.

        One verdict that is not a pass, of whatever gate, makes the evidence incomplete.
        """
        for verdict in self.verdicts:
            if verdict.outcome != Outcome.PASS:
                return f"gate {verdict.gate} says {verdict.outcome} ({verdict.code})"
        passes = Counter(v.gate for v in self.verdicts if not v.sanitizer)
        for gate, required in REQUIRED_PASSES.items():
            if passes[gate] < required:
                return f"gate {gate} has {passes[gate]} of {required} passes"
        if self.object_sha256 is None:
            return "no object was built"
        if self.object_sha256 == self.original_sha256:
            return "it is the original itself"
        if not self.timings:
            return "no timing is recorded"
        if len({device for _, device in self.timings}) > 1:
            return "its timings come from different devices"
        return None


def missing_evidence(candidate: CandidateRecord) -> str | None:
    """What a candidate lacks to be a replacement, as the rest of a sentence; None if nothing."""
    return Evidence.of_candidate(candidate).missing()


def missing_in(document: Mapping[str, Any]) -> str | None:
    """What a statement lacks to be one of a replacement, as the rest of a sentence.

    Besides `missing_evidence` its parts must agree with one another, and G2 have run all inputs
    that it was to be judged on, held-out ones among them.
    """
    evidence = Evidence.of_statement(document)
    if (missing := evidence.missing()) is not None:
        return missing
    if document["evidence_complete"] is not True:
        return "it is marked incomplete"
    if document["timing_source"] == "measured" and (modelled := _modelled_by(document)):
        return f"it is called measured, but {modelled}"
    if evidence.source != document["timing_source"]:
        return f"it is called {document['timing_source']}, its timings are not"
    candidate = document["candidate"]
    if ((candidate["original_sha256"], candidate["kernel"], candidate["object_sha256"])
            != (document["original"]["sha256"], document["kernel"],
                document["object"]["sha256"])):
        return "its candidate is of another object or kernel"
    if candidate["status"] != "committed":
        return f"its candidate is {candidate['status']}, not committed"
    again = document["second_timing"]
    if again is not None and again["confirmed"] and (
            again["outcome"] != Outcome.PASS or again["speedup"] is None):
        return f"it is called confirmed by a second timing that says {again['outcome']}"
    return _unrun_inputs(evidence, document["judgement"])


def timing_source(candidate: CandidateRecord) -> Source:
    """``measured`` only if every timing of the candidate is."""
    return Evidence.of_candidate(candidate).source


def _judged(verdict: Verdict) -> Judged:
    return Judged(verdict.gate, verdict.outcome, verdict.code, verdict.evidence.get("dispatches"),
                  "sanitized" in verdict.evidence)


def _unrun_inputs(evidence: Evidence, judgement: object) -> str | None:
    """Held-out inputs run last, so that a verdict on fewer may not have seen them."""
    expected = judgement.get("dispatches") if isinstance(judgement, Mapping) else None
    for verdict in evidence.verdicts:
        if (verdict.gate == Gate.G2 and None not in (verdict.dispatches, expected)
                and verdict.dispatches != expected):
            return (f"gate {verdict.gate} ran {verdict.dispatches} of {expected} inputs, held-out "
                    "ones last")
    return None


def _modelled_by(document: Mapping[str, Any]) -> str | None:
    """What shows that a speedup was not measured, as the rest of a sentence."""
    run = document["run"]
    devices = {document["device"], *(timing["device"] for timing in document["timings"])}
    for device in sorted({*devices, run["device"]}):
        if device.partition(":")[0] == "emulator":
            return f"its device '{device}' is an emulator"
    if run["device_source"] != "measured":
        return f"its run {run['id']} was on '{run['device']}', whose timings are modelled"
    if devices != {run["device"]}:
        return f"it names the device {', '.join(sorted(devices))}, its run '{run['device']}'"
    return None
