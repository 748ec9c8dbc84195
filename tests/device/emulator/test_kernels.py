"""AITER's production kernels against NumPy."""

from __future__ import annotations

import functools
import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.source import InstalledFile
from asmevo.device.device import LaunchState, RunResult, WorkgroupOrder
from asmevo.device.emulator.emulator import EmulatedKernel, Emulator
from asmevo.dispatch.dispatch import Dispatch, ElementType, Pointer, Region, Role
from asmevo.isa.parse import parse

if TYPE_CHECKING:
    from asmevo.device.emulator.timing import TimingModel

F32 = npt.NDArray[np.float32]
BF16 = ml_dtypes.bfloat16
COLUMNS = 8192
STATES = [LaunchState(poison, order) for poison, order in enumerate(WorkgroupOrder)]


def emulator() -> Emulator:
    """Without a cycle model: these tests time nothing."""
    return Emulator("test", cast("TimingModel", None))


@functools.cache
def code_object(name: str) -> CodeObject:
    data = InstalledFile("amd-aiter", f"aiter_meta/hsa/gfx942/{name}.co").read()
    return CodeObject.parse(data)


@functools.cache
def load(name: str) -> tuple[EmulatedKernel, str]:
    symbol = code_object(name).kernels[0].symbol
    return emulator().load(code_object(name), symbol), symbol


def dispatch(symbol: str, kernarg_size: int, grid: int, pointers: Mapping[int, Region],
             scalars: Mapping[int, int | float]) -> Dispatch:
    kernarg = bytearray(kernarg_size)
    regions = tuple(pointers.values())
    for offset, region in pointers.items():
        struct.pack_into("<Q", kernarg, offset, region.address)
    for offset, value in scalars.items():
        struct.pack_into("<f" if isinstance(value, float) else "<I", kernarg, offset, value)
    return Dispatch("test", symbol, bytes(kernarg), (grid, 1, 1), (256, 1, 1), regions,
                    tuple(Pointer(offset, i) for i, offset in enumerate(pointers)))


def region(name: str, index: int, data: bytes, role: Role, element: ElementType) -> Region:
    return Region(name, 0x7E00_0000_0000 + (index << 32), data, role, element)


def output(result: RunResult, launched: Dispatch, name: str) -> bytes:
    """The bytes of a region after the launch; its guards must be untouched."""
    for after, before in zip(result.regions, launched.regions, strict=True):
        if before.name == name:
            assert after[:before.guard] == before.mapped[:before.guard]
            assert after[-before.guard:] == before.mapped[-before.guard:]
            return after[before.guard:-before.guard]
    raise AssertionError(name)


def layer_norm_dispatch(symbol: str, x: npt.NDArray[np.generic], residual: npt.NDArray[np.generic],
                        weight: npt.NDArray[np.generic], bias: npt.NDArray[np.generic],
                        epsilon: float) -> Dispatch:
    rows = len(x)
    blank = np.random.default_rng(5).bytes(x.nbytes)
    element = ElementType.BF16
    return dispatch(symbol, 176, rows // 2, {
        0: region("out", 0, blank, Role.OUTPUT, element),
        16: region("in", 1, x.tobytes(), Role.INPUT, element),
        32: region("weight", 2, weight.tobytes(), Role.INPUT, element),
        48: region("bias", 3, bias.tobytes(), Role.INPUT, element),
        112: region("residual_out", 4, blank, Role.OUTPUT, element),
        128: region("residual_in", 5, residual.tobytes(), Role.INPUT, element),
    }, {64: float(epsilon), 80: rows, 96: COLUMNS})


