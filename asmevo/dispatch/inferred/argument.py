"""Kernel arguments as metadata and code show them, before anything is launched."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from asmevo.codeobject.container import Argument, Kernel
from asmevo.dispatch.dispatch import ElementType
from asmevo.dispatch.inferred import abstract_value as av
from asmevo.dispatch.inferred.flow import Access, Flow, analyse, votes_for
from asmevo.dispatch.inferred.inference_error import InferenceError
from asmevo.isa.program import Program
from asmevo.isa.registers import members

_HIDDEN = "hidden_"
_POINTER_KINDS = ("global_buffer",)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BY_WIDTH = {1: ElementType.U8, 2: ElementType.U16, 4: ElementType.U32, 8: ElementType.U32}
_SIXTEEN = (ElementType.F16, ElementType.BF16)
_EIGHT = (ElementType.FP8, ElementType.BF8)


class Use(StrEnum):
    """What a scalar argument is for."""

    BOUND = "bound"          # compared with something: an extent, a loop bound
    STRIDE = "stride"        # multiplied or added into addresses, never compared
    FLAG = "flag"            # only tested for being equal to something
    NUMBER = "number"        # a floating-point operand
    VALUE = "value"          # anything else that is computed with
    UNUSED = "nothing"


@dataclass(frozen=True, slots=True)
class ScalarArgument:
    """A by-value argument; ``type`` is one of `SCALAR_FORMATS`. ``addresses`` tells whether
    addresses depend on it, also of one that is compared with something.
    """

    name: str
    offset: int
    type: str
    use: Use
    addresses: bool = False

    @property
    def is_float(self) -> bool:
        return self.type.startswith("f")


@dataclass(frozen=True, slots=True)
class PointerArgument:
    """A pointer argument.

    ``loads``, ``stores`` and ``atomics`` count the instructions that may reach it;
    ``elements`` are the types it may have, the likeliest first, and ``typed`` whether an operation
    said so. ``steers`` tells that addresses or branches depend on its contents.
    """

    name: str
    offset: int
    loads: int
    stores: int
    atomics: int
    float_atomics: int
    elements: tuple[ElementType, ...]
    typed: bool
    steers: bool

    @property
    def used(self) -> bool:
        return bool(self.loads or self.stores or self.atomics)


@dataclass(frozen=True, slots=True)
class Arguments:
    """``undescribed`` are pointers that only the code shows: metadata has something else there.
    ``unresolved`` accesses have addresses that come from no argument; ``reads_grid`` tells that
    the code looks at how many workgroups there are; ``workgroup_axes`` are those along which the
    number of the workgroup decides addresses, branches or results.
    """

    pointers: tuple[PointerArgument, ...]
    scalars: tuple[ScalarArgument, ...]
    undescribed: frozenset[int]
    unresolved: int
    reads_grid: bool
    workgroup_axes: frozenset[int]


def find_arguments(kernel: Kernel, program: Program) -> Arguments:
    """Raises `InferenceError` where addresses come from elsewhere than the kernarg."""
    described = {a.offset // 4 for a in kernel.arguments if a.value_kind in _POINTER_KINDS}
    if kernel.kernarg_segment_size > 4 * av.KERNARG_DWORDS:
        raise InferenceError(
            f"the kernarg has {kernel.kernarg_segment_size} bytes, more than are analysed",
            ["buffers", "scalars", "launch", "shapes"])
    flow = analyse(program, kernel.descriptor, frozenset(described))
    found = _undescribed_pointers(kernel, flow, described)
    if found:
        flow = analyse(program, kernel.descriptor, frozenset(described | found))
    names = _names(kernel)
    reached: dict[int, list[Access]] = {}
    for access in flow.accesses:
        for pointer in access.pointers:
            reached.setdefault(pointer, []).append(access)
    steering = {p for a in flow.accesses for p in a.indexed_by}
    steering |= set(members(flow.data_dependent_branches))
    by_load = {p: _loaded_elements(flow, p, reached.get(p, ())) for p in described | found}
    pointers = []
    for pointer in sorted(described | found):
        accesses = reached.get(pointer, [])
        elements, typed = _elements(pointer, accesses, by_load)
        atomics = [a for a in accesses if a.loads and a.stores]
        pointers.append(PointerArgument(
            names.get(4 * pointer, f"arg_{4 * pointer:02x}"), 4 * pointer,
            sum(a.loads and not a.stores for a in accesses),
            sum(a.stores and not a.loads for a in accesses), len(atomics),
            sum(_is_float_kind(a.kinds) for a in atomics), elements, typed, pointer in steering))
    scalars = tuple(_scalar(a, names.get(a.offset, f"arg_{a.offset:02x}"), flow)
                    for a in _by_value(kernel, found, flow))
    return Arguments(tuple(pointers), scalars, frozenset(4 * p for p in found),
                     sum(not a.pointers for a in flow.accesses), _reads_grid(kernel, flow),
                     frozenset(a for a in range(3) if flow.workgroup_ids & av.WORKGROUP_ID[a]))


def _reads_grid(kernel: Kernel, flow: Flow) -> bool:
    counts = sum(av.dword(a.offset // 4) for a in kernel.arguments
                 if a.value_kind.startswith("hidden_block_count")
                 and a.offset < 4 * av.KERNARG_DWORDS)
    return bool(flow.used & counts or kernel.descriptor.enable_sgpr_dispatch_ptr)


def _undescribed_pointers(kernel: Kernel, flow: Flow, described: set[int]) -> set[int]:
    """Pairs of dwords that arrive unchanged in an address whose base no described pointer is."""
    explicit = {a.offset // 4 + k for a in kernel.arguments if not a.value_kind.startswith(_HIDDEN)
                for k in range(a.size // 4)}
    found = set()
    for access in flow.accesses:
        if access.pointers:
            continue
        for high in members(access.high_dwords):
            if high % 2 and {high, high - 1} <= explicit and high - 1 not in described:
                found.add(high - 1)
    return found


def _by_value(kernel: Kernel, found: set[int], flow: Flow) -> list[Argument]:
    """By-value arguments but pointers; of structures the dwords that the code uses."""
    taken = {4 * p + k for p in found for k in range(8)}
    parts = []
    for argument in kernel.arguments:
        if argument.value_kind != "by_value" or argument.name == "pad":
            continue
        if argument.size in (4, 8):
            parts.append(argument)
            continue
        parts += [replace(argument, offset=offset, size=4, value_type=None)
                  for offset in range(argument.offset, argument.offset + argument.size - 3, 4)
                  if offset % 4 == 0 and flow.used & av.dword(offset // 4)]
    return [a for a in parts if not taken & set(range(a.offset, a.offset + a.size))]


def _names(kernel: Kernel) -> Mapping[int, str]:
    """A name of each argument that can stand in an expression: the metadata's where it is one."""
    given = [a.name for a in kernel.arguments]
    return {a.offset: a.name if _NAME.fullmatch(a.name) and given.count(a.name) == 1
            and a.name not in _RESERVED else f"arg_{a.offset:02x}" for a in kernel.arguments}


