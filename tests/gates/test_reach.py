"""Edits of code that no dispatch executes have no evidence."""

from __future__ import annotations

from asmevo.codeobject.assembly import Edit
from asmevo.codeobject.disassemble import program as recovered
from asmevo.gates.edges import changed_branches
from asmevo.gates.reach import Reach, ReachGate
from asmevo.gates.trial import Trial
from asmevo.gates.verdict import Outcome, Verdict
from asmevo.task.session import Session
from asmevo.threats.trick import labelled


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


def branching(session: Session, *condition: str) -> Verdict:
    """With a branch over nothing, behind the loads of the arguments."""
    texts = [i.text for i in session.baseline.program.instructions]
    at = texts.index("s_mov_b32 s18, 0x80000000")
    marked = labelled(session.assembly, session.symbol, at + 1, ".Lover")
    assembly = marked.apply([Edit(session.symbol, at, at + 1, (
        texts[at], *condition, "s_cbranch_scc1 .Lover", "s_nop 0"), "test")])
    trial = Trial(session.baseline, session.toolchain, assembly=assembly)
    assert session.gates.assemble.judge(trial, 0).passed
    return ReachGate().judge(trial, 0)


def test_an_added_branch_must_go_both_ways(session: Session) -> None:
    """s5 is the wave's number in its workgroup, s29 the number of rows."""
    assert branching(session, "s_cmp_gt_u32 s5, 1").passed
    for never, what in (("s_cmp_gt_u32 s29, 100", "takes"), ("s_cmp_lt_u32 s29, 100", "passes by")):
        verdict = branching(session, never)
        assert (verdict.outcome, verdict.code) == (Outcome.MISSING, "unreached")
        assert f"no dispatch {what} 's_cbranch_scc1" in verdict.reason


def test_a_branch_that_no_launch_decides_may_go_one_way(session: Session) -> None:
    assert branching(session, "s_mov_b32 s101, 3", "s_cmp_gt_u32 s101, 4").passed


def test_a_branch_to_what_is_put_in_front_of_its_target_stays(session: Session) -> None:
    program = session.baseline.program
    target = next(t for t in program.targets if t is not None)
    assert judged(session, target, "s_nop 0", program.instructions[target].text).passed


def test_a_branch_that_leads_elsewhere_is_another(session: Session) -> None:
    """The loop's exit to the next instruction: both ways are gone, but by other instructions."""
    program = session.baseline.program
    branch = next(i for i, t in enumerate(program.targets)
                  if t is not None and program.instructions[i].is_conditional)
    marked = labelled(session.assembly, session.symbol, branch + 1, ".Lover")
    assembly = marked.apply([Edit(session.symbol, branch, branch + 1, (
        program.instructions[branch].op + " .Lover",), "test")])
    trial = Trial(session.baseline, session.toolchain, assembly=assembly)
    assert session.gates.assemble.judge(trial, 0).passed
    assert trial.code_object is not None
    changed = tuple(changed_branches(program, recovered(trial.code_object, session.symbol)))
    assert changed == ((branch, branch),)


def test_scheduled_blocks_have_no_new_branches(sparse: Session) -> None:
    """Every wait of another text, targets of branches among them."""
    program = sparse.baseline.program
    waits = [i for i, x in enumerate(program.instructions) if x.op == "s_waitcnt"]
    assembly = sparse.assembly.apply(
        [Edit(sparse.symbol, i, i + 1, ("s_waitcnt vmcnt(0) lgkmcnt(0)",), "test") for i in waits])
    trial = Trial(sparse.baseline, sparse.toolchain, assembly=assembly)
    assert sparse.gates.assemble.judge(trial, 0).passed
    assert trial.code_object is not None
    code = recovered(trial.code_object, sparse.symbol)
    assert tuple(changed_branches(program, code)) == ()
