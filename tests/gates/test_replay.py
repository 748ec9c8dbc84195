"""The original must do what a capture recorded of it, before anything is compared with it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from asmevo.device.device import DeviceFault, LaunchState, RunResult, Timing
from asmevo.dispatch.comparison import Tolerance
from asmevo.dispatch.dispatch import Dispatch, ElementType, Region, Role
from asmevo.gates.errors import OracleError
from asmevo.gates.replay import check_replay
from asmevo.profile.profile import Profile

STATE = LaunchState()


class Replayed:
    """A kernel whose launches give prepared bytes."""

    def __init__(self, regions: Sequence[bytes] | DeviceFault) -> None:
        self._regions = regions

    def run(self, dispatch: Dispatch, state: LaunchState = STATE, *,
            limit: int | None = None) -> RunResult:
        if isinstance(self._regions, DeviceFault):
            raise self._regions
        return RunResult(tuple(self._regions), 17, 0.0)

    def time(self, dispatch: Dispatch, state: LaunchState = STATE, *, samples: int,
             warmup: int) -> Timing:
        raise NotImplementedError

    def profile(self, dispatch: Dispatch, state: LaunchState = STATE, *,
                timeline: bool = False) -> Profile:
        raise NotImplementedError


X = np.arange(16, dtype=np.float32).tobytes()
BEFORE, AFTER = bytes(64), np.linspace(1, 2, 16, dtype=np.float32).tobytes()


def captured(element: ElementType = ElementType.F32, *, order_dependent: bool = False,
             after: bytes = AFTER) -> Dispatch:
    return Dispatch(
        "d", "k", b"", (1, 1, 1), (64, 1, 1), (
            Region("x", 0x1000, X, Role.INPUT, ElementType.F32, 0),
            Region("y", 0x2000, BEFORE, Role.OUTPUT, element, 0, order_dependent=order_dependent)),
        (), recorded=(X, after))


def scaled(factor: float) -> bytes:
    return (np.frombuffer(AFTER, np.float32) * np.float32(factor)).tobytes()


def test_the_recorded_result_passes() -> None:
    assert check_replay(Replayed((X, AFTER)), captured(), Tolerance()) == 17


def test_what_is_no_capture_is_not_run() -> None:
    declared = Dispatch("d", "k", b"", (1, 1, 1), (64, 1, 1), (), ())
    assert check_replay(Replayed(DeviceFault("no", kind="memory")), declared, Tolerance()) == 0


@pytest.mark.parametrize(("regions", "words"), [
    ((X, scaled(1.01)), r"'y' \(max-abs"),
    ((X, bytes(64)), r"'y' \("),
    ((AFTER, AFTER), r"'x' \(input-modified"),
    ((X, np.full(16, np.nan, np.float32).tobytes()), "nan-class"),
])
def test_any_other_result_does_not(regions: tuple[bytes, bytes], words: str) -> None:
    with pytest.raises(OracleError, match=words):
        check_replay(Replayed(regions), captured(), Tolerance())


def test_opaque_bytes_are_compared_bit_for_bit() -> None:
    near = scaled(1 + 2**-20)
    check_replay(Replayed((X, near)), captured(), Tolerance())
    with pytest.raises(OracleError, match="bits"):
        check_replay(Replayed((X, near)), captured(ElementType.OPAQUE), Tolerance())


def test_another_order_of_workgroups_may_round_otherwise() -> None:
    dispatch = captured(order_dependent=True)
    check_replay(Replayed((X, scaled(1.01))), dispatch, Tolerance())
    for other in (scaled(-1), np.full(16, np.inf, np.float32).tobytes()):
        with pytest.raises(OracleError, match="differs from what was recorded"):
            check_replay(Replayed((X, other)), dispatch, Tolerance())


def test_a_fault_names_what_to_do() -> None:
    fault = DeviceFault("it stores to an input", kind="memory")
    with pytest.raises(OracleError, match=r"it stores to an input.*task=capture"):
        check_replay(Replayed(fault), captured(), Tolerance())


def test_a_capture_of_nothing_is_none() -> None:
    with pytest.raises(OracleError, match="no change of memory"):
        check_replay(Replayed((X, BEFORE)), captured(after=BEFORE), Tolerance())
