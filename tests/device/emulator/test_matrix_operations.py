"""Matrix operations against NumPy and exact fractions.

Layouts are those of AMD's matrix instruction calculator. Floating-point sums are taken in order of
rising k with one rounding a product.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from asmevo.device.device import UnsupportedError
from asmevo.device.emulator.lower import lower
from asmevo.device.emulator.record import OPERATIONS

if TYPE_CHECKING:
    from tests.device.emulator.conftest import Bench

U32 = npt.NDArray[np.uint32]
Matrix = npt.NDArray[Any]
QUIET_NAN = 0x7FC00000
TYPES: dict[str, Any] = {
    "f64": np.float64, "f32": np.float32, "xf32": np.float32, "f16": np.float16,
    "bf16": ml_dtypes.bfloat16, "i8": np.int8, "i32": np.int32,
    "fp8": ml_dtypes.float8_e4m3fnuz, "bf8": ml_dtypes.float8_e5m2fnuz}
NAMES = [name for name, operation in OPERATIONS.items() if operation.shape == "matrix"]
DENSE = [name for name in NAMES if name.startswith("v_mfma_") and "f64" not in name]
SPARSE = [name for name in NAMES if name.startswith("v_smfmac_")]
BLOCKS = [name for name in DENSE if re.search("_[0-9]+b_", name)]
ONE_OF_EACH_SIZE = ["v_mfma_f32_32x32x4_2b_bf16", "v_mfma_f32_16x16x4_4b_f16",
                    "v_mfma_i32_4x4x4_16b_i8"]
_NAME = re.compile(r"v_(?:mfma|smfmac)_([fi]\d+)_(\d+)x\d+x(\d+)(?:_(\d+)b)?_([a-z0-9]+)_?(\w*)")


@dataclass(frozen=True)
class Shape:
    """An operation as its name tells it: ``blocks`` products of size x depth by depth x size.

    ``depth`` of a sparse operation's A is half that of its B.
    """

    size: int
    depth: int
    blocks: int
    a: Any
    b: Any
    result: Any

    @staticmethod
    def of(name: str) -> Shape:
        match = _NAME.fullmatch(name)
        assert match is not None, name
        result, size, depth, blocks, a, b = match.groups()
        return Shape(int(size), int(depth), int(blocks or 1), TYPES[a], TYPES[b or a],
                     TYPES[result])

    @property
    def elements(self) -> int:
        """Inputs a lane."""
        return self.size * self.depth * self.blocks // 64

    @property
    def input_words(self) -> int:
        return self.elements * int(np.dtype(self.a).itemsize) // 4

    @property
    def result_words(self) -> int:
        return self.size**2 * self.blocks * int(np.dtype(self.result).itemsize) // 256

    def source(self, block: int, i: int, k: int) -> tuple[int, int]:
        """Lane and element of A[i][k], or of B[k][i]."""
        return i + self.size * (block + self.blocks * (k // self.elements)), k % self.elements

    def place(self, block: int, i: int, j: int) -> tuple[int, int]:
        """Element and lane of D[i][j]."""
        if self.result is np.float64:
            return i // 4 % (self.size // 4), j + self.size * (block % (16 // self.size)) + 16 * (
                i % 4)
        if self.size == 4:
            return i, j + 4 * block
        lanes = 64 // self.size
        word = self.size**2 // 64 * block + 4 * (i // (4 * lanes)) + i % 4
        return word, j + self.size * (i // 4 % lanes)

    def input_rows(self, matrix: Matrix) -> list[U32]:
        """Registers of A, or of the transpose of B."""
        lanes = np.empty((64, self.elements), matrix.dtype)
        for block, i, k in np.ndindex(matrix.shape):
            lanes[self.source(block, i, k)] = matrix[block, i, k]
        return list(lanes.view(np.uint32).reshape(64, -1).T.copy())

    def result_rows(self, matrix: Matrix) -> list[U32]:
        words = np.dtype(self.result).itemsize // 4
        rows = np.empty((self.result_words // words, 64, words), np.uint32)
        bits = np.ascontiguousarray(matrix).view(np.uint32).reshape(*matrix.shape, words)
        for block, i, j in np.ndindex(matrix.shape):
            rows[self.place(block, i, j)] = bits[block, i, j]
        return list(rows.transpose(0, 2, 1).reshape(self.result_words, 64))

    def product(self, a: Matrix, b: Matrix, c: Matrix) -> Matrix:
        """C + A B, one rounding a product. The products themselves must be exact in f32."""
        total = c.astype(self.result)
        wide_a, wide_b = a.astype(self.result), b.astype(self.result)
        with np.errstate(all="ignore"):
            for k in range(self.depth):
                total = total + wide_a[:, :, None, k] * wide_b[:, None, :, k]
        return canonical(total)


def canonical(total: Matrix) -> Matrix:
    if total.dtype != np.float32:
        return total
    raw = total.view(np.uint32)
    return np.where(np.isnan(total), np.uint32(QUIET_NAN), raw).view(np.float32)


def matrices(shape: Shape, seed: int) -> tuple[Matrix, Matrix, Matrix]:
    """A, the transpose of B, and C."""
    rng = np.random.default_rng(seed)

    def draw(kind: Any) -> Matrix:
        size = (shape.blocks, shape.size, shape.depth)
        if kind is np.int8:
            return rng.integers(-128, 128, size).astype(np.int8)
        # 11 bits, so that the product of two f32 is exact too.
        values = rng.normal(0, 1, size) * np.exp2(rng.integers(-6, 6, size))
        return values.astype(np.float16).astype(kind)

    square = (shape.blocks, shape.size, shape.size)
    if shape.result is np.int32:
        c: Matrix = rng.integers(-(1 << 31), 1 << 31, square).astype(np.int32)
    else:
        c = rng.normal(0, 8, square).astype(shape.result)
    return draw(shape.a), draw(shape.b), c


def registers(kind: str, first: int, count: int) -> str:
    return f"{kind}{first}" if count == 1 else f"{kind}[{first}:{first + count - 1}]"


def run(bench: Bench, name: str, a: Matrix, b: Matrix, c: Matrix | str, *, files: str = "vvvv",
        overlap: int = 0, exec_mask: int = (1 << 64) - 1, modifiers: str = "") -> list[U32]:
    """``files`` are the register files of D, A, B and C; D starts ``overlap`` words after C."""
    shape = Shape.of(name)
    words, results = shape.input_words, shape.result_words
    first = {"a": 2, "b": 4, "c": 8, "d": 8 + overlap}
    vector = {first["a"] + n: row for n, row in enumerate(shape.input_rows(a))}
    vector |= {first["b"] + n: row for n, row in enumerate(shape.input_rows(b))}
    if not isinstance(c, str):
        vector |= {first["c"] + n: row for n, row in enumerate(shape.result_rows(c))}
    body = ["s_mov_b64 exec, -1"]
    if "a" in files:
        body += [f"v_accvgpr_write_b32 a{n}, v{n}" for n in vector]
    if exec_mask != (1 << 64) - 1:
        body.append(f"s_mov_b64 exec, {exec_mask}")
    accumulator = c if isinstance(c, str) else registers(files[3], first["c"], results)
    body.append(f"{name} {registers(files[0], first['d'], results)}, "
                f"{registers(files[1], first['a'], words)}, "
                f"{registers(files[2], first['b'], words)}, {accumulator} {modifiers}".strip())
    out = range(first["d"], first["d"] + results)
    if files[0] == "a":
        body += ["s_mov_b64 exec, -1", *(f"v_accvgpr_read_b32 v{n}, a{n}" for n in out)]
    found = bench.run(body, vector=vector, vector_out=list(out))
    return [found.vector[n] for n in out]


def same(found: list[U32], shape: Shape, expected: Matrix) -> None:
    np.testing.assert_array_equal(np.stack(found), np.stack(shape.result_rows(expected)))


@pytest.mark.parametrize("name", DENSE)
def test_product(bench: Bench, name: str) -> None:
    shape = Shape.of(name)
    a, b, c = matrices(shape, 1)
    same(run(bench, name, a, b, c), shape, shape.product(a, b, c))


@pytest.mark.parametrize("files", ["avaa", "vavv", "aaaa", "vvva", "avva"])
@pytest.mark.parametrize("name", ["v_mfma_f32_16x16x32_fp8_fp8", "v_mfma_f32_32x32x8_bf16",
                                  "v_mfma_i32_32x32x16_i8"])
def test_accumulation_registers(bench: Bench, name: str, files: str) -> None:
    shape = Shape.of(name)
    a, b, c = matrices(shape, 2)
    same(run(bench, name, a, b, c, files=files), shape, shape.product(a, b, c))


@pytest.mark.parametrize("overlap", [0, 1, 2, 3, 16])
@pytest.mark.parametrize("name", ["v_mfma_f32_16x16x16_f16", "v_mfma_f32_32x32x8_f16"])
def test_result_may_overlap_the_accumulator(bench: Bench, name: str, overlap: int) -> None:
    shape = Shape.of(name)
    a, b, c = matrices(shape, 3)
    same(run(bench, name, a, b, c, overlap=overlap), shape, shape.product(a, b, c))


@pytest.mark.parametrize(("text", "value"), [("0", 0.0), ("1.0", 1.0), ("-2.0", -2.0)])
def test_constant_accumulator(bench: Bench, text: str, value: float) -> None:
    name = "v_mfma_f32_16x16x16_bf16"
    shape = Shape.of(name)
    a, b, c = matrices(shape, 4)
    expected = shape.product(a, b, np.full_like(c, value))
    same(run(bench, name, a, b, text), shape, expected)


def test_result_may_overwrite_the_inputs(bench: Bench) -> None:
    name = "v_mfma_f32_16x16x16_f16"
    shape = Shape.of(name)
    a, b, c = matrices(shape, 5)
    vector = dict(enumerate(shape.input_rows(a), start=2))
    vector |= dict(enumerate(shape.input_rows(b), start=4))
    found = bench.run([f"{name} v[2:5], v[2:3], v[4:5], 0"], vector=vector,
                      vector_out=[2, 3, 4, 5]).vector
    same([found[n] for n in range(2, 6)], shape, shape.product(a, b, np.zeros_like(c)))


def test_exec_is_ignored(bench: Bench) -> None:
    name = "v_mfma_f32_16x16x16_f16"
    shape = Shape.of(name)
    a, b, c = matrices(shape, 6)
    same(run(bench, name, a, b, c, exec_mask=1), shape, shape.product(a, b, c))


@pytest.mark.parametrize("name", [n for n in DENSE if re.search("f32_16x16x(16|32)", n)])
def test_every_input_value(bench: Bench, name: str) -> None:
    """Row 0 of A runs through every encoding while B is the identity's first row: no sums."""
    shape = Shape.of(name)
    code = np.dtype(f"u{np.dtype(shape.a).itemsize}")
    rng = np.random.default_rng(7)
    values = np.arange(256) if code.itemsize == 1 else np.concatenate(
        [rng.integers(0, 1 << 8 * code.itemsize, 448),
         [0, 1, 0x7C00, 0xFC00, 0x7E01, 0x7F80, 0xFF80, 0x7FC1, 0x8000, 0x8001, 0x3FF, 0x83FF,
          0x400, 0x7BFF, 0x7F, 0x80]])
    b = np.zeros((1, shape.size, shape.depth), shape.b)
    b[0, :, 0] = 1
    for part in values.reshape(-1, shape.size):
        a = np.zeros((1, shape.size, shape.depth), shape.a)
        a[0, :, 0] = part.astype(code).view(shape.a)
        c = np.full((1, shape.size, shape.size), -0.0, np.float32)
        same(run(bench, name, a, b, c), shape, shape.product(a, b, c))


