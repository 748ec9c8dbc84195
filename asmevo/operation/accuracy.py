"""How far a kernel's result is from the reference of its operation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from asmevo.errors import AsmEvoError
from asmevo.operation.operation import Array

# Relative errors of elements below this share of the reference's root mean square say nothing.
_SMALL = 1e-2


class AccuracyError(AsmEvoError):
    """The accuracy that a kernel's YAML asks for is malformed."""


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Distance of one buffer from its reference.

    ``max_abs`` and ``max_rel`` are over elements that are finite on both sides; ``max_rel`` leaves
    out elements below a hundredth of the reference's root mean square. ``max_scaled`` is
    ``max_abs`` over the reference's largest magnitude. ``unequal`` counts elements that differ from
    the reference rounded to the buffer's type, ``class_mismatches`` those that are NaN or infinite
    on one side only. ``elements`` excludes what the reference leaves open.
    """

    elements: int
    max_abs: float
    max_rel: float
    max_scaled: float
    cosine: float
    unequal: int
    class_mismatches: int


@dataclass(frozen=True, slots=True)
class Bound:
    """What a YAML demands of one buffer. What is not given is not bounded."""

    max_abs: float = math.inf
    max_rel: float = math.inf
    max_scaled: float = math.inf
    cosine: float = 0.0
    unequal: float = math.inf  # share of the elements

    def holds(self, found: Accuracy) -> bool:
        """Whether an accuracy is within this bound; a class mismatch never is, nor is a buffer of
        which the reference leaves every element open: nothing was compared."""
        return (
            found.elements > 0
            and found.class_mismatches == 0
            and found.max_abs <= self.max_abs
            and found.max_rel <= self.max_rel
            and found.max_scaled <= self.max_scaled
            and found.cosine >= self.cosine
            and found.unequal <= self.unequal * found.elements
        )


def bounds(given: Mapping[str, Mapping[str, Any]], buffers: set[str]) -> dict[str, Bound]:
    """The ``accuracy:`` of a kernel's YAML; raises `AccuracyError` naming what is wrong."""
    known = {f.name for f in fields(Bound)}
    made = {}
    for name, values in given.items():
        if name not in buffers:
            raise AccuracyError(f"accuracy names the buffer '{name}', which is not declared")
        if not isinstance(values, Mapping):
            raise AccuracyError(f"accuracy of '{name}' must be a mapping, not '{values}'")
        for key, value in values.items():
            if key not in known:
                raise AccuracyError(f"accuracy of '{name}' has the unknown key '{key}' "
                                    f"(known: {', '.join(sorted(known))})")
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
                raise AccuracyError(f"accuracy of '{name}': {key} must be a number that is not "
                                    f"negative, not {value}")
        made[name] = Bound(**values)
    return made


def measure(found: Array, expected: Array) -> Accuracy:
    """Compare a buffer with its reference.

    A NaN in the reference leaves the element open, as `Operation.reference` says.
    """
    if found.shape != expected.shape:
        raise ValueError(f"a reference of shape {expected.shape} for a buffer of {found.shape}")
    # A signalling NaN is quieted by the conversion, which NumPy reports as invalid; a reference
    # beyond the type's range becomes an infinity.
    with np.errstate(invalid="ignore", over="ignore"):
        rounded = expected.astype(found.dtype).astype(np.float64)
        want, have = expected.astype(np.float64), found.astype(np.float64)
    meant = ~np.isnan(want)
    rounded, want, have = rounded[meant], want[meant], have[meant]
    finite = np.isfinite(rounded) & np.isfinite(have)
    same_class = finite | (rounded == have) | (np.isnan(rounded) & np.isnan(have))
    a, b = want[finite], have[finite]
    error = np.abs(a - b)
    size = np.abs(a)
    rms = math.sqrt(float(np.mean(size * size))) if len(a) else 0.0
    large = (size >= _SMALL * rms) & (size > 0)
    norm = math.sqrt(float(np.sum(a * a)) * float(np.sum(b * b)))
    return Accuracy(
        elements=len(want),
        max_abs=float(error.max(initial=0.0)),
        max_rel=float((error[large] / size[large]).max(initial=0.0)),
        max_scaled=_ratio(float(error.max(initial=0.0)), float(size.max(initial=0.0))),
        cosine=float(np.sum(a * b)) / norm if norm else float(not a.any() and not b.any()),
        unequal=int(((rounded != have) & ~(np.isnan(rounded) & np.isnan(have))).sum()),
        class_mismatches=int((~same_class).sum()),
    )


def _ratio(error: float, size: float) -> float:
    return error / size if size else math.inf if error else 0.0
