"""Values to give scalar arguments whose meaning only their use tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from asmevo.dispatch.inferred.argument import ScalarArgument, Use

Scalars = dict[str, int | float]

# A weight, a scale or an epsilon: exact in every type, and neither 0 nor 1. Dispatches go through
# the list in turn.
NUMBERS = (0.5, 0.001953125)
# Extents from less than a workgroup to several.
LADDER = (64, 160, 640, 2048, 5000)
# Elements that compilers are promised strides to be multiples of.
_ALIGNMENT = 16


def uniform(scalars: Sequence[ScalarArgument], extent: int) -> Scalars:
    """Every extent and stride the same: rows follow one another, whichever argument is which."""
    return {s.name: NUMBERS[0] if s.is_float else 1 if s.use is Use.FLAG else extent
            for s in scalars}


@dataclass(frozen=True, slots=True)
class Variant:
    """One shape to try: ``endless`` workgroups along each axis that has no end.

    A ``fallback`` is large, and needed only where few others are launches.
    """

    scalars: Mapping[str, int | float]
    endless: int
    held_out: bool
    fallback: bool = False


def variants(scalars: Sequence[ScalarArgument], base: Mapping[str, int | float], extent: int
             ) -> tuple[Variant, ...]:
    """Shapes around one that works: odd extents, larger and smaller ones, gaps between rows."""

    def varied(first: int, step: int, stride: int, flag: int) -> Scalars:
        values = dict(base)
        turn = gap = 0
        for scalar in scalars:
            if scalar.use is Use.BOUND and base[scalar.name] == extent:
                values[scalar.name] = max(1, first + step * turn)
                turn += 1
            elif scalar.use is Use.STRIDE:
                # Alignment that the code relies on is kept.
                scaled = int(base[scalar.name]) * stride // extent
                values[scalar.name] = -(-scaled // _ALIGNMENT) * _ALIGNMENT + _ALIGNMENT * gap
                gap += 1
            elif scalar.use is Use.FLAG:
                values[scalar.name] = flag
        return values

    return (
        Variant(dict(base), 4, False),
        Variant(varied(extent - 3, -2, extent, 0), 3, False),
        Variant(varied(extent + extent // 2 + 5, 2, 2 * extent, 1), 6, False),
        Variant(uniform_from(scalars, base, extent, 2), 8, False, fallback=True),
        Variant(varied(extent // 2 + 7, 2, extent // 2 + 32, 1), 2, True),
        Variant(varied(extent + 13, -2, extent + extent // 4 + 16, 0), 7, True),
        Variant(uniform_from(scalars, base, extent, 3), 5, True, fallback=True),
    )


def uniform_from(scalars: Sequence[ScalarArgument], base: Mapping[str, int | float], extent: int,
                 factor: int) -> Scalars:
    """The extents of ``base`` times ``factor``, and its strides with them."""
    return {s.name: base[s.name] if s.is_float or s.use is Use.FLAG
            or (s.use is Use.BOUND and base[s.name] != extent)
            else int(base[s.name]) * factor for s in scalars}
