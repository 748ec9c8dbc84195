"""Error quantiles and rank correlations against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asmevo.validation.row import Confidence, ValidationRow
from asmevo.validation.statistics import correlations, ranks, spearman, summaries

VALUES = st.lists(st.integers(-5, 5) | st.floats(-1e6, 1e6), min_size=2, max_size=30)


def row(expected: float, modelled: float | None, *, group: str = "g", kernel: str = "",
        shape: str = "", goal: float | None = None) -> ValidationRow:
    return ValidationRow(group, "n", "us", expected, modelled, "s", Confidence.MEDIUM,
                         kernel=kernel, shape=shape, goal=goal)


@given(VALUES)
def test_a_rank_counts_what_is_smaller_and_half_of_what_is_equal(values: list[float]) -> None:
    by_definition = [sum(b < a for b in values) + (sum(b == a for b in values) + 1) / 2
                     for a in values]
    assert ranks(values).tolist() == by_definition


@given(st.permutations(range(12)))
def test_without_ties_it_is_the_formula_of_squared_rank_differences(order: list[int]) -> None:
    n = len(order)
    squares = sum((i - rank) ** 2 for i, rank in enumerate(order))
    expected = 1 - 6 * squares / (n * (n * n - 1))
    # Any increasing function of the ranks has the same correlation.
    assert spearman(list(range(n)), [2.0 ** r for r in order]) == pytest.approx(expected)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=3, max_size=30))
def test_with_ties_it_is_the_pearson_correlation_of_the_ranks(
        pairs: list[tuple[int, int]]) -> None:
    left, right = ([float(p[side]) for p in pairs] for side in (0, 1))
    found = spearman(left, right)
    if len(set(left)) == 1 or len(set(right)) == 1:
        assert found is None
    else:
        assert found == pytest.approx(float(np.corrcoef(ranks(left), ranks(right))[0, 1]))


def test_a_published_example() -> None:
    """IQ against hours of TV a week, https://en.wikipedia.org/wiki/Spearman's_rank_correlation."""
    iq = [106.0, 100, 86, 101, 99, 103, 97, 113, 112, 110]
    hours = [7.0, 27, 2, 50, 28, 29, 20, 12, 6, 17]
    assert spearman(iq, hours) == pytest.approx(-29 / 165)


def test_what_cannot_be_ranked_is_refused() -> None:
    with pytest.raises(ValueError, match="NaN"):
        spearman([1.0, float("nan")], [1.0, 2.0])
    with pytest.raises(ValueError, match="paired"):
        spearman([1.0], [1.0, 2.0])
    assert spearman([1.0], [2.0]) is None


def test_a_row_without_an_answer_misses_its_goal() -> None:
    assert row(100, 104, goal=0.05).within is True
    assert row(100, 94, goal=0.05).within is False
    assert row(100, None, goal=0.05).within is False
    assert row(100, 900).within is None


def test_quantiles_are_of_the_answered_rows_and_all_are_counted() -> None:
    errors = [0.0, 0.1, -0.2, 0.3, -0.4, 0.5, -0.6, 0.7, -0.8, 0.9, -1.0]
    rows = [row(100, 100 * (1 + e)) for e in errors] + [row(100, None), row(1, 2, group="other")]
    first, other = summaries(rows)
    assert (first.rows, first.answered) == (12, 11)
    assert first.median == pytest.approx(0.5)
    assert first.p90 == pytest.approx(0.9)
    assert first.worst == pytest.approx(1.0)
    assert (other.group, other.median) == ("other", 1.0)


def test_correlations_are_within_kernels_and_within_shapes() -> None:
    """Kernel a is right about every shape, b about none; which is faster is always wrong."""
    rows = [row(s, s if k == "a" else 20 - s, kernel=k, shape=str(s))
            for k in "ab" for s in range(1, 6)]
    assert correlations(rows, lambda r: r.kernel) == {
        "a": pytest.approx(1), "b": pytest.approx(-1)}
    assert correlations(rows, lambda r: r.shape) == {}  # two kernels a shape are too few
    (found,) = summaries(rows)
    assert found.overall == pytest.approx(0)
    assert found.within_kernel == pytest.approx(0)
    assert found.within_shape is None
    assert (found.kernels, found.shapes) == (2, 0)


def test_what_was_measured_again_is_one_point() -> None:
    """Noise between repeats of one measurement is nothing to rank."""
    times = [(100, "a"), (103, "a"), (101, "a"), (104, "a"), (200, "b"), (300, "c"), (400, "d")]
    rows = [row(expected, {"a": 99, "b": 210, "c": 290, "d": 410}[kernel] - expected / 1000,
                kernel=kernel, shape="s") for expected, kernel in times]
    assert correlations(rows, lambda r: r.shape) == {"s": pytest.approx(1)}
    assert correlations(rows[:5], lambda r: r.shape) == {}
    assert correlations(rows[:4], lambda r: r.kernel) == {}
