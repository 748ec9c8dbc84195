from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asmevo.dispatch.expression import ExpressionError, evaluate

NAMES = {"M": 48, "N": 8192, "T": 13}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("M * N", 48 * 8192),
        ("M / 2", 24),
        ("ceil(T / 4)", 4),
        ("floor(T / 4)", 3),
        ("T // 4 + T % 4", 4),
        ("-T + max(M, N, T)", 8192 - 13),
        ("min(M, T)", 13),
        (7, 7),
    ],
)
def test_values(text: str | int, value: int) -> None:
    assert evaluate(text, NAMES) == value


@pytest.mark.parametrize(
    "text",
    [
        "T / 2",  # 13 / 2 is not whole: a grid must not be truncated in silence
        "Q + 1",
        "M / 0",
        "M % 0",
        "M ** 99",
        "__import__('os').system('true')",
        "M.real",
        "[M][0]",
        "True + 1",
        "1.5",
        "'a'",
        "lambda: 1",
        "max()",
        "ceil(1, 2)",
        "M +",
        "",
        "(" * 150,
        "9" * 201,
        "(N*N*N*N*N) * 2",
    ],
)
def test_refusals(text: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate(text, NAMES)


Tree = tuple[str, Fraction]


def _join(pair: tuple[Tree, str, Tree]) -> Tree:
    (left, a), operator, (right, b) = pair
    value = {"+": a + b, "-": a - b, "*": a * b}[operator]
    return f"({left} {operator} {right})", value


trees: st.SearchStrategy[Tree] = st.recursive(
    st.integers(0, 99).map(lambda n: (str(n), Fraction(n))),
    lambda inner: st.tuples(inner, st.sampled_from("+-*"), inner).map(_join),
    max_leaves=6,
)


@given(trees)
def test_agrees_with_exact_arithmetic(tree: Tree) -> None:
    text, value = tree
    if len(text) <= 200 and abs(value) < 2**63:
        assert evaluate(text, {}) == value
