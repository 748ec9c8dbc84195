"""The references of attention, against formulations that nothing is shared with."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from asmevo.operation.attention import AttentionForward, AttentionForwardFp8, online_softmax
from asmevo.operation.attention_backward import AttentionBackward
from asmevo.operation.bf16 import ROUNDINGS, to_bf16
from asmevo.operation.operation import Array
from asmevo.operation.sequences import heads, pack

BF16 = ml_dtypes.bfloat16


def bf16(rng: np.random.Generator, *shape: int) -> Array:
    return rng.normal(0, 1, shape).astype(BF16).reshape(-1)


def test_rounding_to_nearest_even_is_that_of_ml_dtypes() -> None:
    bits = np.random.default_rng(0).integers(0, 1 << 32, 100_000, dtype=np.uint32)
    infinite = np.array([np.inf, -np.inf], np.float32)
    values = np.concatenate([bits.view(np.float32), infinite])
    with np.errstate(invalid="ignore", over="ignore"):
        expected = values.astype(BF16).astype(np.float64)
    np.testing.assert_array_equal(to_bf16(values, "rtne"), expected)


@pytest.mark.parametrize(("value", "rtne", "rtna", "rtz"), [
    (1 + 2**-8, 1, 1 + 2**-7, 1),                        # a tie above an even mantissa
    (1 + 3 * 2**-8, 1 + 2**-6, 1 + 2**-6, 1 + 2**-7),    # and above an odd one
    (-1 - 2**-8, -1, -1 - 2**-7, -1),
    (1 + 2**-8 - 2**-23, 1, 1, 1),
    (1 + 2**-8 + 2**-23, 1 + 2**-7, 1 + 2**-7, 1),
    (2 - 2**-23, 2, 2, 2 - 2**-7),
    (math.inf, math.inf, math.inf, math.inf),
])
def test_ties_and_neighbours(value: float, rtne: float, rtna: float, rtz: float) -> None:
    assert [to_bf16(np.array(value), r) for r in ROUNDINGS] == [rtne, rtna, rtz]


def test_a_nan_stays_one_and_an_unknown_rounding_is_named() -> None:
    # 0x7f800001: its upper half alone would be an infinity.
    nan = np.array([0x7F800001], np.uint32).view(np.float32)
    assert all(np.isnan(to_bf16(nan, r)[0]) for r in ROUNDINGS)
    with pytest.raises(ValueError, match="'up'"):
        to_bf16(nan, "up")


@pytest.mark.parametrize("tile", [1, 3, 7, 100])
@pytest.mark.parametrize("backwards", [False, True])
def test_tiles_and_their_order_do_not_show_without_rounding(tile: int, backwards: bool) -> None:
    rng = np.random.default_rng(tile)
    scores, values = rng.normal(0, 4, (5, 7)), rng.normal(0, 1, (7, 3))
    scores[2, :6] = -np.inf
    numerators, denominators, maxima = online_softmax(
        scores, values, lambda weights: weights, tile, backwards)
    weights = np.exp(scores)
    np.testing.assert_allclose(numerators / denominators,
                               weights @ values / weights.sum(axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(maxima[:, 0] + np.log(denominators[:, 0]),
                               np.log(weights.sum(axis=1)), rtol=1e-12)


@pytest.mark.parametrize("queries", [3, 6, 9])
@pytest.mark.parametrize("causal", [False, True])
def test_forward_against_loops(queries: int, causal: bool) -> None:
    """Two batches, four heads of queries on two of keys, with gaps between rows and batches."""
    rng = np.random.default_rng(queries)
    batch, keys, columns, gap = 2, 5, 4, 6
    names: dict[str, int | float] = {
        "B": batch, "S": queries, "T": keys, "H": 4, "R": 2, "qk_dim": columns,
        "v_dim": columns, "scale": 0.5, "lse_head": queries * 4}
    sizes = {"q": (4, queries), "k": (2, keys), "v": (2, keys), "o": (4, queries)}
    arrays = {"lse": np.zeros(batch * 4 * queries, np.float32)}
    for name, (count, rows) in sizes.items():
        row = count * columns + gap
        names |= {f"{name}_row": row * 2, f"{name}_head": columns * 2,
                  f"{name}_batch": (rows * row + gap) * 2}
        arrays[name] = bf16(rng, batch * (rows * row + gap))

    def at(name: str, b: int, head: int, row: int, column: int) -> int:
        return (b * int(names[f"{name}_batch"]) + head * int(names[f"{name}_head"])
                + row * int(names[f"{name}_row"])) // 2 + column

    found = AttentionForward(causal=causal, query_tile=3, key_tile=2, backwards=True).reference(
        arrays, names)
    written: set[int] = set()
    for b in range(batch):
        for head in range(4):
            for i in range(queries):
                seen = [j for j in range(keys) if not causal or j <= i + keys - queries]
                weights = [math.exp(0.5 * sum(
                    float(arrays["q"][at("q", b, head, i, c)])
                    * float(arrays["k"][at("k", b, head // 2, j, c)]) for c in range(columns)
                )) for j in seen]
                logarithm = math.log(sum(weights)) if seen else -math.inf
                assert found["lse"][(b * 4 + head) * queries + i] == pytest.approx(logarithm)
                for c in range(columns):
                    terms = [w * float(arrays["v"][at("v", b, head // 2, j, c)])
                             for w, j in zip(weights, seen, strict=True)]
                    place = at("o", b, head, i, c)
                    written.add(place)
                    # Weights and result are rounded to eight bits, by 2^-8 of them at most.
                    assert found["o"][place] == pytest.approx(
                        sum(terms) / sum(weights) if seen else 0, rel=0,
                        abs=2**-7 * sum(map(abs, terms)) / max(sum(weights), 1e-30))
    left_open = np.flatnonzero(np.isnan(found["o"]))
    assert written.isdisjoint(left_open)
    assert len(written) + len(left_open) == len(arrays["o"])


def test_rows_outside_a_buffer_are_refused() -> None:
    names = {"B": 1, "S": 3, "T": 3, "H": 1, "R": 1, "qk_dim": 4, "v_dim": 4,
             "scale": 1, "lse_head": 12, **{f"{name}_row": 8 for name in "qkvo"}}
    arrays = {name: np.zeros(11 if name == "k" else 12, BF16) for name in "qkvo"}
    with pytest.raises(ValueError, match="'k'"):
        AttentionForward(causal=False).reference({**arrays, "lse": np.zeros(3)}, names)


def test_fp8_scales_are_those_of_the_head_of_keys() -> None:
    rng = np.random.default_rng(3)
    names = {"B": 1, "S": 2, "T": 3, "H": 4, "R": 2, "qk_dim": 4, "v_dim": 4,
             "scale": 1, "lse_head": 8,
             "q_row": 16, "q_head": 4, "k_row": 8, "k_head": 4, "v_row": 8, "v_head": 4,
             "o_row": 32, "o_head": 8,
             **{f"{name}_scale_{stride}": size for name in "qkv"
                for stride, size in (("batch", 8), ("head", 4))}}
    operation = AttentionForwardFp8(causal=False)
    arrays = {**{name: rng.normal(0, 1, size).astype(ml_dtypes.float8_e4m3fnuz)
                 for name, size in (("q", 32), ("k", 24), ("v", 24))},
              "o": np.zeros(32, BF16), "lse": np.zeros(8, np.float32),
              **{f"{name}_scale": np.zeros(2, np.float32) for name in "qkv"}}
    arrays |= operation.prepare(arrays, names, rng)
    found = operation.reference(arrays, names)["o"].reshape(2, 4, 4)
    for head in range(4):
        group = head // 2
        q = arrays["q"].reshape(2, 4, 4)[:, head] * np.float64(arrays["q_scale"][group])
        k = arrays["k"].reshape(3, 2, 4)[:, group] * np.float64(arrays["k_scale"][group])
        v = arrays["v"].reshape(3, 2, 4)[:, group] * np.float64(arrays["v_scale"][group])
        weights = np.exp(q @ k.T)
        weights /= weights.sum(axis=1, keepdims=True)
        np.testing.assert_array_less(np.abs(found[:, head] - weights @ v),
                                     2**-4 * weights @ np.abs(v) + 1e-9)


def test_packed_sequences() -> None:
    names = {"B": 4, "S": 9, "T": 20, "H": 2, "R": 2, "P": 3}
    arrays = {f"{name}_{kind}": np.zeros(5, np.int32) for name in "qk"
              for kind in ("starts", "bounds")}
    for seed in range(20):
        made = pack(arrays, names, np.random.default_rng(seed))
        for name, longest in (("q", 9), ("k", 20)):
            lengths = np.diff(made[f"{name}_bounds"])
            padding = np.diff(made[f"{name}_starts"]) - lengths
            assert lengths.min() >= 1
            assert lengths.max() == longest
            assert padding.min() >= 0
            assert padding.max() <= 3
        rows = [(q.first, q.count, k.first, k.count) for q, k in heads(made, names) if q.head]
        assert [row[1] for row in rows] == np.diff(made["q_bounds"]).tolist()
        assert [row[2] for row in rows] == made["k_starts"][:4].tolist()


@pytest.mark.parametrize("mask", ["full", "top_left", "bottom_right"])
def test_backward_against_differences(mask: str) -> None:
    """``sum(o * do)`` along random directions of q, k and v, in f64 and of a softmax of its own."""
    rng = np.random.default_rng(5)
    names = {"B": 2, "S": 4, "T": 6, "H": 4, "R": 2, "D": 8, "scale": 0.35}
    shapes = {"q": (2, 4, 4, 8), "k": (2, 6, 2, 8), "v": (2, 6, 2, 8), "do": (2, 4, 4, 8)}
    arrays = {name: bf16(rng, *shape) for name, shape in shapes.items()}
    arrays |= {"lse": np.zeros(32, np.float32), "d": np.zeros(32, np.float32),
               "dq": np.ones(256, np.float32), "dk": np.zeros(384, BF16), "dv": np.zeros(384, BF16)}
    operation = AttentionBackward(mask=mask, rounding="rtne")
    arrays |= operation.prepare(arrays, names, rng)
    assert not arrays["dq"].any()
    found = operation.reference(arrays, names)
    exact = {name: arrays[name].astype(np.float64).reshape(shape)
             for name, shape in shapes.items()}

    def loss(q: Array, k: Array, v: Array) -> float:
        k, v = (np.repeat(x, 2, axis=2) for x in (k, v))
        scores = np.einsum("bihc,bjhc->bhij", q, k) * 0.35
        i, j = np.ogrid[:4, :6]
        hidden = {"full": j < 0, "top_left": j > i, "bottom_right": j > i + 2}[mask]
        weights = np.where(hidden, 0, np.exp(scores))
        weights /= weights.sum(axis=-1, keepdims=True)
        return float((np.einsum("bhij,bjhc->bihc", weights, v) * exact["do"]).sum())

    inputs = [exact[name] for name in "qkv"]
    per_head = {name: found[f"d{name}"].reshape(2, 6, 2, 2, 8).sum(axis=3) for name in "kv"}
    gradients = [found["dq"].reshape(2, 4, 4, 8).transpose(0, 2, 1, 3), per_head["k"],
                 per_head["v"]]
    for which, gradient in enumerate(gradients):
        for _ in range(3):
            step = rng.normal(0, 1, gradient.shape)
            there, back = ([x + sign * step if n == which else x for n, x in enumerate(inputs)]
                           for sign in (1e-5, -1e-5))
            slope = (loss(*there) - loss(*back)) / 2e-5
            size = float(np.linalg.norm(gradient) * np.linalg.norm(step))
            # Weights, their gradients and results are rounded to eight bits.
            assert float((gradient * step).sum()) == pytest.approx(slope, abs=2**-8 * size)
