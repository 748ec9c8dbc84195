"""Launch dimensions: workgroups that a kernel may have, and grids that cover its work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from asmevo.codeobject.container import Kernel
from asmevo.dispatch.inferred.inference_error import InferenceError
from asmevo.dispatch.inferred.probing import (
    Launched,
    ProbeFault,
    Prober,
    RefusedLaunch,
    Touched,
    first_sizes,
)
from asmevo.isa.instruction import Unit
from asmevo.isa.program import Program

Dimensions = tuple[int, int, int]
_MOST_WORK_ITEMS = 1024
# What HIP assumes of a kernel without __launch_bounds__; such a kernel takes the size from its
# launch, and 256 is what most launch.
_HIP_DEFAULT = 1024
_FLAT: tuple[Dimensions, ...] = ((256, 1, 1), (64, 1, 1), (1024, 1, 1))
_PLANES: tuple[Dimensions, ...] = ((16, 16, 1), (32, 8, 1), (64, 4, 1), (32, 32, 1), (8, 8, 1))
_SOLIDS: tuple[Dimensions, ...] = ((8, 8, 4), (16, 4, 4), (4, 4, 4))
_LDS_LIMIT = 65536
_LDS_STEP = 512
# An axis along which this many workgroups still find more work is taken to be endless.
_MOST_WORKGROUPS = 64
_NOISE = 64  # one written byte in so many may not be seen
AXES = "xyz"


def workgroups(kernel: Kernel) -> tuple[tuple[Dimensions, ...], bool]:
    """Workgroups to try, the likeliest first, and whether the metadata leaves no choice."""
    required = kernel.metadata.get(".reqd_workgroup_size")
    if isinstance(required, Sequence) and len(required) == 3 and all(
            isinstance(extent, int) for extent in required):
        x, y, z = required
        return ((x, y, z),), True
    most = kernel.metadata.get(".max_flat_workgroup_size")
    limit = min(most, _MOST_WORK_ITEMS) if isinstance(most, int) and most > 0 else 256
    dimensions = kernel.descriptor.enable_vgpr_workitem_id
    if dimensions == 0 and limit < _HIP_DEFAULT:
        return ((limit, 1, 1),), False
    known = (_FLAT, _PLANES, _SOLIDS)[min(dimensions, 2)]
    fitting = tuple(w for w in known if w[0] * w[1] * w[2] <= limit)
    if not fitting:
        raise InferenceError(f"the kernel allows {limit} work-items a workgroup in "
                             f"{dimensions + 1} dimensions", ["launch.workgroup"])
    return fitting, False


def enabled_axes(kernel: Kernel) -> tuple[int, ...]:
    """The dimensions of the grid whose workgroup id the kernel receives."""
    return tuple(axis for axis, name in enumerate(AXES)
                 if getattr(kernel.descriptor, f"enable_sgpr_workgroup_id_{name}"))


def needs_dynamic_lds(kernel: Kernel, program: Program) -> bool:
    """Whether LDS is used that the object does not declare: the launch adds it."""
    to_lds = any(a.value_kind == "dynamic_shared_pointer" for a in kernel.arguments)
    touches = any(i.unit is Unit.LDS and i.accesses_memory for i in program.instructions)
    return to_lds or (touches and kernel.descriptor.group_segment_fixed_size == 0)


def most_dynamic_lds(kernel: Kernel) -> int:
    return _LDS_LIMIT - -(-kernel.descriptor.group_segment_fixed_size // _LDS_STEP) * _LDS_STEP


def least_dynamic_lds(prober: Prober, launch: Launched, sizes: Mapping[str, int]) -> int:
    """The least dynamic LDS, in steps of 512 bytes, with which a launch gives what it gives."""
    wanted = prober.run(launch, sizes)
    low, high = -1, launch.dynamic_lds // _LDS_STEP
    while high - low > 1:
        middle = (low + high) // 2
        try:
            same = prober.run(replace(launch, dynamic_lds=middle * _LDS_STEP), sizes) == wanted
        except ProbeFault:
            same = False
        low, high = (low, middle) if same else (middle, high)
    return high * _LDS_STEP


@dataclass(frozen=True)
class Cover:
    """A grid that does all the work there is, along axes that end; ``endless`` are the others."""

    launch: Launched
    endless: frozenset[int]


def cover(prober: Prober, launch: Launched, axes: Sequence[int]) -> Cover:
    """The smallest grid that touches all that any larger one does, starting at one workgroup.

    Raises `RefusedLaunch` where a single workgroup is no launch.
    """
    endless = set()
    current = prober.touched(launch, first_sizes(prober.pointers), exact=False)
    for axis in axes:
        before = launch, current
        while True:
            count = launch.grid[axis]
            if count >= _MOST_WORKGROUPS:
                endless.add(axis)
                break
            trial = _with(launch, axis, 2 * count)
            try:
                larger = prober.touched(trial, current.extents, exact=False)
            except RefusedLaunch:
                if count == 1:
                    break
                endless.add(axis)
                break
            if not _grew(prober, current, larger):
                break
            launch, current = trial, larger
        if axis in endless:
            launch, current = before  # one workgroup is enough to look along the other axes
        elif launch.grid[axis] > 1:
            launch = _least(prober, launch, axis, current)
    return Cover(launch, frozenset(endless))


def _with(launch: Launched, axis: int, count: int) -> Launched:
    grid = list(launch.grid)
    grid[axis] = count
    return replace(launch, grid=(grid[0], grid[1], grid[2]))


def _grew(prober: Prober, current: Touched, larger: Touched) -> bool:
    """Whether more workgroups did more: wrote more bytes, or added more to the same ones.

    What they read does not count: matrix kernels read rows that are not there, and store nothing.
    Nor does writing anything else than atomics where others have been, which is a race.
    """
    for name, mask in larger.written.items():
        more = int(mask.sum()) - int(current.written[name].sum())
        # A sum with something tiny leaves a huge number as it was, and looks unwritten.
        noise = int(mask.sum()) // _NOISE if name in larger.reads_itself else 0
        if more > noise:
            return True
    for pointer in prober.pointers:
        if not pointer.atomics:
            continue
        mask = current.written[pointer.name]
        one, other = (np.frombuffer(touched.after[pointer.name], np.uint8)[:len(mask)]
                      for touched in (current, larger))
        if (one[mask] != other[mask]).any():
            return True
    return False


def _least(prober: Prober, launch: Launched, axis: int, wanted: Touched) -> Launched:
    """The fewest workgroups along an axis that write as much, and the same."""
    low, high = launch.grid[axis] // 2, launch.grid[axis]
    while high - low > 1:
        middle = (low + high) // 2
        trial = _with(launch, axis, middle)
        try:
            found = prober.touched(trial, wanted.extents, exact=False)
        except RefusedLaunch:
            break
        low, high = (middle, high) if _grew(prober, found, wanted) else (low, middle)
    return _with(launch, axis, high)
