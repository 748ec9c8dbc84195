"""Buffer extents as products of shape variables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations

_MOST_FACTORS = 3


def product_expression(counts: Sequence[int], shapes: Sequence[Mapping[str, int]]) -> str | None:
    """``counts[i]`` as a product of variables of ``shapes[i]`` and a constant, if it is one.

    The fewest factors that fit at least two different shapes; ``None`` when nothing does.
    """
    if len(set(counts)) == 1:
        return str(counts[0]) if len(counts) > 1 else None
    # Variables that do not vary are part of the constant.
    names = [n for n in shapes[0] if len({shape[n] for shape in shapes}) > 1]
    for number in range(1, _MOST_FACTORS + 1):
        for chosen in combinations(names, number):
            ratios = {Fraction(count, max(1, math.prod(shape[n] for n in chosen)))
                      for count, shape in zip(counts, shapes, strict=True)}
            if len(ratios) == 1:
                (ratio,) = ratios
                text = " * ".join(chosen)
                if ratio.numerator != 1:
                    text = f"{ratio.numerator} * {text}"
                return text if ratio.denominator == 1 else f"{text} / {ratio.denominator}"
    return None
