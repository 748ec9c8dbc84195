"""Whether a candidate is as near the exact result as the original."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asmevo.dispatch.comparison import Noise
from asmevo.errors import AsmEvoError

Floats = NDArray[np.float64]

# Rounding another way moves single elements by one step of their type, on both sides.
_LARGEST_FACTOR = 2.0
# What a reference in double precision cannot tell apart.
_RESOLUTION = 1e-12


class PrecisionError(AsmEvoError):
    """A bound on errors that makes no sense."""


@dataclass(frozen=True)
class Precision:
    """Errors against a reference in float64: the candidate's may be no larger than the original's.

    ``slack`` is the share by which the root mean square may grow: another order of additions is
    as good, but never exactly as good. No single error may be twice the original's largest.
    """

    slack: float = 0.05

    def __post_init__(self) -> None:
        if not 0.0 <= self.slack < math.inf:
            raise PrecisionError(
                f"gates.precision_slack must be finite and not negative, not {self.slack}")

    def lost(
        self, truth: Floats, original: Floats, candidate: Floats, noise: Noise | None = None
    ) -> str | None:
        """How a candidate is farther from ``truth``, in words; ``None`` when it is not.

        ``noise`` is what the order of workgroups makes in the original: its errors under one order
        say no more than that of its errors under another.

        NaN in ``truth`` leaves an element open; NaN and infinities of the results are left to
        their comparison with one another.
        """
        meant = np.isfinite(truth) & np.isfinite(original) & np.isfinite(candidate)
        exact = truth[meant]
        if not exact.size:
            return None
        before, after = np.abs(original[meant] - exact), np.abs(candidate[meant] - exact)
        least = _RESOLUTION * float(np.abs(exact).max())
        rms_before, rms_after = _rms(before), _rms(after)
        noise = noise or Noise()
        if rms_after > (1.0 + self.slack) * rms_before + noise.rms + least:
            return (f"its root mean square error against the reference is {rms_after:.4g}, the "
                    f"original's {rms_before:.4g}")
        largest_before, largest_after = float(before.max()), float(after.max())
        if largest_after > _LARGEST_FACTOR * largest_before + noise.max_abs + least:
            return (f"its largest error against the reference is {largest_after:.4g}, the "
                    f"original's {largest_before:.4g}")
        return None


def _rms(error: Floats) -> float:
    # Squares of errors beyond 1e154 would overflow.
    scale = float(error.max(initial=0.0))
    return scale * math.sqrt(float(np.mean((error / scale) ** 2))) if scale else 0.0
