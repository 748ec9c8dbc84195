"""A registry in numbers: what it holds, how attempts ended, what the replacements gain."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import String, case, cast, func
from sqlmodel import Session, col, select

from asmevo.registry.catalog.storage import Stored
from asmevo.registry.database.models import (
    CandidateRow,
    CaptureRow,
    CodeObjectRow,
    DispatchRow,
    ReplacementRow,
    RunRow,
    SearchEventRow,
    SignatureRow,
    StatementRow,
    Table,
    VerdictRow,
)
from asmevo.registry.errors import RegistryError
from asmevo.registry.records import CandidateStatus, ReplacementStatus
from asmevo.registry.replacement.selection import status_condition, strong_texts

_COUNTED: Mapping[str, type[Table]] = {
    "objects": CodeObjectRow, "dispatches": DispatchRow, "captures": CaptureRow, "runs": RunRow,
    "search_events": SearchEventRow, "candidates": CandidateRow, "verdicts": VerdictRow,
    "replacements": ReplacementRow, "statements": StatementRow, "signatures": SignatureRow,
}
_MOST_DAYS = 31


@dataclass(frozen=True, slots=True)
class GateCount:
    """Candidates by the verdict of one gate; all of its repeats have to pass."""

    gate: str
    passed: int
    failed: int
    missing: int


@dataclass(frozen=True, slots=True)
class RuleCount:
    """Attempts of one rule, and how many of them were committed."""

    rule: str
    attempts: int
    committed: int


@dataclass(frozen=True, slots=True)
class KernelSpeedups:
    """The speedups of one kernel's replacements on devices that measure, or on models."""

    original_sha256: str
    kernel: str
    source: str
    replacements: int
    least: float
    median: float
    best: float


@dataclass(frozen=True, slots=True)
class Growth:
    """What came in during a day, or a month, of UTC."""

    period: str
    objects: int
    candidates: int
    replacements: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """All of it; ``replacements`` are numbers by source and status."""

    counts: Mapping[str, int]
    storage: Sequence[Stored]
    gates: Sequence[GateCount]
    rules: Sequence[RuleCount]
    replacements: Mapping[str, Mapping[str, int]]
    speedups: Sequence[KernelSpeedups]
    growth: Sequence[Growth]


def statistics(session: Session, storage: Sequence[Stored]) -> Statistics:
    """The numbers of a registry whose blobs take so much."""
    counts = {name: session.exec(select(func.count()).select_from(table)).one()
              for name, table in _COUNTED.items()}
    return Statistics(
        counts, storage, tuple(_gates(session)), tuple(_rules(session)), _replacements(session),
        tuple(_speedups(session)), tuple(_growth(session)))


def _gates(session: Session) -> Iterator[GateCount]:
    severity = case({"pass": 0, "fail": 2}, value=col(VerdictRow.outcome), else_=1)
    worst = (select(col(VerdictRow.gate).label("gate"), func.max(severity).label("worst"))
             .group_by(col(VerdictRow.candidate_id), col(VerdictRow.gate)).subquery())
    found: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for gate, value, number in session.connection().execute(
            select(worst.c.gate, worst.c.worst, func.count())
            .group_by(worst.c.gate, worst.c.worst)):
        found[gate][value] = number
    for gate in sorted(found):
        by = found[gate]
        yield GateCount(gate, by.get(0, 0), by.get(2, 0), by.get(1, 0))


def _rules(session: Session) -> Iterator[RuleCount]:
    committed = func.sum(case(
        (col(CandidateRow.status) == CandidateStatus.COMMITTED.value, 1), else_=0))
    attempts = func.count()
    for rule, number, kept in session.exec(
            select(CandidateRow.rule, attempts, committed).group_by(CandidateRow.rule)
            .order_by(committed.desc(), attempts.desc(), col(CandidateRow.rule))):
        yield RuleCount(rule, number, int(kept))


def _replacements(session: Session) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {
        source: dict.fromkeys(ReplacementStatus, 0) for source in ("measured", "modelled")}
    strong = strong_texts(session)
    for status in ReplacementStatus:
        query = select(ReplacementRow.timing_source, func.count())
        for source, number in session.exec(status_condition(query, status, strong).group_by(
                col(ReplacementRow.timing_source))):
            found[source][status.value] = number
    return found


def _speedups(session: Session) -> Iterator[KernelSpeedups]:
    """One pass in order: a median needs no more memory than one kernel's speedups."""
    key: tuple[str, str, str] | None = None
    values: list[float] = []
    for original, kernel, source, speedup in session.exec(
            select(ReplacementRow.original_sha256, ReplacementRow.kernel,
                   ReplacementRow.timing_source, ReplacementRow.speedup)
            .order_by(col(ReplacementRow.original_sha256), col(ReplacementRow.kernel),
                      col(ReplacementRow.timing_source), col(ReplacementRow.speedup))):
        if key != (original, kernel, source):
            if key is not None:
                yield _distribution(key, values)
            key, values = (original, kernel, source), []
        if not isinstance(speedup, int | float) or not math.isfinite(speedup):
            # SQLite keeps these in a column of numbers, too.
            raise RegistryError(f"a replacement of original {original} has a speedup of "
                                f"{str(speedup)[:40]!r}, which is no number; verify says which")
        values.append(float(speedup))
    if key is not None:
        yield _distribution(key, values)


def _distribution(key: tuple[str, str, str], ascending: Sequence[float]) -> KernelSpeedups:
    middle = len(ascending) // 2
    median = (ascending[middle] if len(ascending) % 2
              else (ascending[middle - 1] + ascending[middle]) / 2)
    return KernelSpeedups(*key, len(ascending), ascending[0], median, ascending[-1])


def _growth(session: Session) -> Iterator[Growth]:
    """By day, or by month where that would be more than a month of days."""
    tables = (CodeObjectRow, CandidateRow, ReplacementRow)
    days: list[dict[str, int]] = []
    for table in tables:
        # Both databases write a time as 2026-11-30 14:00:00.
        day = func.substr(cast(col(table.created), String), 1, 10)
        days.append({str(name): number for name, number in session.exec(
            select(day, func.count()).select_from(table).group_by(day))})
    names = sorted({name for found in days for name in found})
    length = 10 if len(names) <= _MOST_DAYS else 7
    total: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for number, found in enumerate(days):
        for name, count in found.items():
            total[name[:length]][number] += count
    for period in sorted(total):
        yield Growth(period, *total[period])
