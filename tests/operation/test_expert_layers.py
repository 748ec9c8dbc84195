"""References of mixtures of experts against loops over single elements."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from asmevo.operation.activation import gelu_tanh, silu
from asmevo.operation.expert_layer import ExpertLayer, MoeError, requantised
from asmevo.operation.expert_routing import drawn, groups, sorted_tables
from asmevo.operation.fused_moe import FusedMoe
from asmevo.operation.moe_first_stage import MoeFirstStage
from asmevo.operation.operation import Array, Arrays
from asmevo.operation.preshuffle import in_rows

FP8, BF16 = np.dtype(ml_dtypes.float8_e4m3fnuz), np.dtype(ml_dtypes.bfloat16)
TOKENS, DIM, INTER, EXPERTS, TOP, ROWS = 5, 64, 32, 3, 2, 4
NAMES = {"token_cnt": TOKENS, "dim": DIM, "inter_dim": INTER, "eprt_cnt": EXPERTS, "topk": TOP}
BLOCK = 16


def tables(rng: np.random.Generator, tokens: int = TOKENS) -> dict[str, Array]:
    room = tokens * TOP + EXPERTS * ROWS
    return {
        "sorted_ids": rng.integers(0, 1 << 32, room, np.uint32),
        "sorted_weights": rng.standard_normal(room).astype(np.float32),
        "sorted_experts": rng.integers(0, 1 << 32, room // ROWS + 1, np.uint32),
        "valid_ids": np.zeros(2, np.uint32),
    }


def shuffled(matrices: Array) -> Array:
    """The order that the host code of AITER gives weights: `shuffle_weight(w, (16, 16))`, written
    as the address of every element."""
    line = 16 // matrices.itemsize
    count, rows, columns = matrices.shape
    out = np.empty_like(matrices).reshape(count, -1)
    for e in range(count):
        for r in range(rows):
            for c in range(columns):
                tile = (r // 16) * (16 * columns)
                at = tile + (c // line) * (16 * line) + (r % 16) * line + c % line
                out[e, at] = matrices[e, r, c]
    return out.reshape(-1)


@pytest.mark.parametrize("dtype", [FP8, BF16, np.dtype(np.int8)])
def test_preshuffled_rows(dtype: np.dtype[np.generic]) -> None:
    rng = np.random.default_rng(1)
    matrices = rng.integers(0, 100, (2, 32, 64)).astype(dtype)
    assert (in_rows(shuffled(matrices), 32, 64) == matrices).all()


@pytest.mark.parametrize("experts", [2, 3, 9])
def test_every_token_meets_its_experts_once(experts: int) -> None:
    rng = np.random.default_rng(experts)
    chosen, weights = drawn(50, experts, 2, rng)
    assert np.allclose(weights.sum(axis=1), 1)
    assert (weights > 0).all()
    assert (chosen[:, 0] != chosen[:, 1]).all()
    if experts > 2:
        assert len(np.unique(chosen)) < experts
    room = 50 * 2 + experts * ROWS
    arrays = {**tables(rng, 50), "sorted_ids": np.zeros(room, np.uint32),
              "sorted_weights": np.zeros(room, np.float32),
              "sorted_experts": np.zeros(room // ROWS + 1, np.uint32)}
    made = sorted_tables(chosen, weights, arrays, ROWS)
    valid = int(made["valid_ids"][0])
    assert valid % ROWS == 0
    assert made["valid_ids"][1] == 50
    met = []
    for row in range(valid):
        token, choice = int(made["sorted_ids"][row]) & 0xFFFFFF, int(made["sorted_ids"][row]) >> 24
        if token == 50:
            assert choice == 2
            assert made["sorted_weights"][row] == 0
            continue
        assert made["sorted_experts"][row // ROWS] == chosen[token, choice]
        assert made["sorted_weights"][row] == weights[token, choice]
        met.append((token, choice))
    assert sorted(met) == [(t, k) for t in range(50) for k in range(2)]
    assert sum(len(group.tokens) for group in groups(made, 50, ROWS)) == 100


def test_beyond_the_valid_rows_nothing_is_touched() -> None:
    rng = np.random.default_rng(4)
    before = tables(rng)
    made = sorted_tables(*drawn(TOKENS, EXPERTS, TOP, rng), before, ROWS)
    valid = int(made["valid_ids"][0])
    for name, rows in (("sorted_ids", 1), ("sorted_weights", 1), ("sorted_experts", ROWS)):
        assert (made[name][valid // rows:] == before[name][valid // rows:]).all()


def scale_of(arrays: Arrays, scales: str, name: str, index: tuple[int, ...]) -> float:
    """The scale of one element, straight from the layout that the kernels' host code documents."""
    if scales == "none":
        return 1.0
    flat = arrays[f"{name}_scale"]
    if name == "x":
        token, column = index
        return float(flat[token] if scales == "row" else flat[column // BLOCK * TOKENS + token])
    expert, row, column = index
    rows, columns = (2 * INTER, DIM) if name == "w1" else (DIM, INTER)
    if scales == "row":
        return float(flat[expert * rows + row])
    per_row = columns // BLOCK
    return float(flat[(expert * (rows // BLOCK) + row // BLOCK) * per_row + column // BLOCK])


def scale_count(scales: str, rows: int, columns: int) -> int:
    return rows if scales == "row" else rows // BLOCK * (columns // BLOCK)


@pytest.mark.parametrize(("dtype", "scales"), [
    (BF16, "none"), (np.dtype(np.int8), "row"), (FP8, "row"), (FP8, "block")])
def test_layers_against_loops(dtype: np.dtype[np.generic], scales: str) -> None:
    rng = np.random.default_rng(7)

    def elements(*shape: int) -> Array:
        values = rng.standard_normal(shape) * (1 if dtype == BF16 else 30)
        return np.clip(values, -120, 120).astype(dtype)

    x, w1, w2 = elements(TOKENS, DIM), elements(EXPERTS, 2 * INTER, DIM), elements(
        EXPERTS, DIM, INTER)
    arrays: dict[str, Array] = {
        **tables(rng), "x": x.reshape(-1), "w1": shuffled(w1), "w2": shuffled(w2),
        "out": rng.standard_normal(TOKENS * DIM).astype(BF16)}
    if scales != "none":
        sizes = {"x": TOKENS if scales == "row" else DIM // BLOCK * TOKENS,
                 "w1": EXPERTS * scale_count(scales, 2 * INTER, DIM),
                 "w2": EXPERTS * scale_count(scales, DIM, INTER)}
        for name, size in sizes.items():
            arrays[f"{name}_scale"] = (rng.standard_normal(size) * 0.01).astype(np.float32)
    layer = FusedMoe(scales=scales, block=BLOCK, rows=ROWS, hidden_block=BLOCK)
    arrays |= layer.prepare(arrays, NAMES, rng)
    assert not arrays["out"].any()

    chosen: dict[tuple[int, int], tuple[int, float]] = {}
    for row in range(int(arrays["valid_ids"][0])):
        identity = int(arrays["sorted_ids"][row])
        if identity & 0xFFFFFF < TOKENS:
            chosen[identity & 0xFFFFFF, identity >> 24] = (
                int(arrays["sorted_experts"][row // ROWS]), float(arrays["sorted_weights"][row]))
    assert len(chosen) == TOKENS * TOP
    hidden = np.zeros((TOKENS, TOP, INTER))
    out = np.zeros((TOKENS, DIM))
    for (token, choice), (expert, weight) in chosen.items():
        for column in range(INTER):
            gate, up = (
                sum(float(x[token, d]) * scale_of(arrays, scales, "x", (token, d))
                    * float(w1[expert, r, d]) * scale_of(arrays, scales, "w1", (expert, r, d))
                    for d in range(DIM)) for r in (column, INTER + column))
            hidden[token, choice, column] = gate / (1 + math.exp(-gate)) * up
        held = requantised(hidden[token, choice][None], dtype, BLOCK)[0]
        for d in range(DIM):
            out[token, d] += weight * sum(
                held[r] * float(w2[expert, d, r]) * scale_of(arrays, scales, "w2", (expert, d, r))
                for r in range(INTER))
    assert np.allclose(layer.reference(arrays, NAMES)["out"], out.reshape(-1), rtol=1e-9)

    first = MoeFirstStage(scales=scales, block=BLOCK, rows=ROWS)
    found = first.reference({**arrays, "out": np.zeros(TOKENS * TOP * INTER)}, NAMES)["out"]
    assert np.allclose(found, hidden.reshape(-1), rtol=1e-9)


def test_requantised_values() -> None:
    values = np.array([[1.0, -4.0, 2.9, 0.0, 1e-7, 2e-7, 0.0, 0.0]])
    found = requantised(values, np.dtype(np.int8), 4)
    # 127 / 4 a unit: 31.75, -127, 92.075, 0 are cut, not rounded; below 1e-6 the scale stays.
    assert np.allclose(found[0, :4] * 127 / 4, [31, -127, 92, 0])
    assert np.allclose(found[0, 4:] * 127 / 1e-6, [12, 25, 0, 0])
    # 240 / 4 a unit: 60 and -240 are e4m3fnuz, 174 lies between 168 and 176.
    assert np.allclose(requantised(values, FP8, 4)[0, :4] * 60, [60, -240, 176, 0])
    assert requantised(np.array([[1 + 2.0**-8, 1 + 3 * 2.0**-8]]), BF16, 2).tolist() == [
        [1.0, 1 + 2.0**-6]]


def test_activations() -> None:
    for x in (-3.0, -1.0, 0.0, 0.5, 20.0):
        assert math.isclose(silu(np.array(x)), x / (1 + math.exp(-x)))
        assert math.isclose(
            gelu_tanh(np.array(x)), x / (1 + math.exp(-1.5957691216 * (x + 0.044715 * x**3))),
            rel_tol=1e-9)


def test_zero_tokens_of_scales_impossible_ones_and_nan() -> None:
    rng = np.random.default_rng(0)
    given = np.array([1, -2, np.nan, np.inf, 3e38], np.float32)
    given.view(np.uint32)[2] = 0xFFC12345
    made = ExpertLayer.prepare(FusedMoe(rows=ROWS), {**tables(rng), "x_scale": given}, NAMES, rng)
    assert made["x_scale"][[0, 1, 3, 4]].tolist() == [1, 2, 0, 0]
    assert made["x_scale"].view(np.uint32)[2] == 0xFFC12345


def test_unknown_choices_are_named() -> None:
    with pytest.raises(MoeError, match="unknown activation 'relu'"):
        FusedMoe(activation="relu")
    with pytest.raises(MoeError, match="unknown scales 'token'"):
        FusedMoe(scales="token")
