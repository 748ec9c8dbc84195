"""Room to the next occupancy level against the allocation rules, counted out."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.codeobject.occupancy import occupancy
from asmevo.profile.occupancy_room import Room, occupancy_room


def test_levels_of_the_vector_register_file() -> None:
    # 512 registers in granules of 8: 4 waves need at most 128, 5 at most 96 (CDNA3 ISA).
    room = occupancy_room("gfx942", vgprs=100, sgprs=32, lds_bytes=0, workgroup_size=256)
    assert room.occupancy.waves_per_simd == 4
    assert room.vgprs == Room(100, 28, 4)
    # Registers decide: nothing else gains a workgroup.
    assert (room.sgprs.shed, room.lds_bytes.shed) == (None, None)
    # Four workgroups have 16 KiB each.
    assert room.lds_bytes.spare == 16 << 10


def test_lds_decides() -> None:
    room = occupancy_room("gfx942", vgprs=32, sgprs=32, lds_bytes=40_000, workgroup_size=256)
    assert room.occupancy.workgroups_per_cu == 1
    assert room.lds_bytes == Room(40_000, 65_536 - 40_000, 40_000 - 32_768)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 512), st.integers(16, 112), st.integers(0, 1 << 16),
       st.sampled_from([64, 128, 256, 512, 1024]))
def test_a_step_past_the_room_changes_the_level(vgprs: int, sgprs: int, lds: int,
                                                size: int) -> None:
    def level(vgprs: int = vgprs, lds: int = lds) -> int:
        return occupancy("gfx942", vgprs=vgprs, sgprs=sgprs, lds_bytes=lds,
                         workgroup_size=size).workgroups_per_cu

    room = occupancy_room("gfx942", vgprs=vgprs, sgprs=sgprs, lds_bytes=lds, workgroup_size=size)
    now = level()
    assert level(vgprs + room.vgprs.spare) == now == level(lds=lds + room.lds_bytes.spare)
    if vgprs + room.vgprs.spare < 512:
        assert level(vgprs + room.vgprs.spare + 1) < now
    if room.vgprs.shed is not None:
        assert level(vgprs - room.vgprs.shed) > now
        assert level(vgprs - room.vgprs.shed + 1) == now
    if room.lds_bytes.shed is not None:
        assert level(lds=lds - room.lds_bytes.shed) > now
