"""Operations on what a kernel's YAML declares, which may lack or contradict what they need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np

from asmevo.errors import AsmEvoError
from asmevo.operation.operation import Arrays, Names, Operation

_Value = TypeVar("_Value")


class OperationError(AsmEvoError):
    """The buffers, shape variables or scalars of a YAML do not fit the operation it names."""


class _Declared(dict[str, _Value]):
    """Answers for a name that the YAML does not declare with the sentence that says so."""

    def __init__(self, values: Mapping[str, _Value], operation: Operation, kind: str) -> None:
        super().__init__(values)
        self._operation = type(operation).__name__
        self._kind = kind

    def __missing__(self, name: str) -> _Value:
        known = ", ".join(sorted(self)) or "none"
        raise OperationError(f"the operation {self._operation} needs the {self._kind} '{name}', "
                             f"which the kernel's YAML does not declare (declared: {known})")


def prepared(operation: Operation, arrays: Arrays, names: Names,
             rng: np.random.Generator) -> Arrays:
    """`Operation.prepare`. Raises `OperationError` for what the YAML lacks or contradicts."""
    return _called(operation, arrays, names, lambda a, n: operation.prepare(a, n, rng))


def expected(operation: Operation, arrays: Arrays, names: Names) -> Arrays:
    """`Operation.reference`. Raises `OperationError` for what the YAML lacks or contradicts."""
    return _called(operation, arrays, names, operation.reference)


def _called(operation: Operation, arrays: Arrays, names: Names,
            call: Callable[[Arrays, Names], Arrays]) -> Arrays:
    try:
        return call(_Declared(arrays, operation, "buffer"),
                    _Declared(names, operation, "shape variable, constant or scalar"))
    except KeyError as error:  # from a plain copy of a mapping
        raise OperationError(f"the operation {type(operation).__name__} needs {error}, which the "
                             "kernel's YAML does not declare") from error
    # NumPy's complaints about sizes and indices that do not fit one another.
    except (ArithmeticError, IndexError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise OperationError(f"the operation {type(operation).__name__} cannot work on the buffers "
                             f"and names of the kernel's YAML: {reason}") from error