def truncated(x: npt.NDArray[np.floating]) -> F32:
    """To bf16 by dropping the lower half, as the kernel's v_perm does."""
    return (x.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


@pytest.mark.parametrize("rows", [2, 6])
@pytest.mark.parametrize("state", STATES, ids=str)
def test_layer_norm_formula(rows: int, state: LaunchState) -> None:
    """The object adds the residual and normalises by the root mean square; it computes a mean and
    never subtracts it."""
    kernel, symbol = load("layer_norm")
    rng = np.random.default_rng(rows)
    x, residual = (rng.normal(0.5, 1, (rows, COLUMNS)).astype(BF16) for _ in range(2))
    weight, bias = (rng.normal(1, 0.5, COLUMNS).astype(BF16) for _ in range(2))
    launched = layer_norm_dispatch(symbol, x, residual, weight, bias, 1e-5)
    result = kernel.run(launched, state)

    total = x.astype(np.float32) + residual.astype(np.float32)
    stored = np.frombuffer(output(result, launched, "residual_out"), BF16).reshape(rows, COLUMNS)
    np.testing.assert_array_equal(stored.astype(np.float32), truncated(total))

    wide = total.astype(np.float64)
    scale = 1 / np.sqrt((wide * wide).mean(axis=1, keepdims=True) + 1e-5)
    expected = wide * scale * weight.astype(np.float64) + bias.astype(np.float64)
    found = np.frombuffer(output(result, launched, "out"), BF16).reshape(rows, COLUMNS)
    # Equal but where f32 rounding moves a value over a truncation step: one bf16 step there.
    difference = np.abs(found.astype(np.float32) - truncated(expected))
    assert (difference > 0).mean() < 1e-3
    near_zero = 1e-5 * (np.abs(wide * scale * weight.astype(np.float64)) + 1)
    step = np.abs(truncated(expected)) * 2.0**-7 + near_zero
    assert (difference <= step).all()


def test_layer_norm_of_rows_without_mean() -> None:
    """Where the mean is zero, the object's result is the layer norm proper."""
    kernel, symbol = load("layer_norm")
    rng = np.random.default_rng(9)
    half = rng.normal(0, 1, (4, COLUMNS // 2)).astype(BF16)
    x = rng.permuted(np.concatenate([half, -half], axis=1), axis=1)
    weight, bias = (rng.normal(1, 0.5, COLUMNS).astype(BF16) for _ in range(2))
    launched = layer_norm_dispatch(symbol, x, np.zeros_like(x), weight, bias, 1e-5)
    found = np.frombuffer(output(kernel.run(launched), launched, "out"), BF16).reshape(x.shape)
    wide = x.astype(np.float64)
    normal = (wide - wide.mean(axis=1, keepdims=True)) / np.sqrt(
        wide.var(axis=1, keepdims=True) + 1e-5)
    expected = normal * weight.astype(np.float64) + bias.astype(np.float64)
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=2.0**-7, atol=1e-5)


def topk_dispatch(symbol: str, rows_per_group: int, gating: F32, top: int,
                  renormalise: bool) -> Dispatch:
    tokens, experts = gating.shape
    blank = np.random.default_rng(6).bytes(tokens * top * 4)
    return dispatch(symbol, 128, -(-tokens // rows_per_group), {
        0: region("indices", 0, blank, Role.OUTPUT, ElementType.I32),
        16: region("weights", 1, blank, Role.OUTPUT, ElementType.F32),
        32: region("gating", 2, gating.tobytes(), Role.INPUT, ElementType.F32),
    }, {48: tokens, 64: experts, 80: top, 96: int(renormalise), 112: 4 * top})


@pytest.mark.parametrize("rows_per_group", [4, 12])
@pytest.mark.parametrize("experts", [128, 256])
@pytest.mark.parametrize("top", [6, 8])
@pytest.mark.parametrize("renormalise", [False, True])
@pytest.mark.parametrize("tokens", [1, 24, 29])
def test_topk_softmax(rows_per_group: int, experts: int, top: int, renormalise: bool,
                      tokens: int) -> None:
    """Softmax, then the top experts in descending order; tails leave no trace outside."""
    kernel, symbol = load(f"topksoftmax/topksoftmax_{rows_per_group}x{experts}x{top}")
    gating = np.random.default_rng(tokens).normal(0, 2, (tokens, experts)).astype(np.float32)
    launched = topk_dispatch(symbol, rows_per_group, gating, top, renormalise)
    result = kernel.run(launched, STATES[tokens % 3])

    probability = np.exp(gating.astype(np.float64))
    probability /= probability.sum(axis=1, keepdims=True)
    order = np.argsort(-probability, axis=1)[:, :top]
    weights = np.take_along_axis(probability, order, axis=1)
    if renormalise:
        weights /= weights.sum(axis=1, keepdims=True)
    indices = np.frombuffer(output(result, launched, "indices"), np.int32).reshape(tokens, top)
    found = np.frombuffer(output(result, launched, "weights"), np.float32).reshape(tokens, top)
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_allclose(found, weights, rtol=1e-6)


def test_runs_are_deterministic_and_leave_the_dispatch_alone() -> None:
    kernel, symbol = load("topksoftmax/topksoftmax_4x128x8")
    gating = np.random.default_rng(1).normal(0, 1, (13, 128)).astype(np.float32)
    launched = topk_dispatch(symbol, 4, gating, 8, True)
    before = launched.sha256
    results: Sequence[RunResult] = [kernel.run(launched, state) for state in (*STATES, *STATES)]
    assert {r.regions for r in results} == {results[0].regions}
    assert {r.instructions for r in results} == {results[0].instructions}
    assert launched.sha256 == before


def test_layer_norm_without_its_barrier_or_a_wait_is_wrong() -> None:
    """What a GPU might show once a month shows in one of three runs, or in the first."""
    kernel, symbol = load("layer_norm")
    rng = np.random.default_rng(3)
    x, residual = (rng.normal(0, 1, (4, COLUMNS)).astype(BF16) for _ in range(2))
    weight, bias = (rng.normal(1, 0.5, COLUMNS).astype(BF16) for _ in range(2))
    launched = layer_norm_dispatch(symbol, x, residual, weight, bias, 1e-5)
    expected = kernel.run(launched).regions
    texts = [i.text for i in kernel.program.instructions]
    waits = [i for i, text in enumerate(texts) if text.startswith("s_waitcnt vmcnt")]
    for index in (texts.index("s_barrier"), *waits[:-1]):
        changed = [parse("s_nop 0") if i == index else instruction
                   for i, instruction in enumerate(kernel.program.instructions)]
        program = replace(kernel.program, instructions=tuple(changed))
        mutant = EmulatedKernel(emulator(), code_object("layer_norm").kernels[0], program)
        runs = [mutant.run(launched, state).regions for state in STATES]
        assert any(run != expected for run in runs), texts[index]
