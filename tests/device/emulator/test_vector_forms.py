"""Compares of every type, SDWA and DPP forms, integer clamp, bytes, dot products, conversions."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from tests.device.emulator import exact_float as exact
from tests.device.emulator.exact_float import HALF, SINGLE, WIDE

if TYPE_CHECKING:
    from tests.device.emulator.conftest import Bench

U32 = npt.NDArray[np.uint32]
EXEC = 0xF0F1_8000_7FFF_1234
TYPES: dict[str, Any] = {
    "i16": np.int16, "u16": np.uint16, "i32": np.int32, "u32": np.uint32, "i64": np.int64,
    "u64": np.uint64, "f16": np.float16, "f32": np.float32, "f64": np.float64}
INTEGER: dict[str, Callable[[Any, Any], Any]] = {
    "f": lambda a, b: a != a, "lt": operator.lt, "eq": operator.eq, "le": operator.le,
    "gt": operator.gt, "ne": operator.ne, "ge": operator.ge, "t": lambda a, b: a == a}
FLOAT: dict[str, Callable[[Any, Any], Any]] = {
    "f": lambda a, b: np.zeros(len(a), bool), "lt": operator.lt, "eq": operator.eq,
    "le": operator.le, "gt": operator.gt, "lg": lambda a, b: (a < b) | (a > b), "ge": operator.ge,
    "o": lambda a, b: (a == a) & (b == b), "u": lambda a, b: (a != a) | (b != b),
    "nge": lambda a, b: ~(a >= b), "nlg": lambda a, b: ~((a < b) | (a > b)),
    "ngt": lambda a, b: ~(a > b), "nle": lambda a, b: ~(a <= b), "neq": lambda a, b: a != b,
    "nlt": lambda a, b: ~(a < b), "tru": lambda a, b: np.ones(len(a), bool)}


def masks(truth: npt.NDArray[np.bool_], exec_mask: int) -> list[int]:
    return [sum(1 << i for i in range(64) if row[i]) & exec_mask
            for row in truth.reshape(-1, 64).tolist()]


def found_mask(scalar: dict[int, U32], low: int) -> list[int]:
    pairs = zip(scalar[low].tolist(), scalar[low + 1].tolist(), strict=True)
    return [lo | hi << 32 for lo, hi in pairs]


def operands(name: str, seed: int) -> tuple[exact.Bits, exact.Bits]:
    if name.startswith("f"):
        a, b = exact.columns({"f16": HALF, "f32": SINGLE, "f64": WIDE}[name], 2, seed, size=1216)
        return a, b
    rng = np.random.default_rng(seed)
    width = int(name[1:])
    edges = np.array([0, 1, 2, (1 << width) - 1, 1 << width - 1, (1 << width - 1) - 1], np.uint64)
    a, b = (x.ravel() for x in np.meshgrid(edges, edges))
    random = rng.integers(0, 1 << 64, 128 - len(a), dtype=np.uint64) >> np.uint64(64 - width)
    return np.concatenate([a, random]), np.concatenate([b, rng.permutation(random)])


def typed(name: str, bits: exact.Bits) -> npt.NDArray[Any]:
    width = int(name[1:])
    return bits.astype(f"u{width // 8}").view(TYPES[name])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", TYPES)
def test_compares(bench: Bench, name: str) -> None:
    bench.mode = 0xF0
    a, b = operands(name, 1)
    wide = name.endswith("64")
    vector = {2: a.astype(np.uint32), 4: b.astype(np.uint32)}
    if wide:
        vector |= {3: (a >> np.uint64(32)).astype(np.uint32),
                   5: (b >> np.uint64(32)).astype(np.uint32)}
    x, y = ("v[2:3]", "v[4:5]") if wide else ("v2", "v4")
    conditions = FLOAT if name.startswith("f") else INTEGER
    for condition, function in conditions.items():
        out = bench.run([f"v_cmp_{condition}_{name}_e64 s[6:7], {x}, {y}",
                         f"v_cmpx_{condition}_{name}_e32 vcc, {x}, {y}",
                         "s_mov_b64 s[8:9], exec"], vector=vector, exec_mask=EXEC,
                        scalar_out=[6, 7, 8, 9, 106, 107])
        reference = masks(function(typed(name, a), typed(name, b)), EXEC)
        for low in (6, 8, 106):
            assert found_mask(out.scalar, low) == reference, condition


@pytest.mark.parametrize("name", ["f16", "f32", "f64"])
def test_class(bench: Bench, name: str) -> None:
    bench.mode = 0
    form = {"f16": HALF, "f32": SINGLE, "f64": WIDE}[name]
    bits = np.resize(np.array(exact.specials(form), np.uint64), 64)
    x = "v[2:3]" if name == "f64" else "v2"
    body = [f"v_cmp_class_{name} s[{6 + 2 * k}:{7 + 2 * k}], {x}, {1 << k:#x}"
            if k < 7 else f"v_cmp_class_{name} s[{6 + 2 * k}:{7 + 2 * k}], {x}, v{10 + k}"
            for k in range(10)]
    vector = exact.words(form, 2, bits) | {10 + k: np.full(64, 1 << k, np.uint32)
                                           for k in range(7, 10)}
    body += [f"v_cmp_class_{name} s[40:41], -|{x}|, v20"]
    vector[20] = np.full(64, 0b11_1100, np.uint32)
    out = bench.run(body, vector=vector, scalar_out=[*range(6, 26), 40, 41])

    def number_class(x: int) -> int:
        magnitude, negative = x & form.sign - 1, bool(x & form.sign)
        if magnitude > form.infinity:
            return 1 if x & form.quiet else 0
        order = [form.infinity, None, None, 0]
        kind = (0 if magnitude == order[0] else 3 if magnitude == 0
                else 2 if magnitude < 1 << form.mantissa else 1)
        return 2 + kind if negative else 9 - kind

    classes = [number_class(x) for x in bits.tolist()]
    for k in range(10):
        assert found_mask(out.scalar, 6 + 2 * k) == [
            sum(1 << i for i, c in enumerate(classes) if c == k)]
    assert found_mask(out.scalar, 40) == [sum(1 << i for i, c in enumerate(classes) if c > 1)]


def test_sdwa_of_compares_and_signs(bench: Bench) -> None:
    a, b = bench.integers(2, 3)
    out = bench.run([
        "v_cmp_lt_i16_sdwa s[6:7], sext(v2), sext(v3) src0_sel:BYTE_1 src1_sel:WORD_1",
        "v_cmp_eq_u32_sdwa vcc, v2, v3 src0_sel:BYTE_0 src1_sel:BYTE_0",
        "v_add_f16_sdwa v20, -v2, |v3| dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:WORD_1 "
        "src1_sel:WORD_0",
        "v_cndmask_b32_sdwa v21, v2, v3, vcc dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 "
        "src1_sel:BYTE_3",
        "v_add_co_u32_sdwa v22, vcc, v2, v3 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_0 "
        "src1_sel:DWORD"],
        vector={2: a, 3: b}, scalar_out=[6, 7, 106, 107], vector_out=[20, 21, 22])
    byte = (a >> 8 & 0xFF).astype(np.uint8).view(np.int8)
    half = (b >> 16).astype(np.uint16).view(np.int16)
    assert found_mask(out.scalar, 6) == masks(byte < half, (1 << 64) - 1)
    same = (a & 0xFF) == (b & 0xFF)
    x, y = (a >> 16 ^ 0x8000).astype(np.uint64), (b & 0x7FFF).astype(np.uint64)
    total = exact.rows(lambda p, q: exact.add(HALF, exact.Mode(), p, q), x, y)
    np.testing.assert_array_equal(out.vector[20], total << np.uint64(16))
    np.testing.assert_array_equal(out.vector[21], np.where(same, b >> 24, a >> 16))
    carry = (a & 0xFFFF).astype(np.uint64) + b
    np.testing.assert_array_equal(out.vector[22], carry.astype(np.uint32))
    assert found_mask(out.scalar, 106) == masks(carry >> np.uint64(32) != 0, (1 << 64) - 1)


def test_dpp_of_doubles_masks_and_carries(bench: Bench) -> None:
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(2, 64))
    a, = bench.integers(1, 5)
    a = a[:64]
    vector = {**exact.words(WIDE, 2, x.view(np.uint64)), **exact.words(WIDE, 4, y.view(np.uint64)),
              6: a, 8: a[::-1].copy()}
    out = bench.run([
        "v_mov_b64_dpp v[20:21], v[2:3] row_newbcast:5 row_mask:0xf bank_mask:0xf",
        "v_mov_b32 v22, v4", "v_mov_b32 v23, v5",
        "v_fmac_f64_dpp v[22:23], -v[2:3], v[4:5] row_newbcast:3 row_mask:0xf bank_mask:0xf",
        "v_floor_f64_dpp v[24:25], |v[2:3]| row_newbcast:0 row_mask:0xf bank_mask:0xf",
        "s_mov_b32 vcc_lo, 0x0f0f1234", "s_mov_b32 vcc_hi, 0x77770000",
        "v_cndmask_b32_dpp v26, v6, v8, vcc row_ror:3 row_mask:0xf bank_mask:0xf",
        "v_addc_co_u32_dpp v27, vcc, v6, v8, vcc quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf"],
        vector=vector, vector_out=range(20, 28), scalar_out=[106, 107])
    lane = np.arange(64)
    row = lane & ~15
    np.testing.assert_array_equal(exact.joined(WIDE, out.vector, 20).view(np.float64), x[row + 5])
    product = [exact.fma(WIDE, exact.Mode(), *v) for v in zip(
        (-x[row + 3]).view(np.uint64).tolist(), y.view(np.uint64).tolist(),
        y.view(np.uint64).tolist(), strict=True)]
    np.testing.assert_array_equal(exact.joined(WIDE, out.vector, 22), product)
    np.testing.assert_array_equal(exact.joined(WIDE, out.vector, 24).view(np.float64),
                                  np.floor(np.abs(x[row])))
    mask = 0x7777_0000_0F0F_1234
    bit = np.array([mask >> i & 1 for i in range(64)])
    np.testing.assert_array_equal(
        out.vector[26], np.where(bit, vector[8], a[row + (lane - 3) % 16]))
    total = a[lane ^ 1].astype(np.uint64) + vector[8] + bit.astype(np.uint64)
    np.testing.assert_array_equal(out.vector[27], total.astype(np.uint32))
    assert found_mask(out.scalar, 106) == masks(total >> np.uint64(32) != 0, (1 << 64) - 1)


CLAMPED: dict[str, tuple[int, bool, Callable[..., int]]] = {
    "v_add_u32_e64": (32, False, lambda a, b: a + b), "v_sub_u32_e64": (32, False, operator.sub),
    "v_subrev_u32_e64": (32, False, lambda a, b: b - a), "v_add_i32": (32, True, operator.add),
    "v_sub_i32": (32, True, operator.sub), "v_add_u16_e64": (16, False, operator.add),
    "v_sub_u16_e64": (16, False, operator.sub), "v_add_i16": (16, True, operator.add),
    "v_sub_i16": (16, True, operator.sub),
    "v_mad_u16": (16, False, lambda a, b, c: a * b + c),
    "v_mad_i16": (16, True, lambda a, b, c: a * b + c)}


@pytest.mark.parametrize("name", CLAMPED)
def test_integer_clamp_saturates(bench: Bench, name: str) -> None:
    width, signed, function = CLAMPED[name]
    count = function.__code__.co_argcount if hasattr(function, "__code__") else 2
    columns = [c.astype(np.uint64) & np.uint64((1 << width) - 1) for c in bench.integers(3, 6)]
    sources = ", ".join(f"v{2 + k}" for k in range(count))
    zero = np.zeros(len(columns[0]), np.uint32)
    out = bench.run([f"{name} v20, {sources} clamp"],
                    vector={**{2 + k: c.astype(np.uint32) for k, c in enumerate(columns)},
                            20: zero}, vector_out=[20]).vector[20]
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)

    def value(x: int) -> int:
        return x - (1 << width) if signed and x >> width - 1 else x

    expected = [min(max(function(*(value(v) for v in values[:count])), low), high)
                & (1 << width) - 1
                for values in zip(*(c.tolist() for c in columns), strict=True)]
    np.testing.assert_array_equal(out, expected)


def test_packed_integers(bench: Bench) -> None:
    a, b, c = bench.integers(3, 7)
    names = ("add_u16", "sub_i16", "mul_lo_u16", "max_i16", "min_u16", "ashrrev_i16",
             "lshlrev_b16", "lshrrev_b16")
    body = [f"v_pk_{name} v{20 + k}, v2, v3 op_sel:[0,1] op_sel_hi:[1,0]"
            for k, name in enumerate(names)]
    body += ["v_pk_add_i16 v28, v2, v3 clamp", "v_pk_mad_u16 v29, v2, v3, v4",
             "v_pk_add_u16 v30, v2, -2", "v_pk_sub_u16 v31, v2, v3 clamp"]
    out = bench.run(body, vector={2: a, 3: b, 4: c}, vector_out=range(20, 32)).vector

    def halves(x: U32, swap: bool = False) -> list[npt.NDArray[np.int64]]:
        parts = [(x & 0xFFFF).astype(np.int64), (x >> 16).astype(np.int64)]
        return parts[::-1] if swap else parts

    def signed(x: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return x - ((x & 0x8000) << 1)

    functions: list[Callable[[Any, Any], Any]] = [
        lambda p, q: p + q, lambda p, q: p - q, lambda p, q: p * q,
        lambda p, q: np.maximum(signed(p), signed(q)), np.minimum,
        lambda p, q: signed(q) >> (p & 15), lambda p, q: q << (p & 15),
        lambda p, q: q >> (p & 15)]
    for k, function in enumerate(functions):
        low, high = (function(p, q) & 0xFFFF
                     for p, q in zip(halves(a), halves(b, swap=True), strict=True))
        np.testing.assert_array_equal(out[20 + k], low | high << 16)
    straight = list(zip(halves(a), halves(b), halves(c), strict=True))
    clamped = [np.clip(signed(p) + signed(q), -0x8000, 0x7FFF) & 0xFFFF for p, q, _ in straight]
    np.testing.assert_array_equal(out[28], clamped[0] | clamped[1] << 16)
    mad = [p * q + r & 0xFFFF for p, q, r in straight]
    np.testing.assert_array_equal(out[29], mad[0] | mad[1] << 16)
    minus = [p + k & 0xFFFF for p, k in zip(halves(a), (0xFFFE, 0xFFFF), strict=True)]
    np.testing.assert_array_equal(out[30], minus[0] | minus[1] << 16)
    difference = [np.maximum(p - q, 0) for p, q, _ in straight]
    np.testing.assert_array_equal(out[31], difference[0] | difference[1] << 16)


def test_op_sel_of_halves(bench: Bench) -> None:
    a, b, old = bench.integers(3, 8)
    out = bench.run(["v_add_i16 v20, v2, v3 op_sel:[1,0,0]", "v_add_i16 v21, v2, v3 op_sel:[0,1,1]",
                     "v_mad_u16 v22, v2, v3, v4 op_sel:[1,1,0,0]",
                     "v_mad_u16 v23, v2, v3, v4 op_sel:[0,0,0,1]",
                     "v_max3_u16 v24, v2, v3, v4 op_sel:[1,0,1,0]"],
                    vector={2: a, 3: b, 4: old, 20: old, 21: old, 22: old, 23: old, 24: old},
                    vector_out=range(20, 25)).vector
    np.testing.assert_array_equal(out[20], (a >> 16) + (b & 0xFFFF) & 0xFFFF)
    np.testing.assert_array_equal(out[21], (a + (b >> 16)) << 16 | old & 0xFFFF)
    mad = (a >> 16) * (b >> 16) + old & 0xFFFF
    np.testing.assert_array_equal(out[22], mad | old & 0xFFFF0000)
    np.testing.assert_array_equal(out[23], (a * b + old) << 16 | old & 0xFFFF)
    np.testing.assert_array_equal(out[24], np.maximum(np.maximum(a >> 16, b & 0xFFFF), old >> 16))


def test_dot_products(bench: Bench) -> None:
    a, b, c = bench.integers(3, 9)
    body = [f"v_dot{n}_{kind}{32}_{kind}{32 // n} v{20 + k}, v2, v3, v4{clamp}"
            for k, (n, kind, clamp) in enumerate(
                (n, kind, clamp) for n in (2, 4, 8) for kind in "iu" for clamp in ("", " clamp"))]
    body += ["v_mov_b32 v32, v4", "v_dot4c_i32_i8 v32, v2, v3"]
    out = bench.run(body, vector={2: a, 3: b, 4: c}, vector_out=range(20, 33)).vector

    def elements(x: U32, n: int, signed: bool) -> npt.NDArray[np.int64]:
        width = 32 // n
        parts = np.stack([x.astype(np.int64) >> width * k & (1 << width) - 1 for k in range(n)])
        result: npt.NDArray[np.int64] = parts - ((parts >> width - 1 & signed) << width)
        return result

    register = 20
    for n in (2, 4, 8):
        for signed in (True, False):
            accumulator = c.view(np.int32).astype(np.int64) if signed else c.astype(np.int64)
            total = (elements(a, n, signed) * elements(b, n, signed)).sum(axis=0) + accumulator
            np.testing.assert_array_equal(out[register], (total & 0xFFFFFFFF).astype(np.uint32))
            low, high = (-(1 << 31), (1 << 31) - 1) if signed else (0, (1 << 32) - 1)
            np.testing.assert_array_equal(
                out[register + 1], (np.clip(total, low, high) & 0xFFFFFFFF).astype(np.uint32))
            register += 2
    np.testing.assert_array_equal(out[32], out[24])


def test_sums_of_differences(bench: Bench) -> None:
    a, b, c = bench.integers(3, 10)
    out = bench.run(["v_sad_u8 v20, v2, v3, v4", "v_msad_u8 v21, v2, v3, v4",
                     "v_sad_hi_u8 v22, v2, v3, v4", "v_sad_u16 v23, v2, v3, v4",
                     "v_sad_u32 v24, v2, v3, v4", "v_lerp_u8 v25, v2, v3, v4",
                     "v_qsad_pk_u16_u8 v[26:27], v[2:3], v4, v[2:3]",
                     "v_mqsad_u32_u8 v[28:31], v[2:3], v4, v[2:5]"],
                    vector={2: a, 3: b, 4: c, 5: a}, vector_out=range(20, 32)).vector

    def octets(x: U32) -> npt.NDArray[np.int64]:
        return np.stack([x.astype(np.int64) >> 8 * k & 0xFF for k in range(4)])

    def sad(x: U32, y: U32, masked: bool = False) -> npt.NDArray[np.int64]:
        difference = np.abs(octets(x) - octets(y))
        left_out = masked & (octets(y) == 0)
        total: npt.NDArray[np.int64] = np.where(left_out, 0, difference).sum(axis=0)
        return total

    wide = c.astype(np.int64)
    word = 0xFFFFFFFF
    np.testing.assert_array_equal(out[20], sad(a, b) + wide & word)
    np.testing.assert_array_equal(out[21], sad(a, b, masked=True) + wide & word)
    np.testing.assert_array_equal(out[22], (sad(a, b) << 16) + wide & word)
    pairs = [np.abs((a >> s & 0xFFFF).astype(np.int64) - (b >> s & 0xFFFF)) for s in (0, 16)]
    np.testing.assert_array_equal(out[23], pairs[0] + pairs[1] + wide & word)
    np.testing.assert_array_equal(out[24], np.abs(a.astype(np.int64) - b) + wide & word)
    average = octets(a) + octets(b) + (octets(c) & 1) >> 1
    np.testing.assert_array_equal(out[25], sum(average[k] << 8 * k for k in range(4)))
    both = a.astype(np.uint64) | b.astype(np.uint64) << np.uint64(32)
    windows = [(both >> np.uint64(8 * k)).astype(np.uint32) for k in range(4)]
    quads = [(sad(windows[k], c) + (both >> np.uint64(16 * k) & np.uint64(0xFFFF)).astype(np.int64))
             & 0xFFFF for k in range(4)]
    np.testing.assert_array_equal(out[26], quads[0] | quads[1] << 16)
    np.testing.assert_array_equal(out[27], quads[2] | quads[3] << 16)
    for k, accumulator in enumerate((a, b, c, a)):
        total = sad(windows[k], c, masked=True) + accumulator & word
        np.testing.assert_array_equal(out[28 + k], total)


def test_conversions_to_integers(bench: Bench) -> None:
    bench.mode = 0xF0
    d, = exact.columns(WIDE, 1, 11)
    d[::2] = (np.random.default_rng(1).normal(0, 2.0**31, len(d[::2]))).view(np.uint64)
    f, = exact.columns(SINGLE, 1, 12)
    f[::2] = np.random.default_rng(2).normal(0, 100, len(f[::2])).astype(np.float32).view(np.uint32)
    h = np.resize(np.arange(1 << 16, dtype=np.uint32), -(-(1 << 16) // 64) * 64)
    out = bench.run(["v_cvt_i32_f64 v20, v[2:3]", "v_cvt_u32_f64 v21, v[2:3]",
                     "v_cvt_rpi_i32_f32 v22, v4", "v_cvt_flr_i32_f32 v23, v4",
                     "v_cvt_pknorm_i16_f32 v24, v4, v4", "v_cvt_pknorm_u16_f32 v25, v4, v4",
                     "v_cvt_pk_u8_f32 v26, v4, 2, v5"],
                    vector={**exact.words(WIDE, 2, d), 4: f.astype(np.uint32),
                            5: np.full(len(f), 0x11223344, np.uint32)},
                    vector_out=range(20, 27)).vector
    with np.errstate(all="ignore"):
        x = np.nan_to_num(d.view(np.float64), nan=0.0, posinf=1e300, neginf=-1e300)
        y = f.astype(np.uint32).view(np.float32).astype(np.float64)
        y = np.nan_to_num(y, nan=0.0, posinf=1e300, neginf=-1e300)
        minimum, maximum = -(2.0**31), 2.0**31 - 1

        def signed(v: npt.NDArray[np.float64]) -> U32:
            return np.clip(v, minimum, maximum).astype(np.int64).astype(np.uint32)

        np.testing.assert_array_equal(out[20], signed(np.trunc(x)))
        np.testing.assert_array_equal(
            out[21], np.clip(np.trunc(x), 0, 2.0**32 - 1).astype(np.uint64).astype(np.uint32))
        np.testing.assert_array_equal(out[22], signed(np.floor(y + 0.5)))
        np.testing.assert_array_equal(out[23], signed(np.floor(y)))
        snorm = np.rint(np.clip(y, -1, 1) * 32767).astype(np.int64) & 0xFFFF
        np.testing.assert_array_equal(out[24], snorm | snorm << 16)
        unorm = np.rint(np.clip(y, 0, 1) * 65535).astype(np.int64)
        np.testing.assert_array_equal(out[25], unorm | unorm << 16)
        byte = np.clip(np.trunc(y), 0, 255).astype(np.int64)
        np.testing.assert_array_equal(out[26], 0x11003344 | byte << 16)
    out = bench.run(["v_cvt_i16_f16 v20, v2", "v_cvt_u16_f16 v21, v2",
                     "v_frexp_exp_i16_f16 v22, v2", "v_frexp_mant_f16 v23, v2",
                     "v_floor_f16 v24, v2", "v_rndne_f16 v25, v2", "v_fract_f16 v26, v2"],
                    vector={2: h}, vector_out=range(20, 27)).vector
    value = h.astype(np.uint16).view(np.float16)
    with np.errstate(all="ignore"):
        finite = np.isfinite(value)
        exact_half = np.nan_to_num(value.astype(np.float64), nan=0.0, posinf=1e9, neginf=-1e9)
        np.testing.assert_array_equal(
            out[20], np.clip(np.trunc(exact_half), -32768, 32767).astype(np.int64) & 0xFFFF)
        np.testing.assert_array_equal(
            out[21], np.clip(np.trunc(exact_half), 0, 65535).astype(np.int64))
        mantissa, exponent = np.frexp(value)
        np.testing.assert_array_equal(out[22], np.where(finite, exponent, 0) & 0xFFFF)
        for register, reference in ((23, mantissa), (24, np.floor(value)), (25, np.rint(value))):
            bits = np.where(np.isnan(value), 0x7E00, reference.view(np.uint16))
            np.testing.assert_array_equal(out[register], bits)
        fraction = (value.astype(np.float64) - np.floor(value.astype(np.float64)))
        half = np.minimum(fraction.astype(np.float16), np.float16(1 - 2.0**-11))
        np.testing.assert_array_equal(out[26][finite], half[finite].view(np.uint16))


@pytest.mark.parametrize("kind", ["fp8", "bf8"])
def test_stochastic_rounding(bench: Bench, kind: str) -> None:
    """Either neighbour, the upper one as often as the dropped part says; FP16_OVFL saturates."""
    form = {"fp8": ml_dtypes.float8_e4m3fnuz, "bf8": ml_dtypes.float8_e5m2fnuz}[kind]
    rng = np.random.default_rng(1)
    noise = rng.integers(0, 1 << 32, 1 << 14, dtype=np.uint32)
    # Normal numbers of both formats: below, the noise no longer reaches the dropped bits' top.
    for x in (1.1, -3.3, 0.0101, -0.071):
        value = np.full(len(noise), x, np.float32).view(np.uint32)
        out = bench.run([f"v_cvt_sr_{kind}_f32 v4, v2, v3 op_sel:[0,0,1,1]"],
                        vector={2: value, 3: noise, 4: np.full(len(noise), 0x00ABCDEF, np.uint32)},
                        vector_out=[4]).vector[4]
        assert set((out & 0xFFFFFF).tolist()) == {0xABCDEF}
        found = (out >> 24).astype(np.uint8).view(form).astype(np.float64)
        assert len(set(found.tolist())) == 2
        # Four standard deviations of the mean of a two-valued variable.
        spread = found.max() - found.min()
        assert abs(found.mean() - np.float32(x)) < 4 * spread / 2 / np.sqrt(len(found))
    for mode, expected in ((0xC0, 0x80), (0xC0 | 1 << 23, 0xFF)):
        bench.mode = mode
        big = np.resize(np.array([-1e9, -np.inf], np.float32), 64).view(np.uint32)
        both = bench.run([f"v_cvt_sr_{kind}_f32 v4, v2, v3", f"v_cvt_pk_{kind}_f32 v5, v2, v2"],
                         vector={2: big, 3: noise[:64], 4: noise[:64] * 0, 5: noise[:64] * 0},
                         vector_out=[4, 5]).vector
        assert set(both[4].tolist()) == {expected}
        assert set(both[5].tolist()) == {expected * 0x101}


def test_sixty_four_bits_and_exchange(bench: Bench) -> None:
    a, b, c = bench.integers(3, 13)
    out = bench.run(["v_mad_i64_i32 v[20:21], s[6:7], v2, v3, v[4:5]",
                     "v_mad_u64_u32 v[22:23], vcc, v2, v3, v[4:5]", "v_swap_b32 v2, v3",
                     "v_mov_b64 v[24:25], 1.0", "v_mov_b64 v[26:27], -1",
                     "v_add_f64 v[28:29], 0, 0.5"],
                    vector={2: a, 3: b, 4: c, 5: a}, vector_out=[2, 3, *range(20, 30)],
                    scalar_out=[6, 7, 106, 107])
    joined = c.astype(object) + a.astype(object) * (1 << 32)
    unsigned = a.astype(object) * b.astype(object) + joined
    product = a.view(np.int32).astype(object) * b.view(np.int32).astype(object)
    total = product + np.where(joined >= 1 << 63, joined - (1 << 64), joined)
    for low, reference in ((20, total), (22, unsigned)):
        np.testing.assert_array_equal(
            exact.joined(WIDE, out.vector, low), (reference % (1 << 64)).astype(np.uint64))
    every = (1 << 64) - 1
    assert found_mask(out.scalar, 6) == masks((total < 0).astype(bool), every)
    assert found_mask(out.scalar, 106) == masks((unsigned >> 64 != 0).astype(bool), every)
    np.testing.assert_array_equal(out.vector[2], b)
    np.testing.assert_array_equal(out.vector[3], a)
    constants = [int(exact.joined(WIDE, out.vector, r)[0]) for r in (24, 26, 28)]
    assert constants == [0x3FF0000000000000, every, 0x3FE0000000000000]


def test_status_bits_as_sources(bench: Bench) -> None:
    out = bench.run(["s_mov_b64 vcc, 0", "s_cmp_eq_u32 s0, s0", "v_mov_b32 v20, src_scc",
                     "v_add_u32 v21, src_vccz, v20", "s_add_u32 s4, src_execz, 5",
                     "s_cmp_lg_u32 s0, s0", "s_mov_b64 s[6:7], src_scc"],
                    vector_out=[20, 21], scalar_out=[4, 6, 7], waves=1)
    assert [int(out.vector[r][0]) for r in (20, 21)] == [1, 2]
    assert [int(out.scalar[r][0]) for r in (4, 6, 7)] == [5, 0, 0]