_RESERVED = frozenset({"grid_x", "grid_y", "grid_z", "ceil", "floor", "min", "max"})


def _scalar(argument: Argument, name: str, flow: Flow) -> ScalarArgument:
    number = argument.offset // 4
    bit = av.dword(number)
    votes = votes_for(flow, bit)
    halves = bit | av.dword(number + 1) if argument.size == 8 else bit
    wide = argument.size == 8
    floats = sum(n for kind, n in votes.items() if kind.is_float)
    if floats > sum(votes.values()) - floats or (argument.value_type or "") in ("f32", "f64"):
        return ScalarArgument(name, argument.offset, "f64" if wide else "f32", Use.NUMBER)
    if flow.compared & halves:
        use = Use.BOUND
    elif (flow.strides | flow.addressing) & halves:
        use = Use.STRIDE
    elif flow.tested & halves:
        use = Use.FLAG
    else:
        use = Use.VALUE if flow.used & halves else Use.UNUSED
    return ScalarArgument(name, argument.offset, "u64" if wide else "u32", use,
                          bool((flow.strides | flow.addressing) & halves))


def _loaded_elements(flow: Flow, pointer: int, accesses: list[Access] | tuple[()]) -> tuple[
        ElementType, ...]:
    """Types that operations took the contents for, most often first; those that loads can hold."""
    widths = [a.width for a in accesses if a.loads]
    votes = votes_for(flow, av.contents(pointer))
    fitting = [(n, kind) for kind, n in votes.items() if widths and kind.size <= min(widths)]
    floats = [(n, k) for n, k in fitting if k.is_float]
    chosen = floats or fitting
    return tuple(kind for _, kind in sorted(chosen, key=lambda c: (-c[0], c[1].value)))


def _elements(pointer: int, accesses: list[Access],
              by_load: Mapping[int, tuple[ElementType, ...]]) -> tuple[
                  tuple[ElementType, ...], bool]:
    stores = [a for a in accesses if a.stores]
    if not accesses:
        return (ElementType.OPAQUE,), False
    width = min(a.width for a in accesses)
    if not stores:
        loaded = by_load[pointer]
        if loaded:
            return loaded[:1], True
        return (_BY_WIDTH.get(width, ElementType.U32),), False
    width = min(a.width for a in stores)
    kinds = 0
    for access in stores:
        kinds |= access.kinds
        for bit in members(av.contents_dwords(access.raw)):
            for kind in by_load.get(bit, ())[:1]:
                kinds |= av.type_bit(kind)
    types = [k for k in av.TYPES if kinds & av.type_bit(k)]
    if kinds & av.ROUNDING and not types:
        types = [ElementType.BF16]
    fitting = [k for k in types if _fits(k, width)]
    if not fitting:
        return (_BY_WIDTH.get(width, ElementType.U32),), False
    # Narrow floats first: as wide ones their pairs look ordinary, while the reverse stands out.
    return tuple(sorted(fitting, key=lambda k: (not k.is_float, k.size, k.value))), True


def _fits(kind: ElementType, width: int) -> bool:
    """Bytes and halves are stored as such; wider stores may hold several of a narrower float."""
    if width == 1:
        return kind.size == 1
    if width == 2:
        return kind in _SIXTEEN or kind.size == 2 or kind in _EIGHT
    return kind.size <= width and (kind.is_float or kind.size >= 4)


def _is_float_kind(kinds: int) -> bool:
    return any(kinds & av.type_bit(kind) and kind.is_float for kind in av.TYPES)
