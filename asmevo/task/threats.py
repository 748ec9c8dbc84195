"""The threat model against the gates: every cheat must be caught, and nothing else."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asmevo.durable import write_atomically
from asmevo.gates.verdict import Verdict
from asmevo.report.marked import checked_document, write_between_markers
from asmevo.report.result import Result, Status
from asmevo.report.terminal import Bar
from asmevo.report.threats import MARKER, markdown
from asmevo.task.session import ConfigError, Session
from asmevo.threats.corpus import cases, row_names
from asmevo.threats.subject import Specimen, Subject
from asmevo.threats.threat import Judgement, Threat
from asmevo.threats.trick import Candidate, EditMismatch
from asmevo.threats.weaker import believed

log = logging.getLogger(__name__)

OWN = "own"


@dataclass(frozen=True)
class Threats:
    """Tries the named ``rows`` of the threat model on the named ``kernels`` of ``subjects``.

    Of the session's own kernel (``own``) those that fit any kernel. Leaves ``threats.jsonl`` (each
    as it is tried) and ``table.md`` in the run folder, and the table in the document called
    ``readme``, between its markers.
    """

    rows: Sequence[str]
    kernels: Sequence[str]
    subjects: Mapping[str, Specimen]

    def run(self, session: Session) -> Result:
        started = time.monotonic()
        self._check()
        readme = None if session.config.readme is None else Path(session.config.readme)
        if readme is not None:
            checked_document(readme, MARKER)
        chosen = list(cases(self.kernels, self.rows))
        if not chosen:
            raise ConfigError("task.rows and task.kernels have no threat in common")
        tried: list[dict[str, Any]] = []
        with (session.folder / "threats.jsonl").open("w", encoding="utf-8") as sink, Bar(
                "threats", len(chosen)) as bar:
            for entry in self._tried(session, chosen):
                tried.append(entry)
                sink.write(json.dumps(entry) + "\n")
                sink.flush()
                bar.advance(not (_sound(entry) and _sound(entry["depth"])))
        counts = {j.value: sum(1 for e in tried if e["judgement"] == j.value) for j in Judgement}
        details: dict[str, Any] = {
            "kernels": list(self.kernels), "counts": counts,
            "elsewhere": sum(1 for e in tried if not e["as_told"]),
            "shallow": sum(1 for e in tried if not _sound(e["depth"])),
            "threats": tried, "table": str(session.folder / "table.md"),
        }
        text = markdown(details, session.device.name)
        write_atomically(session.folder / "table.md", text.encode())
        if readme is not None:
            write_between_markers(readme, MARKER, text)
        sound = all(_sound(e) and _sound(e["depth"]) for e in tried)
        return Result(
            task="threats",
            status=Status.SOUND if sound else Status.FOOLED,
            timing_source=session.device.source.value,
            device=session.device.name,
            attempts=len(tried),
            folder=str(session.folder),
            wall_seconds=time.monotonic() - started,
            details=details,
        )

    def _check(self) -> None:
        if unknown := [row for row in self.rows if row not in row_names()]:
            raise ConfigError(f"task.rows names {unknown[0]!r}, not some of "
                              f"{', '.join(row_names())}")
        known = (*self.subjects, OWN)
        unknown = [name for name in self.kernels if name not in known]
        if unknown or not self.kernels:
            raise ConfigError(f"task.kernels names {unknown[0] if unknown else 'nothing'!r}, not "
                              f"some of {', '.join(known)}")
        for name, specimen in self.subjects.items():
            if not isinstance(specimen, Specimen):
                raise ConfigError(f"task.subjects.{name} is no kernel with an oracle")

    def _tried(
        self, session: Session, chosen: Sequence[tuple[Threat, str]]
    ) -> Iterator[dict[str, Any]]:
        subjects: dict[str, Subject] = {}
        for threat, name in chosen:
            if name not in subjects:
                subjects[name] = self.subject(session, name)
            began = time.monotonic()
            try:
                verdicts = threat.edit.attempt(subjects[name])
            except EditMismatch as error:
                log.info("%s does not fit %s: %s", threat.name, name, error)
                continue
            judgement = threat.judgement(verdicts)
            log.info("%s on %s: %s, %s", threat.name, name, judgement, verdicts[-1])
            yield {
                "row": threat.row, "name": threat.name, "title": threat.title, "kernel": name,
                "kind": threat.kind.value, "judgement": judgement.value,
                "as_told": threat.as_told(verdicts),
                "expected": {"gate": threat.gate.value if threat.gate else None,
                             "codes": list(threat.reason)},
                **_last(verdicts),
                "depth": _depth(threat, subjects[name], verdicts),
                **_belief(threat, subjects[name]),
                "seconds": time.monotonic() - began,
            }

    def subject(self, session: Session, name: str) -> Subject:
        """The subject of that name, once its original is found to agree with itself."""
        specimen = (Specimen(session.kernel, session.oracle) if name == OWN
                    else self.subjects[name])
        subject = Subject.of(
            name, specimen, session.gates, session.device, session.toolchain,
            candidate_device=session.candidate_device, seed=session.search.seed)
        subject.baseline.self_check(session.gates.tolerance)
        return subject


def _sound(judged: Mapping[str, Any] | None) -> bool:
    return judged is None or Judgement(judged["judgement"]).right


def _last(verdicts: tuple[Verdict, ...]) -> dict[str, Any]:
    last = verdicts[-1]
    return {"gate": last.gate.value, "outcome": last.outcome.value, "code": last.code,
            "reason": last.reason}


def _depth(
    threat: Threat, subject: Subject, verdicts: tuple[Verdict, ...]
) -> dict[str, Any] | None:
    """What becomes of it with G1 left out."""
    deeper = threat.depth(subject, verdicts)
    if not deeper:
        return None
    return {"judgement": threat.judgement(deeper).value, **_last(deeper)}


def _belief(threat: Threat, subject: Subject) -> dict[str, Any]:
    """What a harness without the check would have said."""
    if threat.weaker is None or not isinstance(threat.edit, Candidate):
        return {"without": None, "believed": None, "speedup": None}
    without = {"without": threat.weaker.value, "believed": None, "speedup": None}
    belief = believed(threat.weaker, subject, threat.edit.made(subject))
    if belief is None:
        return without
    return {**without, "believed": belief.accepted,
            "speedup": belief.speedup if belief.accepted else None}
