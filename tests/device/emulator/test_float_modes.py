"""Arithmetic in every rounding and denormal mode against exact rationals, and MODE itself."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.device.emulator import exact_float as exact
from tests.device.emulator.exact_float import HALF, SINGLE, WIDE, Format, Mode

if TYPE_CHECKING:
    from tests.device.emulator.conftest import Bench

# (f32 rounding, f32 denormals, f16/f64 rounding, f16/f64 denormals): each value of each field.
MODES = [(0, 3, 0, 3), (0, 0, 0, 3), (1, 3, 2, 3), (2, 1, 3, 0), (3, 2, 1, 1), (0, 1, 0, 0),
         (1, 0, 0, 2), (2, 3, 1, 3), (3, 0, 2, 2)]
SATURATE = 1 << 23
FORMATS = {"f16": HALF, "f32": SINGLE, "f64": WIDE}


def word(fields: tuple[int, int, int, int]) -> int:
    single, single_denormals, wide, wide_denormals = fields
    return single | wide << 2 | single_denormals << 4 | wide_denormals << 6


def mode_of(name: str, bits: int) -> Mode:
    shift = 0 if name == "f32" else 2
    return Mode.of(bits >> shift & 3, bits >> 4 + shift & 3,
                   saturate=name == "f16" and bool(bits & SATURATE))


@pytest.fixture(params=[word(m) for m in MODES] + [word(MODES[0]) | SATURATE], ids=hex)
def moded(request: pytest.FixtureRequest, bench: Bench) -> Bench:
    bench.mode = request.param
    return bench


def registers(form: Format, first: int) -> str:
    return f"v[{first}:{first + 1}]" if form.width == 64 else f"v{first}"


@pytest.mark.parametrize("name", FORMATS)
def test_sums_products_and_fused(moded: Bench, name: str) -> None:
    form, mode = FORMATS[name], mode_of(name, moded.mode)
    a, b, c = exact.columns(form, 3, 1)
    x, y, z, o = (registers(form, n) for n in (2, 4, 6, 20))
    body = [f"v_add_{name} {o}, {x}, {y}", f"v_mul_{name} {registers(form, 22)}, {x}, {y}",
            f"v_fma_{name} {registers(form, 24)}, {x}, {y}, {z}",
            f"v_add_{name}{'' if name == 'f64' else '_e64'} {registers(form, 26)}, -|{x}|, {y}"]
    if name != "f64":
        body += [f"v_sub_{name} v28, {x}, {y}", f"v_subrev_{name} v30, {x}, {y}"]
    vector = {k: v for r, column in ((2, a), (4, b), (6, c))
              for k, v in exact.words(form, r, column).items()}
    # The high half of v_fma_f16's destination survives.
    vector |= {24: np.zeros(len(a), np.uint32)}
    found = moded.run(body, vector=vector, vector_out=range(20, 32)).vector
    sign = np.uint64(form.sign)
    expected = {
        20: exact.rows(lambda p, q: exact.add(form, mode, p, q), a, b),
        22: exact.rows(lambda p, q: exact.multiply(form, mode, p, q), a, b),
        24: exact.rows(lambda p, q, r: exact.fma(form, mode, p, q, r), a, b, c),
        26: exact.rows(lambda p, q: exact.add(form, mode, p, q), a | sign, b)}
    if name != "f64":
        expected[28] = exact.rows(lambda p, q: exact.add(form, mode, p, q), a, b ^ sign)
        expected[30] = exact.rows(lambda p, q: exact.add(form, mode, p, q), b, a ^ sign)
    for register, reference in expected.items():
        np.testing.assert_array_equal(exact.joined(form, found, register), reference)


@pytest.mark.parametrize("name", FORMATS)
def test_ldexp(moded: Bench, name: str) -> None:
    form, mode = FORMATS[name], mode_of(name, moded.mode)
    a, = exact.columns(form, 1, 2)
    rng = np.random.default_rng(3)
    n = rng.integers(-2 * form.bias, 2 * form.bias, len(a)).astype(np.int32)
    n[::5] = rng.choice([-32768, 32767, 0, 1, -1], len(n[::5]))
    found = moded.run([f"v_ldexp_{name} {registers(form, 20)}, {registers(form, 2)}, v4"],
                      vector={**exact.words(form, 2, a), 4: n.view(np.uint32)},
                      vector_out=[20, 21]).vector
    reference = [exact.ldexp(form, mode, x, k)
                 for x, k in zip(a.tolist(), n.tolist(), strict=True)]
    np.testing.assert_array_equal(exact.joined(form, found, 20), reference)


def test_packed_half(moded: Bench) -> None:
    mode = mode_of("f16", moded.mode)
    low, high = exact.columns(HALF, 3, 4), exact.columns(HALF, 3, 5)
    vector = {2 + k: (low[k] | high[k] << np.uint64(16)).astype(np.uint32) for k in range(3)}
    body = ["v_pk_add_f16 v20, v2, v3 op_sel:[0,1] op_sel_hi:[1,0] neg_lo:[1,0] neg_hi:[0,1]",
            "v_pk_mul_f16 v21, v2, v3", "v_pk_fma_f16 v22, v2, v3, v4", "v_mov_b32_e32 v23, v4",
            "v_pk_fmac_f16 v23, v2, v3", "v_pk_add_f16 v24, v2, 1.0", "v_pk_add_f16 v25, v2, -4"]
    found = moded.run(body, vector=vector, vector_out=range(20, 26)).vector
    sign = np.uint64(HALF.sign)

    def packed(first: exact.Bits, second: exact.Bits) -> exact.Bits:
        return first | second << np.uint64(16)

    def total(a: exact.Bits, b: exact.Bits) -> exact.Bits:
        return exact.rows(lambda p, q: exact.add(HALF, mode, p, q), a, b)

    def both(function: str, count: int) -> exact.Bits:
        operation = getattr(exact, function)
        halves = [exact.rows(lambda *p: operation(HALF, mode, *p), *side[:count])
                  for side in (low, high)]
        return packed(*halves)

    np.testing.assert_array_equal(
        found[20], packed(total(low[0] ^ sign, high[1]), total(high[0], low[1] ^ sign)))
    np.testing.assert_array_equal(found[21], both("multiply", 2))
    np.testing.assert_array_equal(found[22], both("fma", 3))
    np.testing.assert_array_equal(found[23], both("fma", 3))
    ones, zeros = np.full_like(low[0], 0x3C00), np.zeros_like(low[0])
    np.testing.assert_array_equal(found[24], packed(total(low[0], ones), total(high[0], zeros)))
    minus, all_ones = np.full_like(low[0], 0xFFFC), np.full_like(low[0], 0xFFFF)
    np.testing.assert_array_equal(
        found[25], packed(total(low[0], minus), total(high[0], all_ones)))


def test_packed_single_follows_the_rounding_mode(moded: Bench) -> None:
    mode = mode_of("f32", moded.mode)
    a, b = exact.columns(SINGLE, 2, 6)
    vector = {**exact.words(SINGLE, 2, a), **exact.words(SINGLE, 3, b)}
    found = moded.run(["v_pk_add_f32 v[20:21], v[2:3], v[2:3] op_sel:[0,1] op_sel_hi:[1,0]",
                       "v_pk_mul_f32 v[22:23], v[2:3], 2.0 op_sel_hi:[1,0]"],
                      vector=vector, vector_out=range(20, 24)).vector
    total = exact.rows(lambda p, q: exact.add(SINGLE, mode, p, q), a, b)
    np.testing.assert_array_equal(found[20], total)
    np.testing.assert_array_equal(found[21], total)
    for register, column in ((22, a), (23, b)):
        np.testing.assert_array_equal(found[register], exact.rows(
            lambda p: exact.multiply(SINGLE, mode, p, 0x40000000), column))


def test_conversions_between_formats(moded: Bench) -> None:
    half, single, wide = (mode_of(name, moded.mode) for name in FORMATS)
    h, s, d = (exact.columns(form, 1, 7)[0] for form in FORMATS.values())
    # Doubles around every kind of f32, too.
    nearby = np.random.default_rng(8).choice([0, 1, 1 << 28, 3 << 27], len(s[::2]))
    d[::2] = [WIDE.bits(SINGLE.number(x), Mode()) + k
              for x, k in zip(s[::2].tolist(), nearby.tolist(), strict=True)]
    vector = {2: h.astype(np.uint32), 3: s.astype(np.uint32), **exact.words(WIDE, 4, d)}
    found = moded.run(["v_cvt_f16_f32 v20, v3", "v_cvt_f32_f16 v21, v2",
                       "v_cvt_f64_f32 v[22:23], v3", "v_cvt_f32_f64 v24, v[4:5]",
                       "v_cvt_f32_i32 v25, v3", "v_cvt_f32_u32 v26, v3", "v_cvt_f16_i16 v27, v2",
                       "v_cvt_f16_u16 v28, v2"], vector=vector, vector_out=range(20, 29)).vector
    np.testing.assert_array_equal(found[20], exact.rows(
        lambda x: exact.convert(HALF, half, SINGLE, single.keep_in, x), s))
    np.testing.assert_array_equal(found[21], exact.rows(
        lambda x: exact.convert(SINGLE, single, HALF, half.keep_in, x), h))
    np.testing.assert_array_equal(exact.joined(WIDE, found, 22), exact.rows(
        lambda x: exact.convert(WIDE, wide, SINGLE, single.keep_in, x), s))
    narrowing = Mode(wide.rounding, wide.keep_in, single.keep_out)
    np.testing.assert_array_equal(found[24], exact.rows(
        lambda x: exact.convert(SINGLE, narrowing, WIDE, wide.keep_in, x), d))
    for register, form, mode, column, signed in (
            (25, SINGLE, single, s, 32), (26, SINGLE, single, s, 0), (27, HALF, half, h, 16),
            (28, HALF, half, h, 0)):
        def integer(x: int, form: Format = form, mode: Mode = mode, signed: int = signed) -> int:
            value = x - (1 << signed) if signed and x >> signed - 1 else x
            return form.bits(exact.Number(value < 0, Fraction(value)), mode)

        np.testing.assert_array_equal(found[register], exact.rows(integer, column))


def test_mixed_precision(moded: Bench) -> None:
    half, single = mode_of("f16", moded.mode), mode_of("f32", moded.mode)
    a, b, c = exact.columns(HALF, 3, 9)
    s, = exact.columns(SINGLE, 1, 10)
    old = np.full(len(a), 0xABCD1234, np.uint32)
    vector = {2: (a | b << np.uint64(16)).astype(np.uint32), 3: c.astype(np.uint32),
              4: s.astype(np.uint32), 21: old, 22: old}
    found = moded.run([
        "v_fma_mix_f32 v20, v2, -v2, |v4| op_sel:[0,1,0] op_sel_hi:[1,1,0]",
        "v_fma_mixlo_f16 v21, v2, v3, v4 op_sel_hi:[1,1,0]",
        "v_fma_mixhi_f16 v22, v2, v3, v4 op_sel_hi:[1,1,0]",
        "v_fma_mix_f32 v23, v4, 1.0, v3 op_sel_hi:[0,1,1]"],
        vector=vector, vector_out=range(20, 24)).vector

    def mixed(x: int, y: int, z: int) -> int:
        return SINGLE.bits(exact.fused(
            HALF.number(x, half.keep_in), HALF.number(y, half.keep_in),
            SINGLE.number(z, single.keep_in), single.rounding), single)

    sign = np.uint64(SINGLE.sign)
    np.testing.assert_array_equal(
        found[20], exact.rows(mixed, a, b ^ np.uint64(HALF.sign), s & ~sign))
    low = exact.rows(lambda x, y, z: exact.convert(HALF, half, SINGLE, True, mixed(x, y, z)),
                     a, c, s)
    np.testing.assert_array_equal(found[21], low | np.uint64(0xABCD0000))
    np.testing.assert_array_equal(found[22], low << np.uint64(16) | np.uint64(0x1234))
    np.testing.assert_array_equal(found[23], exact.rows(lambda x, z: SINGLE.bits(exact.fused(
        SINGLE.number(x, single.keep_in), exact.ONE, HALF.number(z, half.keep_in),
        single.rounding), single), s, c))


@pytest.mark.parametrize("name", ["f16", "f32"])
@pytest.mark.parametrize("ieee", [0, 1 << 9])
@pytest.mark.parametrize("denormals", [0, 3])
def test_output_modifiers(bench: Bench, name: str, ieee: int, denormals: int) -> None:
    """Scaled without denormals and outside IEEE mode only; then -0 becomes +0."""
    bench.mode = word((0, denormals, 0, denormals)) | ieee
    form, mode = FORMATS[name], mode_of(name, bench.mode)
    a, b = exact.columns(form, 2, 11)
    found = bench.run([f"v_add_{name}_e64 v20, v2, v3 mul:2", f"v_mul_{name}_e64 v21, v2, v3 mul:4",
                       f"v_mul_{name}_e64 v22, v2, v3 div:2",
                       f"v_add_{name}_e64 v23, v2, v3 clamp div:2"],
                      vector={2: a.astype(np.uint32), 3: b.astype(np.uint32)},
                      vector_out=range(20, 24)).vector

    def modified(bits: int, power: int) -> int:
        if ieee or denormals or form.is_nan(bits):
            return bits
        scaled = exact.ldexp(form, mode, bits, power)
        return 0 if scaled == form.sign else scaled

    def clamped(bits: int) -> int:
        one = form.bias << form.mantissa
        return bits if form.is_nan(bits) else 0 if bits & form.sign else min(bits, one)

    total = exact.rows(lambda p, q: exact.add(form, mode, p, q), a, b)
    product = exact.rows(lambda p, q: exact.multiply(form, mode, p, q), a, b)
    for register, bits, power in ((20, total, 1), (21, product, 2), (22, product, -1)):
        np.testing.assert_array_equal(
            found[register], exact.rows(lambda x, power=power: modified(x, power), bits))
    np.testing.assert_array_equal(found[23], exact.rows(lambda x: clamped(modified(x, -1)), total))


def extreme(form: Format, ieee: bool, largest: bool, a: int, b: int) -> int:
    """AMD's pseudo-code of V_MAX and V_MIN."""
    for bits in (a, b):
        if ieee and form.is_nan(bits) and not bits & form.quiet:
            return bits | form.quiet
    if form.is_nan(a):
        return b
    if form.is_nan(b):
        return a
    x, y = form.number(a), form.number(b)
    assert x.value is not None
    assert y.value is not None

    def key(n: exact.Number) -> tuple[int, Fraction, bool]:
        assert n.value is not None
        return (-1 if n.negative else 1) if n.infinite else 0, n.value, not n.negative

    return a if (key(x) > key(y)) == largest else b


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("ieee", [0, 1 << 9])
@pytest.mark.parametrize("denormals", [0, 3])
def test_minimum_maximum_median(bench: Bench, name: str, ieee: int, denormals: int) -> None:
    bench.mode = word((0, denormals, 0, denormals)) | ieee
    form = FORMATS[name]
    a, b, c = exact.columns(form, 3, 12)
    vector = {k: v for r, column in ((2, a), (4, b), (6, c))
              for k, v in exact.words(form, r, column).items()}
    x, y = registers(form, 2), registers(form, 4)
    body = [f"v_max_{name} {registers(form, 20)}, {x}, {y}",
            f"v_min_{name} {registers(form, 22)}, {x}, {y}"]
    if name != "f64":
        body += [f"v_max3_{name} v24, v2, v4, v6", f"v_min3_{name} v25, v2, v4, v6",
                 f"v_med3_{name} v26, v2, v4, v6"]
    found = bench.run(body, vector=vector, vector_out=range(20, 27)).vector
    keep = bool(denormals)

    def most(p: int, q: int) -> int:
        return extreme(form, bool(ieee), True, p, q)

    def least(p: int, q: int) -> int:
        return extreme(form, bool(ieee), False, p, q)

    def median(p: int, q: int, r: int) -> int:
        if any(form.is_nan(v) for v in (p, q, r)):
            return least(least(p, q), r)
        # Equal numbers are the same bits once zeros of both signs are told apart.
        return sorted((p, q, r), key=lambda v: (
            v & form.sign - 1 if not v & form.sign else -(v & form.sign - 1) - 1))[1]

    flushed = [exact.rows(lambda v: form.flushed(v, keep), column) for column in (a, b, c)]
    np.testing.assert_array_equal(exact.joined(form, found, 20), exact.rows(most, *flushed[:2]))
    np.testing.assert_array_equal(exact.joined(form, found, 22), exact.rows(least, *flushed[:2]))
    if name != "f64":
        np.testing.assert_array_equal(
            found[24], exact.rows(lambda p, q, r: most(most(p, q), r), *flushed))
        np.testing.assert_array_equal(
            found[25], exact.rows(lambda p, q, r: least(least(p, q), r), *flushed))
        np.testing.assert_array_equal(found[26], exact.rows(median, *flushed))


