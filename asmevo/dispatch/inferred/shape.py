"""A launch that worked, and what it touched."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asmevo.dispatch.inferred.argument import Use
from asmevo.dispatch.inferred.probing import Launched, Prober, Touched

_WIDEST = 8  # bytes of an element


@dataclass(frozen=True)
class Shape:
    """One launch that the kernel was seen to do, and what it touched."""

    launch: Launched
    endless: frozenset[int]
    touched: Touched
    varies: frozenset[str]
    held_out: bool


def written(name: str, shape: Shape) -> bytes:
    """The written part of a buffer, in whole words of the widest element."""
    mask, after = shape.touched.written[name], shape.touched.ordinary[name]
    whole = len(mask) // _WIDEST * _WIDEST
    words = mask[:whole].reshape(-1, _WIDEST).all(axis=1)
    if not words.any():
        return after
    return np.frombuffer(after[:whole], np.uint8).reshape(-1, _WIDEST)[words].tobytes()


def same(prober: Prober, one: Shape, other: Shape) -> bool:
    return one.launch.grid == other.launch.grid and all(
        one.launch.scalars[s.name] == other.launch.scalars[s.name]
        for s in prober.scalars if s.use is not Use.UNUSED)


def bounded(shape: Shape) -> int:
    """Workgroups along axes that end."""
    count = 1
    for axis in range(3):
        if axis not in shape.endless:
            count *= shape.launch.grid[axis]
    return count
