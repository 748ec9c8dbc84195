"""What a registry need not keep, and its removal while others go on writing.

Evidence of a replacement is never removed: the candidate, all that it was made from, their objects
and texts, verdicts, timings, dispatches, run, judgement, statement and signatures. Originals, runs,
dispatches, counterexamples and held-out captures stay as well.

A blob is deleted only within a writing transaction of the registry, after a look whether anything
names it then. A writer puts its blobs first, and once its own transaction has begun it puts again
what is gone (`StagedBlobs.confirm`). Writing transactions of one registry never overlap: SQLite has
one write lock, and PostgreSQL's writers hold one advisory lock. So of a writer and this

- either the writer's transaction comes first: its references are committed and seen here;
- or the deletion comes first: the writer sees that the blob is gone and puts it again.

This holds for blobs of any age, also for one that is put again while it is about to be deleted. The
grace period only spares writers the work.

A reader sees the rows of one moment and may find a blob gone that they name, where a row went or a
statement was issued again since. `delivery.offers`, and so `pull`, look at the rows anew then; what
reads for long, such as an export or `verify`, does well not to run beside this.

Whenever this is interrupted, the registry is whole: rows go in transactions that leave none of them
without what it refers to, and blobs go after the rows that named them.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import func
from sqlmodel import Session, col, delete, select

from asmevo.registry.blobs.store import Blobs, StoredBlob
from asmevo.registry.database.database import Database
from asmevo.registry.database.models import (
    CandidateRow,
    CaptureRow,
    CodeObjectRow,
    RunRow,
    SearchEventRow,
    TimingRow,
    VerdictRow,
    now,
)
from asmevo.registry.records import CandidateStatus, CaptureReason, RunStatus
from asmevo.registry.retention.reachability import References, referrers
from asmevo.registry.run_lock import RunLock

DAY_S = 86_400.0
UNFINISHED_S = 3_600.0
"""What a writer left half-way is younger than this while that writer may still be at it."""

_BATCH = 500
"""Hashes or ids in one statement, and blobs that are deleted while other writers wait."""

_ENDED = (RunStatus.COMPLETED.value, RunStatus.FAILED.value)
_DROPPED = (CandidateStatus.REJECTED.value, CandidateStatus.ERROR.value)
Item = TypeVar("Item")
_PARTS = ("verdict", "timing", "candidate")
"""Tables whose rows do not keep a candidate; of candidates, children are looked at one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """What to keep.

    ``rejected_days``: rejected candidates and the events of searches go so many days after their
    run was completed or failed; None keeps them. A run that may be resumed keeps everything.
    ``capture_bytes``: the oldest captures go until all describe so many bytes; None keeps them.
    ``grace_s``: blobs that nothing names go when they were not put for so many seconds.
    """

    rejected_days: float | None = 30.0
    capture_bytes: int | None = None
    grace_s: float = DAY_S


@dataclass(slots=True)
class Collected:
    """What is, or would be, removed; sizes are in bytes.

    Of ``blobs`` as many as ``orphans`` were named by nothing before. ``capture_bytes_kept`` is what
    the remaining captures describe, and ``blob_bytes_kept`` what all remaining blobs take.
    """

    runs: int = 0
    candidates: int = 0
    events: int = 0
    objects: int = 0
    captures: int = 0
    capture_bytes: int = 0
    capture_bytes_kept: int = 0
    blobs: int = 0
    blob_bytes: int = 0
    orphans: int = 0
    orphan_bytes: int = 0
    unfinished: int = 0
    unfinished_bytes: int = 0
    blob_bytes_kept: int = 0
    busy: list[str] = field(default_factory=list)
    """Runs that another process is at."""


