"""Which of a kernel's shapes a task is to work on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from asmevo.dispatch.expression import evaluate
from asmevo.dispatch.kernel import Kernel
from asmevo.task.session import ConfigError

LARGEST = "largest"
ALL = "all"


def selected(kernel: Kernel, wanted: object) -> tuple[Mapping[str, int], ...]:
    """The shapes that ``task.shapes`` means: ``largest`` (of most workgroups), ``all`` visible
    ones, or a list of names (``M48``, as dispatches are named) and of shapes that the YAML does
    not have. Raises `ConfigError`.
    """
    if wanted == ALL or not kernel.shapes:
        return tuple(kernel.shapes)
    if wanted == LARGEST:
        return (max(kernel.shapes, key=lambda shape: _workgroups(kernel, shape)),)
    given = [wanted] if isinstance(wanted, str | Mapping) else wanted
    if not isinstance(given, Sequence) or not given:
        raise ConfigError(f"task.shapes must be {LARGEST}, {ALL} or a list of shapes, "
                          f"not '{wanted}'")
    return tuple(_shape(kernel, each) for each in given)


def _shape(kernel: Kernel, wanted: object) -> Mapping[str, int]:
    known = {_label(kernel, shape): shape for shape in (*kernel.shapes, *kernel.held_out_shapes)}
    if isinstance(wanted, str):
        if wanted not in known:
            raise ConfigError(f"task.shapes: kernel '{kernel.name}' has no shape '{wanted}' "
                              f"({', '.join(known)})")
        return known[wanted]
    names = set(kernel.shapes[0])
    if not isinstance(wanted, Mapping) or not all(
            isinstance(value, int) and not isinstance(value, bool) for value in wanted.values()):
        raise ConfigError(f"task.shapes: '{wanted}' is neither a shape's name nor a shape")
    if set(wanted) - set(kernel.constants) != names - set(kernel.constants):
        raise ConfigError(f"task.shapes: a shape of kernel '{kernel.name}' gives "
                          f"{', '.join(sorted(names))}, not {', '.join(sorted(map(str, wanted)))}")
    return wanted


def _label(kernel: Kernel, shape: Mapping[str, int]) -> str:
    """As the dispatches of the declared oracle are named."""
    return "_".join(f"{k}{v}" for k, v in shape.items() if k not in kernel.constants) or "only"


def _workgroups(kernel: Kernel, shape: Mapping[str, int]) -> int:
    names = {**kernel.constants, **shape}
    grid = kernel.launch.grid if kernel.launch is not None else ()
    return math.prod(evaluate(extent, names) for extent in grid)
