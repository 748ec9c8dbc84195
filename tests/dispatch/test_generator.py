"""Input families with extremes: what of them a kernel cannot pass by luck."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from asmevo.dispatch.dispatch import ElementType
from asmevo.dispatch.generator import FAMILIES, GeneratorError, generate, to_floats

Rows = NDArray[np.float64]
FLOATS = [e for e in ElementType if e.is_float]
SHAPE = (64, 512)


def made(family: str, element: ElementType, count: int, seed: int = 5,
         scale: float = 1.0) -> bytes:
    return generate(element, count, np.random.default_rng(seed), family=family, scale=scale)


def floats(family: str, element: ElementType = ElementType.F32, count: int = SHAPE[0] * SHAPE[1],
           seed: int = 5, scale: float = 1.0) -> Rows:
    return to_floats(made(family, element, count, seed, scale), element)


@pytest.mark.parametrize("family", ["peaks", "masked"])
@pytest.mark.parametrize("element", FLOATS)
@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 5000])
def test_extremes_are_finite_of_the_asked_size_and_repeat(
        family: str, element: ElementType, count: int) -> None:
    """An infinity or NaN would make whole results such, and a comparison of them proves nothing."""
    values = floats(family, element, count)
    assert len(values) == count
    assert np.isfinite(values).all()
    assert made(family, element, count) == made(family, element, count)
    assert count < 5000 or made(family, element, count) != made(family, element, count, seed=6)


@pytest.mark.parametrize("element", [ElementType.F32, ElementType.BF16, ElementType.F16])
def test_peaks_are_few_and_above_everything(element: ElementType) -> None:
    values = floats("peaks", element)
    high = values >= 2.0**4
    assert 0 < high.sum() <= len(values) / 150
    assert values.max() <= 2.0**9
    assert np.abs(values[~high]).max() < 8
    # In a softmax next to nothing is left of the others.
    assert floats("peaks", element, count=1)[0] >= 2.0**4


def test_peaks_lie_anywhere_in_a_row() -> None:
    rows = floats("peaks", count=2048 * 192).reshape(2048, 192)
    assert len(set(rows.argmax(axis=1))) > 180


def test_masked_values_are_very_negative_and_all_below_zero() -> None:
    values = floats("masked")
    assert values.max() <= -128
    masked = values < -8192
    assert 0.8 < masked.mean() < 0.95
    # As masks make them: runs of a wave's width, and others among them.
    assert all(len(set(run)) == 1 for run in masked.reshape(-1, 64))
    assert not masked.reshape(-1, 64).all()
    assert masked.reshape(-1, 64).any()


def test_masked_values_of_8_bits_are_not_all_one() -> None:
    values = floats("masked", ElementType.FP8)
    assert values.min() == -128
    assert values.max() <= -32
    ordinary = values[values > -128]
    assert 0.05 < len(ordinary) / len(values) < 0.2
    assert len(set(ordinary)) > 8


@pytest.mark.parametrize("scale", [0.25, 4.0])
def test_extremes_scale(scale: float) -> None:
    for family in ("peaks", "masked"):
        np.testing.assert_allclose(floats(family, scale=scale), floats(family) * scale, rtol=1e-6)


def softmax(rows: Rows, top: Rows) -> NDArray[np.float32]:
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        e = np.exp((rows - top[:, None]).astype(np.float32))
        found: NDArray[np.float32] = e / e.sum(axis=1, keepdims=True, dtype=np.float32)
    return found


def left_out(rows: Rows) -> Rows:
    """A maximum without every seventh element."""
    kept = np.delete(rows, np.s_[::7], axis=1)
    found: Rows = kept.max(axis=1)
    return found


def from_zero(rows: Rows) -> Rows:
    found: Rows = np.maximum(rows.max(axis=1), 0)
    return found


@pytest.mark.parametrize(("wrong", "shows"), [(left_out, "peaks"), (from_zero, "masked")])
def test_a_wrong_maximum_shows_with_one_of_them_alone(
        wrong: Callable[[Rows], Rows], shows: str) -> None:
    """A softmax is right with any number in the maximum's place, as long as nothing overflows."""
    for family in ("normal", shows):
        rows = floats(family).reshape(SHAPE)
        right = softmax(rows, rows.max(axis=1))
        assert np.allclose(softmax(rows, wrong(rows)), right, atol=1e-3) == (family == "normal")


@pytest.mark.parametrize(("element", "peaks", "masked"), [
    (ElementType.I8, 127, -128), (ElementType.U8, 255, 255)])
def test_integers_of_8_bits_are_as_far_from_zero_as_can_be(
        element: ElementType, peaks: int, masked: int) -> None:
    for family, value in (("peaks", peaks), ("masked", masked)):
        assert set(np.frombuffer(made(family, element, 100), element.dtype).tolist()) == {value}


@pytest.mark.parametrize("family", ["peaks", "masked"])
def test_other_integers_are_any(family: str) -> None:
    for element in (ElementType.I32, ElementType.OPAQUE):
        assert len(set(made(family, element, 4096))) > 200


def test_a_family_that_does_not_exist() -> None:
    with pytest.raises(GeneratorError, match=f"unknown input family 'peak' .*{FAMILIES[-1]}"):
        made("peak", ElementType.F32, 1)