def test_denormals_are_kept_and_products_are_not_rounded(bench: Bench) -> None:
    name = "v_mfma_f32_16x16x16_bf16"
    shape = Shape.of(name)
    _, _, c = matrices(shape, 8)
    a = np.zeros((1, 16, 16), ml_dtypes.bfloat16)
    b = np.zeros((1, 16, 16), ml_dtypes.bfloat16)
    a[..., 0], b[..., 0] = 2.0**-130, 1.0
    a[..., 1], b[..., 1] = 2.0**-100, 2.0**-40
    c[:] = 2.0**-149
    same(run(bench, name, a, b, c), shape, np.full_like(c, 2.0**-130 + 2.0**-149 + 2.0**-140))
    # The product alone overflows, the sum does not.
    a[:], b[:] = 0, 0
    a[..., 0], b[..., 0] = 2.0**64, 2.0**64
    c[:] = -(2.0**127)
    same(run(bench, name, a, b, c), shape, np.full_like(c, 2.0**127))


def test_accumulation_is_in_order_of_k(bench: Bench) -> None:
    """2^24 absorbs each 1 that comes after it, and none that came before."""
    name = "v_mfma_f32_16x16x16_f16"
    shape = Shape.of(name)
    a = np.ones((1, 16, 16), np.float16)
    b = np.ones((1, 16, 16), np.float16)
    a[..., 8], b[..., 8] = 4096, 4096
    c = np.zeros((1, 16, 16), np.float32)
    same(run(bench, name, a, b, c), shape, np.full_like(c, 2.0**24 + 8))


