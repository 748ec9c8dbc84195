"""Telling element types by values."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from asmevo.dispatch.dispatch import ElementType
from asmevo.dispatch.inferred.element_check import plausible, settled

RNG = np.random.default_rng(5)
NORMAL = RNG.standard_normal(4000)
FLOATS = {ElementType.F32: np.float32, ElementType.F16: np.float16, ElementType.F64: np.float64,
          ElementType.BF16: ml_dtypes.bfloat16}


@pytest.mark.parametrize("kind", FLOATS)
def test_numbers_are_plausible(kind: ElementType) -> None:
    assert plausible(NORMAL.astype(FLOATS[kind]).tobytes(), kind)


def test_f32_is_not_taken_for_halves() -> None:
    data = NORMAL.astype(np.float32).tobytes()
    assert settled((ElementType.BF16, ElementType.F16, ElementType.F32), data) == (
        ElementType.F32, True)


@pytest.mark.parametrize("values", [
    RNG.integers(0, 1 << 32, 4000, np.uint32), np.arange(4000, dtype=np.uint32)])
def test_integers_are_compared_bit_for_bit(values: np.ndarray) -> None:
    kind, _ = settled((ElementType.F32,), values.tobytes())
    assert not kind.is_float


def test_rivals_of_one_size_are_compared_bit_for_bit() -> None:
    """All ones: in f16 and in bf16 a number either way."""
    data = np.tile(np.array([0x3C00, 0x3C01], np.uint16), 100).tobytes()
    assert settled((ElementType.BF16, ElementType.F16), data) == (ElementType.OPAQUE, False)
