"""Errors against the exact result, and what the sanitizer says of candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from asmevo.codeobject.assembly import Edit
from asmevo.device.device import CheckedKernel, LaunchState
from asmevo.dispatch.dispatch import Dispatch
from asmevo.gates.equality import EqualityGate
from asmevo.gates.harness import Gates
from asmevo.gates.precision import Precision, PrecisionError
from asmevo.gates.trial import Trial
from asmevo.gates.verdict import Gate, Outcome
from asmevo.task.session import Session

Floats = NDArray[np.float64]


@pytest.fixture
def truth() -> Floats:
    return np.random.default_rng(3).standard_normal(20_000)


def rounded(values: Floats, kind: type[np.floating[Any]]) -> Floats:
    return values.astype(kind).astype(np.float64)


def test_another_rounding_is_as_good(truth: Floats) -> None:
    """f32 sums of thirty terms, forwards and backwards."""
    terms = truth[:18_000].reshape(600, 30)
    forwards = np.add.accumulate(terms.astype(np.float32), axis=1)[:, -1].astype(np.float64)
    backwards = np.add.accumulate(terms[:, ::-1].astype(np.float32), axis=1)[:, -1]
    exact = terms.sum(axis=1)
    assert (forwards != backwards).any()
    assert Precision(0.15).lost(exact, forwards, backwards.astype(np.float64)) is None


def test_fewer_bits_are_not(truth: Floats) -> None:
    original = rounded(truth, np.float32)
    lost = Precision().lost(truth, original, rounded(truth, np.float16))
    assert lost is not None
    assert "root mean square" in lost


def test_one_element_far_off_is_not(truth: Floats) -> None:
    original = rounded(truth, np.float32)
    worse = original.copy()
    worse[7] = truth[7] + 4 * np.abs(original - truth).max()
    lost = Precision().lost(truth, original, worse)
    assert lost is not None
    assert "largest error" in lost


def test_being_nearer_is_no_fault(truth: Floats) -> None:
    assert Precision().lost(truth, rounded(truth, np.float32), truth) is None


def test_open_elements_do_not_count(truth: Floats) -> None:
    original, worse = rounded(truth, np.float32), rounded(truth, np.float16)
    assert Precision().lost(np.full_like(truth, np.nan), original, worse) is None


@pytest.mark.parametrize("slack", [-0.1, float("nan"), float("inf")])
def test_slack_must_make_sense(slack: float) -> None:
    with pytest.raises(PrecisionError):
        Precision(slack)


def edited(session: Session, start: str, *lines: str) -> Trial:
    texts = [line.text for line in session.assembly.body(session.symbol).lines if line.text]
    at = next(i for i, text in enumerate(texts) if text.startswith(start))
    edit = Edit(session.symbol, at, at + 1, lines, "test")
    return Trial(session.baseline, session.toolchain, assembly=session.assembly.apply([edit]))


def test_layer_norm_with_dropped_bits_is_less_precise(session: Session) -> None:
    """The row's variance with 6 bits less: far inside the tolerance for small rows' results."""
    trial = edited(session, "v_add_f32_e64 v14, v14, s28", "v_add_f32_e64 v14, v14, s28",
                   "v_and_b32_e32 v14, 0xffff8000, v14")
    assert session.gates.assemble.judge(trial, 0).passed
    loose = replace(session.gates.tolerance, max_abs=1e9, cosine=0.9)
    verdict = EqualityGate(loose).judge(trial, 0)
    assert (verdict.outcome, verdict.code) == (Outcome.FAIL, "less-precise"), verdict


@dataclass(frozen=True)
class Reports:
    errors_by_class: Mapping[str, str]

    def summary(self) -> Sequence[str]:
        return ()

    def to_dict(self) -> dict[str, Any]:
        return {}


class Reporting:
    """A candidate of which the sanitizer reports something, or that is as the original."""

    def __init__(self, inner: Any, found: Mapping[str, str]) -> None:
        self._inner, self._found = inner, found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def sanitize(self, dispatch: Dispatch, state: LaunchState, *, limit: int | None = None,
                 ) -> Reports:
        assert dispatch.grid == (1, 1, 1)  # the smaller of the visible ones
        assert not dispatch.held_out
        return Reports(self._found)


def test_what_the_original_does_as_well_is_no_new_class(session: Session) -> None:
    trial = Trial(session.baseline, session.toolchain, code_object=session.code_object)
    assert EqualityGate().judge(trial, 0).passed
    assert isinstance(trial.loaded, CheckedKernel)
    # Layer norm's second row overwrites partial sums of the first without a barrier.
    assert session.baseline.sanitized == {"lds-race: ds_write after ds_read"}
    verdict = EqualityGate().check(trial)
    assert verdict is not None
    assert verdict.passed


def test_a_new_class_of_report_fails(session: Session) -> None:
    trial = Trial(session.baseline, session.toolchain, code_object=session.code_object)
    trial.loaded = Reporting(session.baseline.loaded, {"out-of-bounds: buffer_load": "reads"})
    verdict = EqualityGate().check(trial)
    assert verdict is not None
    assert (verdict.outcome, verdict.code) == (Outcome.FAIL, "sanitizer")
    assert "reads" in verdict.reason


def test_a_race_that_results_do_not_show(session: Session) -> None:
    """A second barrier-less read of LDS in front of the barrier: equal where waves run in turn."""
    trial = edited(session, "s_barrier", "v_mov_b32_e32 v240, 0", "ds_read_b32 v241, v240 offset:4",
                   "s_waitcnt lgkmcnt(0)", "v_cmp_eq_u32_e32 vcc, v241, v241", "s_barrier")
    assert session.gates.assemble.judge(trial, 0).passed
    trial.loaded = session.device.load(trial.code_object, session.symbol)  # type: ignore[arg-type]
    verdict = EqualityGate().check(trial)
    assert verdict is not None
    assert verdict.code == "sanitizer", verdict


def test_the_harness_checks_what_may_be_committed(session: Session) -> None:
    """The original as its own candidate is no faster, so that it is not worth the launch."""
    for sanitize, floor, count in ((True, 0.5, 4), (False, 0.5, 3), (True, 1.0, 3)):
        gates = Gates(commit=replace(session.gates.commit, s_floor=floor), sanitize=sanitize)
        verdicts = gates.judge(session.baseline, session.toolchain, assembly=session.assembly)[1]
        assert verdicts[-1].gate is Gate.G3
        assert sum(v.gate is Gate.G2 for v in verdicts) == count
