"""Where the heads of a batch of sequences lie in the buffers of an attention kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided

from asmevo.operation.operation import Array, Arrays, Names


@dataclass(frozen=True)
class Rows:
    """``count`` consecutive rows of one head: from row ``first`` of batch ``batch`` on. They are
    the sequence number ``sequence``."""

    batch: int
    head: int
    first: int
    count: int
    sequence: int

    def of(self, array: Array, names: Names, name: str, columns: int, size: int = 0) -> Array:
        """These rows as a view of the flat ``array``, which is laid out like the buffer ``name``.

        The strides are the scalars ``<name>_batch``, ``<name>_head`` and ``<name>_row``, in bytes;
        ``size`` is that of the buffer's elements, where ``array`` has others. A stride that the
        kernel does not take is 0.
        """
        size = size or array.itemsize
        row = int(names[f"{name}_row"])
        start = (self.batch * int(names.get(f"{name}_batch", 0))
                 + self.head * int(names.get(f"{name}_head", 0)) + self.first * row) // size
        row //= size
        if start < 0 or (self.count and start + (self.count - 1) * row + columns > len(array)):
            raise ValueError(f"rows of '{name}' lie outside the buffer")
        return as_strided(array[start:], (self.count, columns),
                          (row * array.itemsize, array.itemsize))


def heads(arrays: Arrays, names: Names) -> Iterator[tuple[Rows, Rows]]:
    """For every head of every sequence the rows of its queries, and those of its keys.

    There are ``B`` sequences with ``H`` heads of queries, ``R`` of them to a head of keys. They are
    batches of ``S`` queries and ``T`` keys; or, with a buffer ``q_starts``, of any length and one
    after the other: ``q_starts`` and ``k_starts`` hold where their rows start and the last ones
    end, ``q_bounds`` and ``k_bounds`` the sums of how many rows from each start on mean something.
    """
    packed = "q_starts" in arrays
    for sequence in range(int(names["B"])):
        for head in range(int(names["H"])):
            places = []
            for name, longest, own in (("q", "S", head), ("k", "T", head // int(names["R"]))):
                first, count, batch = 0, int(names[longest]), sequence
                if packed:
                    first, batch = int(arrays[f"{name}_starts"][sequence]), 0
                    count = int(np.diff(arrays[f"{name}_bounds"])[sequence])
                places.append(Rows(batch, own, first, count, sequence))
            yield places[0], places[1]


def _lengths(count: int, longest: int, rng: np.random.Generator) -> Array:
    """Random lengths up to ``longest``, which is one of them.

    A buffer for the longest everywhere must not stay mostly unwritten: the others are pairs, one as
    much shorter as the other is long, and what has no partner is at least a quarter.
    """
    lengths = np.full(count, longest)
    half = (count - 1) // 2
    lengths[1:1 + half] = rng.integers(1, longest + 1, half)
    lengths[1 + half:1 + 2 * half] = longest + 1 - lengths[1:1 + half]
    lengths[1 + 2 * half:] = rng.integers(-(-longest // 4), longest + 1, count - 1 - 2 * half)
    return rng.permutation(lengths)


def pack(arrays: Arrays, names: Names, rng: np.random.Generator) -> Arrays:
    """Contents of ``q_starts`` and the like: random lengths up to ``S`` or ``T``, and up
    to ``P`` rows without a meaning after every sequence. Nothing if there are no such buffers."""
    made: dict[str, Array] = {}
    if "q_starts" not in arrays:
        return made
    for name, longest in (("q", int(names["S"])), ("k", int(names["T"]))):
        lengths = _lengths(int(names["B"]), longest, rng)
        padded = np.minimum(lengths + rng.integers(0, int(names["P"]) + 1, len(lengths)), longest)
        for kind, sizes in (("bounds", lengths), ("starts", padded)):
            array = arrays[f"{name}_{kind}"]
            made[f"{name}_{kind}"] = np.concatenate(([0], np.cumsum(sizes))).astype(array.dtype)
    return made
