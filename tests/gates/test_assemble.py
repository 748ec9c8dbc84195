"""G0's two ways to make an object of a candidate."""

from __future__ import annotations

import struct

import pytest

from asmevo.codeobject.assembly import Edit
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import rows
from asmevo.codeobject.errors import CodeObjectError
from asmevo.codeobject.patch import listing
from asmevo.codeobject.recover import recover
from asmevo.gates.assemble import AssembleGate, Method
from asmevo.gates.baseline import Baseline
from asmevo.gates.harness import Gates, from_settings
from asmevo.gates.latency import SettingError
from asmevo.gates.trial import Trial
from asmevo.gates.verdict import Outcome
from asmevo.task.session import Session

# v_lshrrev_b32 of layer norm's prologue, and a longer way to write the same.
AT, SAME = 10, "v_lshrrev_b32_e32 v1, 10, v0"


def edit(session: Session, start: int, stop: int, *lines: str) -> Edit:
    return Edit(session.symbol, start, stop, lines, "test")


@pytest.fixture(scope="module")
def unrecoverable(session: Session) -> CodeObject:
    """Layer norm with a branch into the middle of an instruction."""
    original = session.code_object
    code = rows(original.code(original.kernel()), original.target)
    at, _, _ = next(row for row in code if row[2].startswith("s_cbranch"))
    inside = next(offset for offset, size, _ in code if size == 8 and offset > at) + 4
    data = bytearray(original.data)
    struct.pack_into("<H", data, original.section(".text").offset + at, (inside - at - 4) // 4)
    changed = CodeObject.parse(bytes(data))
    with pytest.raises(CodeObjectError):
        recover(changed)
    return changed


def baseline(session: Session, code_object: CodeObject) -> Baseline:
    return Baseline(code_object, session.symbol, listing(code_object), (), session.device)


@pytest.mark.parametrize(("method", "outcome", "code"), [
    (Method.REBUILD, Outcome.FAIL, "rebuild-refused"), (Method.PATCH, Outcome.PASS, "ok"),
    (Method.AUTO, Outcome.PASS, "ok"),
])
def test_what_cannot_be_recovered_is_patched_when_allowed(
        session: Session, unrecoverable: CodeObject, method: Method, outcome: Outcome,
        code: str) -> None:
    base = baseline(session, unrecoverable)
    assembly = base.assembly.apply([edit(session, AT, AT + 2, "s_nop 3")])
    trial = Trial(base, session.toolchain, assembly=assembly)
    verdict = AssembleGate(method).judge(trial, 0)
    assert (verdict.outcome, verdict.code) == (outcome, code)
    if outcome is Outcome.PASS:
        assert verdict.reason == "patched in place"
        assert trial.code_object is not None
        assert trial.assembly is not None
        lines = [line.text for line in trial.assembly.body(session.symbol).lines]
        assert lines[AT:AT + 2] == ["s_nop 3", "s_nop 0"]
        given = Trial(base, session.toolchain, code_object=trial.code_object)
        assert AssembleGate(method).judge(given, 0).reason == "is a patch of the original"


def test_what_can_be_recovered_is_rebuilt_unless_told_otherwise(session: Session) -> None:
    assembly = session.assembly.apply([edit(session, AT, AT, "s_nop 0")])
    for method, outcome in ((Method.AUTO, Outcome.PASS), (Method.REBUILD, Outcome.PASS),
                            (Method.PATCH, Outcome.FAIL)):
        trial = Trial(session.baseline, session.toolchain, assembly=assembly)
        assert AssembleGate(method).judge(trial, 0).outcome is outcome


def test_a_patched_candidate_goes_through_every_gate(session: Session) -> None:
    gates = Gates(AssembleGate(Method.PATCH), session.gates.static, session.gates.equality,
                  session.gates.latency, session.gates.commit)
    assert recover(session.code_object).body(session.symbol).lines[AT].text == SAME
    assembly = session.assembly.apply([edit(session, AT + 2, AT + 3,
                                            "v_and_b32_e32 v2, 0x3ff, v2")])
    trial, verdicts = gates.judge(session.baseline, session.toolchain, assembly=assembly)
    assert [v.gate.value for v in verdicts] == ["G0", "G1", "G2", "G2", "G2", "G3"]
    assert all(v.passed for v in verdicts)
    wrong = session.assembly.apply([edit(session, AT, AT + 1)])
    verdicts = gates.judge(session.baseline, session.toolchain, assembly=wrong)[1]
    assert verdicts[0].passed
    assert not verdicts[-1].passed
    assert trial.speedup == 1.0


def test_a_given_object_that_is_no_patch_is_refused(session: Session,
                                                    unrecoverable: CodeObject) -> None:
    data = bytearray(unrecoverable.data)
    data[data.index(b"OutBuffer")] ^= 0x20
    trial = Trial(baseline(session, unrecoverable), session.toolchain,
                  code_object=CodeObject.parse(bytes(data)))
    verdict = AssembleGate().judge(trial, 0)
    assert (verdict.outcome, verdict.code) == (Outcome.FAIL, "rebuild-refused")


def test_unknown_method_is_refused() -> None:
    with pytest.raises(SettingError, match=r"gates\.rebuild must be rebuild, patch, auto"):
        from_settings(epsilon=0.1, k=1.0, s_floor=1.0, dispatch_floor=0.9, repeats=3, samples=5,
                      warmup=0, cosine=0.9, max_abs=0.1, rebuild="copy")
