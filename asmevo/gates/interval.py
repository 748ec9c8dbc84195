"""How sure a measured speedup is: a bootstrap over pairs of samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from asmevo.device.device import Timing

_RESAMPLES = 2000
_TAIL = 0.025  # on each side: 95 %
_SEED = 20608


def speedup_interval(pairs: Sequence[tuple[Timing, Timing]]) -> tuple[float, float]:
    """The 95 % interval of the geometric mean over dispatches of the ratio of medians.

    The n-th samples of original and candidate were taken next to each other, so they are drawn
    together: what slowed both down does not widen the interval. Of a timing with one sample, which
    a deterministic model gives, the interval is a point. Seeded, so that the same samples give the
    same interval.
    """
    rng = np.random.default_rng(_SEED)
    logarithms = np.zeros(_RESAMPLES)
    for old, new in pairs:
        count = min(len(old.samples_us), len(new.samples_us))
        drawn = rng.integers(0, count, size=(_RESAMPLES, count))
        logarithms += np.log(_medians(old, drawn)) - np.log(_medians(new, drawn))
    ratios = np.exp(logarithms / max(len(pairs), 1))
    low, high = np.quantile(ratios, [_TAIL, 1.0 - _TAIL])
    return float(low), float(high)


def _medians(timing: Timing, drawn: NDArray[np.int64]) -> NDArray[np.float64]:
    medians: NDArray[np.float64] = np.median(np.asarray(timing.samples_us)[drawn], axis=1)
    return medians
