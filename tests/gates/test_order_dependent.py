"""An original whose atomics round differently in another workgroup order, and one that is wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from asmevo.device.device import LaunchState, RunResult, WorkgroupOrder
from asmevo.dispatch.comparison import Noise, Tolerance
from asmevo.dispatch.dispatch import Dispatch, ElementType, Region, Role
from asmevo.gates.baseline import Baseline, OracleError
from asmevo.gates.equality import EqualityGate
from asmevo.gates.trial import Trial
from asmevo.gates.verdict import Outcome, Verdict

SUM = Region("sum", 0x10000, np.ones(64, np.float32).tobytes(), Role.INOUT, ElementType("f32"),
             guard=16, order_dependent=True)
DISPATCH = Dispatch(name="d", kernel="k", kernarg=b"", grid=(1, 1, 1), workgroup=(64, 1, 1),
                    regions=(SUM,), pointers=())


@dataclass(frozen=True)
class Stub:
    """Adds 1, and something else in another order or with other undefined state."""

    by_order: float = 0.0
    by_poison: float = 0.0
    value: float = 1.0
    off: float = 0.0
    elements: int = 0

    def run(self, dispatch: Dispatch, state: LaunchState, *, limit: int = 0) -> RunResult:
        mapped = dispatch.regions[0].mapped
        values = np.linspace(1, 2, 64, dtype=np.float32) * self.value
        if state.order is not WorkgroupOrder.ASCENDING:
            values[0] += self.by_order
        values[2:2 + self.elements] += self.off
        values[1] += self.by_poison * (state.poison % 1009)
        return RunResult((mapped[:16] + values.tobytes() + mapped[-16:],), 1, 0.0)


def check(stub: Stub, *, region: Region = SUM) -> Baseline:
    dispatch = replace(DISPATCH, regions=(region,))
    baseline = Baseline(None, "k", None, [dispatch], None)  # type: ignore[arg-type]
    baseline.__dict__["loaded"] = stub
    baseline.self_check(Tolerance())
    return baseline


def test_rounding_by_workgroup_order_is_the_originals_noise() -> None:
    assert check(Stub(by_order=0.0078125)).noise(0) == {"sum": Noise(0.0078125, 0.0078125 / 8)}
    assert check(Stub()).noise(0) == {"sum": Noise(0.0, 0.0)}


def judged(candidate: Stub, original: Stub, region: Region = SUM) -> Verdict:
    """G2's verdict on a candidate that gives its results in ascending order only."""
    baseline = check(original, region=region)
    trial = Trial(baseline, None, code_object=object(), loaded=candidate)  # type: ignore[arg-type]
    return EqualityGate().judge(trial, 0)


def test_a_candidate_lies_inside_the_envelope() -> None:
    noisy = Stub(by_order=0.0078125)
    assert judged(noisy, noisy).passed
    # One element as far off as runs of the original are from one another.
    assert judged(Stub(off=0.0078125, elements=1), noisy).passed


@pytest.mark.parametrize("candidate", [
    Stub(off=0.009, elements=1),     # farther than any run of the original
    Stub(off=0.0078125, elements=40),  # as far, but everywhere
])
def test_what_hides_behind_the_noise_is_outside(candidate: Stub) -> None:
    verdict = judged(candidate, Stub(by_order=0.0078125))
    assert (verdict.outcome, verdict.code) == (Outcome.FAIL, "outside-envelope")


def test_without_noise_the_tolerance_decides() -> None:
    assert judged(Stub(off=0.0009, elements=1), Stub()).passed
    assert judged(Stub(off=0.0078125, elements=1), Stub()).code == "outside-envelope"
    fixed = replace(SUM, order_dependent=False)
    assert judged(Stub(off=0.0078125, elements=1), Stub(), fixed).code == "max-abs"


def test_only_declared_regions_may_have_noise() -> None:
    with pytest.raises(OracleError, match="max-abs"):
        check(Stub(by_order=0.0078125), region=replace(SUM, order_dependent=False))


@pytest.mark.parametrize(("stub", "code"), [
    (Stub(by_poison=0.01), "max-abs"), (Stub(by_order=float("nan")), "nan-class"),
    (Stub(by_order=float("inf")), "infinity"), (Stub(by_order=30.0), "max-abs"),
])
def test_noise_excuses_nothing_else(stub: Stub, code: str) -> None:
    with pytest.raises(OracleError, match=code):
        check(stub)
