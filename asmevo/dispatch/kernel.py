"""What a kernel's YAML says: where its object is, and how to launch it."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, TypeVar

from asmevo.codeobject.source import Source
from asmevo.dispatch.dispatch import ElementType, Role
from asmevo.dispatch.generator import FAMILIES
from asmevo.errors import AsmEvoError
from asmevo.operation.accuracy import Bound, bounds
from asmevo.operation.operation import Operation


class KernelError(AsmEvoError):
    """A kernel's YAML contradicts itself or the object's metadata."""


SCALAR_FORMATS: Mapping[str, str] = {
    "u32": "<I", "i32": "<i", "u64": "<Q", "i64": "<q", "f32": "<f", "f64": "<d",
}


def _expression(value: object) -> bool:
    return isinstance(value, str) or _whole(value)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)

_EXPRESSION = "a whole number or an expression"


def _is_value(value: object) -> bool:
    return _number(value) or isinstance(value, str)


def _list_of(values: object, is_item: Callable[[object], bool]) -> bool:
    return (isinstance(values, Sequence) and not isinstance(values, str)
            and all(is_item(value) for value in values))


def _number(value: object) -> bool:
    return _whole(value) or isinstance(value, float)


def _require(holds: bool, key: str, kind: str, given: object) -> None:
    """YAML may hold anything anywhere; what is wrong must name its key."""
    if not holds:
        shown = "null" if given is None else f"'{given}'"
        raise KernelError(f"{key} must be {kind}, not {shown}")


@dataclass(frozen=True)
class Buffer:
    """A pointer argument. ``count`` is an expression in elements; ``scale`` that of its inputs.

    ``family`` replaces the oracle's input family for this buffer. ``addresses`` makes it a table of
    pointers to the buffers named; those may leave out their own ``offset`` in the kernarg.
    ``order_dependent``: workgroups add to it with floating-point atomics, so its last bits depend
    on who comes first. ``misdescribed``: the object's metadata has something else than a pointer at
    ``offset``, wrongly.
    """

    name: str
    role: Role
    element: ElementType
    count: str | int
    offset: int | None = None
    scale: float = 1.0
    family: str | None = None
    addresses: Sequence[str] = ()
    order_dependent: bool = False
    misdescribed: bool = False

    def __post_init__(self) -> None:
        _require(isinstance(self.name, str), "the name of a buffer", "text", self.name)
        where = f"of buffer '{self.name}'"
        _require(_expression(self.count), f"count {where}", _EXPRESSION, self.count)
        _require(self.offset is None or _whole(self.offset), f"offset {where}",
                 "a whole number of bytes", self.offset)
        _require(_number(self.scale) and math.isfinite(self.scale), f"scale {where}",
                 "a finite number", self.scale)
        _require(_list_of(self.addresses, lambda name: isinstance(name, str)),
                 f"addresses {where}", "a list of buffers' names", self.addresses)
        _require(isinstance(self.order_dependent, bool), f"order_dependent {where}",
                 "true or false", self.order_dependent)
        _require(isinstance(self.misdescribed, bool), f"misdescribed {where}", "true or false",
                 self.misdescribed)
        if self.family is not None and self.family not in FAMILIES:
            raise KernelError(f"buffer '{self.name}' has the family '{self.family}' "
                              f"(known: {', '.join(FAMILIES)})")
        # YAML gives plain strings; a wrong one must name the buffer, not a Python enum.
        for attribute, kind in (("role", Role), ("element", ElementType)):
            try:
                object.__setattr__(self, attribute, kind(getattr(self, attribute)))
            except ValueError as error:
                known = ", ".join(member.value for member in kind)
                raise KernelError(
                    f"buffer '{self.name}' has the {attribute} '{getattr(self, attribute)}' "
                    f"(known: {known})"
                ) from error


@dataclass(frozen=True)
class Scalar:
    """A by-value argument of type ``u32 i32 u64 i64 f32 f64``.

    ``value`` is an expression for an integer type, a number for a floating-point one, or a list of
    them, through which the dispatches go in turn: what never changes could be built into a kernel.
    """

    name: str
    offset: int
    type: str
    value: str | int | float | Sequence[str | int | float]

    def __post_init__(self) -> None:
        _require(isinstance(self.name, str), "the name of a scalar", "text", self.name)
        where = f"of scalar '{self.name}'"
        _require(_whole(self.offset), f"offset {where}", "a whole number of bytes", self.offset)
        _require(isinstance(self.type, str), f"type {where}", "text", self.type)
        _require(_is_value(self.value) or _list_of(self.value, _is_value), f"value {where}",
                 "a number, an expression or a list of them", self.value)
        if self.type not in SCALAR_FORMATS:
            known = ", ".join(SCALAR_FORMATS)
            raise KernelError(f"scalar '{self.name}' has the type '{self.type}' (known: {known})")

    def value_of(self, turn: int) -> str | int | float:
        """The value, or expression, for the dispatch number ``turn``."""
        if isinstance(self.value, str | int | float):
            return self.value
        if not self.value:
            raise KernelError(f"scalar '{self.name}' has an empty list of values")
        return self.value[turn % len(self.value)]

    @property
    def size(self) -> int:
        return struct.calcsize(SCALAR_FORMATS[self.type])


@dataclass(frozen=True)
class Launch:
    """Launch dimensions: ``grid`` in workgroups (expressions), ``workgroup`` in work-items.

    ``relies_on_time``: see `Dispatch`. The emulator then hides missing waits and barriers
    instead of showing them, so say in the YAML where the kernel needs it.
    """

    grid: Sequence[str | int]
    workgroup: Sequence[int]
    dynamic_lds: str | int = 0
    relies_on_time: bool = False

    def __post_init__(self) -> None:
        _require(_list_of(self.grid, _expression) and len(self.grid) == 3, "launch.grid",
                 "three whole numbers or expressions", self.grid)
        _require(_list_of(self.workgroup, _whole) and len(self.workgroup) == 3
                 and min(self.workgroup) > 0, "launch.workgroup",
                 "three whole numbers of at least 1", self.workgroup)
        _require(_expression(self.dynamic_lds), "launch.dynamic_lds", _EXPRESSION,
                 self.dynamic_lds)
        if not isinstance(self.relies_on_time, bool):
            raise KernelError(f"launch.relies_on_time must be true or false, "
                              f"not '{self.relies_on_time}'")


@dataclass(frozen=True)
class Kernel:
    """One kernel to work on. ``symbol`` may be omitted when the object has a single kernel.

    ``shapes`` are assignments of the shape variables; those of ``held_out_shapes`` never reach a
    proposer and must pass before a commit. ``constants`` hold for every shape. ``operation`` is the
    independent reference of what the kernel computes, and ``accuracy`` how near the kernel comes to
    it, buffer by buffer.
    """

    name: str
    source: Source
    symbol: str | None = None
    launch: Launch | None = None
    buffers: Sequence[Buffer] = ()
    scalars: Sequence[Scalar] = ()
    constants: Mapping[str, int] = field(default_factory=dict)
    shapes: Sequence[Mapping[str, int]] = ()
    held_out_shapes: Sequence[Mapping[str, int]] = ()
    operation: Operation | None = None
    accuracy: Mapping[str, Bound] = field(default_factory=dict)


Argument = TypeVar("Argument", Buffer, Scalar, Launch)


def declare(
    name: str,
    source: Source,
    symbol: str | None = None,
    choices: Mapping[str, Any] | None = None,
    launch: Mapping[str, Any] | None = None,
    buffers: Sequence[Mapping[str, Any]] = (),
    scalars: Sequence[Mapping[str, Any]] = (),
    constants: Mapping[str, int] | None = None,
    shapes: Sequence[Mapping[str, int]] = (),
    held_out_shapes: Sequence[Mapping[str, int]] = (),
    operation: Operation | None = None,
    accuracy: Mapping[str, Mapping[str, Any]] | None = None,
) -> Kernel:
    """Build a `Kernel` from the plain mappings of its YAML; raises `KernelError` naming the key.

    ``choices`` are what the rest of a YAML refers to (``${..choices.rounding}``), such as which of
    a family's objects it is; here they mean nothing.
    """
    where = f"kernel '{name}'"
    if operation is not None and not isinstance(operation, Operation):
        raise KernelError(f"the operation of {where} must be an Operation, not '{operation}'")
    _require(launch is None or isinstance(launch, Mapping), f"launch of {where}", "a mapping",
             launch)
    _require(accuracy is None or isinstance(accuracy, Mapping), f"accuracy of {where}",
             "a mapping", accuracy)
    made = tuple(_typed(Buffer, b, f"a buffer of {where}") for b in buffers)
    arguments = tuple(_typed(Scalar, s, f"a scalar of {where}") for s in scalars)
    taken: set[str] = set()
    for declared in [b.name for b in made] + [s.name for s in arguments]:
        if declared in taken:
            raise KernelError(f"{where} declares '{declared}' twice")
        taken.add(declared)
    return Kernel(
        name=name,
        source=source,
        symbol=symbol,
        launch=None if launch is None else _typed(Launch, launch, f"launch of {where}"),
        buffers=made,
        scalars=arguments,
        constants=dict(constants or {}),
        shapes=tuple(dict(s) for s in shapes),
        held_out_shapes=tuple(dict(s) for s in held_out_shapes),
        operation=operation,
        accuracy=bounds(accuracy or {}, {b.name for b in made}),
    )


def _typed(kind: type[Argument], values: Mapping[str, Any], where: str) -> Argument:
    _require(isinstance(values, Mapping), where, "a mapping", values)
    known = {f.name for f in fields(kind)}
    for key in values:
        if key not in known:
            raise KernelError(
                f"{where} has the unknown key '{key}' (known: {', '.join(sorted(known))})"
            )
    for field_ in fields(kind):
        if (field_.default is MISSING and field_.default_factory is MISSING
                and field_.name not in values):
            raise KernelError(f"{where} lacks the key '{field_.name}'")
    return kind(**values)
