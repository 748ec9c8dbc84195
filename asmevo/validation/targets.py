"""What a validation demands, and whether its rows give it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from asmevo.validation.row import ValidationRow
from asmevo.validation.statistics import ErrorSummary


@dataclass(frozen=True, slots=True)
class Targets:
    """Of a family of kernels, groups whose rows name a kernel and a shape: the largest median
    |error| as a fraction, and the smallest median rank correlation.
    """

    median: float
    rank: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """One demand: ``met`` is None where there is nothing to judge it by."""

    group: str
    demand: str
    found: str
    met: bool | None


def verdicts(rows: Sequence[ValidationRow], summaries: Sequence[ErrorSummary],
             targets: Targets) -> Iterator[Verdict]:
    """Rows with a goal of their own are judged together, by group; families by ``targets``."""
    for summary in summaries:
        members = [row for row in rows if row.group == summary.group]
        judged = [row for row in members if row.goal is not None]
        for goal in sorted({row.goal for row in judged if row.goal is not None}):
            of_goal = [row for row in judged if row.goal == goal]
            within = sum(row.within is True for row in of_goal)
            yield Verdict(summary.group, f"each within {goal:.0%}", f"{within} of {len(of_goal)}",
                          within == len(of_goal))
        if any(row.kernel for row in members):
            median = summary.median
            yield Verdict(summary.group, f"median error at most {targets.median:.0%}",
                          "-" if median is None else f"{median:.1%}",
                          None if median is None else median <= targets.median)
            for where, value, count in (
                    ("kernels over shapes", summary.within_kernel, summary.kernels),
                    ("shapes over kernels", summary.within_shape, summary.shapes)):
                yield Verdict(
                    summary.group, f"rank correlation within {where} at least {targets.rank:g}",
                    "-" if value is None else f"{value:.2f}, median of {count}",
                    None if value is None else value >= targets.rank)
