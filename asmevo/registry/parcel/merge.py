"""Adding the rows of a stage to a registry that may have some of them, or others in their place.

What is named by its content is the same everywhere. What has a name of its own must be the same in
both registries, except where a registry only knows less: a run that went on, a candidate that was
committed, a replacement that was timed again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn

import sqlalchemy as sa
from sqlmodel import Session

from asmevo.registry.audit.finding import shown
from asmevo.registry.audit.rows import Row, values_of
from asmevo.registry.database.row_digest import COLUMN, values_digest
from asmevo.registry.parcel.coding import carried
from asmevo.registry.parcel.errors import ParcelError, ParcelFault
from asmevo.registry.parcel.stage import TABLES, Stage
from asmevo.registry.records import CandidateStatus, CaptureReason

_BATCH = 500
_BY_NAME = {table.name: table for table in TABLES}


def merge(session: Session, stage: Stage) -> Counter[str]:
    """Add what is missing, within the caller's transaction; returns how many rows, by table.

    Raises `ParcelError` for a record that the registry has with other content.
    """
    return _Merge(session, stage).run()


class _Merge:
    def __init__(self, session: Session, stage: Stage) -> None:
        self._session = session
        self._stage = stage
        self._added: Counter[str] = Counter()
        self._known_candidates: set[str] = set()
        self._newer_runs: set[str] = set()
        self._stated: dict[str, bool] = {}

    def run(self) -> Counter[str]:
        for name in ("code_object", "dispatch"):
            self._contents(name)
        self._runs()
        self._candidates()
        self._contents("capture")
        self._recovered()
        self._events()
        self._timings()
        self._parts("verdict", ("gate", "attempt"))
        self._parts("replacement", ())
        self._statements()
        return self._added

    # -- what is named by its content ------------------------------------------------------------

    def _contents(self, name: str) -> None:
        """Known ones stay, but what was held out or a counterexample anywhere is so from now on."""
        table = _BY_NAME[name]
        for row, known in self._pairs(table, "sha256"):
            if known is None:
                self._insert(table, row)
            elif name == "dispatch" and row["held_out"] and not known["held_out"]:
                self._update(table, known, row, ("held_out", "name", "content_sha256"))
            elif name == "capture" and known["reason"] != row["reason"] and (
                    row["reason"] == CaptureReason.COUNTEREXAMPLE.value):
                self._update(table, known, row, ("reason", "dispatch_sha256", "held_out"))

    def _recovered(self) -> None:
        table = _BY_NAME["recovered_object"]
        key = ("assembly_sha256", "toolchain_sha256")
        for rows, known in self._groups(table, "code_object_sha256"):
            have = {tuple(row[name] for name in key) for row in known}
            for row in rows:
                if tuple(row[name] for name in key) not in have:
                    self._insert(table, row)

    # -- what has a name -------------------------------------------------------------------------

    def _runs(self) -> None:
        """A run that went on has more events; how it stands is told by who has most."""
        table = _BY_NAME["run"]
        events = _BY_NAME["search_event"]
        for row, known in self._pairs(table, "id"):
            if known is None:
                self._insert(table, row)
                continue
            self._same(table, row, known, ("status", "finished"))
            ours, theirs = (session.connection().execute(
                sa.select(sa.func.count()).where(events.c.run_id == row["id"])).scalar_one()
                for session in (self._session, self._stage.session))
            if theirs > ours or (theirs == ours and known["finished"] is None):
                self._update(table, known, row, ("status", "finished"))

    def _candidates(self) -> None:
        table = _BY_NAME["candidate"]
        verified, committed = CandidateStatus.VERIFIED.value, CandidateStatus.COMMITTED.value
        for row, known in self._pairs(table, "id"):
            if known is None:
                self._insert(table, row)
                continue
            self._known_candidates.add(row["id"])
            self._same(table, row, known, ("status",))
            statuses = known["status"], row["status"]
            if statuses == (verified, committed):
                self._update(table, known, row, ("status",))
            elif statuses != (committed, verified) and statuses[0] != statuses[1]:
                self._conflict(table, row, "status")

    def _events(self) -> None:
        table = _BY_NAME["search_event"]
        for rows, known in self._groups(table, "run_id"):
            have = {row["number"]: row for row in known}
            for row in rows:
                if row["number"] not in have:
                    self._insert(table, row)
                elif have[row["number"]][COLUMN] != row[COLUMN]:
                    self._conflict(table, row, "content")

    def _timings(self) -> None:
        """Of a candidate, or of the original in a run: all of them are known, or none."""
        table = _BY_NAME["timing"]
        for rows, known in self._groups(table, "run_id", table.c.candidate_id.is_(None)):
            self._all_or_none(table, rows, known)
        for rows, known in self._groups(table, "candidate_id"):
            self._all_or_none(table, rows, known)

    def _all_or_none(self, table: sa.Table, rows: Sequence[Row],
                     known: Sequence[Row]) -> None:
        if not known:
            for row in rows:
                self._insert(table, row)
        elif Counter(r[COLUMN] for r in rows) != Counter(r[COLUMN] for r in known):
            self._conflict(table, rows[0], "samples")

    def _parts(self, name: str, key: tuple[str, ...]) -> None:
        """Rows of a candidate that never change once they are there."""
        table = _BY_NAME[name]
        for rows, known in self._groups(table, "candidate_id"):
            have = {tuple(row[n] for n in key): row for row in known}
            if name == "verdict" and have and len(have) != len(rows):
                self._conflict(table, rows[0], "number of verdicts")
            for row in rows:
                ours = have.get(tuple(row[n] for n in key))
                if ours is None:
                    self._insert(table, row)
                elif ours[COLUMN] != row[COLUMN]:
                    self._conflict(table, row, "content")

    # -- what may be recorded anew ---------------------------------------------------------------

    def _statements(self) -> None:
        """Second timing, judgement and statement go together; the last second timing counts."""
        ids = [row["candidate_id"] for row in self._stage.rows(_BY_NAME["replacement"])]
        for start in range(0, len(ids), _BATCH):
            batch = ids[start:start + _BATCH]
            theirs = {name: self._by_candidate(self._stage.session, name, batch) for name in _TOLD}
            ours = {name: self._by_candidate(self._session, name, batch) for name in _TOLD}
            for candidate_id in batch:
                self._told(candidate_id, *(
                    {name: rows[name].get(candidate_id, []) for name in _TOLD}
                    for rows in (theirs, ours)))

    def _told(self, candidate_id: str, theirs: dict[str, list[Row]],
              ours: dict[str, list[Row]]) -> None:
        judgement = _BY_NAME["judgement"]
        if _digests(theirs["judgement"]) != _digests(ours["judgement"]):
            if ours["judgement"] or ours["statement"]:
                self._conflict(judgement, {"candidate_id": candidate_id}, "content")
            self._insert(judgement, theirs["judgement"][0])
        newer = _newer(theirs["second_timing"], ours["second_timing"])
        if newer is None and not ours["statement"]:
            newer = True
        if newer is None:
            if _said(theirs) != _said(ours):
                self._conflict(_BY_NAME["statement"], {"candidate_id": candidate_id}, "content")
            have = {row["public_key"] for row in ours["signature"]}
            for row in theirs["signature"]:
                if row["public_key"] not in have:
                    self._insert(_BY_NAME["signature"], row)
            return
        if not newer:
            return
        for name in ("signature", "statement", "second_timing"):
            table = _BY_NAME[name]
            self._session.connection().execute(
                table.delete().where(table.c.candidate_id == candidate_id))
            for row in theirs[name]:
                self._insert(table, row)

    def _by_candidate(self, session: Session, name: str,
                      ids: Sequence[str]) -> dict[str, list[Row]]:
        table = _BY_NAME[name]
        found: dict[str, list[Row]] = defaultdict(list)
        for row in values_of(session, sa.select(table).where(table.c.candidate_id.in_(ids))):
            found[row["candidate_id"]].append(row)
        return found

    # -- rows ------------------------------------------------------------------------------------

    def _pairs(self, table: sa.Table,
               key: str) -> Iterator[tuple[Row, Row | None]]:
        for rows in _batches(self._stage.rows(table)):
            known = {row[key]: row for row in values_of(
                self._session, sa.select(table).where(table.c[key].in_([r[key] for r in rows])))}
            for row in rows:
                yield row, known.get(row[key])

    def _groups(self, table: sa.Table, key: str, *conditions: Any,
                ) -> Iterator[tuple[list[Row], list[Row]]]:
        """The rows with one key, and those that are there already."""
        query = sa.select(table).where(*conditions)
        keys = self._stage.session.connection().execute(
            sa.select(table.c[key]).where(table.c[key].is_not(None), *conditions)
            .group_by(table.c[key]).order_by(sa.func.min(sa.text("rowid")))).scalars().all()
        for value in keys:
            of = query.where(table.c[key] == value)
            yield (list(values_of(self._stage.session, of.order_by(sa.text("rowid")))),
                   list(values_of(self._session, of)))

    def _insert(self, table: sa.Table, row: Any) -> None:
        self._session.connection().execute(
            table.insert(), {c.name: row[c.name] for c in carried(table)})
        self._added[table.name] += 1

    def _update(self, table: sa.Table, known: Row, row: Row,
                names: tuple[str, ...]) -> None:
        new = {**known, **{name: row[name] for name in names}}
        new[COLUMN] = values_digest(table, new)
        if new[COLUMN] == known[COLUMN]:
            return
        [key] = table.primary_key.columns
        self._session.connection().execute(table.update().where(key == known[key.name]).values(
            {name: new[name] for name in (*names, COLUMN)}))
        self._added[table.name] += 1

    def _same(self, table: sa.Table, row: Row, known: Row,
              free: tuple[str, ...]) -> None:
        for column in carried(table):
            if column.name not in (*free, COLUMN) and row[column.name] != known[column.name]:
                self._conflict(table, row, column.name)

    def _conflict(self, table: sa.Table, row: Any, what: str) -> NoReturn:
        name = row.get("id") if table.name in ("run", "candidate") else (
            row.get("candidate_id") or row.get("run_id"))
        raise ParcelError(
            ParcelFault.CONFLICT,
            f"the registry has {_NOUNS.get(table.name, table.name)} '{shown(name)}' with another "
            f"{what} already; nothing was changed")


_TOLD = ("judgement", "second_timing", "statement", "signature")
_NOUNS = {"search_event": "an event of run", "timing": "a timing of", "verdict":
          "a verdict of candidate", "replacement": "the replacement of candidate",
          "statement": "the statement of candidate", "judgement": "the judgement of candidate"}


def _digests(rows: Iterable[Row]) -> list[str]:
    return sorted(row[COLUMN] for row in rows)


def _said(rows: dict[str, list[Row]]) -> list[str]:
    return [row["statement_sha256"] for row in rows["statement"]]


def _newer(theirs: list[Row], ours: list[Row]) -> bool | None:
    """Whether theirs is the later second timing; None where both are the same."""
    if _digests(theirs) == _digests(ours):
        return None
    if not theirs or not ours:
        return bool(theirs)
    if theirs[0]["created"] == ours[0]["created"]:
        return None
    return bool(theirs[0]["created"] > ours[0]["created"])


def _batches(rows: Iterator[Row]) -> Iterator[list[Row]]:
    batch: list[Row] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
