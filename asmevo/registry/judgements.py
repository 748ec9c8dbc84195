"""By what replacements were judged, to rows and back."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import ColumnElement, inspect
from sqlmodel import Session, col, select

from asmevo.registry.judgement import Judgement, judgement
from asmevo.registry.models import JudgementRow, ReplacementRow


def add_judgement(session: Session, candidate_id: str, judged: Judgement) -> None:
    """Add how a candidate that is being committed was judged."""
    session.add(JudgementRow(candidate_id=candidate_id, data=judged.to_json()))


def judgements(session: Session,
               *conditions: ColumnElement[bool]) -> Mapping[str, Judgement]:
    """Of replacements, by candidate; none in a registry from before there were any."""
    if not inspect(session.connection()).has_table(str(JudgementRow.__tablename__)):
        return {}
    of = col(JudgementRow.candidate_id).in_(
        select(ReplacementRow.candidate_id).where(*conditions))
    return {row.candidate_id: judgement(row.data)
            for row in session.exec(select(JudgementRow).where(of))}
