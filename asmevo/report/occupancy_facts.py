"""What reports say of a kernel's occupancy, and of the room that an edit has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from asmevo.profile.occupancy_room import OccupancyRoom, Room


def to_dict(room: OccupancyRoom) -> dict[str, Any]:
    """What ``result.json`` says of it."""
    found = room.occupancy
    return {
        "waves_per_simd": found.waves_per_simd, "workgroups_per_cu": found.workgroups_per_cu,
        "limited_by": [limit.value for limit in found.limited_by],
        **{name: {"used": each.used, "spare": each.spare, "shed": each.shed}
           for name, _, each in _resources(room)},
        "sentence": sentence(room),
    }


def sentence(room: OccupancyRoom) -> str:
    """Occupancy, its limit, what is free, and what one workgroup more would take."""
    found = room.occupancy
    limits = ", ".join(limit.value for limit in found.limited_by)
    resources = list(_resources(room))
    free = ", ".join(f"{each.spare:,} {what}" for _, what, each in resources if each.spare)
    gains = " or ".join(f"{each.shed:,} {what}" for _, what, each in resources
                        if each.shed is not None)
    return (f"{_counted(found.workgroups_per_cu, 'workgroup')} a compute unit, "
            f"{_counted(found.waves_per_simd, 'wave')} a SIMD, limited by {limits or 'nothing'}; "
            f"free without losing one: {free or 'nothing'}"
            + (f"; one more takes {gains} fewer" if gains else ""))


def _resources(room: OccupancyRoom) -> Iterator[tuple[str, str, Room]]:
    yield "vgprs", "VGPRs", room.vgprs
    yield "sgprs", "SGPRs", room.sgprs
    yield "lds_bytes", "bytes of LDS", room.lds_bytes


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
