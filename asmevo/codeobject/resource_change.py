"""What a rebuild did to a kernel's resources, and what that does to occupancy."""

from __future__ import annotations

import math
from dataclasses import dataclass

from asmevo.codeobject.container import CodeObject, Kernel
from asmevo.codeobject.occupancy import Occupancy, occupancy
from asmevo.codeobject.resources import Allocation
from asmevo.codeobject.target import Target

# Work-items of the largest workgroup (LLVM AMDGPUBaseInfo, getMaxFlatWorkGroupSize).
WORKGROUP_LIMIT = 1024


@dataclass(frozen=True, slots=True)
class Resources:
    """What one kernel declares, and the occupancy that follows.

    ``vgprs`` (the unified file), ``agprs`` (the part of it behind ``accum_offset``) and ``sgprs``
    (extra registers included) are allocated, not used. ``lds_bytes`` is the static LDS of a
    workgroup and ``launch_lds_bytes`` what the launch is assumed to add; ``scratch_bytes`` is the
    private segment of a work-item.
    """

    vgprs: int
    agprs: int
    sgprs: int
    lds_bytes: int
    launch_lds_bytes: int
    scratch_bytes: int
    workgroup_size: int
    occupancy: Occupancy

    @classmethod
    def of(cls, kernel: Kernel, target: Target, *, workgroup_size: int | None = None,
           launch_lds_bytes: int = 0) -> Resources:
        """The resources of a kernel.

        Without ``workgroup_size`` the one that the metadata requires is taken, or else the largest
        that it allows. Raises `CodeObjectError` for a processor whose occupancy is not known.
        """
        allocation = Allocation.of(kernel.descriptor)
        size = workgroup_size or _largest_workgroup(kernel)
        lds = kernel.descriptor.group_segment_fixed_size
        return cls(
            vgprs=allocation.vgprs, agprs=max(allocation.vgprs - allocation.accum_offset, 0),
            sgprs=allocation.sgprs, lds_bytes=lds, launch_lds_bytes=launch_lds_bytes,
            scratch_bytes=kernel.descriptor.private_segment_fixed_size, workgroup_size=size,
            occupancy=occupancy(target.isa, vgprs=allocation.vgprs, sgprs=allocation.sgprs,
                                lds_bytes=lds + launch_lds_bytes, workgroup_size=size),
        )


@dataclass(frozen=True, slots=True)
class ResourceChange:
    """One kernel's resources before and after."""

    kernel: str
    before: Resources
    after: Resources

    @classmethod
    def between(cls, original: CodeObject, result: CodeObject, kernel: str | None = None, *,
                workgroup_size: int | None = None, launch_lds_bytes: int = 0) -> ResourceChange:
        """Compare a kernel of two objects; raises what `Resources.of` raises."""
        symbol = original.kernel(kernel).symbol
        before, after = (
            Resources.of(o.kernel(symbol), o.target, workgroup_size=workgroup_size,
                         launch_lds_bytes=launch_lds_bytes) for o in (original, result))
        return cls(symbol, before, after)

    @property
    def changed(self) -> bool:
        return self.before != self.after

    def rows(self) -> tuple[tuple[str, str, str], ...]:
        """``(what, before, after)`` for a table, occupancy last."""
        return tuple((name, a, b) for (name, a), (_, b) in
                     zip(_described(self.before), _described(self.after), strict=True))


def _described(resources: Resources) -> tuple[tuple[str, str], ...]:
    got = resources.occupancy
    launch = f" + {resources.launch_lds_bytes} at launch" if resources.launch_lds_bytes else ""
    return (
        ("VGPRs", str(resources.vgprs)),
        ("of these AGPRs", str(resources.agprs)),
        ("SGPRs", str(resources.sgprs)),
        ("LDS bytes", f"{resources.lds_bytes}{launch}"),
        ("scratch bytes", str(resources.scratch_bytes)),
        ("waves per SIMD", str(got.waves_per_simd)),
        ("workgroups per CU", str(got.workgroups_per_cu)),
        ("limited by", ", ".join(got.limited_by)),
    )


def _largest_workgroup(kernel: Kernel) -> int:
    """Work-items of the required workgroup, else of the largest; 1024 when neither is stated."""
    required = kernel.metadata.get(".reqd_workgroup_size")
    if isinstance(required, list) and len(required) == 3 and all(
            isinstance(size, int) and size > 0 for size in required):
        return min(math.prod(required), WORKGROUP_LIMIT)
    value = kernel.metadata.get(".max_flat_workgroup_size")
    return min(value, WORKGROUP_LIMIT) if isinstance(value, int) and value > 0 else WORKGROUP_LIMIT
