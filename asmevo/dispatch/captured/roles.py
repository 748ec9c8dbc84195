"""Which parts of a capture a kernel only writes, found out by launching it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import numpy as np

from asmevo.dispatch.dispatch import Dispatch, Role

Launch = Callable[[Dispatch], "Sequence[bytes] | None"]
"""Region bytes after a launch, ``None`` for one that does not come to its end."""

_MOST_ALONE = 32
_LEAST_WRITTEN = 0.5


def pure_outputs(dispatch: Dispatch, after: Sequence[bytes], launch: Launch,
                 candidates: Collection[int]) -> frozenset[int]:
    """Those of the regions ``candidates`` that the kernel writes without having read them.

    Whatever such a region holds before the launch, it holds the same after it, but for bytes that
    the kernel leaves alone. It is filled with random bytes and with their complements: a byte that
    neither launch changes is one of those, and a kernel that reads any tells the two apart. A
    region of which little is written is no output: to fill it would prove nothing.
    """
    left = [i for i in candidates if dispatch.regions[i].role is Role.INOUT
            and not dispatch.regions[i].order_dependent and dispatch.regions[i].guard == 0]
    if not left:
        return frozenset()
    if _independent(dispatch, after, launch, left):
        return frozenset(left)
    alone = [i for i in left[:_MOST_ALONE] if _independent(dispatch, after, launch, [i])]
    return frozenset(alone if len(alone) < 2 or _independent(dispatch, after, launch, alone)
                     else alone[:1])


def _independent(dispatch: Dispatch, after: Sequence[bytes], launch: Launch,
                 filled: Sequence[int]) -> bool:
    rng = np.random.default_rng(len(after))
    noise = {i: np.frombuffer(rng.bytes(len(after[i])), np.uint8) for i in filled}
    fillings = (noise, {i: ~bits for i, bits in noise.items()})
    results = []
    for filling in fillings:
        result = launch(replace(dispatch, regions=tuple(
            replace(r, data=filling[i].tobytes()) if i in filling else r
            for i, r in enumerate(dispatch.regions))))
        if result is None:
            return False
        results.append([np.frombuffer(data, np.uint8) for data in result])
    first, second = results
    for i, data in enumerate(after):
        want = np.frombuffer(data, np.uint8)
        written = np.ones(len(want), np.bool_)
        if i in noise:
            written = (first[i] != fillings[0][i]) | (second[i] != fillings[1][i])
            if written.mean() < _LEAST_WRITTEN:
                return False
        if (first[i] != want)[written].any() or (second[i] != want)[written].any():
            return False
    return True
