"""By what replacements were judged, to rows and back."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import inspect
from sqlmodel import Session, select

from asmevo.registry.judgement import Judgement, judgement
from asmevo.registry.models import JudgementRow


def add_judgement(session: Session, candidate_id: str, judged: Judgement) -> None:
    """Add how a candidate that is being committed was judged."""
    session.add(JudgementRow(candidate_id=candidate_id, data=judged.to_json()))


def judgements(session: Session) -> Mapping[str, Judgement]:
    """By candidate; none in a registry from before there were any."""
    if not inspect(session.connection()).has_table(str(JudgementRow.__tablename__)):
        return {}
    return {row.candidate_id: judgement(row.data) for row in session.exec(select(JudgementRow))}
