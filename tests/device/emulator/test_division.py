"""The division sequences that LLVM emits, whole: correctly rounded quotients of any operands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.device.emulator import exact_float as exact
from tests.device.emulator.exact_float import HALF, SINGLE, WIDE, Format

if TYPE_CHECKING:
    from tests.device.emulator.conftest import Bench

# v2 (v[2:3]) over v4 (v[4:5]), as `llc -mcpu=gfx942` expands fdiv.
SINGLE_DIVISION = [
    "v_div_scale_f32 v6, s[8:9], v4, v4, v2", "v_div_scale_f32 v8, vcc, v2, v4, v2",
    "v_rcp_f32_e32 v10, v6", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3",
    "v_fma_f32 v12, -v6, v10, 1.0", "v_fma_f32 v10, v12, v10, v10", "v_mul_f32_e32 v12, v8, v10",
    "v_fma_f32 v14, -v6, v12, v8", "v_fma_f32 v12, v14, v10, v12", "v_fma_f32 v6, -v6, v12, v8",
    "v_div_fmas_f32 v6, v6, v10, v12", "v_div_fixup_f32 v20, v6, v4, v2"]
WIDE_DIVISION = [
    "v_div_scale_f64 v[6:7], s[8:9], v[4:5], v[4:5], v[2:3]",
    "v_rcp_f64_e32 v[8:9], v[6:7]", "v_fma_f64 v[10:11], -v[6:7], v[8:9], 1.0",
    "v_fma_f64 v[8:9], v[8:9], v[10:11], v[8:9]", "v_fma_f64 v[10:11], -v[6:7], v[8:9], 1.0",
    "v_fma_f64 v[8:9], v[8:9], v[10:11], v[8:9]",
    "v_div_scale_f64 v[12:13], vcc, v[2:3], v[4:5], v[2:3]",
    "v_mul_f64 v[10:11], v[12:13], v[8:9]",
    "v_fma_f64 v[6:7], -v[6:7], v[10:11], v[12:13]", "s_nop 4",
    "v_div_fmas_f64 v[6:7], v[6:7], v[8:9], v[10:11]",
    "v_div_fixup_f64 v[20:21], v[6:7], v[4:5], v[2:3]"]
HALF_DIVISION = [
    "v_cvt_f32_f16_e32 v6, v4", "v_cvt_f32_f16_e32 v8, v2", "v_rcp_f32_e32 v6, v6",
    "v_mul_f32_e32 v8, v8, v6", "v_cvt_f16_f32_e32 v8, v8", "v_div_fixup_f16 v20, v8, v4, v2"]


def quotients(form: Format, numerators: exact.Bits, denominators: exact.Bits) -> exact.Bits:
    """NaN operands come back quieted, and an invalid operation gives the negative quiet NaN."""
    types: dict[int, tuple[Any, Any]] = {
        16: (np.uint16, np.float16), 32: (np.uint32, np.float32), 64: (np.uint64, np.float64)}
    unsigned, floating = types[form.width]
    a = numerators.astype(unsigned).view(floating)
    b = denominators.astype(unsigned).view(floating)
    with np.errstate(all="ignore"):
        bits = (a / b).view(unsigned).astype(np.uint64)
    invalid = np.uint64(form.nan | form.sign)
    quiet = np.uint64(form.quiet)
    bits = np.where(np.isnan(a / b), invalid, bits)
    bits = np.where(np.isnan(b), denominators | quiet, bits)
    result: exact.Bits = np.where(np.isnan(a), numerators | quiet, bits)
    return result


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("form", "body", "mode"), [
    (SINGLE, SINGLE_DIVISION, 0xF0), (WIDE, WIDE_DIVISION, 0xF0)], ids=["f32", "f64"])
def test_quotients_are_correctly_rounded(bench: Bench, form: Format, body: list[str],
                                         mode: int) -> None:
    bench.mode = mode
    a, b = exact.columns(form, 2, 1, size=8192)
    vector = {**exact.words(form, 2, a), **exact.words(form, 4, b)}
    found = bench.run(body, vector=vector, vector_out=[20, 21]).vector
    quotient, reference = exact.joined(form, found, 20), quotients(form, a, b)
    # Markstein's theorem leaves these denominators out: their reciprocal may be one ULP off.
    ones = np.uint64((1 << form.mantissa) - 1)
    hard = (b & ones) == ones
    np.testing.assert_array_equal(quotient[~hard], reference[~hard])
    distance = np.abs(quotient[hard].astype(np.int64) - reference[hard].astype(np.int64))
    assert distance.max() <= 1


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_half_precision_fixup(bench: Bench) -> None:
    """Only what the fixup decides: LLVM accepts the last bit of the rest."""
    bench.mode = 0xF0
    a, b = exact.columns(HALF, 2, 2)
    old = np.zeros(len(a), np.uint32)
    found = bench.run(HALF_DIVISION, vector={2: a.astype(np.uint32), 4: b.astype(np.uint32),
                                             20: old}, vector_out=[20]).vector[20]
    reference = quotients(HALF, a, b)
    magnitude = reference & np.uint64(HALF.sign - 1)
    decided = (magnitude == 0) | (magnitude >= HALF.infinity)
    exact_zero = np.isin(a & np.uint64(HALF.sign - 1), [0]) | (
        (b & np.uint64(HALF.sign - 1)) == HALF.infinity)
    decided &= exact_zero | (magnitude > HALF.infinity) | ((b & np.uint64(0x7FFF)) == 0)
    np.testing.assert_array_equal(found[decided], reference[decided])
    rest = ~decided & (magnitude < HALF.infinity)
    distance = np.abs(found[rest].astype(np.int64) - reference[rest].astype(np.int64))
    assert distance.max() <= 1


def test_without_the_iteration_a_double_quotient_is_wrong(bench: Bench) -> None:
    """v_rcp_f64 promises no more than 24 bits, and gives no more."""
    rng = np.random.default_rng(3)
    x = rng.uniform(1, 2, 4096).view(np.uint64)
    found = bench.run(["v_rcp_f64 v[20:21], v[2:3]", "v_rsq_f64 v[22:23], v[2:3]",
                       "v_sqrt_f64 v[24:25], v[2:3]"], vector=exact.words(WIDE, 2, x),
                      vector_out=range(20, 26)).vector
    value = x.view(np.float64)
    for register, reference in ((20, 1 / value), (22, 1 / np.sqrt(value)), (24, np.sqrt(value))):
        result = exact.joined(WIDE, found, register).view(np.float64)
        error = np.abs(result - reference) / np.spacing(reference)
        assert 2**20 < error.max() < 2**29
