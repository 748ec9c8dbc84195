"""MFMA against NumPy: layouts of AMD's matrix instruction calculator, sums in order of rising k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from asmevo.device.emulator.record import OPERATIONS

if TYPE_CHECKING:
    from tests.device.emulator.conftest import Bench

U32 = npt.NDArray[np.uint32]
Matrix = npt.NDArray[Any]
QUIET_NAN = 0x7FC00000
TYPES: dict[str, Any] = {
    "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8,
    "fp8": ml_dtypes.float8_e4m3fnuz, "bf8": ml_dtypes.float8_e5m2fnuz}
NAMES = [name for name in OPERATIONS if name.startswith("v_mfma_")]


@dataclass(frozen=True)
class Shape:
    """A one-block MFMA as its name tells it."""

    size: int
    depth: int
    a: Any
    b: Any
    result: Any

    @staticmethod
    def of(name: str) -> Shape:
        _, _, result, dimensions, *inputs = name.split("_")
        m, n, k = map(int, dimensions.split("x"))
        assert m == n
        return Shape(m, k, TYPES[inputs[0]], TYPES[inputs[-1]],
                     np.int32 if result == "i32" else np.float32)

    @property
    def elements(self) -> int:
        return self.size * self.depth // 64

    @property
    def input_words(self) -> int:
        return self.elements * int(np.dtype(self.a).itemsize) // 4

    @property
    def result_words(self) -> int:
        return self.size * self.size // 64

    def input_rows(self, matrix: Matrix) -> list[U32]:
        """Registers of A, or of the transpose of B: element k of row i, lane by lane."""
        lanes = np.empty((64, self.elements), matrix.dtype)
        for i in range(self.size):
            for k in range(self.depth):
                lanes[i + k // self.elements * self.size, k % self.elements] = matrix[i, k]
        return list(lanes.view(np.uint32).reshape(64, -1).T.copy())

    def place(self, i: int, j: int) -> tuple[int, int]:
        """Word and lane of D[i][j]."""
        lanes = 64 // self.size
        return 4 * (i // (4 * lanes)) + i % 4, j + self.size * (i // 4 % lanes)

    def result_rows(self, matrix: Matrix) -> list[U32]:
        rows = np.empty((self.result_words, 64), np.uint32)
        bits = matrix.view(np.uint32)
        for i in range(self.size):
            for j in range(self.size):
                rows[self.place(i, j)] = bits[i, j]
        return list(rows)

    def product(self, a: Matrix, b: Matrix, c: Matrix) -> Matrix:
        """C + A B, one rounding a product. The products themselves are exact in f32."""
        total = c.astype(self.result)
        wide_a, wide_b = a.astype(self.result), b.astype(self.result)
        with np.errstate(all="ignore"):
            for k in range(self.depth):
                total = total + wide_a[:, k, None] * wide_b[None, :, k]
        if self.result is np.int32:
            return total
        raw = total.view(np.uint32)
        return np.where(np.isnan(total), np.uint32(QUIET_NAN), raw).view(np.float32)


def matrices(shape: Shape, seed: int) -> tuple[Matrix, Matrix, Matrix]:
    rng = np.random.default_rng(seed)

    def draw(kind: Any) -> Matrix:
        size = (shape.size, shape.depth)
        if kind is np.int8:
            return rng.integers(-128, 128, size).astype(np.int8)
        # 11 bits, so that the product of two f32 is exact too.
        values = rng.normal(0, 1, size) * np.exp2(rng.integers(-6, 6, size))
        return values.astype(np.float16).astype(kind)

    square = (shape.size, shape.size)
    if shape.result is np.int32:
        c: Matrix = rng.integers(-(1 << 31), 1 << 31, square).astype(np.int32)
    else:
        c = rng.normal(0, 8, square).astype(np.float32)
    return draw(shape.a), draw(shape.b), c


def registers(kind: str, first: int, count: int) -> str:
    return f"{kind}{first}" if count == 1 else f"{kind}[{first}:{first + count - 1}]"


def run(bench: Bench, name: str, a: Matrix, b: Matrix, c: Matrix | str, *, files: str = "vvvv",
        overlap: int = 0, exec_mask: int = (1 << 64) - 1) -> list[U32]:
    """``files`` are the register files of D, A, B and C; D starts ``overlap`` words after C."""
    shape = Shape.of(name)
    words, results = shape.input_words, shape.result_words
    first = {"a": 2, "b": 4, "c": 8, "d": 8 + overlap}
    vector = {first["a"] + n: row for n, row in enumerate(shape.input_rows(a))}
    vector |= {first["b"] + n: row for n, row in enumerate(shape.input_rows(b))}
    if not isinstance(c, str):
        vector |= {first["c"] + n: row for n, row in enumerate(shape.result_rows(c))}
    body = ["s_mov_b64 exec, -1"]
    body += [f"v_accvgpr_write_b32 a{n}, v{n}" for n in vector]
    if exec_mask != (1 << 64) - 1:
        body.append(f"s_mov_b64 exec, {exec_mask}")
    accumulator = c if isinstance(c, str) else registers(files[3], first["c"], results)
    body.append(f"{name} {registers(files[0], first['d'], results)}, "
                f"{registers(files[1], first['a'], words)}, "
                f"{registers(files[2], first['b'], words)}, {accumulator}")
    out = range(first["d"], first["d"] + results)
    if files[0] == "a":
        body += ["s_mov_b64 exec, -1", *(f"v_accvgpr_read_b32 v{n}, a{n}" for n in out)]
    found = bench.run(body, vector=vector, vector_out=list(out))
    return [found.vector[n] for n in out]


def same(found: list[U32], shape: Shape, expected: Matrix) -> None:
    np.testing.assert_array_equal(np.stack(found), np.stack(shape.result_rows(expected)))


@pytest.mark.parametrize("name", NAMES)
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


@pytest.mark.parametrize("name", [n for n in NAMES if "f32_16" in n])
def test_every_input_value(bench: Bench, name: str) -> None:
    """Row 0 of A runs through every encoding while B is the identity's first row: no sums."""
    shape = Shape.of(name)
    code = np.dtype(f"u{np.dtype(shape.a).itemsize}")
    rng = np.random.default_rng(7)
    values = np.arange(256) if code.itemsize == 1 else np.concatenate(
        [rng.integers(0, 1 << 8 * code.itemsize, 448),
         [0, 1, 0x7C00, 0xFC00, 0x7E01, 0x7F80, 0xFF80, 0x7FC1, 0x8000, 0x8001, 0x3FF, 0x83FF,
          0x400, 0x7BFF, 0x7F, 0x80]])
    b = np.zeros((shape.size, shape.depth), shape.b)
    b[:, 0] = 1
    for part in values.reshape(-1, shape.size):
        a = np.zeros((shape.size, shape.depth), shape.a)
        a[:, 0] = part.astype(code).view(shape.a)
        c = np.full((shape.size, shape.size), -0.0, np.float32)
        same(run(bench, name, a, b, c), shape, shape.product(a, b, c))


