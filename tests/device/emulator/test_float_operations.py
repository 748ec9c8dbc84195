"""f32 vector operations against NumPy, exact rationals and 80-bit references."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest

if TYPE_CHECKING:
    from tests.device.emulator.conftest import Bench

U32 = npt.NDArray[np.uint32]
F32 = npt.NDArray[np.float32]
QUIET_NAN = 0x7FC00000
SIGN = np.uint32(0x80000000)
EXEC = 0xF0F1_8000_7FFF_1234


def flush(x: U32) -> U32:
    return np.where((x & 0x7F800000) == 0, x & SIGN, x)


def f32(x: U32) -> F32:
    return x.view(np.float32)


def bits(x: npt.ArrayLike) -> U32:
    """Bits of f32 values with the emulator's one NaN."""
    raw = np.asarray(x, np.float32).view(np.uint32)
    return np.where(np.isnan(raw.view(np.float32)), np.uint32(QUIET_NAN), raw)


def exact_fma(a: float, b: float, c: float) -> float:
    """a * b + c rounded once to f32."""
    if not all(map(math.isfinite, (a, b, c))):
        with np.errstate(all="ignore"):
            return float(np.float64(a) * np.float64(b) + np.float64(c))
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        # The sum of opposite zeros is +0; otherwise the sign they share.
        product_sign = math.copysign(1, a) * math.copysign(1, b)
        both = product_sign == math.copysign(1, c) and c == 0
        return math.copysign(0.0, c) if both else 0.0
    magnitude = abs(exact)
    exponent = max(magnitude.numerator.bit_length() - magnitude.denominator.bit_length() - 1, -126)
    while magnitude >= Fraction(2) ** (exponent + 1):
        exponent += 1
    unit = Fraction(2) ** (exponent - 23)
    rounded = round(magnitude / unit) * unit
    if rounded >= Fraction(2) ** 128:
        return math.copysign(math.inf, exact)
    return math.copysign(float(rounded), exact)


def fma(a: F32, b: F32, c: F32) -> F32:
    return np.array([exact_fma(*v) for v in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)],
                    np.float32)


BINARY: dict[str, Callable[[F32, F32], F32]] = {
    "v_add_f32_e32": lambda a, b: a + b,
    "v_sub_f32_e32": lambda a, b: a - b,
    "v_subrev_f32_e32": lambda a, b: b - a,
    "v_mul_f32_e32": lambda a, b: a * b,
}
TERNARY: dict[str, Callable[[F32, F32, F32], F32]] = {
    "v_fma_f32": fma,
}
UNARY: dict[str, Callable[[F32], F32]] = {
    "v_floor_f32_e32": np.floor,
    "v_ceil_f32_e32": np.ceil,
    "v_trunc_f32_e32": np.trunc,
    "v_rndne_f32_e32": np.rint,
}


@pytest.fixture(params=[False, True], ids=["flush", "keep"])
def moded(request: pytest.FixtureRequest, bench: Bench) -> Bench:
    bench.keep_denormals = request.param
    return bench


def expected(bench: Bench, function: Callable[..., F32], *sources: U32) -> U32:
    with np.errstate(all="ignore"):
        if bench.keep_denormals:
            return bits(function(*(f32(x) for x in sources)))
        return flush(bits(function(*(f32(flush(x)) for x in sources))))


@pytest.mark.parametrize("name", UNARY)
def test_unary(moded: Bench, name: str) -> None:
    a, = moded.floats(1, 1)
    out = moded.run([f"{name} v20, v2"], vector={2: a}, vector_out=[20])
    np.testing.assert_array_equal(out.vector[20], expected(moded, UNARY[name], a))


@pytest.mark.parametrize("name", BINARY)
def test_binary(moded: Bench, name: str) -> None:
    a, b = moded.floats(2, 2)
    out = moded.run([f"{name} v20, v2, v3"], vector={2: a, 3: b}, vector_out=[20])
    np.testing.assert_array_equal(out.vector[20], expected(moded, BINARY[name], a, b))


@pytest.mark.parametrize("name", TERNARY)
def test_ternary(moded: Bench, name: str) -> None:
    a, b, c = moded.floats(3, 3)
    out = moded.run([f"{name} v20, v2, v3, v4"], vector={2: a, 3: b, 4: c}, vector_out=[20])
    np.testing.assert_array_equal(out.vector[20], expected(moded, TERNARY[name], a, b, c))


