"""Whether rows have the rows that they rest on, and agree with them."""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa
from sqlmodel import Session

from asmevo.registry.audit.finding import Finding, FindingCode, shown
from asmevo.registry.audit.rows import tables, values_of
from asmevo.registry.database.models import CaptureRow, Table
from asmevo.registry.records import CandidateStatus, RunStatus

_TABLES = Table.metadata.tables


def audit_references(session: Session) -> Iterator[Finding]:
    """Everything that the rows say of one another."""
    yield from _foreign_keys(session)
    yield from _candidates(session)
    yield from _verdicts(session)
    yield from _events(session)


def _foreign_keys(session: Session) -> Iterator[Finding]:
    """A database checks these when it writes, unless somebody turned that off."""
    for table in tables():
        for key in table.foreign_keys:
            column, other = key.parent, key.column.table.alias("other")
            target = other.c[key.column.name]
            query = (sa.select(*table.primary_key.columns, column.label("missing"))
                     .select_from(table.outerjoin(other, column == target))
                     .where(column.is_not(None), target.is_(None)))
            for row in values_of(session, query):
                keys = " ".join(shown(row[c.name]) for c in table.primary_key.columns)
                yield Finding(FindingCode.REFERENCE, f"{table.name} {keys}",
                              f"its {column.name} is of a {key.column.table.name} that is not "
                              f"there: {shown(row['missing'])}")


def _candidates(session: Session) -> Iterator[Finding]:
    """A replacement is what its candidate is, and only a committed candidate is one."""
    candidate, replacement = _TABLES["candidate"], _TABLES["replacement"]
    query = (sa.select(candidate.c.id, candidate.c.status, replacement.c.candidate_id,
                       *(sa.and_(candidate.c[name] == replacement.c[name]).label(name)
                         for name in _SHARED))
             .select_from(candidate.outerjoin(
                 replacement, replacement.c.candidate_id == candidate.c.id))
             .where(sa.or_(candidate.c.status == CandidateStatus.COMMITTED.value,
                           replacement.c.candidate_id.is_not(None))))
    for row in values_of(session, query):
        subject = f"candidate {shown(row['id'])}"
        if row["candidate_id"] is None:
            yield Finding(FindingCode.REFERENCE, subject,
                          "it is committed, but its replacement is not there")
        elif row["status"] != CandidateStatus.COMMITTED.value:
            yield Finding(FindingCode.ROWS_DISAGREE, subject,
                          f"it has a replacement, but its status is '{shown(row['status'])}'")
        elif different := [name for name in _SHARED if not row[name]]:
            yield Finding(FindingCode.ROWS_DISAGREE, subject,
                          f"its replacement has another {', '.join(different)}")
    for name in ("statement", "second_timing", "judgement", "signature"):
        own = _TABLES[name].c.candidate_id
        lone = (sa.select(own)
                .outerjoin(replacement, replacement.c.candidate_id == own)
                .where(replacement.c.candidate_id.is_(None)))
        for row in values_of(session, lone):
            yield Finding(FindingCode.REFERENCE, f"{name} {shown(row['candidate_id'])}",
                          "its candidate has no replacement")


_SHARED = ("original_sha256", "kernel", "object_sha256")


def _verdicts(session: Session) -> Iterator[Finding]:
    """The verdicts of one gate are counted from 1."""
    verdict = _TABLES["verdict"].c
    query = (sa.select(verdict.candidate_id, verdict.gate, sa.func.count().label("number"),
                       sa.func.min(verdict.attempt).label("first"),
                       sa.func.max(verdict.attempt).label("last"))
             .group_by(verdict.candidate_id, verdict.gate))
    for row in values_of(session, query):
        if (row["first"], row["last"]) != (1, row["number"]):
            yield Finding(FindingCode.VERDICT_MISSING, f"candidate {shown(row['candidate_id'])}",
                          f"of gate {shown(row['gate'])} there are {row['number']} verdicts, whose "
                          f"attempts go from {shown(row['first'])} to {shown(row['last'])}")


def _events(session: Session) -> Iterator[Finding]:
    """Events are counted from 0, and a search that is over has said so."""
    event, run = _TABLES["search_event"].c, _TABLES["run"].c
    last, expected = "", 0
    kinds: dict[str, str] = {}
    query = (sa.select(event.run_id, event.number, event.kind, event.data)
             .order_by(event.run_id, event.number))
    for row in values_of(session, query):
        if row["run_id"] != last:
            last, expected = row["run_id"], 0
        subject = f"search_event {shown(last)} {shown(row['number'])}"
        if row["number"] != expected:
            yield Finding(FindingCode.EVENT_MISSING, f"run {shown(last)}",
                          f"its event {expected} is missing; the next one is "
                          f"{shown(row['number'])}")
        expected = row["number"] + 1
        if (row["data"].get("number"), row["data"].get("kind")) != (row["number"], row["kind"]):
            yield Finding(FindingCode.ROWS_DISAGREE, subject,
                          "what it says of its number or kind is something else")
        yield from _named(session, subject, row["data"])
        kinds[last] = row["kind"]
    completed = sa.select(run.id).where(run.status == RunStatus.COMPLETED.value)
    for row in values_of(session, completed):
        if kinds.get(row["id"], _ENDED) != _ENDED:
            yield Finding(FindingCode.EVENT_MISSING, f"run {shown(row['id'])}",
                          "it is completed, but its last event does not say that it ended")


_ENDED = "ended"


def _named(session: Session, subject: str, data: dict[str, object]) -> Iterator[Finding]:
    """The counterexamples that a search started with are captures."""
    named = data.get("counterexamples")
    for sha256 in named if isinstance(named, list) else ():
        if session.get(CaptureRow, str(sha256)) is None:
            yield Finding(FindingCode.REFERENCE, subject,
                          f"it names a capture that is not there: {shown(sha256)}")


def parents_end(session: Session) -> Iterator[Finding]:
    """Candidates that are their own ancestors."""
    candidate = _TABLES["candidate"].c
    parents = {row["id"]: row["parent_id"] for row in values_of(
        session, sa.select(candidate.id, candidate.parent_id))}
    sound: set[str] = set()
    for start in parents:
        path: dict[str, None] = {}
        at: str | None = start
        while at is not None and at in parents and at not in sound:
            if at in path:
                yield Finding(FindingCode.ROWS_DISAGREE, f"candidate {shown(at)}",
                              "it is its own ancestor")
                break
            path[at] = None
            at = parents[at]
        sound |= path.keys()
