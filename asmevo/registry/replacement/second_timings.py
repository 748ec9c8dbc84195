"""Timings of committed replacements in a fresh process, which confirm them or do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlmodel import Session, select

from asmevo.registry.database.models import ReplacementRow, SecondTimingRow, now
from asmevo.registry.errors import RegistryError
from asmevo.registry.rows.values import json_object
from asmevo.registry.signing.issuer import Issuer

if TYPE_CHECKING:
    from asmevo.gates.verdict import Verdict


def add_second_timing(session: Session, candidate_id: str, speedup: float | None,
                      verdict: Verdict, *, confirmed: bool) -> None:
    """Add the second timing of a committed candidate, or put a later one in its place."""
    if session.exec(select(ReplacementRow).where(
            ReplacementRow.candidate_id == candidate_id)).first() is None:
        raise RegistryError(f"candidate '{candidate_id}' is not committed")
    known = session.get(SecondTimingRow, candidate_id)
    row = known or SecondTimingRow(candidate_id=candidate_id)
    row.speedup, row.confirmed = speedup, confirmed
    row.outcome, row.code, row.reason = verdict.outcome.value, verdict.code, verdict.reason
    row.evidence, row.created = json_object(verdict.evidence), now()
    session.add(row)


def time_again(session: Session, issuer: Issuer, candidate_id: str, speedup: float | None,
               verdict: Verdict, *, confirmed: bool) -> None:
    """See `Registry.record_second_timing`."""
    if confirmed and not (verdict.passed and speedup is not None and speedup > 0):
        raise RegistryError(f"candidate '{candidate_id}' is not confirmed by a second timing "
                            f"that says {verdict.outcome}")
    stated = issuer.is_stated(session, candidate_id)
    add_second_timing(session, candidate_id, speedup, verdict, confirmed=confirmed)
    if stated:
        issuer.issue(session, candidate_id)