def collect(database: Database, blobs: Blobs, registry: Path, retention: Retention, *,
            apply: bool) -> Collected:
    """Find what ``retention`` does not keep, and with ``apply`` remove it.

    Raises `RegistryError`; in particular when a document is unreadable, so that what it needs is
    not known.
    """
    done = Collected()
    references = References(blobs)
    with database.read() as session:
        before = references.all(session)
        ended = _ended_runs(session, retention)
    gone = _Gone()
    for run_id in ended:
        lock = RunLock(registry, run_id)
        if apply and not lock.acquire():
            done.busy.append(run_id)
            continue
        try:
            with database.write() if apply else database.read() as session:
                _drop_run(session, run_id, gone, done, apply=apply)
        finally:
            lock.release()
    with database.write() if apply else database.read() as session:
        _drop_captures(session, retention, gone, done, apply=apply)
    with database.read() as session:
        needed = references.all(session) if apply else _still_named(session, references, gone)
    _drop_blobs(database, blobs, references, retention, done, before, needed, apply=apply)
    return done


@dataclass(slots=True)
class _Gone:
    """Keys of rows that are gone, or would be."""

    candidates: set[str] = field(default_factory=set)
    objects: set[str] = field(default_factory=set)
    captures: set[str] = field(default_factory=set)


# -- rows -----------------------------------------------------------------------------------------


def _ended_runs(session: Session, retention: Retention) -> Sequence[str]:
    """The newest first, since the candidates of a run may come from those of an older one."""
    if retention.rejected_days is None:
        return ()
    before = now() - timedelta(days=retention.rejected_days)
    return session.exec(
        select(RunRow.id).where(_is_ended(before))
        .order_by(col(RunRow.started).desc(), col(RunRow.id).desc())).all()


def _is_ended(before: datetime) -> sa.ColumnElement[bool]:
    return (col(RunRow.status).in_(_ENDED) & col(RunRow.finished).is_not(None)
            & (col(RunRow.finished) <= before))


def _drop_run(session: Session, run_id: str, gone: _Gone, done: Collected, *,
              apply: bool) -> None:
    """Drop the events of a run and those of its rejected candidates that nothing was made from.

    A run without events is none to be resumed: without its candidates it could not be.
    """
    # Somebody may have gone on with it since it was looked for.
    if session.exec(select(RunRow.status).where(RunRow.id == run_id)).first() not in _ENDED:
        return
    dropped, objects = _dropped_candidates(session, run_id, gone.candidates)
    of_run = col(SearchEventRow.run_id) == run_id
    events = session.exec(
        select(func.count()).select_from(SearchEventRow).where(of_run)).one()
    if not dropped and not events:
        return
    gone.candidates.update(dropped)
    free = [sha256 for chunk in _chunks(objects)
            for sha256 in _unused_objects(session, chunk, gone)]
    if apply:
        session.exec(delete(SearchEventRow).where(of_run))
        for ids in _chunks(dropped):
            session.exec(delete(VerdictRow).where(col(VerdictRow.candidate_id).in_(ids)))
            session.exec(delete(TimingRow).where(col(TimingRow.candidate_id).in_(ids)))
            session.exec(delete(CandidateRow).where(col(CandidateRow.id).in_(ids)))
        for ids in _chunks(free):
            session.exec(delete(CodeObjectRow).where(col(CodeObjectRow.sha256).in_(ids)))
    gone.objects.update(free)
    done.runs += 1
    done.events += events
    done.candidates += len(dropped)
    done.objects += len(free)


def _dropped_candidates(session: Session, run_id: str,
                        gone: Collection[str]) -> tuple[list[str], set[str]]:
    """The rejected candidates that go, children before parents, and the objects built of them."""
    rejected = {row[0]: row for row in session.exec(
        select(CandidateRow.id, CandidateRow.parent_id, CandidateRow.object_sha256)
        .where(CandidateRow.run_id == run_id, col(CandidateRow.status).in_(_DROPPED)))}
    if not rejected:
        return [], set()
    kept = {key for chunk in _chunks(rejected) for key in _named_elsewhere(session, chunk)}
    children: dict[str, set[str]] = {key: set() for key in rejected}
    for chunk in _chunks(rejected):
        for child, parent in session.exec(
                select(CandidateRow.id, CandidateRow.parent_id)
                .where(col(CandidateRow.parent_id).in_(chunk))):
            if child not in gone:
                children[str(parent)].add(child)
    dropped: list[str] = []
    ready = [key for key in rejected if not children[key] and key not in kept]
    while ready:
        key = ready.pop()
        dropped.append(key)
        parent = rejected[key][1]
        if parent in rejected:
            children[parent].discard(key)
            if not children[parent] and parent not in kept:
                ready.append(parent)
    return dropped, {row[2] for key in dropped if (row := rejected[key])[2] is not None}


