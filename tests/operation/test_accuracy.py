from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from asmevo.operation.accuracy import AccuracyError, Bound, bounds, measure


def test_equal_buffers() -> None:
    values = np.arange(1, 9, dtype=np.float32)
    found = measure(values, values.astype(np.float64))
    assert (found.elements, found.max_abs, found.max_rel, found.unequal) == (8, 0, 0, 0)
    assert found.cosine == pytest.approx(1)


def test_errors_are_against_the_unrounded_reference() -> None:
    exact = np.array([1 + 2**-9, 4.0])
    found = measure(exact.astype(ml_dtypes.bfloat16), exact)
    assert found.unequal == 0
    assert found.max_abs == pytest.approx(2**-9)
    assert found.max_rel == pytest.approx(2**-9 / (1 + 2**-9))


def test_small_elements_count_absolutely_only() -> None:
    found = measure(np.array([100.0, 0.2], np.float32), np.array([100.0, 0.1]))
    assert found.max_abs == pytest.approx(0.1)
    assert found.max_rel == 0


def test_the_largest_error_on_the_scale_of_the_reference() -> None:
    found = measure(np.array([100.0, 0.2], np.float32), np.array([100.0, 0.1]))
    assert found.max_scaled == pytest.approx(0.001)
    assert Bound(max_scaled=0.002).holds(found)
    assert not Bound(max_scaled=0.0005).holds(found)
    zeros = np.zeros(2)
    assert measure(zeros, zeros).max_scaled == 0
    assert measure(np.array([0.0, 1e-30]), zeros).max_scaled == math.inf


def test_a_nan_in_the_reference_is_open_and_one_in_the_result_is_not() -> None:
    found = measure(np.array([1.0, 5.0, math.nan], np.float32), np.array([1.0, math.nan, 2.0]))
    assert (found.elements, found.class_mismatches) == (2, 1)
    assert not Bound().holds(found)


def test_a_reference_that_leaves_everything_open_holds_nothing() -> None:
    found = measure(np.array([1.0, 2.0], np.float32), np.array([math.nan, math.nan]))
    assert found.elements == 0
    assert not Bound().holds(found)


def test_infinities_match_by_sign() -> None:
    infinite = np.array([math.inf, -math.inf, math.inf])
    found = measure(np.array([math.inf, -math.inf, -math.inf], np.float32), infinite)
    assert (found.class_mismatches, found.unequal) == (1, 1)


def test_a_reference_that_overflows_the_type_is_an_infinity() -> None:
    found = measure(np.array([math.inf], np.float16), np.array([1e6]))
    assert found.class_mismatches == 0


def test_opposite_results_have_cosine_minus_one() -> None:
    assert measure(np.array([-1.0, -2.0]), np.array([1.0, 2.0])).cosine == pytest.approx(-1)


@pytest.mark.parametrize(("given", "word"), [
    ({"other": {"max_abs": 1}}, "'other'"),
    ({"out": {"maxabs": 1}}, "'maxabs'"),
    ({"out": {"max_abs": -1}}, "negative"),
    ({"out": {"cosine": math.nan}}, "nan"),
    ({"out": {"cosine": True}}, "True"),
    ({"out": {"cosine": "0.9"}}, r"0\.9"),
])
def test_malformed_bounds_are_named(given: dict[str, dict[str, float]], word: str) -> None:
    with pytest.raises(AccuracyError, match=word):
        bounds(given, {"out"})


def test_bounds_hold_or_not() -> None:
    accuracy = measure(np.array([1.0, 2.5]), np.array([1.0, 2.0]))
    assert Bound(max_abs=0.5, unequal=0.5).holds(accuracy)
    assert not Bound(max_abs=0.4).holds(accuracy)
    assert not Bound(max_rel=0.2).holds(accuracy)
    assert not Bound(unequal=0.4).holds(accuracy)
    assert not Bound(cosine=1.0).holds(accuracy)
