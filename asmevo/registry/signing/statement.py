"""The statement of a replacement: one canonical JSON document of all that it is and rests on.

It is stored as a blob when a candidate is committed, and anew when a second timing is recorded.
Rebuilt from the rows it gives the same bytes as long as nobody has changed them; whoever signs it
vouches for every row that went into it.
"""

from __future__ import annotations

import hashlib
import json
import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from sqlalchemy import ColumnElement, RowMapping, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import StatementError as SQLStatementError
from sqlmodel import Session, SQLModel, col

from asmevo.registry.database.models import (
    CandidateRow,
    CodeObjectRow,
    JudgementRow,
    ReplacementRow,
    RunRow,
    SecondTimingRow,
    StatementRow,
    TimingRow,
    VerdictRow,
)
from asmevo.registry.errors import (
    BlobCorruptError,
    BlobMissingError,
    StatementError,
    StatementFault,
)

FORMAT = 1
"""Version of the document; raised whenever the same rows would give other bytes."""

MOST_PARENTS = 10_000
_BATCH = 500  # below SQLite's smallest default limit of bound values, 999

Document = dict[str, Any]


class Blobs(Protocol):
    """Where statements are kept."""

    def put(self, data: bytes) -> str: ...

    def get(self, sha256: str) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Statement:
    """A stored statement that its rows agree with."""

    candidate_id: str
    sha256: str
    document: Document


def canonical(value: object) -> bytes:
    """JSON with sorted keys and without white space; raises `ValueError` for what JSON lacks."""
    return json.dumps(value, allow_nan=False, sort_keys=True, separators=(",", ":")).encode()


def digest(value: object) -> str:
    """SHA-256 of a value's canonical JSON."""
    return hashlib.sha256(canonical(value)).hexdigest()


def documents(session: Session, candidate_ids: Collection[str]) -> dict[str, Document]:
    """The statements of committed candidates as their rows are now, by candidate.

    A candidate that is not committed has none. Reads columns, not objects, so that what a session
    has in memory does not count. Raises `StatementError` for rows that no statement can be made of.
    """
    session.flush()
    with readable():
        found = dict(_documents(session, sorted(set(candidate_ids))))
        for document in found.values():
            canonical(document)
        return found


@contextmanager
def readable() -> Iterator[None]:
    """Turn what a row of wrong types leads to into a `StatementError`.

    SQLite keeps anything in any column, and SQLAlchemy says so by a plain `TypeError` and the like.
    """
    try:
        yield
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, AttributeError,
            SQLStatementError) as error:
        if isinstance(error, DBAPIError):
            raise  # the database itself: locked, not there, damaged
        reason = str(error).partition("\n")[0]
        raise StatementError(StatementFault.MISMATCH,
                             f"a row behind a replacement is malformed: {reason}") from error


def issue(session: Session, candidate_id: str, blobs: Blobs) -> str:
    """State what the rows of a committed candidate say now; returns the statement's SHA-256.

    It takes the place of an earlier one, whose signatures go: they are of what no longer holds.
    """
    document = documents(session, [candidate_id]).get(candidate_id)
    if document is None:
        raise StatementError(StatementFault.MISSING,
                             f"candidate '{candidate_id}' is not committed")
    sha256 = blobs.put(canonical(document))
    row = session.get(StatementRow, candidate_id)
    if row is None:
        session.add(StatementRow(candidate_id=candidate_id, statement_sha256=sha256))
    elif row.statement_sha256 != sha256:
        row.statement_sha256, row.created = sha256, datetime.now(UTC)
        session.add(row)
    session.flush()
    return sha256


def check_statement(session: Session, candidate_id: str, blobs: Blobs) -> Statement:
    """The statement of a committed candidate, after comparing it with the rows.

    Raises `StatementError`, whose ``fault`` says whether there is none, its blob is damaged, or it
    says something else than the rows; `BlobError` when it cannot be read just now.
    """
    return check_statements(session, [candidate_id], blobs)[candidate_id]


def check_statements(session: Session, candidate_ids: Collection[str], blobs: Blobs, *,
                     missing: bool = False) -> dict[str, Statement]:
    """`check_statement` of several candidates; with ``missing`` those without one are left out."""
    with readable():
        known = {row["candidate_id"]: str(row["statement_sha256"]) for row in
                 _rows(session, StatementRow, StatementRow.candidate_id, candidate_ids)}
    found = {}
    rebuilt = documents(session, candidate_ids)
    for candidate_id in candidate_ids:
        if candidate_id not in known:
            if missing:
                continue
            raise StatementError(StatementFault.MISSING,
                                 f"candidate '{candidate_id}' has no statement")
        found[candidate_id] = _checked(candidate_id, known[candidate_id],
                                       rebuilt.get(candidate_id), blobs)
    return found