def _named_elsewhere(session: Session, ids: Collection[str]) -> Iterator[str]:
    """The candidates that a row refers to which is no mere part of them."""
    for column in referrers("candidate"):
        if column.table.name not in _PARTS:
            yield from session.connection().execute(
                sa.select(column).where(column.in_(ids))).scalars()


def _unused_objects(session: Session, wanted: Collection[str], gone: _Gone) -> list[str]:
    """Of the objects built of candidates those that only candidates which are gone refer to."""
    used: set[str] = set()
    for column in referrers("code_object"):
        keys: list[Any] = [column]
        if column.table.name == "candidate":
            keys.append(column.table.c.id)
        for row in session.connection().execute(sa.select(*keys).where(column.in_(wanted))):
            if len(row) == 1 or row[1] not in gone.candidates:
                used.add(row[0])
    built = session.exec(select(CodeObjectRow.sha256).where(
        col(CodeObjectRow.sha256).in_(wanted), col(CodeObjectRow.source).startswith("candidate ")))
    return [sha256 for sha256 in built if sha256 not in used]


def _drop_captures(session: Session, retention: Retention, gone: _Gone, done: Collected, *,
                   apply: bool) -> None:
    done.capture_bytes_kept = int(session.exec(
        select(func.coalesce(func.sum(CaptureRow.size), 0))).one())
    if retention.capture_bytes is None:
        return
    timed = select(TimingRow.dispatch_sha256)
    dispatch = col(CaptureRow.dispatch_sha256)
    rows = session.exec(
        select(CaptureRow.sha256, CaptureRow.size)
        .where(CaptureRow.reason == CaptureReason.CAPTURED.value,
               col(CaptureRow.held_out).is_(False),
               dispatch.is_(None) | dispatch.not_in(timed))
        .order_by(col(CaptureRow.created), col(CaptureRow.sha256))).all()
    for sha256, size in rows:
        if done.capture_bytes_kept <= retention.capture_bytes:
            break
        gone.captures.add(sha256)
        done.captures += 1
        done.capture_bytes += size
        done.capture_bytes_kept -= size
    if apply:
        for ids in _chunks(gone.captures):
            session.exec(delete(CaptureRow).where(col(CaptureRow.sha256).in_(ids)))


# -- blobs ----------------------------------------------------------------------------------------


def _still_named(session: Session, references: References, gone: _Gone) -> set[str]:
    """What would be named once the rows are gone."""
    return references.all(session, without={
        "candidate": gone.candidates, "code_object": gone.objects, "capture": gone.captures})


def _drop_blobs(database: Database, blobs: Blobs, references: References, retention: Retention,
                done: Collected, before: Collection[str], needed: Collection[str], *,
                apply: bool) -> None:
    moment = time.time()
    doomed = []
    for blob in blobs.list():
        done.blob_bytes_kept += blob.size
        if blob.sha256 in needed:
            continue
        if moment - blob.modified >= (
                retention.grace_s if blob.sha256 else max(retention.grace_s, UNFINISHED_S)):
            doomed.append(blob)
    for batch in _chunks(doomed):
        if apply:
            with database.write() as session:
                named = references.among(session, {b.sha256 for b in batch if b.sha256})
                batch = [b for b in batch if b.sha256 not in named]
                for blob in batch:
                    blobs.delete(blob)
        for blob in batch:
            _count(blob, done, before)


def _count(blob: StoredBlob, done: Collected, before: Collection[str]) -> None:
    done.blob_bytes_kept -= blob.size
    if blob.sha256 is None:
        done.unfinished += 1
        done.unfinished_bytes += blob.size
        return
    done.blobs += 1
    done.blob_bytes += blob.size
    if blob.sha256 not in before:
        done.orphans += 1
        done.orphan_bytes += blob.size


def _chunks(items: Iterable[Item]) -> Iterator[list[Item]]:
    rest = iter(items)
    while chunk := list(islice(rest, _BATCH)):
        yield chunk