@pytest.mark.parametrize("name", ["v_fmac_f32_e32", "v_fmamk_f32", "v_fmaak_f32"])
def test_fused_forms(moded: Bench, name: str) -> None:
    a, b, c = moded.floats(3, 4)
    k = np.full_like(a, 0x40490FDB)
    body, sources = {
        "v_fmac_f32_e32": ("v_fmac_f32_e32 v4, v2, v3", (a, b, c)),
        "v_fmamk_f32": ("v_fmamk_f32 v4, v2, 0x40490fdb, v3", (a, k, b)),
        "v_fmaak_f32": ("v_fmaak_f32 v4, v2, v3, 0x40490fdb", (a, b, k)),
    }[name]
    out = moded.run([body], vector={2: a, 3: b, 4: c}, vector_out=[4])
    np.testing.assert_array_equal(out.vector[4], expected(moded, fma, *sources))


def test_source_modifiers_and_partial_exec(moded: Bench) -> None:
    a, b = moded.floats(2, 5)
    out = moded.run(["v_add_f32_e64 v2, -|v2|, v3", "v_mul_f32_e64 v4, v3, -s5"],
                    vector={2: a, 3: b, 4: a}, scalar={5: 0x40400000}, exec_mask=EXEC,
                    vector_out=[2, 4])
    active = np.resize([EXEC >> lane & 1 for lane in range(64)], len(a)).astype(bool)
    total = expected(moded, lambda x, y: x + y, a | SIGN, b)
    product = expected(moded, lambda x: x * np.float32(-3), b)
    np.testing.assert_array_equal(out.vector[2], np.where(active, total, a))
    np.testing.assert_array_equal(out.vector[4], np.where(active, product, a))


@pytest.mark.parametrize("dx10", [False, True])
def test_clamp(bench: Bench, dx10: bool) -> None:
    bench.dx10_clamp = dx10
    a, b = bench.floats(2, 6)
    out = bench.run(["v_add_f32_e64 v20, v2, v3 clamp"], vector={2: a, 3: b}, vector_out=[20])
    with np.errstate(all="ignore"):
        total = f32(flush(a)) + f32(flush(b))
    clamped = np.where(total > 0, np.where(total < 1, total, 1), 0).astype(np.float32)
    nan = np.uint32(0 if dx10 else QUIET_NAN)
    np.testing.assert_array_equal(
        out.vector[20], np.where(np.isnan(total), nan, flush(clamped.view(np.uint32))))


TRANSCENDENTAL: dict[str, Callable[[npt.NDArray[Any]], npt.NDArray[Any]]] = {
    "v_exp_f32_e32": np.exp2,
    "v_log_f32_e32": np.log2,
    "v_rcp_f32_e32": lambda x: 1 / x,
    "v_rsq_f32_e32": lambda x: 1 / np.sqrt(x),
    "v_sqrt_f32_e32": np.sqrt,
}


@pytest.mark.parametrize("name", TRANSCENDENTAL)
def test_transcendental_within_one_ulp(moded: Bench, name: str) -> None:
    """Against 80-bit references; denormals are zero in both modes."""
    boundary, = moded.floats(1, 7)
    rng = np.random.default_rng(8)
    spread = np.concatenate([rng.uniform(-130, 130, 4096), np.linspace(0.7, 1.5, 4096),
                             np.exp2(rng.uniform(-126, 127, 4096))]).astype(np.float32)
    a = np.concatenate([boundary, spread.view(np.uint32)])
    out = moded.run([f"{name} v20, v2"], vector={2: a}, vector_out=[20]).vector[20]
    with np.errstate(all="ignore"):
        exact = TRANSCENDENTAL[name](f32(flush(a)).astype(np.longdouble))
        nearest = exact.astype(np.float32)
    special = ~np.isfinite(nearest) | (np.abs(nearest) < np.finfo(np.float32).tiny)
    np.testing.assert_array_equal(out[special], flush(bits(nearest))[special])
    ulp = np.spacing(np.abs(nearest[~special])).astype(np.longdouble)
    error = np.abs(f32(out[~special]).astype(np.longdouble) - exact[~special]) / ulp
    assert error.max() <= 1


