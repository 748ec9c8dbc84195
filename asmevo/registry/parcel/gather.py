"""The rows that replacements and their evidence consist of, out of a registry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session

from asmevo.registry.audit.rows import Row, values_of
from asmevo.registry.database.models import Table
from asmevo.registry.database.row_digest import COLUMN, values_digest
from asmevo.registry.parcel.coding import carried
from asmevo.registry.parcel.errors import ParcelError, ParcelFault
from asmevo.registry.parcel.stage import Stage

_BATCH = 500  # below SQLite's smallest default limit of bound values, 999
_MOST_ANCESTORS = 10_000
_TABLES = Table.metadata.tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which replacements are meant: those that meet everything that is said, by default all.

    Withdrawn ones only count where they are asked for, by candidate or by ``withdrawn``.
    """

    originals: Sequence[str] = ()
    kernels: Sequence[str] = ()
    runs: Sequence[str] = ()
    candidates: Sequence[str] = ()
    withdrawn: bool = False


def selected(session: Session, selection: Selection) -> list[str]:
    """The candidates of the replacements that are meant."""
    replacement, candidate, again = (_TABLES[name].c for name in (
        "replacement", "candidate", "second_timing"))
    query = (sa.select(replacement.candidate_id)
             .join(_TABLES["candidate"], candidate.id == replacement.candidate_id)
             .outerjoin(_TABLES["second_timing"], again.candidate_id == replacement.candidate_id))
    for column, values in ((replacement.original_sha256, selection.originals),
                           (replacement.kernel, selection.kernels),
                           (candidate.run_id, selection.runs),
                           (candidate.id, selection.candidates)):
        if values:
            query = query.where(column.in_(values))
    if not selection.withdrawn and not selection.candidates:
        query = query.where(sa.func.coalesce(again.confirmed, sa.true()))
    return sorted(session.connection().execute(query).scalars())


def gather(session: Session, candidates: Sequence[str], stage: Stage) -> None:
    """Put replacements and everything that their evidence needs on a stage.

    The lineage of each up to the original, and of every candidate in it what hangs on it: verdicts,
    timings, the run with its events and timings of the original, a replacement of its own.
    Of kernels all dispatches and captures: which of them a verdict is on is not recorded.
    Raises `ParcelError` for a row that is not what was written.
    """
    put = _Putter(session, stage)
    timing, dispatch = _TABLES["timing"].c, _TABLES["dispatch"].c
    lineage = _lineage(session, candidates)
    ids = sorted(lineage)
    runs = {row["run_id"] for row in lineage.values()}
    originals = {row["original_sha256"] for row in lineage.values()}
    kernels = {(row["original_sha256"], row["kernel"]) for row in lineage.values()}
    objects = originals | {row["object_sha256"] for row in lineage.values()
                           if row["object_sha256"] is not None}
    dispatches = {
        *_column(session, timing.dispatch_sha256, timing.candidate_id, ids),
        *_column(session, timing.dispatch_sha256, timing.run_id, runs,
                 timing.candidate_id.is_(None)),
        *_column(session, dispatch.sha256, dispatch.kernel, {k for _, k in kernels})}
    captures = {
        row["sha256"] for row in _rows(session, _TABLES["capture"].c.original_sha256, originals)
        if (row["original_sha256"], row["kernel"]) in kernels}
    objects |= set(_column(session, timing.original_sha256, timing.run_id, runs,
                           timing.original_sha256.is_not(None)))

    put.all("code_object", "sha256", objects)
    put.all("dispatch", "sha256", dispatches)
    put.all("run", "id", runs)
    for candidate_id in sorted(lineage, key=lambda i: (lineage[i]["depth"], i)):
        put.one("candidate", lineage[candidate_id])
    put.all("capture", "sha256", captures)
    put.all("recovered_object", "code_object_sha256", originals,
            order=lambda r: (r["created"], r["assembly_sha256"], r["toolchain_sha256"]))
    put.all("search_event", "run_id", runs, order=lambda r: r["number"])
    for table in ("judgement", "replacement", "second_timing"):
        put.all(table, "candidate_id", ids)
    put.all("signature", "candidate_id", ids,
            order=lambda r: (r["public_key"], r["statement_sha256"]))
    put.all("statement", "candidate_id", ids)
    put.all("timing", "run_id", runs, timing.candidate_id.is_(None),
            order=lambda r: r["id"])
    for table in ("timing", "verdict"):
        put.all(table, "candidate_id", ids, order=lambda r: r["id"])


class _Putter:
    """Puts rows on a stage that are what was written."""

    def __init__(self, session: Session, stage: Stage) -> None:
        self._session = session
        self._stage = stage

    def all(self, table: str, key: str, values: Iterable[str], *conditions: Any,
            order: Callable[[Row], Any] = lambda row: 0) -> None:
        """The rows with certain keys, by key and then by ``order``, whatever the database does."""
        column = _TABLES[table].c[key]
        for rows in _batches(self._session, column, values, *conditions):
            for row in sorted(rows, key=lambda r: (r[key], order(r))):
                self.one(table, row)

    def one(self, table: str, row: Any) -> None:
        described = _TABLES[table]
        values = {c.name: row[c.name] for c in carried(described)}
        if values[COLUMN] != values_digest(described, values):
            raise ParcelError(ParcelFault.UNSOUND, f"a row of table {table} is not what was "
                              "written; asmevo-registry verify says which")
        self._stage.add(described, values)


def _lineage(session: Session, candidates: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The rows of candidates and of all that they were made from, each with its ``depth``."""
    found: dict[str, dict[str, Any]] = {}
    wanted = set(candidates)
    for _ in range(_MOST_ANCESTORS):
        if not wanted:
            break
        new = {row["id"]: dict(row) for row in _rows(session, _TABLES["candidate"].c.id, wanted)}
        if missing := wanted - set(new):
            raise ParcelError(ParcelFault.UNSOUND,
                              f"candidate '{min(missing)}' is not in the registry")
        found |= new
        wanted = {r["parent_id"] for r in new.values() if r["parent_id"] is not None} - set(found)
    for row in found.values():
        path = []
        at: dict[str, Any] | None = row
        while at is not None and "depth" not in at:
            path.append(at)
            at = found.get(at["parent_id"] or "")
            if len(path) > _MOST_ANCESTORS:
                raise ParcelError(ParcelFault.UNSOUND,
                                  f"candidate '{row['id']}' has a lineage without end")
        depth = -1 if at is None else at["depth"]
        for number, each in enumerate(reversed(path), 1):
            each["depth"] = depth + number
    return found


def _batches(session: Session, column: sa.Column[Any], values: Iterable[str],
             *conditions: Any) -> Iterator[list[Row]]:
    wanted = sorted(values)
    query = sa.select(column.table).where(*conditions)
    for start in range(0, len(wanted), _BATCH):
        yield list(values_of(session, query.where(column.in_(wanted[start:start + _BATCH]))))


def _rows(session: Session, column: sa.Column[Any], values: Iterable[str],
          *conditions: Any) -> Iterator[Row]:
    for rows in _batches(session, column, values, *conditions):
        yield from rows


def _column(session: Session, wanted: Any, column: sa.Column[Any], values: Iterable[str],
            *conditions: Any) -> Iterator[str]:
    for row in _rows(session, column, values, *conditions):
        yield row[wanted.key]
