"""AITER's int8 matrix products against NumPy."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, cast

import ml_dtypes
import numpy as np
import pytest

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.source import InstalledFile
from asmevo.device.device import LaunchState, WorkgroupOrder
from asmevo.device.emulator.emulator import Emulator
from asmevo.dispatch.dispatch import Dispatch, ElementType, Pointer, Region, Role

if TYPE_CHECKING:
    from asmevo.device.emulator.timing import TimingModel

BF16 = ml_dtypes.bfloat16
TILE = 128


@pytest.mark.parametrize(("name", "rows", "columns", "depth"), [
    ("i8gemm/I8gemm_bf16_perTokenI8_BpreShuffle_128x128", 128, 128, 512),
    ("i8gemm/I8gemm_bf16_perTokenI8_BpreShuffle_128x128", 130, 256, 512),
    ("i8gemm/I8gemm_bf16_perTokenI8_BpreShuffle_128x128", 77, 128, 384),
    ("gemm_a8w8_m128_noSplitK", 128, 256, 512)])
@pytest.mark.parametrize("poison", [0, 1])
def test_int8_product(name: str, rows: int, columns: int, depth: int, poison: int) -> None:
    """bf16 of (A B^T) scaled by row and column, plus a bias by column. B comes in blocks of 32
    columns by 16 bytes of depth; the last tile of rows may be partial."""
    code = CodeObject.parse(
        InstalledFile("amd-aiter", f"aiter_meta/hsa/gfx942/{name}.co").read())
    symbol = code.kernels[0].symbol
    # No cycle model: this test times nothing.
    kernel = Emulator("emulator:test", cast("TimingModel", None)).load(code, symbol)

    rng = np.random.default_rng(rows)
    a = rng.integers(-128, 128, (rows, depth)).astype(np.int8)
    b = rng.integers(-128, 128, (columns, depth)).astype(np.int8)
    row_scale = rng.uniform(0.001, 0.01, rows).astype(np.float32)
    column_scale = rng.uniform(0.001, 0.01, columns).astype(np.float32)
    bias = rng.normal(0, 1, columns).astype(np.float32)
    blocks = b.reshape(columns // 32, 32, depth // 32, 2, 16).transpose(0, 2, 3, 1, 4)

    arrays = [("out", rng.bytes(2 * rows * columns), Role.OUTPUT, ElementType.BF16),
              ("a", a.tobytes(), Role.INPUT, ElementType.I8),
              ("b", blocks.tobytes(), Role.INPUT, ElementType.I8),
              ("row_scale", row_scale.tobytes(), Role.INPUT, ElementType.F32),
              ("column_scale", column_scale.tobytes(), Role.INPUT, ElementType.F32),
              ("bias", bias.tobytes(), Role.INPUT, ElementType.F32)]
    regions = tuple(Region(label, 0x7E00_0000_0000 + (i << 32), data, role, element)
                    for i, (label, data, role, element) in enumerate(arrays))
    kernarg = bytearray(208)
    for i, region in enumerate(regions):
        struct.pack_into("<Q", kernarg, 16 * i, region.address)
    # Rows, columns, depth, the strides of a and b, that of the result in bytes, parts of the depth.
    for i, value in enumerate([rows, columns, depth, depth, depth, 2 * columns, 1]):
        struct.pack_into("<I", kernarg, 96 + 16 * i, value)
    launched = Dispatch(
        "test", symbol, bytes(kernarg), (columns // TILE, -(-rows // TILE), 1), (256, 1, 1),
        regions, tuple(Pointer(16 * i, i) for i in range(len(regions))))
    result = kernel.run(launched, LaunchState(poison, WorkgroupOrder.ASCENDING))

    for after, before in zip(result.regions, regions, strict=True):
        assert after[:before.guard] == before.mapped[:before.guard]
        assert after[-before.guard:] == before.mapped[-before.guard:]
    guard = regions[0].guard
    found = np.frombuffer(result.regions[0][guard:-guard], BF16).reshape(rows, columns)
    product = (a.astype(np.int64) @ b.astype(np.int64).T).astype(np.float64)
    exact = product * row_scale[:, None] * column_scale + bias
    # Half a step of bf16, and f32 rounding on the way there.
    tolerance = np.abs(exact) * 2.0**-8 * 1.01 + 1e-5
    assert (np.abs(found.astype(np.float64) - exact) <= tolerance).all()
    assert (found == exact.astype(BF16)).mean() > 0.999