def test_conversions(bench: Bench) -> None:
    a, = bench.floats(1, 9)
    n, = bench.integers(1, 10)
    body = ["v_cvt_i32_f32_e32 v20, v2", "v_cvt_u32_f32_e32 v21, v2", "v_cvt_f16_f32_e32 v22, v2",
            "v_cvt_f32_i32_e32 v23, v3", "v_cvt_f32_u32_e32 v24, v3", "v_cvt_f32_f16_e32 v25, v3",
            *(f"v_cvt_f32_ubyte{k}_e32 v{26 + k}, v3" for k in range(4))]
    size = min(len(a), len(n))
    a, n = a[:size], n[:size]
    out = bench.run(body, vector={2: a, 3: n}, vector_out=range(20, 30)).vector
    with np.errstate(all="ignore"):
        wide = f32(flush(a)).astype(np.float64)
    clean = np.where(np.isnan(wide), 0, wide)
    np.testing.assert_array_equal(
        out[20], np.trunc(np.clip(clean, -2.0**31, 2.0**31 - 1)).astype(np.int64).astype(np.uint32))
    np.testing.assert_array_equal(
        out[21], np.trunc(np.clip(clean, 0, 2.0**32 - 1)).astype(np.int64).astype(np.uint32))
    with np.errstate(all="ignore"):
        half = f32(flush(a)).astype(np.float16)
    half_bits = np.where(np.isnan(half), 0x7E00, half.view(np.uint16)).astype(np.uint32)
    np.testing.assert_array_equal(out[22], half_bits)
    np.testing.assert_array_equal(out[23], n.view(np.int32).astype(np.float32).view(np.uint32))
    np.testing.assert_array_equal(out[24], n.astype(np.float32).view(np.uint32))
    np.testing.assert_array_equal(
        out[25], bits((n & 0xFFFF).astype(np.uint16).view(np.float16).astype(np.float32)))
    for k in range(4):
        np.testing.assert_array_equal(f32(out[26 + k]), (n >> (8 * k) & 0xFF).astype(np.float32))


def test_every_f16_value_converts_both_ways(bench: Bench) -> None:
    half = np.arange(1 << 16, dtype=np.uint32)
    out = bench.run(["v_cvt_f32_f16_e32 v20, v2", "v_cvt_f16_f32_e32 v21, v20"], vector={2: half},
                    vector_out=[20, 21]).vector
    single = half.astype(np.uint16).view(np.float16).astype(np.float32)
    np.testing.assert_array_equal(out[20], bits(single))
    np.testing.assert_array_equal(out[21], np.where(np.isnan(single), 0x7E00, half))


def test_ldexp(moded: Bench) -> None:
    a, = moded.floats(1, 11)
    rng = np.random.default_rng(12)
    n = rng.integers(-300, 300, len(a)).astype(np.int32)
    n[::7] = rng.choice([-(1 << 31), (1 << 31) - 1, 0, 1, -1], len(n[::7]))
    out = moded.run(["v_ldexp_f32 v20, v2, v3"], vector={2: a, 3: n.view(np.uint32)},
                    vector_out=[20])
    clipped = np.clip(n, -2000, 2000)
    np.testing.assert_array_equal(out.vector[20], expected(
        moded, lambda x: np.ldexp(x.astype(np.float64), clipped).astype(np.float32), a))


PACKED: dict[str, tuple[int, Callable[..., F32]]] = {
    "v_pk_add_f32": (2, lambda a, b: a + b),
    "v_pk_mul_f32": (2, lambda a, b: a * b),
    "v_pk_fma_f32": (3, fma),
}


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("swizzle", [0, 1, 2])
def test_packed(moded: Bench, name: str, swizzle: int) -> None:
    """Both halves, in every combination of op_sel, op_sel_hi and neg; dst overlaps a source."""
    count, function = PACKED[name]
    columns = [moded.floats(3, 13 + k) for k in range(2)]
    vector = {2 + 2 * k + half: columns[half][k] for k in range(3) for half in range(2)}
    low = [(swizzle >> k) & 1 for k in range(count)]
    high = [1 - bit for bit in low] if swizzle else [1] * count
    neg_lo, neg_hi = [swizzle == 1] * count, [k == 1 and swizzle == 2 for k in range(count)]
    text = f"{name} v[2:3], " + ", ".join(f"v[{2 + 2 * k}:{3 + 2 * k}]" for k in range(count))
    if swizzle:
        text += f" op_sel:[{','.join(map(str, low))}] op_sel_hi:[{','.join(map(str, high))}]"
        text += f" neg_lo:[{','.join(str(int(x)) for x in neg_lo)}]"
        text += f" neg_hi:[{','.join(str(int(x)) for x in neg_hi)}]"
    out = moded.run([text], vector=vector, vector_out=[2, 3]).vector
    for result, select, neg in ((2, low, neg_lo), (3, high, neg_hi)):
        sources = [vector[2 + 2 * k + select[k]] ^ (SIGN if neg[k] else np.uint32(0))
                   for k in range(count)]
        np.testing.assert_array_equal(out[result], expected(moded, function, *sources))


