"""f16 transcendentals of every operand, sine and cosine, against NumPy's f64 and 80-bit floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest

if TYPE_CHECKING:
    from tests.device.emulator.conftest import Bench

U32 = npt.NDArray[np.uint32]
Real = npt.NDArray[Any]
TAU = 2 * np.longdouble("3.14159265358979323846")
EVERY_HALF = np.arange(1 << 16, dtype=np.uint32)


def turns(function: Callable[[Real], Real]) -> Callable[[Real], Real]:
    """sin or cos of 2 pi x; exact range reduction first."""
    def of(x: Real) -> Real:
        reduced = x - np.rint(x)
        return function(reduced.astype(np.longdouble) * TAU)
    return of


FUNCTIONS: dict[str, Callable[[Real], Real]] = {
    "rcp": lambda x: 1 / x, "sqrt": np.sqrt, "rsq": lambda x: 1 / np.sqrt(x), "exp": np.exp2,
    "log": np.log2, "sin": turns(np.sin), "cos": turns(np.cos)}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("keep", [True, False])
def test_every_half_within_the_isa_bound(bench: Bench, name: str, keep: bool) -> None:
    """0.51 ULP (CDNA3 ISA, V_RCP_F16 and the others)."""
    bench.mode = 0xC0 if keep else 0
    found = bench.run([f"v_{name}_f16 v20, v2"], vector={2: EVERY_HALF}, vector_out=[20]).vector[20]
    assert not (found >> 16).any()
    operand = EVERY_HALF.astype(np.uint16)
    if not keep:
        operand = np.where(operand & 0x7C00, operand, operand & 0x8000).astype(np.uint16)
    x = operand.view(np.float16).astype(np.float64)
    result = found.astype(np.uint16).view(np.float16)
    with np.errstate(all="ignore"):
        reference = FUNCTIONS[name](x).astype(np.longdouble)
    if name in ("sin", "cos"):
        reference = np.where(np.abs(x) > 256, name == "cos", reference)
        reference = np.where(np.isinf(x), np.nan, reference)
    invalid = np.isnan(reference)
    np.testing.assert_array_equal(found[invalid], 0x7E00)
    with np.errstate(all="ignore"):
        unit = np.maximum(np.spacing(np.abs(reference).astype(np.float16)), np.float16(2.0**-24))
    unit = np.where(np.isfinite(unit), unit, 32.0)
    infinite = np.abs(reference) >= 65520
    np.testing.assert_array_equal(np.isinf(result[~invalid]), infinite[~invalid])
    normal = ~invalid & ~infinite
    error = np.abs(result[normal].astype(np.longdouble) - reference[normal]) / unit[normal]
    if not keep:
        flushed = np.abs(reference[normal]) < 2.0**-14
        assert not result[normal][flushed].any()
        error = error[~flushed]
    assert error.max() <= 0.51


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_sine_and_cosine_of_singles(bench: Bench, name: str) -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate([
        rng.uniform(-256, 256, 4096), rng.normal(0, 1, 4096), np.arange(-512, 512) / 8,
        np.exp2(rng.uniform(-126, 0, 3072)) * rng.choice([-1, 1], 3072)]).astype(np.float32)
    found = bench.run([f"v_{name}_f32 v20, v2"], vector={2: x.view(np.uint32)}, vector_out=[20])
    result = found.vector[20].view(np.float32)
    reference = FUNCTIONS[name](x.astype(np.float64))
    tiny = np.abs(reference) < np.finfo(np.float32).tiny
    assert not result[tiny].any()
    unit = np.spacing(np.abs(reference[~tiny]).astype(np.float32))
    # Multiples of a quarter turn are exact; their reference is not.
    quarters = (x * 4 == np.rint(x * 4))[~tiny]
    error = np.abs(result[~tiny].astype(np.longdouble) - reference[~tiny]) / unit
    assert error[~quarters].max() <= 0.6
    assert set(np.abs(result[(x * 4 == np.rint(x * 4))]).tolist()) <= {0.0, 1.0}


def test_outside_the_domain(bench: Bench) -> None:
    """Beyond 256 turns the sine is 0 and the cosine 1; infinities have none."""
    x = np.resize(np.array([256.5, -1e30, np.inf, -np.inf, np.nan, -0.0], np.float32), 64)
    out = bench.run(["v_sin_f32 v20, v2", "v_cos_f32 v21, v2"], vector={2: x.view(np.uint32)},
                    vector_out=[20, 21]).vector
    assert out[20][:6].tolist() == [0, 0, 0x7FC00000, 0x7FC00000, 0x7FC00000, 0x80000000]
    assert out[21][:6].tolist() == [0x3F800000] * 2 + [0x7FC00000] * 3 + [0x3F800000]
