"""What people and machines look up in a registry: by identity, by filters, in numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from sqlalchemy import func
from sqlmodel import select

from asmevo.registry.catalog.identities import Identity, identities
from asmevo.registry.database.models import CandidateRow
from asmevo.registry.records import CandidateStatus
from asmevo.registry.replacement.selection import Selected, Selection, selected
from asmevo.registry.rows.runs import run_row
from asmevo.registry.rows.searches import attempt_event
from asmevo.registry.signing.signatures import SignatureRecord, signature_records

if TYPE_CHECKING:
    from asmevo.gates.verdict import JsonValue
    from asmevo.registry.database.database import Database
    from asmevo.registry.records import CandidateRecord, DispatchRecord


class Catalog:
    """Lookups in the database of a registry, each over one consistent snapshot.

    Every method raises `RegistryError` when the registry cannot be used.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def identities(self, text: str, *, limit: int) -> tuple[Identity, ...]:
        """What is stored under an identity or its first characters, at most so many of a kind."""
        with self._database.read() as session:
            return identities(session, text, limit)

    def signatures(self, candidate_ids: Collection[str],
                   ) -> Mapping[str, Sequence[SignatureRecord]]:
        """The recorded signatures of replacements by candidate; nothing here verifies them."""
        with self._database.read() as session:
            return signature_records(session, candidate_ids)

    def attempts_of(self, run_id: str) -> Mapping[CandidateStatus, int]:
        """How many candidates of a run ended how."""
        with self._database.read() as session:
            run_row(session, run_id)
            rows = session.exec(select(CandidateRow.status, func.count())
                                .where(CandidateRow.run_id == run_id)
                                .group_by(CandidateRow.status))
            return {CandidateStatus(status): number for status, number in rows}

    def attempt_event(self, candidate: CandidateRecord) -> Mapping[str, JsonValue] | None:
        """What the search recorded of an attempt: its proposer, assumption, time and cost."""
        with self._database.read() as session:
            return attempt_event(session, candidate.run_id, candidate.id)

    def dispatches(self, sha256s: Collection[str]) -> Mapping[str, DispatchRecord]:
        """Stored dispatches by SHA-256."""
        from asmevo.registry.rows.dispatches import dispatch_records

        with self._database.read() as session:
            return dispatch_records(session, sha256s)

    def select(self, selection: Selection) -> Selected:
        """The replacements that a selection describes, in its order, and how many there are."""
        with self._database.read() as session:
            return selected(session, selection)
