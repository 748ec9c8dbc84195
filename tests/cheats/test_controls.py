"""The two controls: without them a harness that rejects everything would pass every test here."""

from __future__ import annotations

from collections.abc import Callable

from asmevo.gates.verdict import Gate, Verdict
from asmevo.task.session import Session

Judge = Callable[..., tuple[Verdict, ...]]


def test_equivalent_rewrite_passes(layer_norm: Session, judge: Judge) -> None:
    verdicts = judge(
        layer_norm, ("replace", "v_lshlrev_b32_e32 v216", ("v_lshlrev_b32_e64 v216, 4, v0",))
    )
    assert [v.gate for v in verdicts if not v.passed] in ([], [Gate.G4])


def test_wrong_kernel_fails(layer_norm: Session, judge: Judge) -> None:
    verdicts = judge(layer_norm, ("replace", "v_add_f32_e64 v14, v14, s28", ()))
    assert verdicts[-1].gate is Gate.G2
    assert not verdicts[-1].passed