def test_vgprs_past_the_accumulation_offset_are_agprs(bench: Bench) -> None:
    """The bench allocates 64 VGPRs and 32 AGPRs: one file of 96."""
    a, b = bench.integers(2, 9)
    out = bench.run(["v_accvgpr_write_b32 a3, v2", "v_mov_b32_e32 v20, v67",
                     "v_mov_b32_e32 v95, v3", "v_accvgpr_read_b32 v21, a31"],
                    vector={2: a, 3: b}, vector_out=[20, 21]).vector
    np.testing.assert_array_equal(out[20], a)
    np.testing.assert_array_equal(out[21], b)


@pytest.mark.parametrize("cbsz", range(5))
@pytest.mark.parametrize("name", ONE_OF_EACH_SIZE)
def test_block_broadcast(bench: Bench, name: str, cbsz: int) -> None:
    """CBSZ makes groups of 2^CBSZ blocks use the A of the group's block ABID."""
    shape = Shape.of(name)
    if 1 << cbsz > shape.blocks:
        with pytest.raises(UnsupportedError, match="cbsz"):
            run(bench, name, *matrices(shape, 10), modifiers=f"cbsz:{cbsz}")
        return
    a, b, c = matrices(shape, 10)
    for abid in {0, (1 << cbsz) - 1, (1 << cbsz) // 2}:
        used = a[[(block >> cbsz << cbsz) + abid for block in range(shape.blocks)]]
        same(run(bench, name, a, b, c, modifiers=f"cbsz:{cbsz} abid:{abid}"), shape,
             shape.product(used, b, c))


@pytest.mark.parametrize(("blgp", "lanes"), [
    (1, [*range(32)] * 2), (2, [*range(32, 64)] * 2), (3, [*range(16, 64), *range(16)]),
    (4, [*range(16)] * 4), (5, [*range(16, 32)] * 4), (6, [*range(32, 48)] * 4),
    (7, [*range(48, 64)] * 4)])
@pytest.mark.parametrize("name", [*ONE_OF_EACH_SIZE, "v_mfma_f32_32x32x2_f32"])
def test_lane_permutation(bench: Bench, name: str, blgp: int, lanes: list[int]) -> None:
    """BLGP hands each lane of B the registers of another one."""
    shape = Shape.of(name)
    a, b, c = matrices(shape, 11)
    moved = np.empty_like(b)
    inputs = np.stack(shape.input_rows(b))[:, lanes].T.copy().view(b.dtype)
    for where in np.ndindex(b.shape):
        moved[where] = inputs[shape.source(*where)]
    same(run(bench, name, a, b, c, modifiers=f"blgp:{blgp}"), shape, shape.product(a, moved, c))


@pytest.mark.parametrize("text", [
    "v_mfma_f32_16x16x16_f16 v[2:5], v[6:7], v[8:9], 0 cbsz:1",
    "v_mfma_i32_16x16x32_i8 v[2:5], v[6:7], v[8:9], 0 blgp:1",
    "v_mfma_f32_16x16x4_f32 v[2:5], v6, v8, 0 abid:1",
    "v_mfma_f32_4x4x1_16b_f32 v[2:5], v6, v8, 0 cbsz:1 abid:2",
    "v_smfmac_f32_16x16x32_f16 v[2:5], v[6:7], v[8:11], v12 blgp:1",
    "v_smfmac_i32_16x16x64_i8 v[2:5], v[6:7], v[8:11], v12 abid:2",
    "v_mfma_f64_4x4x4_4b_f64 v[2:3], v[6:7], v[8:9], v[2:3] cbsz:1",
    "v_mfma_f32_16x16x16_f16 v[2:4], v[6:7], v[8:9], 0"])
def test_what_hardware_does_not_define_is_refused(bench: Bench, text: str) -> None:
    with pytest.raises(UnsupportedError, match="v_"):
        lower(bench.assemble([text]))


def nearest(x: Fraction, bits: int) -> Fraction:
    """``x`` rounded to ``bits`` significant bits, ties to even; no denormals, no overflow."""
    if x == 0:
        return x
    scale = Fraction(2) ** (bits - math.frexp(float(x))[1])
    return round(x * scale) / scale


@pytest.mark.parametrize(("name", "bits"), [
    ("v_mfma_f64_16x16x4_f64", 53), ("v_mfma_f64_4x4x4_4b_f64", 53),
    ("v_mfma_f32_16x16x4_f32", 24), ("v_mfma_f32_4x4x1_16b_f32", 24)])
@pytest.mark.parametrize("negated", [(0, 0, 0), (1, 0, 1), (0, 1, 1)])
def test_products_of_full_precision(bench: Bench, name: str, bits: int,
                                    negated: tuple[int, int, int]) -> None:
    """Each product and sum is one fused operation, so exact fractions tell the result."""
    shape = Shape.of(name)
    if bits == 24 and any(negated):
        with pytest.raises(UnsupportedError, match="neg"):
            run(bench, name, *matrices(shape, 1), modifiers="neg:[1,0,0]")
        return
    rng = np.random.default_rng(12)
    inputs = (shape.blocks, shape.size, shape.depth)
    a, b = (rng.normal(0, 1, inputs).astype(shape.a) for _ in range(2))
    c = rng.normal(0, 1, (shape.blocks, shape.size, shape.size)).astype(shape.result)
    expected = np.empty_like(c)
    signs = [-1 if flag else 1 for flag in negated]
    for block, i, j in np.ndindex(c.shape):
        total = signs[2] * Fraction(float(c[block, i, j]))
        for k in range(shape.depth):
            term = Fraction(float(a[block, i, k])) * Fraction(float(b[block, j, k]))
            total = nearest(total + signs[0] * signs[1] * term, bits)
        expected[block, i, j] = float(total)
    flags = "" if bits == 24 else "neg:[{},{},{}]".format(*negated)
    same(run(bench, name, a, b, c, modifiers=flags), shape, expected)


@pytest.mark.parametrize("text", ["1.0", "-4.0", "0", "0.5"])
def test_constant_double_accumulator(bench: Bench, text: str) -> None:
    name = "v_mfma_f64_16x16x4_f64"
    shape = Shape.of(name)
    a, b = (np.full((1, 16, 4), value) for value in (1.5, 2.0))
    expected = np.full((1, 16, 16), 12.0 + float(text))
    same(run(bench, name, a, b, text), shape, expected)


def test_xf32_keeps_ten_bits_of_the_mantissa(bench: Bench) -> None:
    name = "v_mfma_f32_16x16x8_xf32"
    shape = Shape.of(name)
    rng = np.random.default_rng(13)
    a, b = (rng.normal(0, 1, (1, 16, 8)).astype(np.float32) for _ in range(2))
    _, _, c = matrices(shape, 13)
    short_a, short_b = ((x.view(np.uint32) & 0xFFFFE000).view(np.float32) for x in (a, b))
    same(run(bench, name, a, b, c), shape, shape.product(short_a, short_b, c))


@pytest.mark.parametrize("abid", [0, 1, 3])
@pytest.mark.parametrize("cbsz", [0, 1])
@pytest.mark.parametrize("name", SPARSE)
def test_sparse_product(bench: Bench, name: str, abid: int, cbsz: int) -> None:
    """Two of four elements of k; an infinity that no index chooses has no effect."""
    shape = Shape.of(name)
    sets = 4 if shape.elements == 8 else 2
    if cbsz == 0 and abid >= sets:
        return
    rng = np.random.default_rng(14)
    stored = replace(shape, depth=shape.depth // 2)
    a, _, c = matrices(stored, 14)
    _, b, _ = matrices(shape, 15)
    pairs = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])
    chosen = pairs[rng.integers(0, 6, (1, shape.size, shape.depth // 4))]
    if shape.b in (np.float16, ml_dtypes.bfloat16):
        chosen[:, :, 0] = (0, 2)
        b[..., 1] = np.inf
    full = np.zeros((1, shape.size, shape.depth), shape.a)
    np.put_along_axis(full.reshape(*chosen.shape[:-1], 4), chosen,
                      a.reshape(*chosen.shape), axis=3)
    with np.errstate(all="ignore"):
        expected = c.copy()
        for k in range(shape.depth):
            term = full[:, :, None, k].astype(shape.result) * b[:, None, :, k].astype(shape.result)
            taken = (chosen[:, :, k // 4] == k % 4).any(axis=2)
            expected = np.where(taken[:, :, None], expected + term, expected)
    # Index bits are those of the lane that has the stored elements.
    index = rng.integers(0, 1 << 32, 64, dtype=np.uint64)
    shift = 0 if cbsz else abid * 2 * stored.elements
    for i in range(shape.size):
        for k in range(0, stored.depth, 2):
            lane, element = stored.source(0, i, k)
            first, second = (int(x) for x in chosen[0, i, k // 2])
            at = shift + 2 * element
            index[lane] = (int(index[lane]) & ~(15 << at)) | (first | second << 2) << at
    words = shape.result_words
    vector = dict(enumerate(stored.input_rows(a), start=2))
    vector |= dict(enumerate(shape.input_rows(b), start=4))
    vector |= {8: index.astype(np.uint32)} | dict(enumerate(stored.result_rows(c), start=10))
    text = f"{name} v[10:{9 + words}], v[2:3], v[4:7], v8 cbsz:{cbsz} abid:{abid}"
    found = bench.run([text], vector=vector, vector_out=list(range(10, 10 + words)))
    same([found.vector[n] for n in range(10, 10 + words)], stored, canonical(expected))


@pytest.mark.parametrize("name", [*DENSE, *SPARSE])
def test_every_vector_width_gives_the_same_bytes(bench: Bench, name: str) -> None:
    """Random bits: infinities, denormals and NaNs. Hosts without wide vectors compare nothing."""
    operation = OPERATIONS[name]
    rng = np.random.default_rng(16)
    counts = [operation.dst_words, *operation.src_words]
    starts = [2 + sum(counts[:n]) for n in range(4)]
    d, a, b, c = (registers("v", *pair) for pair in zip(starts, counts, strict=True))
    if name in DENSE:
        c = d
    vector = {n: rng.integers(0, 1 << 32, 512, dtype=np.uint32) for n in range(2, starts[-1] + 1)}
    for n in list(vector):  # half of the waves: numbers near each other
        vector[n][:256] = vector[n][:256] & 0x8FFF8FFF | 0x30003000
    wide, narrow = (
        replace(bench, narrow=flag).run([f"{name} {d}, {a}, {b}, {c}"], vector=vector,
                                        vector_out=list(range(2, 2 + counts[0]))).vector
        for flag in (False, True))
    for n in wide:
        np.testing.assert_array_equal(wide[n], narrow[n])
