"""Matrix sums as CDNA3 takes them, against the published model in exact arithmetic.

The model is that of Xie et al., arXiv 2511.10909, which they measured on MI300X.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

from asmevo.__main__ import config_folder
from asmevo.codeobject.container import CodeObject
from asmevo.config import register
from asmevo.device.emulator.emulator import Emulator
from asmevo.device.emulator.settings import SettingError
from asmevo.dispatch.declared import DeclaredOracle

if TYPE_CHECKING:
    from tests.device.emulator.conftest import Bench

U32 = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class Format:
    """An input format and how its products are summed."""

    dtype: Any
    code: Any
    least_exponent: int
    group: int
    parts: int = 1


FORMATS = {
    "f16": Format(np.float16, np.uint16, -14, 8),
    "bf16": Format(ml_dtypes.bfloat16, np.uint16, -126, 8),
    "xf32": Format(np.float32, np.uint32, -126, 4),
    "fp8": Format(ml_dtypes.float8_e4m3fnuz, np.uint8, -7, 16, 2),
    "bf8": Format(ml_dtypes.float8_e5m2fnuz, np.uint8, -15, 16, 2)}
# Name, formats of A and B, size, depth.
OPERATIONS = [
    ("v_mfma_f32_16x16x16_f16", "f16", "f16", 16, 16),
    ("v_mfma_f32_16x16x16_bf16", "bf16", "bf16", 16, 16),
    ("v_mfma_f32_16x16x8_xf32", "xf32", "xf32", 16, 8),
    ("v_mfma_f32_16x16x32_fp8_fp8", "fp8", "fp8", 16, 32),
    ("v_mfma_f32_16x16x32_bf8_bf8", "bf8", "bf8", 16, 32),
    ("v_mfma_f32_16x16x32_fp8_bf8", "fp8", "bf8", 16, 32)]


def exponent(x: float, least: int) -> int:
    """The exponent that alignment uses."""
    return -126 if x == 0 else max(math.frexp(x)[1] - 1, least)


def aligned(x: Fraction, top: int, bits: int) -> int:
    """``x`` in steps of 2^(top - bits), rounded down."""
    return math.floor(x * Fraction(2) ** (bits - top))


def nearest_f32(x: Fraction) -> float:
    """Round to nearest even, denormals and overflow included. ``x`` has at most 53 bits."""
    with np.errstate(over="ignore"):
        return float(np.float32(float(x)))


def step(a: list[float], b: list[float], c: float, kinds: tuple[Format, Format]) -> float:
    """One group of products on top of ``c``."""
    products = np.array(a) * np.array(b)
    with np.errstate(invalid="ignore"):
        naive = float(products.sum() + c)
    if not math.isfinite(naive):
        return naive
    above, below = (products >= 2.0**128).any(), (products <= -(2.0**128)).any()
    if above or below:
        return math.nan if above and below else math.inf if above else -math.inf
    parts, tops = [], []
    for part in range(kinds[0].parts):
        terms = list(zip(a, b, strict=True))[part::kinds[0].parts]
        top = max(exponent(x, kinds[0].least_exponent) + exponent(y, kinds[1].least_exponent)
                  for x, y in terms)
        exact = [Fraction(x) * Fraction(y) for x, y in terms]
        # Towards zero, unlike every alignment that follows.
        steps = sum(int(math.copysign(1, p)) * aligned(abs(p), top, 24) for p in exact)
        parts.append(steps * Fraction(2) ** (top - 24))
        tops.append(top)
    top, total = tops[0], parts[0]
    if len(parts) == 2:
        top = max(tops)
        total = sum(aligned(p, top, 24) for p in parts) * Fraction(2) ** (top - 24)
    own = exponent(c, -126)
    both = max(top, own)
    accumulator = aligned(Fraction(c), both, 24)
    if len(parts) == 2 and own < both - 25:
        accumulator = 0
    return nearest_f32(aligned(total, both, 31) * Fraction(2) ** (both - 31)
                       + accumulator * Fraction(2) ** (both - 24))


def product(a: npt.NDArray[Any], b: npt.NDArray[Any], c: npt.NDArray[np.float32],
            kinds: tuple[Format, Format]) -> npt.NDArray[np.float32]:
    """C + A B for the transpose of B."""
    out = np.empty_like(c)
    depth, group = a.shape[1], min(kinds[0].group, a.shape[1])
    for i, j in np.ndindex(c.shape):
        total = float(c[i, j])
        for k in range(0, depth, group):
            total = step([float(x) for x in a[i, k:k + group]],
                         [float(x) for x in b[j, k:k + group]], total, kinds)
        out[i, j] = total
    return out


def rows(matrix: npt.NDArray[Any], lanes: int) -> list[U32]:
    """Registers of A or of the transpose of B in one block."""
    size, depth = matrix.shape
    each = depth // lanes
    split = matrix.reshape(size, lanes, each).transpose(1, 0, 2).reshape(64, each)
    return list(np.ascontiguousarray(split).view(np.uint32).reshape(64, -1).T.copy())


def result_rows(matrix: npt.NDArray[np.float32]) -> U32:
    """Four registers of a 16 x 16 result: row 4 g + r is register r of lanes 16 g to 16 g + 15."""
    return matrix.view(np.uint32).reshape(4, 4, 16).transpose(1, 0, 2).reshape(4, 64)


def found(bench: Bench, name: str, a: npt.NDArray[Any], b: npt.NDArray[Any],
          c: npt.NDArray[np.float32]) -> U32:
    left, right = rows(a, 4), rows(b, 4)
    vector = dict(enumerate(left, start=2)) | dict(enumerate(right, start=4))
    vector |= dict(enumerate(result_rows(c), start=8))
    out = bench.run([f"{name} v[8:11], v[2:3], v[4:5], v[8:11]"], vector=vector,
                    vector_out=[8, 9, 10, 11]).vector
    return np.stack([out[n] for n in range(8, 12)])


def expected_bits(matrix: npt.NDArray[np.float32]) -> U32:
    bits = result_rows(matrix).copy()
    bits[np.isnan(bits.view(np.float32))] = 0x7FC00000
    return bits


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("spread", [1, 8, 40])
@pytest.mark.parametrize(("name", "left", "right", "size", "depth"), OPERATIONS)
def test_numbers(bench: Bench, name: str, left: str, right: str, size: int, depth: int,
                 spread: int, narrow: bool) -> None:
    """Exponents near each other, and so far apart that alignment drops most products."""
    rng = np.random.default_rng(spread)
    kinds = FORMATS[left], FORMATS[right]

    def draw(shape: tuple[int, int], dtype: Any) -> npt.NDArray[Any]:
        with np.errstate(over="ignore", under="ignore"):
            values = rng.normal(0, 1, shape) * np.exp2(rng.integers(-spread, spread, shape))
            drawn = values.astype(np.float32).astype(dtype)
            drawn[rng.random(shape) < 0.1] = 0
            drawn[~np.isfinite(drawn)] = 1
        return drawn

    a, b = draw((size, depth), kinds[0].dtype), draw((size, depth), kinds[1].dtype)
    a[3] = 0  # whole rows and columns of zeros
    b[5] = 0
    c = draw((size, size), np.float32)
    if left == "xf32":
        a, b = ((x.view(np.uint32) & 0xFFFFE000).view(np.float32) for x in (a, b))
    np.testing.assert_array_equal(
        found(replace(bench, fused=True, narrow=narrow), name, a, b, c),
        expected_bits(product(a, b, c, kinds)))


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize(("name", "left", "right", "size", "depth"), OPERATIONS)
def test_random_bits(bench: Bench, name: str, left: str, right: str, size: int, depth: int,
                     narrow: bool) -> None:
    """Infinities, NaNs, denormals, and products beyond f32."""
    rng = np.random.default_rng(7)
    kinds = FORMATS[left], FORMATS[right]
    # Few special values: one in a row would hide the rest of it.
    a, b = (rng.integers(0, np.iinfo(kind.code).max, (size, depth), kind.code, endpoint=True)
            .view(kind.dtype) for kind in kinds)
    for matrix in (a, b):
        matrix[2:][~np.isfinite(matrix[2:])] = 0.5
    c = rng.integers(0, 1 << 32, (size, size), np.uint32).view(np.float32)
    if left == "xf32":
        a, b = ((x.view(np.uint32) & 0xFFFFE000).view(np.float32) for x in (a, b))
    with np.errstate(all="ignore"):
        expected = expected_bits(product(a, b, c, kinds))
    np.testing.assert_array_equal(
        found(replace(bench, fused=True, narrow=narrow), name, a, b, c), expected)


def test_differs_from_sums_in_order_of_k(bench: Bench) -> None:
    """2^24 + 1 + 1 is 2^24 when each 1 is rounded alone, and exact within one group."""
    a = np.zeros((16, 16), np.float16)
    b = np.ones((16, 16), np.float16)
    a[:, 1:3] = 1
    c = np.full((16, 16), 2.0**24, np.float32)
    name = "v_mfma_f32_16x16x16_f16"
    assert (found(bench, name, a, b, c).view(np.float32) == 2.0**24).all()
    fused = found(replace(bench, fused=True), name, a, b, c).view(np.float32)
    assert (fused == 2.0**24 + 2).all()


@pytest.mark.parametrize("text", [
    "v_mfma_f32_32x32x8_f16 v[8:23], v[2:3], v[4:5], v[8:23]",
    "v_mfma_f32_32x32x4_2b_bf16 v[8:39], v[2:3], v[4:5], v[8:39] blgp:3",
    "v_mfma_f32_16x16x4_4b_f16 v[8:23], v[2:3], v[4:5], v[8:23] cbsz:1 abid:1",
    "v_mfma_f32_4x4x4_16b_bf16 v[8:11], v[2:3], v[4:5], v[8:11]",
    "v_mfma_f32_32x32x16_fp8_fp8 v[8:23], v[2:3], v[4:5], v[8:23]",
    "v_mfma_f32_32x32x4_xf32 v[8:23], v[2:3], v[4:5], v[8:23]"])
def test_other_shapes_place_their_sums_alike(bench: Bench, text: str) -> None:
    """Small integers make every order of summation exact, so that only layouts can differ."""
    rng = np.random.default_rng(9)
    kind = next(FORMATS[part] for part in reversed(text.split()[0].split("_")) if part in FORMATS)
    each = 4 // np.dtype(kind.dtype).itemsize
    values = rng.integers(-4, 5, (4, 64, each)).astype(np.float32).astype(kind.dtype)
    vector = {2 + n: row for n, row in enumerate(values.view(np.uint32).reshape(4, 64).copy())}
    c = rng.integers(-9, 9, (32, 64)).astype(np.float32).view(np.uint32)
    vector |= {8 + n: row for n, row in enumerate(c)}
    outs = [replace(bench, fused=flag, narrow=narrow).run(
        [text], vector=vector, vector_out=list(range(8, 40))).vector
        for flag, narrow in ((False, False), (True, False), (True, True))]
    for n in range(8, 40):
        np.testing.assert_array_equal(outs[0][n], outs[1][n])
        np.testing.assert_array_equal(outs[0][n], outs[2][n])


def test_attention_on_both() -> None:
    """A production kernel gives nearly the same bf16 numbers whatever the sums, and not all."""
    register()
    with initialize_config_dir(config_folder(), version_base="1.3"):
        config = compose("config", overrides=["kernel=aiter_fmha_fwd_bf16"])
    config.kernel.shapes = [{"B": 1, "S": 256, "T": 256, "H": 1, "R": 1}]
    kernel = instantiate(config.kernel)
    code_object = CodeObject.parse(kernel.source.read())
    target = code_object.kernel(kernel.symbol)
    dispatch = DeclaredOracle(families=("normal",)).dispatches(
        kernel, target.symbol, target.metadata)[0]
    output = next(n for n, region in enumerate(dispatch.regions) if region.role.written)
    guard = dispatch.regions[output].guard
    found = []
    for sums in ("sequential", "cdna3"):
        loaded = Emulator("test", None, matrix_sums=sums).load(code_object, target.symbol)
        data = loaded.run(dispatch).regions[output][guard:-guard]
        found.append(np.frombuffer(data, ml_dtypes.bfloat16).astype(np.float32))
    assert (found[0] != found[1]).any()
    np.testing.assert_allclose(found[0], found[1], rtol=2.0**-7, atol=2.0**-8)
    with pytest.raises(SettingError, match="other"):
        Emulator("test", None, matrix_sums="other")