def test_mode_is_read_and_changed_at_run_time(bench: Bench) -> None:
    """The denormals that LLVM turns on around a division, the rounding of half precision, FP8."""
    bench.mode = word((0, 0, 1, 3)) | 1 << 9
    tiny = np.full(64, 3, np.uint32)
    third = np.full(64, 0x3EAAAAAB, np.uint32)
    out = bench.run([
        "v_add_f32 v20, v2, v2", "s_getreg_b32 s10, hwreg(HW_REG_MODE)",
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3", "v_add_f32 v21, v2, v2",
        "v_cvt_f16_f32 v22, v3", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 2, 2), 2",
        "v_cvt_f16_f32 v23, v3", "s_mov_b32 s4, 1", "s_setreg_b32 hwreg(HW_REG_MODE, 23, 1), s4",
        "v_mov_b32 v24, 0", "v_cvt_pk_fp8_f32 v24, v4, v4",
        "s_getreg_b32 s11, hwreg(HW_REG_MODE, 0, 24)", "s_getreg_b32 s12, hwreg(HW_REG_MODE, 4, 4)",
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 28, 1), 1", "s_nop 1", "v_mov_b32 v20, 7",
        "s_setvskip 0, 0"],
        vector={2: tiny, 3: third, 4: np.full(64, 0xC7000000, np.uint32)},
        vector_out=range(20, 25), scalar_out=[10, 11, 12])
    assert [int(out.vector[r][0]) for r in range(20, 25)] == [0, 6, 0x3556, 0x3555, 0xFFFF]
    assert [int(out.scalar[r][0]) for r in (10, 11, 12)] == [0x2C4, 0x8002F8, 0xF]


def test_trapping_modes_are_faults(bench: Bench) -> None:
    import asmevo_core as core
    with pytest.raises(core.FaultError, match="not modelled"):
        bench.run(["s_setreg_imm32_b32 hwreg(HW_REG_MODE, 12, 7), 1"])
    with pytest.raises(core.FaultError, match="s_trap 2"):
        bench.run(["s_trap 2"])
