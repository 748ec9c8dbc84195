"""By what replacements were judged, to rows and back."""

from __future__ import annotations

from sqlmodel import Session

from asmevo.registry.judgement import Judgement
from asmevo.registry.models import JudgementRow


def add_judgement(session: Session, candidate_id: str, judged: Judgement) -> None:
    """Add how a candidate that is being committed was judged."""
    session.add(JudgementRow(candidate_id=candidate_id, data=judged.to_json()))
