"""Candidates of a real kernel through the gates: what must pass, and what must not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from asmevo.codeobject.assembly import Assembly, Edit
from asmevo.codeobject.container import CodeObject
from asmevo.dispatch.comparison import Tolerance
from asmevo.dispatch.dispatch import Role
from asmevo.gates.baseline import Baseline, OracleError
from asmevo.gates.equality import EqualityGate
from asmevo.gates.static import StaticGate
from asmevo.gates.trial import Trial
from asmevo.gates.verdict import Gate, Outcome, Verdict
from asmevo.propose.proposal import Evidence, Proposals
from asmevo.search.attempt import Assignment
from asmevo.task.session import Session

Judge = Callable[[Assembly], tuple[Verdict, ...]]


@pytest.fixture(scope="module")
def judge(session: Session) -> Judge:
    def judged(assembly: Assembly) -> tuple[Verdict, ...]:
        return session.gates.judge(session.baseline, session.toolchain, assembly=assembly)[1]

    return judged


def lines(session: Session) -> list[str]:
    return [line.text for line in session.assembly.body(session.symbol).lines if line.text]


def edited(session: Session, start: int, stop: int, *text: str) -> Assembly:
    return session.assembly.apply([Edit(session.symbol, start, stop, text, "test")])


def find(session: Session, text: str, nth: int = 0) -> int:
    return [i for i, line in enumerate(lines(session)) if line.startswith(text)][nth]


def test_the_original_agrees_with_itself(session: Session) -> None:
    assert session.baseline.self_check(Tolerance()) > 0


def test_the_original_passes_as_its_own_candidate_but_is_no_commit(session: Session) -> None:
    trial, verdicts = session.gates.judge(
        session.baseline, session.toolchain, assembly=session.assembly
    )
    assert [v.gate.value for v in verdicts] == ["G0", "G1", "G2", "G2", "G2", "G3"]
    assert all(v.passed for v in verdicts)
    assert trial.speedup == 1.0
    assert session.gates.commit.judge(trial.speedup, trial.timings, 1.0).code == "below-floor"


def test_equivalent_rewrite_passes(session: Session, judge: Judge) -> None:
    at = find(session, "v_lshlrev_b32_e32 v212, 4, v0")
    verdicts = judge(edited(session, at, at, "s_getreg_b32 s101, hwreg(HW_REG_MODE)"))
    assert verdicts[-1].code == "forbidden-opcode"  # equal, but not reviewed
    verdicts = judge(edited(session, at, at + 1, "v_lshlrev_b32_e64 v212, 4, v0"))
    assert verdicts[-1].gate is Gate.G3, verdicts[-1]
    assert all(v.passed for v in verdicts)


def _removed(text: str, nth: int = 0) -> Callable[[Session], Assembly]:
    def edit(session: Session) -> Assembly:
        at = find(session, text, nth)
        return edited(session, at, at + 1)

    return edit


def _replaced(text: str, *new: str, nth: int = 0) -> Callable[[Session], Assembly]:
    def edit(session: Session) -> Assembly:
        at = find(session, text, nth)
        return edited(session, at, at + 1, *new)

    return edit


def _inserted(*new: str) -> Callable[[Session], Assembly]:
    return lambda session: edited(session, 0, 0, *new)


WRONG = {
    "endpgm at entry": (_inserted("s_endpgm"), Gate.G1),
    "skipped store": (_removed("buffer_store_dwordx4 v[48:51]"), Gate.G2),
    "skipped store of the second row": (_removed("buffer_store_dwordx4 v[92:95]"), Gate.G2),
    "missing scalar load wait": (_removed("s_waitcnt lgkmcnt(0)"), Gate.G1),
    "missing vector load wait": (_removed("s_waitcnt vmcnt(6)"), Gate.G1),
    "wait one too loose": (_replaced("s_waitcnt vmcnt(6)", "s_waitcnt vmcnt(7)"), Gate.G1),
    "missing LDS wait": (_removed("s_waitcnt lgkmcnt(0)", 2), Gate.G1),
    "missing barrier": (_removed("s_barrier"), Gate.G1),
    "early exit": (_replaced("s_cmp_eq_u32 s53, 1", "s_cmp_eq_u32 s53, 0"), Gate.G2),
    "mode change": (_inserted("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 8), 0"), Gate.G1),
    "trap": (_inserted("s_trap 2"), Gate.G1),
    "priority game": (_inserted("s_setprio 3"), Gate.G1),
    "undefined register": (
        _replaced("v_add_f32_e64 v14, v14, s28", "v_add_f32_e64 v14, v14, v250"), Gate.G1),
    "out of bounds": (_replaced("s_mov_b32 s49, 0x1000", "s_mov_b32 s49, 0x1000000"), Gate.G2),
    "wrong epsilon": (_replaced(
        "v_add_f32_e64 v14, v14, s28", "v_fma_f32 v14, s28, 0.5, v14"), Gate.G2),
    "no epsilon": (_removed("v_add_f32_e64 v14, v14, s28"), Gate.G1),
    "endless loop": (_replaced("s_cmp_eq_u32 s53, 1", "s_cmp_eq_u32 s53, -1"), Gate.G2),
    "not assembly": (_inserted("v_nonsense v0"), Gate.G0),
    "reads a file": (_inserted('.incbin "/etc/passwd"'), Gate.G0),
    "two statements": (_inserted("s_nop 0 ; s_nop 0"), Gate.G0),
    "grows registers": (_inserted("s_mov_b32 s101, 0"), Gate.G3),
}


@pytest.mark.parametrize("name", [n for n in WRONG if n != "grows registers"])
def test_wrong_candidates_are_rejected_by_the_named_gate(
    session: Session, judge: Judge, name: str
) -> None:
    edit, gate = WRONG[name]
    last = judge(edit(session))[-1]
    assert not last.passed
    assert last.outcome is Outcome.FAIL, last
    assert last.gate is gate, last
    assert last.reason


def test_equality_alone_sees_a_missing_wait(session: Session) -> None:
    """Without G1: the emulator delivers loads at the last moment, so the stale value shows."""
    for text, nth in (("s_waitcnt lgkmcnt(0)", 0), ("s_waitcnt vmcnt(6)", 0),
                      ("s_waitcnt lgkmcnt(0)", 2)):
        trial = Trial(session.baseline, session.toolchain, assembly=_removed(text, nth)(session))
        assert session.gates.assemble.judge(trial, 0).passed
        assert EqualityGate().judge(trial, 0).outcome is Outcome.FAIL, text


def test_held_out_failures_tell_a_proposer_nothing(session: Session) -> None:
    hidden = tuple(replace(d, held_out=True) for d in session.baseline.dispatches)
    blind = Baseline(
        session.code_object, session.symbol, session.assembly, hidden, session.device,
    )
    wrong = _removed("buffer_store_dwordx4 v[48:51]")(session)
    last = session.gates.judge(blind, session.toolchain, assembly=wrong)[1][-1]
    assert last.code == "held-out"
    assert "M" not in last.reason
    assert set(last.evidence) == {"repeat", "dispatches"}


def test_evidence_for_proposers_names_no_held_out_input(session: Session) -> None:
    baseline = session.baseline
    hidden = [d for d in baseline.dispatches if d.held_out]
    assert hidden
    assert not {d.name for d in hidden} & {baseline.dispatches[i].name
                                           for i in baseline.timed_dispatches}
    evidence = session.workbench.evidence(Assignment(0, session.workbench.root(), (), 1, 2.0))
    shown = repr((evidence.profiles, evidence.windows, evidence.failures))
    assert baseline.dispatches[baseline.timed_dispatches[0]].name in shown
    for dispatch in hidden:
        assert dispatch.name not in shown


def test_no_inputs_is_missing_evidence(session: Session) -> None:
    empty = Baseline(session.code_object, session.symbol, session.assembly, (), session.device)
    last = session.gates.judge(empty, session.toolchain, assembly=session.assembly)[1][-1]
    assert (last.gate, last.outcome, last.code) == (Gate.G2, Outcome.MISSING, "no-dispatch")


def test_an_original_that_depends_on_undefined_state_is_no_oracle(session: Session) -> None:
    """An output that is really an input: what it holds before the launch decides the result."""
    trial = Trial(session.baseline, session.toolchain, assembly=_replaced(
        "v_add_f32_e64 v14, v14, s28", "v_add_f32_e64 v14, v14, v250")(session))
    session.gates.assemble.judge(trial, 0)
    assert trial.code_object is not None
    broken = Baseline(
        trial.code_object, session.symbol, session.assembly, session.baseline.dispatches,
        session.device,
    )
    with pytest.raises(OracleError, match="disagrees with itself"):
        broken.self_check(Tolerance())


def test_static_gate_sees_a_changed_descriptor(session: Session) -> None:
    """FLOAT_MODE lies in compute_pgm_rsrc1 bits 12 to 19 (AMDHSA kernel descriptor)."""
    data = bytearray(session.code_object.data)
    rodata = session.code_object.section(".rodata")
    data[rodata.offset + 48 + 1] ^= 0x10
    trial = Trial(
        session.baseline, session.toolchain, code_object=CodeObject.parse(bytes(data))
    )
    verdict = StaticGate().judge(trial, 0)
    assert verdict.code == "interface", verdict


def test_static_gate_sees_bytes_changed_elsewhere(session: Session) -> None:
    data = bytearray(session.code_object.data)
    where = bytes(data).index(b"OutBuffer")
    data[where] ^= 0x20
    trial = Trial(session.baseline, session.toolchain, code_object=CodeObject.parse(bytes(data)))
    assert StaticGate().judge(trial, 0).outcome is Outcome.FAIL


def test_outputs_are_really_compared(session: Session) -> None:
    roles = {r.name: r.role for r in session.baseline.dispatches[0].regions}
    assert roles["out"] is Role.OUTPUT
    assert roles["residual_out"] is Role.OUTPUT
    reference = session.baseline.reference(0, 0)
    poisoned = session.baseline.dispatches[0].with_poisoned_outputs(session.baseline.seed * 2003)
    for region, after in zip(poisoned.regions, reference, strict=True):
        if region.role is Role.OUTPUT:
            inside = after[region.guard:region.guard + len(region.data)]
            assert inside != region.data


def test_a_base_is_proposed_upon_as_its_object_has_it(session: Session) -> None:
    """A text with other lines than its object would put edits in wrong places."""
    root = session.workbench.root()
    at = next(i for i, line in enumerate(root.assembly.body(session.symbol).lines) if line.text)
    longer = root.assembly.apply([Edit(session.symbol, at, at, ("s_nop 0",), "padding")])
    shown: list[Evidence] = []

    class Watching:
        def propose(self, evidence: Evidence) -> Proposals:
            shown.append(evidence)
            yield from ()

    bench = replace(session.workbench, proposer=Watching())
    base = replace(root, assembly=longer)
    assert list(bench.explore(Assignment(0, base, (), 1, 2.0))) == []
    assert len(shown[0].lines) == len(shown[0].program)
