"""Buffer extents as expressions of shape variables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, permutations

_MOST_FACTORS = 3
_TILES = (2, 4, 8, 16, 32, 64, 128, 256)
Shapes = Sequence[Mapping[str, int]]


def extent_expression(counts: Sequence[int], shapes: Shapes) -> str | None:
    """``counts[i]`` in the variables of ``shapes[i]``: a constant, a product, or rows of a stride
    (``(rows - 1) * stride + row``).

    The first that fits, shortest first; ``None`` when nothing does.
    """
    if len(set(counts)) == 1:
        return str(counts[0])
    # Variables that do not vary are part of the constant.
    names = [n for n in shapes[0]
             if len({shape[n] for shape in shapes}) > 1 and all(shape[n] > 0 for shape in shapes)]
    return next(_fitting(counts, shapes, names), None)


def _fitting(counts: Sequence[int], shapes: Shapes, names: Sequence[str]) -> Iterator[str]:
    for number in range(1, _MOST_FACTORS + 1):
        for chosen in combinations(names, number):
            ratios = {Fraction(count, math.prod(shape[n] for n in chosen))
                      for count, shape in zip(counts, shapes, strict=True)}
            if len(ratios) == 1:
                yield _scaled(ratios.pop(), " * ".join(chosen))
    for name in names:
        for tile in _TILES:
            ratios = {Fraction(count, -(-shape[name] // tile))
                      for count, shape in zip(counts, shapes, strict=True)}
            if len(ratios) == 1 and (ratio := ratios.pop()).denominator == 1:
                yield _scaled(ratio, f"ceil({name} / {tile})")
    if len(counts) < 3:
        return  # two points fit anything with two unknowns
    for rows, stride in permutations(names, 2):
        for row in (*names, None):
            if text := _rows(counts, shapes, rows, stride, row):
                yield text


def _rows(counts: Sequence[int], shapes: Shapes, rows: str, stride: str, row: str | None
          ) -> str | None:
    """``(k * rows - 1) * stride + c * row``, or ``+ c`` where ``row`` is None."""
    areas = [shape[rows] * shape[stride] for shape in shapes]
    widths = [shape[row] if row else 1 for shape in shapes]
    rests = [count + shape[stride] for count, shape in zip(counts, shapes, strict=True)]
    for i, j in combinations(range(len(shapes)), 2):
        determinant = areas[i] * widths[j] - areas[j] * widths[i]
        if determinant:
            break
    else:
        return None
    k = Fraction(rests[i] * widths[j] - rests[j] * widths[i], determinant)
    c = Fraction(areas[i] * rests[j] - areas[j] * rests[i], determinant)
    if k < 1 or c < 1 or k.denominator != 1 or c.denominator != 1 or any(
            rest != k * area + c * width
            for rest, area, width in zip(rests, areas, widths, strict=True)):
        return None
    return f"({_scaled(k, rows)} - 1) * {stride} + {_scaled(c, row) if row else c}"


def _scaled(ratio: Fraction, text: str) -> str:
    if ratio.numerator != 1:
        text = f"{ratio.numerator} * {text}"
    return text if ratio.denominator == 1 else f"{text} / {ratio.denominator}"
