"""What the rows of a validation say together: error quantiles and rank correlations."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from asmevo.validation.row import ValidationRow

# Fewer points than this have a rank correlation that means nothing: two are always at +-1.
_FEWEST_RANKED = 4


@dataclass(frozen=True, slots=True)
class ErrorSummary:
    """|error| of the ``answered`` of ``rows`` rows of a group, as fractions; None without any.

    ``within_kernel`` is the median, over the kernels that have enough shapes, of the Spearman rank
    correlation of modelled with expected; ``within_shape`` the same over shapes with enough
    kernels. ``kernels`` and ``shapes`` count what the two medians are of. ``overall`` is the rank
    correlation of all answered rows that name a kernel.
    """

    group: str
    rows: int
    answered: int
    median: float | None
    p90: float | None
    worst: float | None
    overall: float | None
    within_kernel: float | None
    kernels: int
    within_shape: float | None
    shapes: int


def summaries(rows: Iterable[ValidationRow]) -> list[ErrorSummary]:
    """One summary a group, in order of first appearance."""
    groups: dict[str, list[ValidationRow]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    return [summary(name, members) for name, members in groups.items()]


def summary(group: str, rows: Sequence[ValidationRow]) -> ErrorSummary:
    errors = [abs(row.error) for row in rows if row.error is not None]
    by_kernel = correlations(rows, lambda row: row.kernel)
    by_shape = correlations(rows, lambda row: row.shape)
    return ErrorSummary(
        group=group, rows=len(rows), answered=len(errors),
        median=statistics.median(errors) if errors else None,
        p90=float(np.quantile(errors, 0.9)) if errors else None,
        worst=max(errors, default=None),
        overall=_median(correlations(rows, lambda row: group if row.kernel else "").values()),
        within_kernel=_median(by_kernel.values()), kernels=len(by_kernel),
        within_shape=_median(by_shape.values()), shapes=len(by_shape))


def correlations(rows: Iterable[ValidationRow], key: Callable[[ValidationRow], str],
                 fewest: int = _FEWEST_RANKED) -> dict[str, float]:
    """Rank correlation of modelled with expected within each value of ``key``.

    Rows of one kernel and shape are the same measured again, and count as their mean: how they
    differ is noise that nothing could predict. Left out: rows whose key is empty, values with fewer
    than ``fewest`` answered points, and those where one side is the same everywhere.
    """
    parts: dict[str, dict[tuple[str, str] | int, list[tuple[float, float]]]] = {}
    for number, row in enumerate(rows):
        if key(row) and row.modelled is not None:
            point = (row.kernel, row.shape) if row.kernel and row.shape else number
            parts.setdefault(key(row), {}).setdefault(point, []).append(
                (row.expected, row.modelled))
    found: dict[str, float] = {}
    for name, points in parts.items():
        if len(points) >= fewest:
            value = spearman(*([statistics.fmean(pair[side] for pair in pairs)
                                for pairs in points.values()] for side in (0, 1)))
            if value is not None:
                found[name] = value
    return found


def spearman(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Spearman's rank correlation: Pearson's of the ranks, ties sharing their mean rank.

    None when one side is constant or there are fewer than two pairs: it is undefined then. Raises
    ValueError for sides of different length or with a NaN.
    """
    if len(left) != len(right):
        raise ValueError(f"{len(left)} values cannot be paired with {len(right)}")
    a, b = (ranks(side) - (len(side) + 1) / 2 for side in (left, right))
    spread = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / spread if spread else None


def ranks(values: Sequence[float]) -> npt.NDArray[np.float64]:
    """Rank of each value from 1; equal values have the mean of the ranks they take together."""
    array = np.asarray(values, np.float64)
    if np.isnan(array).any():
        raise ValueError("a NaN has no rank")
    _, inverse, counts = np.unique(array, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[inverse], np.float64)


def _median(values: Iterable[float]) -> float | None:
    listed = list(values)
    return statistics.median(listed) if listed else None
