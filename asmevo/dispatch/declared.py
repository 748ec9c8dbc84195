"""The declared oracle: dispatches from a kernel's YAML."""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from asmevo.dispatch.dispatch import Dispatch, ElementType, Pointer, Region, Role
from asmevo.dispatch.expression import evaluate
from asmevo.dispatch.generator import FAMILIES, GeneratorError, generate
from asmevo.dispatch.kernel import SCALAR_FORMATS, Buffer, Kernel, KernelError, Scalar
from asmevo.operation.declared import prepared

log = logging.getLogger(__name__)

# Kernels rebuild buffer descriptors from the low 48 bits of a pointer (CDNA3 ISA, "Buffer Resource
# Descriptor"), so addresses stay below 2^47 as user-space addresses do.
_LARGEST_SCALAR = 8  # bytes; what is larger is a structure
_FIRST_ADDRESS = 0x7E00_0000_0000
_ADDRESS_STEP = 0x20_0000
_MODERATE = 1 << 16  # elements of all buffers together, or
_SHARE = 10  # as much as a tenth of what all other dispatches have
_MAX_BUFFER_BYTES = 1 << 32  # offsets of buffer addressing have 32 bits


@dataclass(frozen=True)
class DeclaredOracle:
    """Turns a kernel's declarations into dispatches.

    Every visible shape is launched once for each of ``families``, every held-out shape once for
    each of ``held_out_families``, and one of moderate size, held out as well, for each of
    ``extreme_families``, in which few elements decide the result. Contents depend on ``seed``,
    shape and family alone. ``guard`` is the number of canary bytes on each side of every buffer;
    unmapped space follows it.
    """

    families: Sequence[str] = ("normal", "tiny", "boundary")
    held_out_families: Sequence[str] = ("normal", "wide")
    extreme_families: Sequence[str] = ()
    seed: int = 0
    guard: int = 4096

    def __post_init__(self) -> None:
        for family in (*self.families, *self.held_out_families, *self.extreme_families):
            if family not in FAMILIES:
                known = ", ".join(FAMILIES)
                raise GeneratorError(f"unknown input family '{family}' (known: {known})")
        if self.seed < 0:
            raise KernelError(f"oracle.seed must not be negative, not {self.seed}")
        if not self.families:
            raise KernelError("oracle.families is empty: nothing would be verified")
        if not 0 <= self.guard <= _ADDRESS_STEP // 4 or self.guard % 256:
            raise KernelError(
                f"oracle.guard must be a multiple of 256 up to {_ADDRESS_STEP // 4} bytes, "
                f"not {self.guard}"
            )

    def dispatches(self, kernel: Kernel, symbol: str, metadata: Mapping[str, Any]) -> tuple[
        Dispatch, ...
    ]:
        """All dispatches of ``kernel``, visible ones first.

        ``metadata`` is the AMDGPU metadata of the kernel symbol; raises `KernelError` where the
        declaration contradicts it.
        """
        parts = {"launch": kernel.launch, "buffers": kernel.buffers, "shapes": kernel.shapes}
        lacking = [name for name, given in parts.items() if not given]
        if kernel.launch is None or lacking:
            raise KernelError(f"kernel '{kernel.name}' declares no {' and no '.join(lacking)}; the "
                              "declared oracle needs them in its YAML")
        kernarg_size = check_against_metadata(kernel, metadata)
        plan = [(shape, family, False) for shape in kernel.shapes for family in self.families]
        plan += [
            (shape, family, True)
            for shape in kernel.held_out_shapes
            for family in self.held_out_families
        ]
        if self.held_out_families:
            shape = _moderate(kernel, len(self.families), len(self.held_out_families))
            plan += [(shape, family, True) for family in self.extreme_families]
        _warn_of_constants(kernel, len(plan))
        return tuple(
            self._dispatch(
                kernel, symbol, kernarg_size, {**kernel.constants, **shape}, family, out, turn
            )
            for turn, (shape, family, out) in enumerate(plan)
        )

    def _dispatch(
        self, kernel: Kernel, symbol: str, kernarg_size: int, names: Mapping[str, int],
        family: str, held_out: bool, turn: int,
    ) -> Dispatch:
        assert kernel.launch is not None
        shape = "_".join(f"{k}{v}" for k, v in names.items() if k not in kernel.constants)
        name = f"{shape or 'only'}-{family}"
        rng = np.random.default_rng([self.seed, *name.encode(), int(held_out)])
        kernarg = bytearray(kernarg_size)
        scalars = {scalar.name: _scalar_value(scalar, names, turn) for scalar in kernel.scalars}
        for scalar in kernel.scalars:
            struct.pack_into(SCALAR_FORMATS[scalar.type], kernarg, scalar.offset,
                             scalars[scalar.name])
        known = {**scalars, **names}
        contents = dict(_contents(kernel, known, names, family, rng))
        addresses: dict[str, int] = {}
        address = _FIRST_ADDRESS
        for label, data in contents.items():
            addresses[label] = address
            address += _rounded_up(len(data) + 2 * self.guard) + _ADDRESS_STEP
        pointers = _pointers(kernel)
        for pointer in pointers:
            packed = struct.pack("<Q", addresses[kernel.buffers[pointer.region].name])
            if pointer.holder is None:
                struct.pack_into("8s", kernarg, pointer.offset, packed)
            else:
                table = kernel.buffers[pointer.holder].name
                data = contents[table]
                contents[table] = data[:pointer.offset] + packed + data[pointer.offset + 8:]
        regions = tuple(
            Region(b.name, addresses[b.name], contents[b.name], b.role, b.element, self.guard,
                   order_dependent=b.order_dependent)
            for b in kernel.buffers
        )
        launch = kernel.launch
        grid = tuple(evaluate(g, names) for g in launch.grid)
        if min(grid) < 1:
            raise KernelError(f"kernel '{kernel.name}' has the grid {grid} for {dict(names)}")
        dynamic_lds = evaluate(launch.dynamic_lds, names)
        if dynamic_lds < 0:
            raise KernelError(f"kernel '{kernel.name}' has {dynamic_lds} bytes of dynamic LDS for "
                              f"{dict(names)}")
        x, y, z = launch.workgroup
        return Dispatch(
            name=name, kernel=symbol, kernarg=bytes(kernarg), grid=(grid[0], grid[1], grid[2]),
            workgroup=(x, y, z), regions=regions, pointers=pointers,
            dynamic_lds=dynamic_lds, held_out=held_out,
            names=known, relies_on_time=launch.relies_on_time, family=family,
        )