def _checked(candidate_id: str, sha256: str, rebuilt: Document | None, blobs: Blobs) -> Statement:
    try:
        stored = blobs.get(sha256)
    except (BlobMissingError, BlobCorruptError) as error:
        raise StatementError(StatementFault.DAMAGED,
                             f"the statement of candidate '{candidate_id}' cannot be read: "
                             f"{error}") from error
    if rebuilt is None:
        raise StatementError(StatementFault.MISMATCH,
                             f"candidate '{candidate_id}' has a statement, but it is no "
                             "replacement")
    if stored != canonical(rebuilt):
        raise StatementError(StatementFault.MISMATCH,
                             f"the rows of candidate '{candidate_id}' are not what its statement "
                             f"says: {_first_difference(stored, rebuilt)}")
    return Statement(candidate_id, sha256, rebuilt)


def _first_difference(stored: bytes, rebuilt: Document) -> str:
    try:
        said = json.loads(stored)
    except (ValueError, RecursionError):
        return "it is not JSON"
    return next(_differences("", said, json.loads(canonical(rebuilt))), "its form is another")


def _differences(path: str, said: object, now: object) -> Iterator[str]:
    if isinstance(said, dict) and isinstance(now, dict):
        for key in sorted({*said, *now}):
            yield from _differences(f"{path}.{key}" if path else key, said.get(key), now.get(key))
    elif isinstance(said, list) and isinstance(now, list) and len(said) == len(now):
        for number, pair in enumerate(zip(said, now, strict=True)):
            yield from _differences(f"{path}[{number}]", *pair)
    elif canonical(said) != canonical(now):
        yield f"{path} was {_short(said)} and is {_short(now)}"


def _short(value: object) -> str:
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return "an object" if isinstance(value, dict) else repr(value)[:80]


def _documents(session: Session,
               candidate_ids: Sequence[str]) -> Iterator[tuple[str, Document]]:
    replacements = _by(_rows(session, ReplacementRow, ReplacementRow.candidate_id, candidate_ids),
                       "candidate_id")
    ids = sorted(replacements)
    candidates = _lineage(session, ids)
    own = [candidates[i] for i in ids]
    runs = _by(_rows(session, RunRow, RunRow.id, {c["run_id"] for c in own}), "id")
    objects = _by(_rows(session, CodeObjectRow, CodeObjectRow.sha256, {
        sha256 for row in replacements.values()
        for sha256 in (row["original_sha256"], row["object_sha256"])}), "sha256")
    verdicts = _grouped(_rows(session, VerdictRow, VerdictRow.candidate_id, ids), "candidate_id")
    timings = _grouped(_rows(session, TimingRow, TimingRow.candidate_id, ids), "candidate_id")
    baselines = _grouped(
        _rows(session, TimingRow, TimingRow.run_id, runs,
              col(TimingRow.original_sha256).is_not(None)), "run_id", "original_sha256")
    judgements = _by(_rows(session, JudgementRow, JudgementRow.candidate_id, ids), "candidate_id")
    again = _by(_rows(session, SecondTimingRow, SecondTimingRow.candidate_id, ids), "candidate_id")
    for candidate_id in ids:
        row, candidate = replacements[candidate_id], candidates[candidate_id]
        run = runs[candidate["run_id"]]
        yield candidate_id, {
            "format": FORMAT,
            "original": _object(objects[row["original_sha256"]]),
            "kernel": row["kernel"],
            "isa": objects[row["object_sha256"]]["isa"],
            "object": _object(objects[row["object_sha256"]]),
            "assembly_sha256": candidate["assembly_sha256"],
            "speedup": row["speedup"],
            "timing_source": row["timing_source"],
            "device": row["device"],
            "evidence_complete": row["evidence_complete"],
            "committed": _time(row["created"]),
            "candidate": _candidate(candidate),
            "parents": [_parent(parent) for parent in _ancestors(candidate, candidates)],
            "verdicts": sorted(map(_verdict, verdicts[candidate_id,]),
                               key=lambda v: (v["gate"], v["attempt"])),
            "timings": _timings(timings[candidate_id,]),
            "baseline": _timings(baselines[candidate["run_id"], row["original_sha256"]]),
            "judgement": (judgements[candidate_id]["data"] if candidate_id in judgements
                          else None),
            "second_timing": (_second_timing(again[candidate_id]) if candidate_id in again
                              else None),
            "run": _run(run),
        }


