"""The events of searches, to rows and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sqlmodel import Session, col, select

from asmevo.registry.database.models import RunRow, SearchEventRow
from asmevo.registry.errors import RegistryError
from asmevo.registry.rows.runs import run_row
from asmevo.registry.rows.values import json_object

if TYPE_CHECKING:
    from asmevo.gates.verdict import JsonValue


def add_events(session: Session, run_id: str, events: Sequence[Mapping[str, JsonValue]]) -> None:
    """Add events of a run; one of a number that it has already is refused by the database."""
    for event in events:
        number, kind = event.get("number"), event.get("kind")
        if not isinstance(number, int) or not isinstance(kind, str):
            raise RegistryError("an event of a search lacks its number or its kind")
        session.add(SearchEventRow(run_id=run_id, number=number, kind=kind,
                                   data=json_object(event)))


def event_records(session: Session, run_id: str) -> tuple[Mapping[str, JsonValue], ...]:
    """The events of a run, in order; none may be missing."""
    run_row(session, run_id)
    rows = session.exec(select(SearchEventRow).where(SearchEventRow.run_id == run_id)
                        .order_by(col(SearchEventRow.number))).all()
    for expected, row in enumerate(rows):
        if row.number != expected:
            raise RegistryError(f"event {expected} of run '{run_id}' is missing")
    return tuple(row.data for row in rows)


def attempt_event(session: Session, run_id: str,
                  candidate_id: str) -> Mapping[str, JsonValue] | None:
    """The event of the attempt that a candidate is; None in a run that recorded no events."""
    return session.exec(select(SearchEventRow.data).where(
        SearchEventRow.run_id == run_id, SearchEventRow.kind == "attempted",
        col(SearchEventRow.data)["candidate"].as_string() == candidate_id)).first()


def first_events(session: Session) -> tuple[tuple[RunRow, Mapping[str, JsonValue]], ...]:
    """Runs with events, newest first, and the first event of each."""
    rows = session.exec(
        select(RunRow, SearchEventRow.data)
        .join(SearchEventRow, col(SearchEventRow.run_id) == RunRow.id)
        .where(SearchEventRow.number == 0)
        .order_by(col(RunRow.started).desc(), col(RunRow.id).desc()))
    return tuple((row, data) for row, data in rows)