def test_denormals_are_kept_and_products_are_not_rounded(bench: Bench) -> None:
    name = "v_mfma_f32_16x16x16_bf16"
    shape = Shape.of(name)
    _, _, c = matrices(shape, 8)
    a = np.zeros((16, 16), ml_dtypes.bfloat16)
    b = np.zeros((16, 16), ml_dtypes.bfloat16)
    a[:, 0], b[:, 0] = 2.0**-130, 1.0
    a[:, 1], b[:, 1] = 2.0**-100, 2.0**-40
    c[:] = 2.0**-149
    same(run(bench, name, a, b, c), shape, np.full_like(c, 2.0**-130 + 2.0**-149 + 2.0**-140))
    # The product alone overflows, the sum does not.
    a[:], b[:] = 0, 0
    a[:, 0], b[:, 0] = 2.0**64, 2.0**64
    c[:] = -(2.0**127)
    same(run(bench, name, a, b, c), shape, np.full_like(c, 2.0**127))


def test_accumulation_is_in_order_of_k(bench: Bench) -> None:
    """2^24 absorbs each 1 that comes after it, and none that came before."""
    name = "v_mfma_f32_16x16x16_f16"
    shape = Shape.of(name)
    a = np.ones((16, 16), np.float16)
    b = np.ones((16, 16), np.float16)
    a[:, 8], b[:, 8] = 4096, 4096
    c = np.zeros((16, 16), np.float32)
    same(run(bench, name, a, b, c), shape, np.full_like(c, 2.0**24 + 8))


def test_vgprs_past_the_accumulation_offset_are_agprs(bench: Bench) -> None:
    """The bench allocates 64 VGPRs and 32 AGPRs: one file of 96."""
    a, b = bench.integers(2, 9)
    out = bench.run(["v_accvgpr_write_b32 a3, v2", "v_mov_b32_e32 v20, v67",
                     "v_mov_b32_e32 v95, v3", "v_accvgpr_read_b32 v21, a31"],
                    vector={2: a, 3: b}, vector_out=[20, 21]).vector
    np.testing.assert_array_equal(out[20], a)
    np.testing.assert_array_equal(out[21], b)
