"""How far a kernel is from more or fewer resident workgroups: what an edit may spend or must save.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from asmevo.codeobject.occupancy import Occupancy, compute_unit, occupancy


@dataclass(frozen=True, slots=True)
class Room:
    """Of one resource: ``used``, how much more costs no workgroup, and how much less gains one.

    ``shed`` is `None` where no amount of this resource alone would gain any.
    """

    used: int
    spare: int
    shed: int | None


@dataclass(frozen=True, slots=True)
class OccupancyRoom:
    """The occupancy of a launch, and the room in registers of the unified file, SGPRs and LDS."""

    occupancy: Occupancy
    vgprs: Room
    sgprs: Room
    lds_bytes: Room


def occupancy_room(isa: str, *, vgprs: int, sgprs: int, lds_bytes: int,
                   workgroup_size: int) -> OccupancyRoom:
    """The room of a kernel; arguments are those of `asmevo.codeobject.occupancy.occupancy`.

    Raises CodeObjectError.
    """
    unit = compute_unit(isa)

    def workgroups(vgprs: int = vgprs, sgprs: int = sgprs, lds_bytes: int = lds_bytes) -> int:
        return occupancy(isa, vgprs=vgprs, sgprs=sgprs, lds_bytes=lds_bytes,
                         workgroup_size=workgroup_size).workgroups_per_cu

    return OccupancyRoom(
        occupancy(isa, vgprs=vgprs, sgprs=sgprs, lds_bytes=lds_bytes,
                  workgroup_size=workgroup_size),
        vgprs=_room(vgprs, unit.vgprs, lambda n: workgroups(vgprs=n)),
        sgprs=_room(sgprs, unit.sgprs, lambda n: workgroups(sgprs=n)),
        lds_bytes=_room(lds_bytes, unit.lds_bytes, lambda n: workgroups(lds_bytes=n)))


def _room(used: int, most: int, workgroups: Callable[[int], int]) -> Room:
    """More of a resource never means more workgroups, so that the edges are found by halving."""
    now = workgroups(used)
    low, high = used, max(most, used) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if workgroups(middle) == now else (low, middle)
    spare = low - used
    if workgroups(0) == now:
        return Room(used, spare, None)
    low, high = 0, used
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if workgroups(middle) > now else (low, middle)
    return Room(used, spare, used - low)
