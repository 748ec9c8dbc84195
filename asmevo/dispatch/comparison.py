"""How the memory after a launch is compared with the original's."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from asmevo.dispatch.dispatch import Dispatch, Region, Role
from asmevo.dispatch.generator import to_floats
from asmevo.errors import AsmEvoError


class ToleranceError(AsmEvoError):
    """A tolerance that would compare nothing."""


@dataclass(frozen=True)
class Tolerance:
    """Bounds for floating-point regions (requirement R2); everything else is bit for bit."""

    cosine: float = 0.9999
    max_abs: float = 1e-3

    def __post_init__(self) -> None:
        # A NaN would make every comparison with it false, and so pass everything.
        if not 0.0 < self.cosine <= 1.0:
            raise ToleranceError(f"gates.cosine must be above 0 and at most 1, not {self.cosine}")
        if not 0.0 <= self.max_abs < math.inf:
            raise ToleranceError(
                f"gates.max_abs must be finite and not negative, not {self.max_abs}"
            )


@dataclass(frozen=True, slots=True)
class Noise:
    """How far runs of one kernel differ in a region that they add to in different orders.

    The largest |difference| and the largest root mean square of one between any two of them: a
    kernel that differs everywhere by what the original does in one element is outside.
    """

    max_abs: float = 0.0
    rms: float = 0.0

    def holds(self, max_abs: float, rms: float) -> bool:
        return max_abs <= self.max_abs and rms <= self.rms


@dataclass(frozen=True, slots=True)
class RegionComparison:
    """Outcome for one region.

    ``code`` is ``ok``, ``guard-overwritten``, ``input-modified``, ``nan-class``, ``infinity``,
    ``cosine``, ``max-abs``, ``outside-envelope`` (farther than ``max-abs`` and farther than runs
    of the original differ) or ``bits``; ``first`` the first differing element, -1 if none.
    """

    region: str
    code: str
    cosine: float
    max_abs: float
    differing: int
    first: int

    @property
    def equal(self) -> bool:
        return self.code == "ok"


_NO_NOISE: Mapping[str, Noise] = MappingProxyType({})


def noise_of(dispatch: Dispatch, runs: Sequence[tuple[bytes, ...]]) -> dict[str, Noise]:
    """The noise of order-dependent regions over post-states of ``dispatch``; NaN counts as 0."""
    found = {}
    for index, region in enumerate(dispatch.regions):
        if not region.order_dependent:
            continue
        data = slice(region.guard, region.guard + len(region.data))
        values = [to_floats(run[index][data], region.element) for run in runs]
        largest = rms = 0.0
        for one, other in itertools.combinations(values, 2):
            difference = _differences(one, other)
            largest = max(largest, float(difference.max(initial=0.0)))
            rms = max(rms, _rms(difference))
        found[region.name] = Noise(largest, rms)
    return found


def compare(
    dispatch: Dispatch, expected: tuple[bytes, ...], actual: tuple[bytes, ...],
    tolerance: Tolerance, noise: Mapping[str, Noise] = _NO_NOISE,
) -> tuple[RegionComparison, ...]:
    """Compare two post-states of ``dispatch``, region by region.

    ``expected[i]``/``actual[i]`` are the mapped bytes (guards included) of ``dispatch.regions[i]``.
    ``noise`` is how far regions may differ beyond the tolerance's ``max_abs``, by name.
    """
    return tuple(
        _compare_region(region, want, have, tolerance, noise.get(region.name))
        for region, want, have in zip(dispatch.regions, expected, actual, strict=True)
    )


def _compare_region(
    region: Region, expected: bytes, actual: bytes, tolerance: Tolerance, noise: Noise | None
) -> RegionComparison:
    size = len(region.data)
    before = region.mapped
    if len(actual) != len(before) or len(expected) != len(before):
        raise ValueError(f"post-state of region '{region.name}' has the wrong length")
    data = slice(region.guard, region.guard + size)
    for guard in (slice(0, region.guard), slice(region.guard + size, None)):
        if actual[guard] != before[guard]:
            first = _first_difference(actual[guard], before[guard])
            return RegionComparison(region.name, "guard-overwritten", 0.0, 0.0, 1, first)
    if region.role is Role.INPUT:
        if actual[data] != region.data:
            first = _first_difference(actual[data], region.data) // region.element.size
            return RegionComparison(region.name, "input-modified", 0.0, 0.0, 1, first)
        return RegionComparison(region.name, "ok", 1.0, 0.0, 0, -1)
    if actual[data] == expected[data]:
        return RegionComparison(region.name, "ok", 1.0, 0.0, 0, -1)
    if region.element.is_float:
        return _compare_floats(
            region.name, to_floats(expected[data], region.element),
            to_floats(actual[data], region.element), tolerance, noise,
        )
    want = np.frombuffer(expected[data], np.uint8).reshape(-1, region.element.size)
    have = np.frombuffer(actual[data], np.uint8).reshape(-1, region.element.size)
    different = (want != have).any(axis=1)
    return RegionComparison(
        region.name, "bits", 0.0, 0.0, int(different.sum()), int(different.argmax())
    )


def _compare_floats(
    name: str, want: NDArray[np.float64], have: NDArray[np.float64], tolerance: Tolerance,
    noise: Noise | None,
) -> RegionComparison:
    nan_mismatch = np.isnan(want) != np.isnan(have)
    if nan_mismatch.any():
        return RegionComparison(
            name, "nan-class", 0.0, 0.0, int(nan_mismatch.sum()), int(nan_mismatch.argmax())
        )
    infinite = np.isinf(want) | np.isinf(have)
    inf_mismatch = infinite & (want != have)
    if inf_mismatch.any():
        return RegionComparison(
            name, "infinity", 0.0, float("inf"), int(inf_mismatch.sum()), int(inf_mismatch.argmax())
        )
    finite = ~(infinite | np.isnan(want))
    a, b = np.where(finite, want, 0.0), np.where(finite, have, 0.0)
    difference = np.abs(a - b)
    max_abs = float(difference.max())
    cosine = _cosine(a, b)
    differing, first = int((difference > 0).sum()), int((difference > 0).argmax())
    code = "ok"
    if max_abs > tolerance.max_abs and not (
            noise is not None and noise.holds(max_abs, _rms(difference))):
        code = "max-abs" if noise is None else "outside-envelope"
        first = int(difference.argmax())
    elif cosine < tolerance.cosine:
        code = "cosine"
    return RegionComparison(name, code, cosine, max_abs, differing, first)


def _differences(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(np.abs(a - b), nan=0.0, posinf=0.0)


def _rms(difference: NDArray[np.float64]) -> float:
    return math.sqrt(float(np.mean(difference * difference))) if difference.size else 0.0


def _cosine(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    norms = float(np.sqrt((a * a).sum() * (b * b).sum()))
    if norms > 0.0:
        return float((a * b).sum()) / norms
    return 1.0 if not a.any() and not b.any() else 0.0


def _first_difference(a: bytes, b: bytes) -> int:
    left, right = np.frombuffer(a, np.uint8), np.frombuffer(b, np.uint8)
    return int((left != right).argmax())
