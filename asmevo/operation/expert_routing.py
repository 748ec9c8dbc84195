"""Which tokens an expert works on, sorted by expert as kernels take them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from asmevo.operation.operation import Array, Arrays

_TOKEN_BITS = 24
_TOKEN_MASK = (1 << _TOKEN_BITS) - 1


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of one expert: tokens, which of a token's choices it is, and its weight."""

    expert: int
    tokens: Array
    choices: Array
    weights: Array


def drawn(tokens: int, experts: int, top: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """``top`` different experts for every token and their weights, which sum to one.

    One expert stays without tokens if there are more than ``top``.
    """
    logits = rng.standard_normal((tokens, experts))
    if experts > top:
        logits[:, rng.integers(experts)] = -np.inf
    chosen = np.argsort(-logits, axis=1, kind="stable")[:, :top]
    weights = np.exp(np.take_along_axis(logits, chosen, axis=1))
    return chosen, (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)


def sorted_tables(chosen: Array, weights: Array, arrays: Arrays, rows: int) -> dict[str, Array]:
    """Contents of ``sorted_ids``, ``sorted_weights`` if a kernel takes them, ``sorted_experts`` and
    ``valid_ids``.

    Every expert's rows, in the order of tokens, fill blocks of ``rows``. A row is
    ``choice << 24 | token``; the rest of a block names the token after the last one with weight
    zero, as AITER's ``moe_sorting`` leaves it. ``valid_ids`` counts rows up to the end of the last
    block, then tokens. What lies beyond keeps its old contents: the host allocates for the worst
    case and does not clear.
    """
    tokens, top = chosen.shape
    ids, owners = arrays["sorted_ids"].copy(), arrays["sorted_experts"].copy()
    scales = arrays.get("sorted_weights", np.zeros(len(ids), np.float32)).copy()
    block = 0
    for expert in range(int(chosen.max()) + 1):
        token, choice = np.nonzero(chosen == expert)
        used = -(-len(token) // rows)
        place = slice(block * rows, (block + used) * rows)
        padding = used * rows - len(token)
        ids[place] = np.append(choice << _TOKEN_BITS | token,
                               np.full(padding, top << _TOKEN_BITS | tokens))
        scales[place] = np.append(weights[token, choice], np.zeros(padding))
        owners[block:block + used] = expert
        block += used
    tables = {
        "sorted_ids": ids, "sorted_weights": scales, "sorted_experts": owners,
        "valid_ids": np.array([block * rows, tokens], arrays["valid_ids"].dtype),
    }
    return {name: table for name, table in tables.items() if name in arrays}


def groups(arrays: Arrays, tokens: int, rows: int) -> Iterator[Group]:
    """The rows that the tables describe, block by block, without padding; weights may be absent."""
    ids = arrays["sorted_ids"].astype(np.int64)
    weights = arrays.get("sorted_weights", np.ones(len(ids)))
    for block in range(-(-int(arrays["valid_ids"][0]) // rows)):
        place = slice(block * rows, (block + 1) * rows)
        token = ids[place] & _TOKEN_MASK
        real = token < tokens
        yield Group(
            int(arrays["sorted_experts"][block]), token[real],
            (ids[place] >> _TOKEN_BITS)[real], weights[place][real].astype(np.float64),
        )
