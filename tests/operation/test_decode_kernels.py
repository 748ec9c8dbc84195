"""AITER's paged attention and MLA decoding on the emulator, and their references."""

from __future__ import annotations

import math
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from asmevo.operation.mla import MlaDecodeSplits
from asmevo.operation.operation import Array
from asmevo.operation.paged_attention import PagedDecode, PagedDecodeFp8, PagedDecodeInt8
from asmevo.report.result import Result, Status
from tests.operation.conftest import accuracies

RunKernel = Callable[..., Result]

# One tile of 256 tokens, several with a tail, less than a page.
CONTEXTS = ("{B: 1, L: 16, short: 0}", "{B: 3, L: 41, short: 3}", "{B: 1, L: 1, short: 15}")
LARGE_GROUP = ("kernel.constants.O=16", "kernel.constants.G=16", "kernel.constants.H=1")
TIMED = "kernel.launch.relies_on_time=true"


@pytest.mark.parametrize(("cache", "overrides"), [
    ("", ()), ("", LARGE_GROUP), ("", ("kernel.constants.G=5",)),
    ("_int8", ()), ("_int8", (*LARGE_GROUP, TIMED)),
    ("_fp8", ()), ("_fp8", (*LARGE_GROUP, TIMED)),
])
def test_paged_attention(run_kernel: RunKernel, cache: str, overrides: tuple[str, ...]) -> None:
    result = run_kernel(f"aiter_paged_attention{cache}", CONTEXTS, *overrides, "task.repeats=2")
    assert result.status is Status.AGREES, result.error


@pytest.mark.parametrize(("cache", "overrides"), [("", ()), ("_int8", LARGE_GROUP)])
def test_attention_that_needs_time(run_kernel: RunKernel, cache: str,
                                   overrides: tuple[str, ...]) -> None:
    result = run_kernel(f"aiter_paged_attention{cache}", CONTEXTS[1:2], *overrides,
                        "kernel.launch.relies_on_time=false")
    assert result.status is Status.DISAGREES
    assert accuracies(result)["out"]["cosine"] < 0.999


@pytest.mark.parametrize(("name", "overrides"), [
    ("aiter_mla_decode", ("kernel.constants.S=1",)),
    ("aiter_mla_decode", ("kernel.constants.S=3",)),
    ("aiter_mla_decode_mqa128", ()), ("aiter_mla_decode_fp8", ()),
])
def test_mla(run_kernel: RunKernel, name: str, overrides: tuple[str, ...]) -> None:
    shapes = ("{B: 2, L: 150}", "{B: 1, L: 1}")
    result = run_kernel(name, shapes, *overrides, "task.repeats=2")
    assert result.status is Status.AGREES, result.error
    assert accuracies(result).keys() == {"out", "lse"}


def attention(q: list[float], k: list[list[float]], v: list[list[float]],
              scale: float) -> tuple[list[float], float]:
    """Of one query, in loops and without rounding; also the logarithm of the sum."""
    logits = [sum(a * b for a, b in zip(q, row, strict=True)) * scale for row in k]
    weights = [math.exp(x - max(logits)) for x in logits]
    total = sum(weights)
    out = [sum(w * row[d] for w, row in zip(weights, v, strict=True)) / total
           for d in range(len(v[0]))]
    return out, max(logits) + math.log(total)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.int8])
