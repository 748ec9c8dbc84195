"""Extents written in shape variables."""

from __future__ import annotations

import pytest

from asmevo.dispatch.expression import evaluate
from asmevo.dispatch.inferred.extent_expression import extent_expression

SHAPES = [{"m": 61, "n": 59, "s": 64, "g": 3}, {"m": 101, "n": 103, "s": 128, "g": 5},
          {"m": 39, "n": 41, "s": 80, "g": 2}, {"m": 128, "n": 130, "s": 144, "g": 8}]


@pytest.mark.parametrize("wanted", [
    "7", "m", "m * n", "3 * m * s", "m * n / 1", "(m - 1) * s + n", "(2 * g - 1) * s + 48",
    "(m - 1) * s + 64 * g", "32 * ceil(m / 64)"])
def test_what_an_expression_gives_is_found_again(wanted: str) -> None:
    counts = [evaluate(wanted, shape) for shape in SHAPES]
    found = extent_expression(counts, SHAPES)
    assert found is not None
    assert [evaluate(found, shape) for shape in SHAPES] == counts


def test_what_is_no_expression_is_none() -> None:
    assert extent_expression([17, 4001, 5, 90], SHAPES) is None
