"""Edits of code that no dispatch executes have no evidence."""

from __future__ import annotations

from asmevo.codeobject.assembly import Edit
from asmevo.gates.reach import Reach, ReachGate
from asmevo.gates.trial import Trial
from asmevo.gates.verdict import Outcome, Verdict
from asmevo.task.session import Session


def judged(session: Session, at: int, *lines: str) -> Verdict:
    """With ``lines`` in place of the instruction ``at``."""
    assembly = session.assembly.apply([Edit(session.symbol, at, at + 1, lines, "test")])
    trial = Trial(session.baseline, session.toolchain, assembly=assembly)
    assert session.gates.assemble.judge(trial, 0).passed
    return ReachGate().judge(trial, 0)


def test_all_of_layer_norm_is_reached(session: Session) -> None:
    reach = Reach(session.baseline)
    assert all(reach.reached(i) for i in range(len(session.baseline.program)))


def test_the_original_changes_nothing(session: Session) -> None:
    trial = Trial(session.baseline, session.toolchain, code_object=session.code_object)
    assert ReachGate().judge(trial, 0).passed


def test_code_that_one_setting_only_reaches(sparse: Session) -> None:
    """Without renormalisation one of two paths is taken, whatever the shape."""
    texts = [i.text for i in sparse.baseline.program.instructions]
    stores = [i for i, text in enumerate(texts) if text.startswith("buffer_store_dword v13")]
    reach = Reach(sparse.baseline)
    assert [reach.reached(i) for i in stores] == [False, True] or (
        [reach.reached(i) for i in stores] == [True, False])
    missed = next(i for i in stores if not reach.reached(i))
    verdict = judged(sparse, missed)
    assert (verdict.outcome, verdict.code) == (Outcome.MISSING, "unreached")
    assert texts[missed] in verdict.reason
    assert judged(sparse, next(i for i in stores if reach.reached(i))).passed


def test_an_insertion_counts_where_it_stands(sparse: Session) -> None:
    texts = [i.text for i in sparse.baseline.program.instructions]
    stores = [i for i, text in enumerate(texts) if text.startswith("buffer_store_dword v13")]
    reach = Reach(sparse.baseline)
    for at in stores:
        verdict = judged(sparse, at, "s_nop 0", texts[at])
        assert verdict.passed == reach.reached(at)
