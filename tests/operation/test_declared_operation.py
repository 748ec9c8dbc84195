"""An operation that a YAML's buffers do not fit says which of them it lacks."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import numpy as np
import pytest

import asmevo.operation
from asmevo.operation.declared import OperationError, expected, prepared
from asmevo.operation.layer_norm import ResidualRmsNorm
from asmevo.operation.operation import Operation

BUFFERS = ("in", "residual_in", "weight", "bias")


def operations() -> list[type[Operation]]:
    """Every operation that can be made without arguments."""
    found = set()
    for module in pkgutil.iter_modules(asmevo.operation.__path__):
        for _, kind in inspect.getmembers(
                importlib.import_module(f"asmevo.operation.{module.name}"), inspect.isclass):
            if not issubclass(kind, Operation) or inspect.isabstract(kind):
                continue
            parameters = inspect.signature(kind).parameters.values()
            if all(p.default is not p.empty for p in parameters):
                found.add(kind)
    return sorted(found, key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", operations())
def test_without_any_buffer_the_first_is_named(kind: type[Operation]) -> None:
    with pytest.raises(OperationError, match=f"the operation {kind.__name__} needs .*'"):
        expected(kind(), {}, {})


def test_the_missing_buffer_and_name() -> None:
    arrays = dict.fromkeys(BUFFERS, np.ones(4, np.float32))
    names = {"N": 4, "epsilon": 1e-5}
    operation = ResidualRmsNorm()
    assert expected(operation, arrays, names).keys() == {"out", "residual_out"}
    assert prepared(operation, arrays, names, np.random.default_rng(0)) == {}
    for name in arrays:
        with pytest.raises(OperationError, match=f"needs the buffer '{name}'"):
            expected(operation, {k: v for k, v in arrays.items() if k != name}, names)
    with pytest.raises(OperationError, match=r"scalar 'epsilon'.*declared: N"):
        expected(operation, arrays, {"N": 4})


def test_sizes_that_do_not_fit() -> None:
    arrays = dict.fromkeys(BUFFERS, np.ones(4, np.float32))
    with pytest.raises(OperationError, match=r"ResidualRmsNorm cannot work on.*reshape"):
        expected(ResidualRmsNorm(), arrays, {"N": 3, "epsilon": 1e-5})
