"""What a correct kernel may not depend on, and how it varies between runs."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from enum import Enum

import numpy as np

from asmevo.device.device import LaunchState, NanBits, WorkgroupOrder
from asmevo.dispatch.dispatch import Dispatch


class Line(Enum):
    """Where a buffer has an address with a lower word of zero."""

    MIDDLE = "middle"
    ANYWHERE = "anywhere"


_ORDERS = (WorkgroupOrder.ASCENDING, WorkgroupOrder.DESCENDING, WorkgroupOrder.SHUFFLED)
# Rounding f32 to bf16 by adding to its bits makes a zero of the full ones, and the original is held
# against itself in the first two repeats.
_NANS = (NanBits.FULL, NanBits.QUIET, NanBits.NEGATIVE_FULL)
# Runs of the original under other workgroup orders, from which its noise is known.
_ENVELOPE_RUNS = 5
_PAGE = 4096
_NAN_REPEAT = 2
# The first repeat is the one that is timed.
_LINES = (None, Line.MIDDLE, Line.ANYWHERE)
_MOST_PAGES_DOWN = 0x5_0000_0000


@dataclass(frozen=True, slots=True)
class Condition:
    """What one verification repeat varies, and a correct kernel may not depend on.

    ``displacement`` moves every buffer by that many bytes, ``output_seed`` fills pure outputs
    before the launch (None: with ones, NaN in 16 and 32 bits), ``state`` sets undefined
    registers and LDS, the bits of NaNs and workgroup order. ``line`` is where buffers have lines of
    4 GiB in them: nowhere (None), in the middle, or somewhere.
    """

    state: LaunchState
    output_seed: int | None
    displacement: int
    line: Line | None = None

    def prepare(self, dispatch: Dispatch, whole: Container[str] = ()) -> Dispatch:
        """``whole`` names buffers in which no line may lie."""
        moved = dispatch.moved(self.displacement)
        if self.line is not None:
            moved = moved.across_lines(self.state.poison, middle=self.line is Line.MIDDLE,
                                       whole=whole)
        return moved.with_poisoned_outputs(self.output_seed)


def condition(repeat: int, seed: int) -> Condition:
    """The condition of verification repeat ``repeat`` (0, 1, 2...)."""
    rng = np.random.default_rng([seed, repeat])
    poison, output_seed = (int(word) for word in rng.integers(1, 1 << 32, size=2))
    # Downwards over most of the user address space: high address bits change as well.
    pages = int(rng.integers(1, _MOST_PAGES_DOWN))
    return Condition(
        state=LaunchState(poison, _ORDERS[repeat % len(_ORDERS)], nan=_NANS[repeat % len(_NANS)]),
        # Zero times what an output held is zero, but for NaN.
        output_seed=None if repeat % 3 == _NAN_REPEAT else output_seed,
        displacement=-pages * _PAGE,
        line=_LINES[repeat % len(_LINES)],
    )


def envelope_states(seed: int) -> tuple[LaunchState, ...]:
    """Both ways through the workgroups, and different shuffles: a poison seeds its shuffle."""
    rng = np.random.default_rng([seed, _ENVELOPE_RUNS])
    poisons = (int(word) for word in rng.integers(1, 1 << 32, size=_ENVELOPE_RUNS))
    orders = (*_ORDERS[:2], *[WorkgroupOrder.SHUFFLED] * (_ENVELOPE_RUNS - 2))
    return tuple(LaunchState(poison, order) for poison, order in zip(poisons, orders, strict=True))
