"""From a code object to a declaration of its kernel: roles, types, extents, launch and shapes."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from asmevo.codeobject.container import Kernel as ObjectKernel
from asmevo.dispatch.dispatch import ElementType, Role
from asmevo.dispatch.generator import SMALL
from asmevo.dispatch.inferred import launch as launching
from asmevo.dispatch.inferred.argument import (
    Arguments,
    PointerArgument,
    ScalarArgument,
    Use,
    find_arguments,
)
from asmevo.dispatch.inferred.draft import draft_text
from asmevo.dispatch.inferred.element_check import settled
from asmevo.dispatch.inferred.extent_expression import extent_expression
from asmevo.dispatch.inferred.fact import Confidence, Fact
from asmevo.dispatch.inferred.inference_error import InferenceError
from asmevo.dispatch.inferred.probing import (
    Launched,
    PartlyWritten,
    Probe,
    Prober,
    ProbingExhausted,
    RefusedLaunch,
    Touched,
    first_sizes,
)
from asmevo.dispatch.inferred.scalar_values import (
    LADDER,
    NUMBERS,
    uniform,
    variants,
)
from asmevo.dispatch.inferred.shape import Shape, bounded, same, written
from asmevo.dispatch.inferred.strides import with_scalar, with_strides
from asmevo.dispatch.inferred.variety import constant_scalars, monotony, others
from asmevo.dispatch.kernel import Buffer, Kernel, Launch, Scalar
from asmevo.isa.program import Program

log = logging.getLogger(__name__)

_MOST_STRADDLED = 0.02  # share of elements
_LEAST_WRITTEN = 0.52  # the gates refuse an output of which half is never written
_ENOUGH = 2  # shapes that proposers see, and that they do not
_ORDINARY_EXTENT = 640  # where one workgroup does everything
_IDLE_WORKGROUPS = 3


@dataclass(frozen=True)
class Inferred:
    """A declaration made from nothing but the object, and how sure each part of it is."""

    kernel: Kernel
    facts: tuple[Fact, ...]
    refused: tuple[str, ...]
    launches: int
    instructions: int


@dataclass
class Inference:
    """Infers the declaration of one kernel. Everything it does follows from its arguments.

    ``probe`` launches a dispatch, see `Probe`; ``seed`` decides the contents of buffers.
    """

    kernel: Kernel
    object_kernel: ObjectKernel
    program: Program
    probe: Probe
    seed: int = 0
    facts: list[Fact] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    shares_work: bool = False

    def run(self) -> Inferred:
        """Raises `InferenceError`."""
        arguments = find_arguments(self.object_kernel, self.program)
        try:
            return self._found(arguments)
        except InferenceError as error:
            error.draft = draft_text(self.object_kernel, arguments)
            raise

    def _found(self, arguments: Arguments) -> Inferred:
        self._check(arguments)
        self.shares_work = arguments.reads_grid
        pointers = tuple(p for p in arguments.pointers if p.used)
        prober = Prober(
            self.object_kernel.symbol, self.object_kernel.kernarg_segment_size, pointers,
            arguments.scalars, self.probe, self.seed,
            families={p.name: "small" for p in pointers if p.steers})
        try:
            shapes = self._varied_shapes(arguments, prober)
        except ProbingExhausted as exhausted:
            raise InferenceError(f"{exhausted} ({self._last_refusal()})",
                                 ["launch", "buffers[].count", "scalars[].value", "shapes"]
                                 ) from None
        declared = self._declare(arguments, pointers, shapes)
        return Inferred(declared, tuple(self.facts), tuple(self.refused), prober.launches,
                        prober.instructions)

    def _check(self, arguments: Arguments) -> None:
        used = [p for p in arguments.pointers if p.used]
        if arguments.unresolved and not any(p.stores or p.atomics for p in used):
            raise InferenceError(
                f"{arguments.unresolved} accesses have addresses that come from no argument",
                ["buffers[].addresses", "buffers[].offset", "launch", "shapes"])
        if not any(p.stores or p.atomics for p in used):
            raise InferenceError("no store reaches memory through an argument",
                                 ["buffers[].role", "buffers[].offset"])

    # --- launches

    def _varied_shapes(self, arguments: Arguments, prober: Prober) -> tuple[Shape, ...]:
        """Shapes of the first workgroup with which everything varies that the code depends on.

        With a workgroup that it was not made for, a kernel may work for a single width.
        """
        candidates, _ = launching.workgroups(self.object_kernel)
        lacking: InferenceError | None = None
        while candidates:
            try:
                shapes = self._shapes(prober, candidates)
                shapes += self._other_shapes(arguments, prober, shapes)
            except (InferenceError, ProbingExhausted):
                if lacking is None:
                    raise
                break
            found = monotony(arguments, [shape.launch for shape in shapes])
            if found is None:
                return shapes
            log.info("no oracle: %s", found)
            lacking = lacking or found
            candidates = candidates[candidates.index(shapes[0].launch.workgroup) + 1:]
        assert lacking is not None  # a kernel has at least one workgroup to try
        raise lacking

    def _other_shapes(self, arguments: Arguments, prober: Prober, shapes: Sequence[Shape]
                      ) -> tuple[Shape, ...]:
        """One more shape for each scalar that is always the same, if there is one."""
        found: list[Shape] = []
        for scalar in constant_scalars(arguments, [shape.launch for shape in shapes]):
            for shape in shapes:
                more = self._with_another(prober, shape, scalar)
                if more is not None:
                    found.append(more)
                    break
        return tuple(found)

    def _with_another(self, prober: Prober, shape: Shape, scalar: ScalarArgument) -> Shape | None:
        bare = replace(shape.launch, grid=(1, 1, 1))
        workgroups = shape.launch.grid[min(shape.endless, default=0)]
        for value in others(bare.scalars[scalar.name]):
            launch = with_scalar(bare, scalar.name, value)
            try:
                return self._shape(prober, launch, shape.endless, workgroups, False)
            except RefusedLaunch as refusal:
                self._refuse(launch, refusal)
        return None

    def _shapes(self, prober: Prober, candidates: Sequence[launching.Dimensions]
                ) -> tuple[Shape, ...]:
        base, extent = self._base(prober, candidates)
        found: list[Shape] = []
        for variant in variants(prober.scalars, base.launch.scalars, extent):
            alike = sum(shape.held_out == variant.held_out for shape in found)
            if variant.fallback and alike >= _ENOUGH:
                continue
            launch = replace(base.launch, grid=(1, 1, 1), scalars=variant.scalars)
            # Strides along several endless axes fit each other for few workgroups at least.
            counts = (variant.endless, 2) if len(base.endless) > 1 else (variant.endless,)
            for workgroups in counts:
                try:
                    shape = self._shape(prober, launch, base.endless, workgroups,
                                        variant.held_out)
                except RefusedLaunch as refusal:
                    self._refuse(launch, refusal)
                    continue
                if variant.scalars != base.launch.scalars:
                    shape = self._spread(prober, shape)
                if not any(same(prober, shape, other) for other in found):
                    found.append(shape)
                break
        if not any(not s.held_out for s in found):
            raise InferenceError(
                f"no shape around one that works is a launch ({self._last_refusal()})",
                ["shapes", "scalars[].value", "buffers[].count", "launch.grid"])
        return tuple(found)

    def _base(self, prober: Prober, candidates: Sequence[launching.Dimensions]
              ) -> tuple[Shape, int]:
        """A launch that works, preferably with several workgroups along axes that end."""
        lds = (launching.most_dynamic_lds(self.object_kernel)
               if launching.needs_dynamic_lds(self.object_kernel, self.program) else 0)
        best: tuple[Shape, int] | None = None
        for workgroup in candidates:
            for extent in LADDER:
                launch = Launched((1, 1, 1), workgroup, uniform(prober.scalars, extent), lds)
                try:
                    launch = with_strides(prober, launch,
                                          launching.enabled_axes(self.object_kernel))
                    shape = self._base_shape(prober, launch)
                except RefusedLaunch as refusal:
                    self._refuse(launch, refusal)
                    if best is not None:
                        break
                    continue
                # Where atomics gather results, more work shows in no larger output.
                grew = best is None or any(p.atomics for p in prober.pointers) or (
                    shape.touched.written_bytes > best[0].touched.written_bytes)
                if best is None or bounded(shape) > bounded(best[0]) or (
                        grew and extent <= _ORDINARY_EXTENT):
                    best = shape, extent
                if not grew or bounded(shape) > 1 or not _has_bounds(prober):
                    break
            if best is not None:
                break
        if best is None:
            steering = {p.name for p in prober.pointers if p.steers}
            if steering:
                raise InferenceError(
                    f"the contents of {_listed(steering)} decide what the kernel touches, and "
                    f"numbers below {SMALL} do not make a launch ({self._last_refusal()})",
                    ["operation", "buffers[].count", "scalars[].value", "launch.grid", "shapes"])
            raise InferenceError(
                f"no values of the scalar arguments make a launch ({self._last_refusal()})",
                ["scalars[].value", "buffers[].count", "launch.grid", "shapes"])
        shape, extent = best
        if lds:
            least = launching.least_dynamic_lds(prober, shape.launch, shape.touched.extents)
            shape = replace(shape, launch=replace(shape.launch, dynamic_lds=least))
        return shape, extent

    def _base_shape(self, prober: Prober, launch: Launched) -> Shape:
        """A shape with these scalars, or with one of them divided so that gaps in outputs close."""
        try:
            return self._shape(prober, launch, None, 2, False)
        except PartlyWritten as refusal:
            first = refusal
        for scalar in prober.scalars:
            if scalar.is_float or scalar.use in (Use.FLAG, Use.UNUSED):
                continue
            for divisor in (2, 4, 8, 16, 32, 64):
                value = int(launch.scalars[scalar.name]) // divisor
                trial = with_scalar(launch, scalar.name, value)
                try:
                    return self._shape(prober, trial, None, 2, False)
                except PartlyWritten as refusal:
                    if refusal.fraction <= first.fraction:
                        break
                except RefusedLaunch:
                    break
        raise first

    def _shape(self, prober: Prober, launch: Launched, endless: frozenset[int] | None,
               workgroups: int, held_out: bool) -> Shape:
        """A launch that covers its work; raises `RefusedLaunch` where it could prove nothing."""
        axes = launching.enabled_axes(self.object_kernel)
        if endless is None:
            covered = launching.cover(prober, launch, axes)
            endless = covered.endless
        else:
            covered = launching.cover(prober, launch, [a for a in axes if a not in endless])
        many = min(endless, default=0)
        grid = tuple((workgroups if axis == many else 2) if axis in endless
                     else covered.launch.grid[axis] for axis in range(3))
        launch = replace(covered.launch, grid=(grid[0], grid[1], grid[2]))
        touched = prober.touched(launch, first_sizes(prober.pointers))
        varies = prober.repeats(launch, touched.extents)
        tolerated = {p.name for p in prober.pointers if p.float_atomics}
        if varies - tolerated:
            raise RefusedLaunch(f"the contents of {_listed(varies - tolerated)} depend on "
                                "undefined state or the order of workgroups")
        self._check_written(prober, touched)
        return Shape(launch, endless, touched, frozenset(varies), held_out)

    def _spread(self, prober: Prober, shape: Shape) -> Shape:
        """The shape with several workgroups where one does everything, if they leave the same.

        Of kernels that read how many workgroups there are, to share their loops among them.
        """
        axes = launching.enabled_axes(self.object_kernel)
        if not self.shares_work or not axes or shape.launch.grid != (1, 1, 1):
            return shape
        grid = tuple(_IDLE_WORKGROUPS if axis == axes[0] else 1 for axis in range(3))
        launch = replace(shape.launch, grid=(grid[0], grid[1], grid[2]))
        try:
            touched = prober.touched(launch, shape.touched.extents)
            if touched.after != shape.touched.after or prober.repeats(launch, touched.extents):
                return shape
        except RefusedLaunch:
            return shape
        return replace(shape, launch=launch, touched=touched)

    def _check_written(self, prober: Prober, touched: Touched) -> None:
        """What nobody writes, or always with the same, could tell no wrong kernel from a right."""
        if not touched.written_bytes or touched.before == touched.ordinary:
            raise RefusedLaunch("it writes nothing")
        for pointer in prober.pointers:
            mask = touched.written.get(pointer.name)
            if mask is None or not mask.any() or pointer.name in touched.reads_itself:
                continue
            if mask.mean() < _LEAST_WRITTEN:
                raise PartlyWritten(pointer.name, float(mask.mean()))
            if _straddled(mask, min(kind.size for kind in pointer.elements)):
                raise RefusedLaunch(f"it writes parts of elements of '{pointer.name}': a stride is "
                                    "no multiple of their size")
            values = np.frombuffer(touched.after[pointer.name], np.uint8)[mask]
            if len(values) > 1 and (values == values[0]).all():
                raise RefusedLaunch(f"it fills '{pointer.name}' with a single value")

    def _refuse(self, launch: Launched, refusal: RefusedLaunch) -> None:
        values = ", ".join(f"{k} = {v}" for k, v in launch.scalars.items())
        text = f"grid {launch.grid} of {launch.workgroup} with {values or 'no scalars'}: {refusal}"
        log.info("no launch: %s", text)
        self.refused.append(text)

    def _last_refusal(self) -> str:
        return self.refused[-1] if self.refused else "nothing was tried"

    # --- declaration

    def _declare(self, arguments: Arguments, pointers: Sequence[PointerArgument],
                 shapes: Sequence[Shape]) -> Kernel:
        variables = [self._variables(arguments, shape) for shape in shapes]
        endless = shapes[0].endless
        grid: list[str | int] = []
        for axis, name in enumerate(launching.AXES):
            counts = [shape.launch.grid[axis] for shape in shapes]
            grid.append(f"grid_{name}" if len(set(counts)) > 1 or axis in endless else counts[0])
            if isinstance(grid[-1], str):
                for values, count in zip(variables, counts, strict=True):
                    values[f"grid_{name}"] = count
            self.facts.append(Fact(
                f"launch.grid.{name}", ", ".join(str(c) for c in counts), Confidence.CONFIRMED,
                "any number of workgroups finds work" if axis in endless
                else "more workgroups touch nothing more"))
        buffers = tuple(self._buffer(p, shapes, variables, arguments) for p in pointers)
        launch = shapes[0].launch
        candidates, required = launching.workgroups(self.object_kernel)
        self.facts.append(Fact(
            "launch.workgroup", str(launch.workgroup),
            Confidence.READ if required else Confidence.ASSUMED,
            "the metadata requires it" if required else
            "the largest the metadata allows" if len(candidates) == 1 else
            "the first of the usual ones with which the kernel agrees with itself"))
        if launch.dynamic_lds:
            self.facts.append(Fact("launch.dynamic_lds", str(launch.dynamic_lds),
                                   Confidence.CONFIRMED, "with less the results differ"))
        visible = [v for v, s in zip(variables, shapes, strict=True) if not s.held_out]
        held_out = [v for v, s in zip(variables, shapes, strict=True) if s.held_out]
        if not held_out:
            held_out = visible[-1:]
            self.facts.append(Fact("held_out_shapes", "as visible", Confidence.CONFIRMED,
                                   "no further shape is a launch; held-out inputs differ"))
        return replace(
            self.kernel, symbol=self.object_kernel.symbol,
            launch=Launch(grid, list(launch.workgroup), launch.dynamic_lds),
            buffers=buffers, scalars=tuple(self._scalar(s, variables) for s in arguments.scalars),
            shapes=tuple(visible), held_out_shapes=tuple(held_out))

    def _variables(self, arguments: Arguments, shape: Shape) -> dict[str, int]:
        return {s.name: int(shape.launch.scalars[s.name]) for s in arguments.scalars
                if not s.is_float and s.use is not Use.UNUSED}

    def _scalar(self, scalar: ScalarArgument, variables: Sequence[Mapping[str, int]]) -> Scalar:
        where = f"scalars.{scalar.name}"
        self.facts.append(Fact(f"{where}.type", scalar.type, Confidence.READ,
                               f"its use: {scalar.use.value}"))
        if scalar.is_float:
            self.facts.append(Fact(f"{where}.value", ", ".join(map(str, NUMBERS)),
                                   Confidence.ASSUMED, "no code says which numbers are usual"))
            return Scalar(scalar.name, scalar.offset, scalar.type, list(NUMBERS))
        if scalar.use is Use.UNUSED:
            return Scalar(scalar.name, scalar.offset, scalar.type, 1)
        self.facts.append(Fact(
            f"{where}.value", ", ".join(str(v[scalar.name]) for v in variables),
            Confidence.ASSUMED, "launches with them agree with themselves; hosts may pass others"))
        return Scalar(scalar.name, scalar.offset, scalar.type, scalar.name)

    def _buffer(self, pointer: PointerArgument, shapes: Sequence[Shape],
                variables: Sequence[dict[str, int]], arguments: Arguments) -> Buffer:
        where = f"buffers.{pointer.name}"
        role = self._role(pointer, shapes)
        element = pointer.elements[0]
        confirmed = pointer.typed
        if role.written:
            element, confirmed = self._written_element(pointer, shapes)
        self.facts.append(Fact(
            f"{where}.element", element.value,
            Confidence.CONFIRMED if role.written and confirmed and element.is_float
            else Confidence.READ if confirmed else Confidence.ASSUMED,
            "what is stored looks like it" if role.written and confirmed and element.is_float
            else "of the operations on it" if confirmed
            else "nothing tells; compared bit for bit" if role.written else "nothing tells"))
        counts = [-(-shape.touched.extents[pointer.name] // element.size) for shape in shapes]
        expression = extent_expression(counts, variables)
        if expression is None:
            expression = f"{pointer.name}_count"
            for values, count in zip(variables, counts, strict=True):
                values[expression] = count
        self.facts.append(Fact(f"{where}.count", f"{expression} ({', '.join(map(str, counts))})",
                               Confidence.CONFIRMED, "one element less faults"))
        if pointer.steers:
            self.facts.append(Fact(
                f"{where}.family", "small", Confidence.ASSUMED,
                "its values decide addresses or branches; declare it where they mean something"))
        return Buffer(
            pointer.name, role, element, expression, pointer.offset,
            family="small" if pointer.steers and role is not Role.OUTPUT else None,
            order_dependent=any(pointer.name in shape.varies for shape in shapes),
            misdescribed=pointer.offset in arguments.undescribed)

    def _role(self, pointer: PointerArgument, shapes: Sequence[Shape]) -> Role:
        name = pointer.name
        written = any(name in s.touched.written and s.touched.written[name].any() for s in shapes)
        kept = any(name in s.touched.reads_itself for s in shapes)
        role = Role.INOUT if written and kept else Role.OUTPUT if written else Role.INPUT
        reason = {Role.INOUT: "its new contents depend on its old ones",
                  Role.OUTPUT: "written, whatever it held", Role.INPUT: "never written"}[role]
        self.facts.append(Fact(
            f"buffers.{name}.role", role.value,
            Confidence.CONFIRMED if written or not (pointer.stores or pointer.atomics)
            else Confidence.ASSUMED, reason))
        return role

    def _written_element(self, pointer: PointerArgument, shapes: Sequence[Shape]) -> tuple[
            ElementType, bool]:
        return settled(pointer.elements,
                       b"".join(written(pointer.name, shape) for shape in shapes))


def _straddled(mask: NDArray[np.bool_], size: int) -> bool:
    """Whether elements are written in parts. A byte that became what it was looks unwritten."""
    elements = mask[:len(mask) // size * size].reshape(-1, size)
    if not len(elements):
        return False
    partly = elements.any(axis=1) & ~elements.all(axis=1)
    return bool(np.mean(partly) > _MOST_STRADDLED)


def _has_bounds(prober: Prober) -> bool:
    return any(s.use is Use.BOUND for s in prober.scalars)


def _listed(names: set[str]) -> str:
    return ", ".join(f"'{name}'" for name in sorted(names))
