"""Edits of code that no dispatch executes have no evidence."""

from __future__ import annotations

from asmevo.codeobject.assembly import Edit
from asmevo.codeobject.disassemble import program as recovered
from asmevo.gates.edges import changed_branches
from asmevo.gates.kept_blocks import changes
from asmevo.gates.reach import Reach, ReachGate
from asmevo.gates.trial import Trial
from asmevo.gates.verdict import Outcome, Verdict
from asmevo.isa.cfg import Cfg
from asmevo.isa.program import Program
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


def unseen(session: Session, length: int) -> tuple[int, int]:
    """A block that no dispatch executes, of so many instructions at least and with work in it."""
    reach = Reach(session.baseline)
    blocks = Cfg.of(session.baseline.program).blocks
    return next((b.start, b.end) for b in sorted(blocks, key=lambda b: b.start)
                if b.end - b.start >= length and not reach.reached(b.start))


def edited(session: Session, *edits: tuple[int, int, tuple[str, ...]]) -> Verdict:
    assembly = session.assembly.apply([
        Edit(session.symbol, start, stop, lines, "test") for start, stop, lines in edits])
    trial = Trial(session.baseline, session.toolchain, assembly=assembly)
    verdict = session.gates.assemble.judge(trial, 0)
    assert verdict.passed, verdict.reason
    return ReachGate().judge(trial, 0)


def test_code_that_moves_across_a_block_leaves_it_unchanged(sparse: Session) -> None:
    """More of it than is in the block, which is what a longest common subsequence keeps."""
    start, end = unseen(sparse, 5)
    blocks = Cfg.of(sparse.baseline.program).blocks
    behind = Cfg.of(sparse.baseline.program).block_of[start] + 1
    moved = tuple(f"s_mov_b32 s{n}, {n}" for n in range(60, 70 + end - start))
    above, below = (made(sparse, at, moved) for at in (start - 1, blocks[behind].end - 1))
    before = start + len(moved)
    assert above.instructions[before].text == below.instructions[start].text
    changed = {*changes(above, below).changed}
    assert changed >= {*range(start - 1, before - 1)}
    assert not changed & {*range(before, before + end - start)}


def made(session: Session, at: int, lines: tuple[str, ...]) -> Program:
    assembly = session.assembly.apply([Edit(session.symbol, at, at, lines, "test")])
    trial = Trial(session.baseline, session.toolchain, assembly=assembly)
    assert session.gates.assemble.judge(trial, 0).passed
    assert trial.code_object is not None
    return recovered(trial.code_object, session.symbol)


def test_what_moves_into_or_within_an_unseen_block_counts(sparse: Session) -> None:
    start, _ = unseen(sparse, 12)
    texts = [i.text for i in sparse.baseline.program.instructions]
    reach = Reach(sparse.baseline)
    seen = next(i for i in range(len(texts)) if reach.reached(i) and texts[i].startswith("v_mov"))
    for edits in (
            ((start, start + 2, (texts[start + 1], texts[start])),),
            ((start + 1, start + 2, ()),),
            ((start + 2, start + 2, (texts[start + 3],)),),
            ((seen, seen + 1, ()), (start + 1, start + 1, (texts[seen],))),
            ((seen, seen, (texts[start + 1],)), (start + 1, start + 2, ()))):
        verdict = edited(sparse, *sorted(edits))
        assert (verdict.outcome, verdict.code) == (Outcome.MISSING, "unreached")


def test_new_code_behind_an_unseen_block_that_others_jump_over(sparse: Session) -> None:
    """It is in front of code that is executed, but is not itself."""
    reach = Reach(sparse.baseline)
    program = sparse.baseline.program
    join = next(b.start for b in Cfg.of(program).blocks
                if reach.reached(b.start) and b.start and not reach.reached(b.start - 1)
                and not program.instructions[b.start - 1].is_branch and len(b.predecessors) > 1)
    jumps = [i for i, target in enumerate(program.targets) if target == join]
    new = "v_mov_b32_e32 v13, 0"
    assert edited(sparse, (join, join, (new,))).passed
    verdict = edited(
        sparse, *((i, i + 1, (f"{program.instructions[i].op} .Lover",)) for i in jumps),
        (join, join, (new, ".Lover:")))
    assert (verdict.outcome, verdict.code) == (Outcome.MISSING, "unreached")
