"""Integer expressions in kernel YAML (`"M * N"`, `"ceil(M / 4)"`), evaluated without ``eval``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from fractions import Fraction

from asmevo.errors import AsmEvoError

_MAX_BITS = 64
_MAX_LENGTH = 200


class ExpressionError(AsmEvoError):
    """An expression is malformed, names an unknown shape variable or is not an integer."""


_BINARY: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: Fraction(a // b),
    ast.Mod: lambda a, b: a % b,
}
_FUNCTIONS: dict[str, Callable[..., Fraction]] = {
    "ceil": lambda a: Fraction(-((-a) // 1)),
    "floor": lambda a: Fraction(a // 1),
    "min": min,
    "max": max,
}


def evaluate(expression: str | int, names: Mapping[str, int]) -> int:
    """The integer value of ``expression`` over shape variables ``names``.

    ``/`` is exact, so a result that is not whole (``M / 2`` for odd M) is an error rather than a
    silently truncated grid. Functions: ``ceil floor min max``.
    """
    if isinstance(expression, int):
        return expression
    if len(expression) > _MAX_LENGTH:
        raise ExpressionError(f"expression longer than {_MAX_LENGTH} characters")
    try:
        tree = ast.parse(expression.strip(), mode="eval")
        value = _value(tree.body, names)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise ExpressionError(f"cannot read the expression '{expression}'") from error
    except ZeroDivisionError as error:
        raise ExpressionError(f"'{expression}' divides by zero") from error
    except TypeError as error:
        raise ExpressionError(f"wrong arguments in '{expression}'") from error
    if value.denominator != 1:
        raise ExpressionError(f"'{expression}' is {value}, not a whole number, for {dict(names)}")
    return value.numerator


def _value(node: ast.expr, names: Mapping[str, int]) -> Fraction:
    result = _unbounded_value(node, names)
    if max(result.numerator.bit_length(), result.denominator.bit_length()) > _MAX_BITS:
        raise ExpressionError(f"a value in the expression needs more than {_MAX_BITS} bits")
    return result


def _unbounded_value(node: ast.expr, names: Mapping[str, int]) -> Fraction:
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() as number):
            return Fraction(number)
        case ast.Name(id=name):
            if name not in names:
                known = ", ".join(sorted(names)) or "none"
                raise ExpressionError(f"unknown shape variable '{name}' (known: {known})")
            return Fraction(names[name])
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, names)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _BINARY:
            return _BINARY[type(operator)](_value(left, names), _value(right, names))
        case ast.Call(func=ast.Name(id=function), args=args, keywords=[]) if (
            function in _FUNCTIONS
        ):
            return Fraction(_FUNCTIONS[function](*(_value(a, names) for a in args)))
    raise ExpressionError(
        f"'{ast.unparse(node)}' is not allowed in an expression "
        "(integers, shape variables, + - * / // %, ceil floor min max)"
    )