def test_packed_reads_scalar_pairs_and_zero(bench: Bench) -> None:
    a, b = bench.floats(2, 15)
    out = bench.run(["v_pk_mul_f32 v[20:21], v[2:3], s[4:5]", "v_pk_add_f32 v[22:23], v[2:3], 0",
                     "v_pk_mov_b32 v[24:25], v[2:3], s[4:5] op_sel:[1,0]",
                     "v_pk_mov_b32 v[26:27], v[2:3], v[2:3] op_sel:[0,1]"],
                    vector={2: a, 3: b}, scalar={4: 0x40000000, 5: 0xC0400000},
                    vector_out=range(20, 28)).vector
    np.testing.assert_array_equal(out[20], expected(bench, lambda x: x * np.float32(2), a))
    np.testing.assert_array_equal(out[21], expected(bench, lambda x: x * np.float32(-3), b))
    np.testing.assert_array_equal(out[22], expected(bench, lambda x: x + np.float32(0), a))
    np.testing.assert_array_equal(out[24], b)
    np.testing.assert_array_equal(out[25], np.full_like(a, 0x40000000))
    np.testing.assert_array_equal(out[26], a)
    np.testing.assert_array_equal(out[27], b)


COMPARES: dict[str, Callable[[F32, F32], npt.NDArray[np.bool_]]] = {
    "f": lambda a, b: np.zeros(len(a), bool), "lt": lambda a, b: a < b,
    "eq": lambda a, b: a == b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b,
    "lg": lambda a, b: (a < b) | (a > b), "ge": lambda a, b: a >= b,
    "o": lambda a, b: ~(np.isnan(a) | np.isnan(b)), "u": lambda a, b: np.isnan(a) | np.isnan(b),
    "nge": lambda a, b: ~(a >= b), "nlg": lambda a, b: ~((a < b) | (a > b)),
    "ngt": lambda a, b: ~(a > b), "nle": lambda a, b: ~(a <= b), "neq": lambda a, b: a != b,
    "nlt": lambda a, b: ~(a < b), "tru": lambda a, b: np.ones(len(a), bool),
}


@pytest.mark.parametrize("condition", COMPARES)
@pytest.mark.parametrize("exec_mask", [(1 << 64) - 1, EXEC])
def test_compare(moded: Bench, condition: str, exec_mask: int) -> None:
    a, b = moded.floats(2, 16)
    body = [f"v_cmp_{condition}_f32_e64 s[6:7], v2, -|v3|",
            f"v_cmpx_{condition}_f32_e32 vcc, v2, v3", "s_mov_b64 s[8:9], exec"]
    out = moded.run(body, vector={2: a, 3: b}, exec_mask=exec_mask,
                    scalar_out=[6, 7, 8, 9, 106, 107])
    left, right, negative = a, b, b | SIGN
    if not moded.keep_denormals:
        left, right, negative = flush(left), flush(right), flush(negative)
    for lo, hi, other in ((6, 7, negative), (8, 9, right), (106, 107, right)):
        truth = COMPARES[condition](f32(left), f32(other)).reshape(-1, 64)
        masks = [sum(1 << i for i in range(64) if row[i]) & exec_mask for row in truth]
        found = (out.scalar[lo].astype(np.uint64)
                 | out.scalar[hi].astype(np.uint64) << np.uint64(32))
        np.testing.assert_array_equal(found, np.array(masks, np.uint64))