def _object(row: RowMapping) -> Document:
    return {name: row[name] for name in ("sha256", "isa", "size", "kernels")}


def _candidate(row: RowMapping) -> Document:
    return {
        "id": row["id"], "original_sha256": row["original_sha256"], "kernel": row["kernel"],
        "object_sha256": row["object_sha256"], "edits_sha256": digest(row["edits"]),
        "rule": row["rule"], "direction": row["direction"],
        "rationale_sha256": digest(row["rationale"]), "worker": row["worker"],
        "status": row["status"], "created": _time(row["created"])}


def _parent(row: RowMapping) -> Document:
    return {
        "id": row["id"], "run_id": row["run_id"], "original_sha256": row["original_sha256"],
        "kernel": row["kernel"], "object_sha256": row["object_sha256"],
        "assembly_sha256": row["assembly_sha256"], "edits_sha256": digest(row["edits"]),
        "rule": row["rule"]}


def _verdict(row: RowMapping) -> Document:
    """``dispatches`` are the inputs that the gate ran, ``sanitizer`` marks G2's look at what
    equality hides; see `asmevo.gates.equality`."""
    evidence = row["evidence"]
    return {
        "gate": row["gate"], "attempt": row["attempt"], "outcome": row["outcome"],
        "code": row["code"], "reason": row["reason"], "evidence_sha256": digest(evidence),
        "dispatches": evidence.get("dispatches"), "sanitizer": "sanitized" in evidence}


def _timings(rows: Iterable[RowMapping]) -> list[Document]:
    """In an order that every registry gives: row numbers differ from one to another."""
    entries = [
        {"candidate_id": row["candidate_id"], "original_sha256": row["original_sha256"],
         "run_id": row["run_id"], "dispatch_sha256": row["dispatch_sha256"],
         "source": row["source"], "device": row["device"], "warmup": row["warmup"],
         "unit": row["unit"], "samples": len(row["samples"]),
         "samples_sha256": digest(row["samples"]),
         "median": float(statistics.median(row["samples"]))}
        for row in rows]
    return sorted(entries, key=canonical)


def _second_timing(row: RowMapping) -> Document:
    return {
        "speedup": row["speedup"], "confirmed": row["confirmed"], "outcome": row["outcome"],
        "code": row["code"], "reason": row["reason"],
        "evidence_sha256": digest(row["evidence"]), "created": _time(row["created"])}


def _run(row: RowMapping) -> Document:
    """Without status and end, which change while the run goes on."""
    names = ("id", "task", "seed", "config_sha256", "package_version", "toolchain", "device",
             "device_source")
    return {**{name: row[name] for name in names}, "started": _time(row["started"])}


def _time(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="microseconds")


def _lineage(session: Session, ids: Collection[str]) -> dict[str, RowMapping]:
    """The rows of candidates and of all that they were made from, by id."""
    found: dict[str, RowMapping] = {}
    wanted = set(ids)
    while wanted:
        rows = _rows(session, CandidateRow, CandidateRow.id, wanted)
        found |= _by(rows, "id")
        wanted = {row["parent_id"] for row in rows if row["parent_id"] is not None} - set(found)
        if len(found) > len(ids) + MOST_PARENTS:
            raise ValueError("a lineage without end")
    return found


def _ancestors(row: RowMapping, candidates: Mapping[str, RowMapping]) -> Iterator[RowMapping]:
    seen = {row["id"]}
    while row["parent_id"] is not None:
        row = candidates[row["parent_id"]]
        if row["id"] in seen:
            raise ValueError(f"candidate '{row['id']}' is its own ancestor")
        seen.add(row["id"])
        yield row


def _rows(session: Session, table: type[SQLModel], column: Any, values: Iterable[Any],
          *conditions: ColumnElement[bool]) -> list[RowMapping]:
    wanted = sorted(values)
    connection = session.connection()
    query = select(table.__table__).where(*conditions)  # type: ignore[attr-defined]
    return [row for start in range(0, len(wanted), _BATCH)
            for row in connection.execute(
                query.where(col(column).in_(wanted[start:start + _BATCH]))).mappings()]


def _by(rows: Iterable[RowMapping], key: str) -> dict[str, RowMapping]:
    return {row[key]: row for row in rows}


def _grouped(rows: Iterable[RowMapping],
             *keys: str) -> defaultdict[tuple[str, ...], list[RowMapping]]:
    groups: defaultdict[tuple[str, ...], list[RowMapping]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[key] for key in keys)].append(row)
    return groups