def _moderate(kernel: Kernel, families: int, held_out_families: int) -> Mapping[str, int]:
    """The held-out shape, if there are any, with the most elements that adds little to the rest."""
    def elements(shape: Mapping[str, int]) -> int:
        return sum(_element_count(b, {**kernel.constants, **shape}) for b in kernel.buffers)

    total = (families * sum(map(elements, kernel.shapes))
             + held_out_families * sum(map(elements, kernel.held_out_shapes)))
    shapes = kernel.held_out_shapes or kernel.shapes
    sizes = [(elements(shape), number) for number, shape in enumerate(shapes)]
    most = max(_MODERATE, total // _SHARE)
    _, number = max((size for size in sizes if size[0] <= most), default=min(sizes))
    return shapes[number]


def _warn_of_constants(kernel: Kernel, dispatches: int) -> None:
    """What has one value on all launches could be built into a kernel unnoticed by any of them.

    A list of one value says that it is meant to.
    """
    names = [scalar.name for scalar in kernel.scalars
             if scalar.type in ("f32", "f64") and isinstance(scalar.value, str | int | float)]
    if names and dispatches > 1:
        log.warning("kernel '%s': no dispatch varies %s; a list of values in its YAML would show "
                    "whether a candidate has it built in, and a list of one keeps it as it is",
                    kernel.name, " and ".join(names))


def _contents(
    kernel: Kernel, known: Mapping[str, int | float], names: Mapping[str, int], family: str,
    rng: np.random.Generator,
) -> Iterator[tuple[str, bytes]]:
    """Every buffer's name and its bytes before the launch, in the order of the declarations."""
    generated = {}
    for buffer in kernel.buffers:
        count = _element_count(buffer, names)
        generated[buffer.name] = (
            bytes(count * buffer.element.size)
            if buffer.role is Role.OUTPUT
            else generate(buffer.element, count, rng, family=buffer.family or family,
                          scale=buffer.scale)
        )
    if kernel.operation is not None:
        arrays = {b.name: np.frombuffer(generated[b.name], b.element.dtype) for b in kernel.buffers}
        for name, array in prepared(kernel.operation, arrays, known, rng).items():
            if name not in arrays or arrays[name].nbytes != array.nbytes:
                raise KernelError(
                    f"the operation of kernel '{kernel.name}' prepared {array.nbytes} bytes for "
                    f"the buffer '{name}', which "
                    + (f"has {arrays[name].nbytes}" if name in arrays else "is not declared")
                )
            generated[name] = array.tobytes()
    yield from generated.items()


def _pointers(kernel: Kernel) -> tuple[Pointer, ...]:
    """Where the kernarg and tables point to buffers."""
    index = {buffer.name: i for i, buffer in enumerate(kernel.buffers)}
    found = [Pointer(b.offset, index[b.name]) for b in kernel.buffers if b.offset is not None]
    found += [Pointer(8 * slot, index[target], index[table.name])
              for table in kernel.buffers for slot, target in enumerate(table.addresses)]
    return tuple(found)


def _check_tables(kernel: Kernel) -> None:
    """Every buffer must be reachable, and every entry of a table be a buffer."""
    names = {buffer.name for buffer in kernel.buffers}
    listed = {target for table in kernel.buffers for target in table.addresses}
    for table in kernel.buffers:
        where = f"buffer '{table.name}' of kernel '{kernel.name}'"
        if table.addresses and table.element is not ElementType.U64:
            raise KernelError(f"{where} holds addresses and must have the element u64")
        for target in table.addresses:
            if target not in names:
                raise KernelError(f"{where} holds the address of '{target}', which is not declared")
        if table.offset is None and table.name not in listed:
            raise KernelError(f"{where} has no offset in the kernarg, and no table points to it")


def check_against_metadata(kernel: Kernel, metadata: Mapping[str, Any]) -> int:
    """Compare declared arguments with the object's metadata; gives the kernarg size in bytes."""
    kernarg_size = int(metadata.get(".kernarg_segment_size", 0))
    taken: list[tuple[int, int, str]] = []
    declared = {a.get(".offset"): a for a in metadata.get(".args", ())}
    arguments: list[Buffer | Scalar] = [*kernel.buffers, *kernel.scalars]
    _check_tables(kernel)
    for argument in arguments:
        if argument.offset is None:
            continue
        size = 8 if isinstance(argument, Buffer) else argument.size
        where = f"argument '{argument.name}' of kernel '{kernel.name}'"
        if argument.offset < 0 or argument.offset + size > kernarg_size:
            raise KernelError(f"{where} lies outside the {kernarg_size}-byte kernarg")
        for start, stop, other in taken:
            if argument.offset < stop and start < argument.offset + size:
                raise KernelError(f"{where} overlaps argument '{other}'")
        taken.append((argument.offset, argument.offset + size, argument.name))
        if isinstance(argument, Buffer) and argument.misdescribed:
            continue
        if isinstance(argument, Scalar) and _in_structure(argument, metadata):
            continue
        described = declared.get(argument.offset)
        if declared and described is None:
            raise KernelError(f"{where} is at offset {argument.offset}, where metadata has none")
        if described is not None:
            is_pointer = described.get(".value_kind") in ("global_buffer", "dynamic_shared_pointer")
            if is_pointer != isinstance(argument, Buffer) or described.get(".size") != size:
                raise KernelError(
                    f"{where} does not match the metadata at offset {argument.offset}: "
                    f"{described.get('.value_kind')} of {described.get('.size')} bytes"
                )
    return kernarg_size


def _in_structure(scalar: Scalar, metadata: Mapping[str, Any]) -> bool:
    """Whether it is a member of a structure that is passed by value."""
    return any(a.get(".value_kind") == "by_value" and a[".size"] > _LARGEST_SCALAR
               and a[".offset"] <= scalar.offset
               and scalar.offset + scalar.size <= a[".offset"] + a[".size"]
               for a in metadata.get(".args", ()))


def _element_count(buffer: Buffer, names: Mapping[str, int]) -> int:
    count = evaluate(buffer.count, names)
    if not 0 < count * buffer.element.size <= _MAX_BUFFER_BYTES:
        raise KernelError(f"buffer '{buffer.name}' would have {count} elements for {dict(names)}")
    if len(buffer.addresses) > count:
        raise KernelError(f"buffer '{buffer.name}' holds {len(buffer.addresses)} addresses in "
                          f"{count} elements")
    return count


def _scalar_value(scalar: Scalar, names: Mapping[str, int], turn: int) -> int | float:
    given = scalar.value_of(turn)
    if scalar.type in ("f32", "f64"):
        try:
            number = float(given)
            struct.pack(SCALAR_FORMATS[scalar.type], number)
        except ValueError:
            raise KernelError(f"scalar '{scalar.name}' = '{given}' is not a number") from None
        except OverflowError:
            raise KernelError(
                f"scalar '{scalar.name}' = {given} does not fit {scalar.type}") from None
        return number
    if isinstance(given, float):
        raise KernelError(f"scalar '{scalar.name}' is an integer but has the value {given}")
    value = evaluate(given, names)
    signed = scalar.type.startswith("i")
    try:
        value.to_bytes(scalar.size, "little", signed=signed)
    except OverflowError as error:
        raise KernelError(
            f"scalar '{scalar.name}' = {value} does not fit {scalar.type}"
        ) from error
    return value


def _rounded_up(size: int) -> int:
    return -(-size // _ADDRESS_STEP) * _ADDRESS_STEP
