"""The references of Triton's matrix products, against loops over single elements."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from asmevo.operation.awq import AwqGemm, unpacked
from asmevo.operation.block_scale_gemm import BlockScaleGemm
from asmevo.operation.routed_gemm import RoutedBlockScaleGemm, RoutedLoraGemm, sorted_slots

FP8 = ml_dtypes.float8_e4m3fnuz
BF16 = ml_dtypes.bfloat16


def fp8(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.normal(0, 1, shape).astype(FP8).reshape(-1)


def test_awq_nibbles_are_in_the_interleaved_order() -> None:
    """AWQ packs columns 0, 2, 4, 6, 1, 3, 5, 7 from the lowest nibble up."""
    order = [0, 2, 4, 6, 1, 3, 5, 7]
    word = sum(column << (4 * place) for place, column in enumerate(order))
    assert unpacked(np.array([word], np.uint32).view(np.int32), 8).tolist() == [list(range(8))]


def test_awq_gemm() -> None:
    rng = np.random.default_rng(1)
    m, n, k, group, parts, block = 2, 8, 16, 8, 2, 4
    weights, zeros = rng.integers(0, 16, (k, n)), rng.integers(0, 16, (k // group, n))
    scales = rng.uniform(0.01, 0.1, (k // group, n)).astype(np.float16)
    a = rng.normal(0, 1, (m, k)).astype(np.float16)

    def packed(values: np.ndarray) -> np.ndarray:
        order = [0, 2, 4, 6, 1, 3, 5, 7]
        words = [sum(int(row[c]) << (4 * p) for p, c in enumerate(order)) for row in values]
        return np.array(words, np.uint32).view(np.int32)

    expected = np.zeros((parts, m, n))
    for row in range(k):
        for column in range(n):
            scale = scales[row // group, column]
            weight = np.float16((weights[row, column] - zeros[row // group, column]) * float(scale))
            expected[row // block % parts, :, column] += a[:, row].astype(float) * float(weight)
    found = AwqGemm(block=block).reference(
        {"a": a.reshape(-1), "b": packed(weights), "zeros": packed(zeros),
         "scales": scales.reshape(-1)}, {"N": n, "K": k, "S": parts, "group_size": group})
    np.testing.assert_allclose(found["c"].reshape(expected.shape), expected, rtol=1e-12)


def test_block_scale_gemm_with_a_partial_block() -> None:
    rng = np.random.default_rng(2)
    m, n, k, block = 3, 5, 8, 4
    arrays = {"a": fp8(rng, m, k), "b": fp8(rng, n, k),
              "a_scale": rng.uniform(1, 2, m * k // block).astype(np.float32),
              "b_scale": rng.uniform(1, 2, 2 * k // block).astype(np.float32)}
    found = BlockScaleGemm(block=block).reference(arrays, {"K": k})["c"].reshape(m, n)
    for i in range(m):
        for j in range(n):
            exact = sum(
                float(arrays["a"][i * k + d]) * float(arrays["a_scale"][i * 2 + d // block])
                * float(arrays["b"][j * k + d]) * float(arrays["b_scale"][j // block * 2 + d // 4])
                for d in range(k))
            assert found[i, j] == pytest.approx(exact, rel=1e-12)


def test_sorted_slots() -> None:
    slots, owners, used = sorted_slots(np.array([2, 0, 2, 2, 5]), 3, 2, 10)
    assert slots.tolist() == [1, 5, 0, 2, 3, 5, 5, 5, 5, 5]
    assert owners.tolist() == [0, 2, 2, -1, -1]
    assert used == 6


def test_routed_gemm() -> None:
    rng = np.random.default_rng(3)
    tokens, experts, n, k, top = 4, 3, 5, 4, 2
    operation = RoutedBlockScaleGemm(block=2, top=top, group=4)
    names = {"T": tokens, "E": experts, "N": n, "K": k}
    arrays = {"a": fp8(rng, tokens, k), "b": fp8(rng, experts, n, k),
              "a_scale": np.zeros(tokens, np.float32),
              "b_scale": np.zeros(experts * 2, np.float32),
              "weights": np.zeros(tokens * top, np.float32), "slots": np.zeros(12, np.int32),
              "owners": np.zeros(6, np.int32), "used": np.zeros(1, np.int32)}
    arrays |= dict(operation.prepare(arrays, names, rng))
    assert 1 not in arrays["owners"]
    found = operation.reference(arrays, names)["c"].reshape(-1, n)
    seen = set()
    for place in range(int(arrays["used"][0])):
        slot, expert = int(arrays["slots"][place]), int(arrays["owners"][place // 2])
        if slot == tokens * top:
            continue
        seen.add(slot)
        token = slot // top
        for column in range(n):
            b = arrays["b"].reshape(experts, n, k)[expert, column].astype(float)
            exact = float(np.dot(arrays["a"].reshape(-1, k)[token].astype(float), b))
            exact *= float(arrays["a_scale"][token]) * float(arrays["weights"][slot])
            exact *= float(arrays["b_scale"][expert * 2 + column // 4])
            assert found[slot, column] == pytest.approx(exact, rel=1e-12)
    assert seen == set(range(tokens * top))


def test_routed_lora_leaves_disabled_adapters_alone() -> None:
    rng = np.random.default_rng(4)
    tokens, experts, loras, rank, k = 6, 2, 3, 2, 4
    operation = RoutedLoraGemm(block=2, top=2)
    names = {"T": tokens, "E": experts, "L": loras, "R": rank, "K": k}
    arrays = {"a": rng.normal(0, 1, tokens * k).astype(BF16),
              "c": np.zeros(2 * tokens * 2 * rank, BF16),
              "slots": np.zeros(loras * 16, np.int32), "owners": np.zeros(loras * 8, np.int32),
              "used": np.zeros(loras, np.int32), "enabled": np.zeros(loras, np.int32),
              "lora_ids": np.zeros(loras, np.int32),
              **{f"b{i}": rng.normal(0, 1, loras * experts * rank * k).astype(BF16)
                 for i in range(2)}}
    arrays |= dict(operation.prepare(arrays, names, rng))
    found = operation.reference(arrays, names)["c"].reshape(2, tokens * 2, rank)
    expected = np.zeros_like(found)
    lora = 1  # 0 is hidden behind -1, the last is disabled
    for place in range(int(arrays["used"][lora])):
        slot = int(arrays["slots"].reshape(loras, -1)[lora, place])
        if slot == tokens * 2:
            continue
        expert = int(arrays["owners"].reshape(loras, -1)[lora, place // 2])
        for index in range(2):
            weights = arrays[f"b{index}"].reshape(loras, experts, rank, k)[lora, expert]
            expected[index, slot] = weights.astype(float) @ arrays["a"].reshape(-1, k)[
                slot // 2].astype(float)
    assert np.count_nonzero(expected)
    assert np.count_nonzero(expected) < expected.size
    np.testing.assert_allclose(found, expected, rtol=1e-12)