def test_paged_reference(dtype: type) -> None:
    sequences, pages, heads, group, size, tokens = 2, 3, 2, 3, 32, 16
    vector = 16 // np.dtype(dtype).itemsize
    rng = np.random.default_rng(0)
    names = {"B": sequences, "L": pages, "H": heads, "G": group, "D": size, "P": tokens,
             "short": 3, "scale": 0.25}
    cache = 8 * heads * size * tokens
    arrays: dict[str, Array] = {
        "q": rng.normal(size=sequences * heads * group * size).astype(ml_dtypes.bfloat16),
        "k": rng.integers(-3, 4, cache).astype(dtype),
        "v": rng.integers(-3, 4, cache).astype(dtype),
        "block_tables": np.zeros(sequences * pages, np.int32),
        "context_lens": np.zeros(sequences, np.int32),
    }
    if dtype is np.int8:
        for name in ("k_scale", "v_scale"):
            arrays[name] = np.zeros(8 * heads * tokens, np.float32)
    arrays.update(PagedDecode().prepare(arrays, names, rng))
    found = PagedDecode().reference(arrays, names)["out"].reshape(sequences, heads, group, size)

    assert arrays["context_lens"][0] == pages * tokens - 3
    k = arrays["k"].reshape(8, heads, size // vector, tokens, vector)
    v = arrays["v"].reshape(8, heads, tokens // vector, size, vector)
    one = np.ones(8 * heads * tokens, np.float32)
    k_scale = arrays.get("k_scale", one).reshape(8, heads, tokens)
    v_scale = arrays.get("v_scale", one).reshape(8, heads, tokens)
    for sequence in range(sequences):
        keys: list[list[list[float]]] = [[] for _ in range(heads)]
        values: list[list[list[float]]] = [[] for _ in range(heads)]
        for token in range(arrays["context_lens"][sequence]):
            page = arrays["block_tables"].reshape(sequences, pages)[sequence, token // tokens]
            at = token % tokens
            for head in range(heads):
                keys[head].append([float(k[page, head, d // vector, at, d % vector])
                                   * float(k_scale[page, head, at]) for d in range(size)])
                values[head].append([float(v[page, head, at // vector, d, at % vector])
                                     * float(v_scale[page, head, at]) for d in range(size)])
        for head in range(heads):
            for row in range(group):
                q = arrays["q"].reshape(sequences, heads, group, size)[sequence, head, row]
                expected, _ = attention([float(x) for x in q], keys[head], values[head],
                                        0.25 * math.log(2))
                assert found[sequence, head, row] == pytest.approx(expected, abs=0.01)


def test_contexts_that_the_objects_get_wrong_do_not_occur() -> None:
    rng = np.random.default_rng(1)
    names = {"B": 400, "L": 16, "H": 1, "D": 8, "P": 16, "short": 7}
    arrays: dict[str, Array] = {"k": np.zeros(6400 * 128, np.int8)}
    tables = PagedDecode().prepare(arrays, names, rng)
    lengths = tables["context_lens"]
    assert lengths[0] == 256
    assert not ((lengths > 240) & (lengths < 256)).any()
    entries = tables["block_tables"].reshape(400, 16)
    assert ((entries >= 0) == (np.arange(16) * 16 < lengths[:, None])).all()
    used = entries[entries >= 0]
    assert len(np.unique(used)) == len(used)


@pytest.mark.parametrize(("operation", "error"), [
    (PagedDecodeInt8(), 0.1), (PagedDecodeFp8(), 0.2)])
def test_quantised_attention_is_near_the_exact_one(operation: PagedDecode, error: float) -> None:
    rng = np.random.default_rng(2)
    q, k, v = (rng.normal(size=(rows, 64)) for rows in (4, 600, 600))
    ones = np.ones(600)
    exact = PagedDecode()._attend(q, k, v, ones, ones, scale=0.18)
    found = operation._attend(q, k, v, ones, ones, scale=0.18)
    assert 0 < np.abs(found - exact).max() < error * np.abs(exact).max()


def test_mla_reference() -> None:
    sequences, splits, heads, values, rotary = 2, 2, 2, 4, 2
    rng = np.random.default_rng(3)
    names = {"B": sequences, "S": splits, "G": heads, "D": values, "R": rotary, "L": 11,
             "scale": 0.4}
    arrays: dict[str, Array] = {
        "q": rng.normal(size=sequences * heads * 6).astype(ml_dtypes.bfloat16),
        "kv": rng.normal(size=30 * 6).astype(ml_dtypes.bfloat16),
        "kv_indptr": np.array([0, 11, 14], np.int32),
        "kv_page_indices": rng.permutation(30)[:22].astype(np.int32),
    }
    found = MlaDecodeSplits(tile=4).reference(arrays, names)
    out = found["out"].reshape(sequences, splits, heads, values)
    lse = found["lse"].reshape(sequences, splits, heads)
    assert np.isnan(out[1, 1]).all()  # three tokens are one tile
    assert np.isnan(lse[1, 1]).all()
    parts = {(0, 0): [0, 1, 2, 3, 8, 9, 10], (0, 1): [4, 5, 6, 7], (1, 0): [11, 12, 13]}
    for (sequence, split), tokens in parts.items():
        rows = [[float(x) for x in arrays["kv"].reshape(30, 6)[arrays["kv_page_indices"][t]]]
                for t in tokens]
        for head in range(heads):
            q = [float(x) for x in arrays["q"].reshape(sequences, heads, 6)[sequence, head]]
            expected, logarithm = attention(q, rows, [row[:values] for row in rows], 0.4)
            assert out[sequence, split, head] == pytest.approx(expected, abs=0.01)
            assert lse[sequence, split, head] == pytest.approx(logarithm)
