"""Occupancy of known kernels, and of resources that just fit and just do not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asmevo.codeobject.errors import CodeObjectError
from asmevo.codeobject.occupancy import COMPUTE_UNITS, Limit, Occupancy, occupancy


def of(isa: str = "gfx942", *, vgprs: int = 8, sgprs: int = 16, lds: int = 0, size: int = 256,
       trap: bool = False) -> Occupancy:
    return occupancy(isa, vgprs=vgprs, sgprs=sgprs, lds_bytes=lds, workgroup_size=size,
                     trap_handler=trap)


# The table of VGPRs and waves: AMD "CDNA3 ISA", and LLVM's occupancy remarks for gfx90a.
@pytest.mark.parametrize(("vgprs", "waves"), [
    (1, 8), (64, 8), (65, 7), (72, 7), (73, 6), (80, 6), (81, 5), (96, 5), (97, 4), (128, 4),
    (129, 3), (168, 3), (169, 2), (256, 2), (257, 1), (512, 1),
])
def test_vgprs(vgprs: int, waves: int) -> None:
    found = of(vgprs=vgprs)
    assert found.waves_per_simd == waves
    assert found.workgroups_per_cu == waves
    assert (Limit.VGPRS in found.limited_by) == (vgprs > 56)


def test_sgprs_and_the_trap_handler() -> None:
    assert of(sgprs=96).waves_per_simd == 8
    assert of(sgprs=104).waves_per_simd == 7
    assert of(sgprs=96, trap=True).waves_per_simd == 7
    assert of(sgprs=112, trap=True).waves_per_simd == 6
    assert of(sgprs=104).limited_by == (Limit.SGPRS,)


@pytest.mark.parametrize(("isa", "lds", "groups"), [
    ("gfx942", 65536, 1), ("gfx942", 32768, 2), ("gfx942", 32769, 1), ("gfx942", 65537, 0),
    ("gfx90a", 16384, 4), ("gfx950", 65536, 2), ("gfx950", 163840, 1), ("gfx950", 163841, 0),
    ("gfx950", 32000, 5), ("gfx950", 32001, 4),
])
def test_lds(isa: str, lds: int, groups: int) -> None:
    found = of(isa, lds=lds)
    assert found.workgroups_per_cu == groups
    assert found.waves_per_simd == groups
    assert found.limited_by == (Limit.LDS,)


def test_slots() -> None:
    assert of(size=64).workgroups_per_cu == 32
    assert of(size=65).workgroups_per_cu == 16
    assert of(size=65).limited_by == (Limit.WAVE_SLOTS, Limit.WORKGROUP_SLOTS)
    assert of(size=1024).workgroups_per_cu == 2
    assert of(size=1024, vgprs=256).workgroups_per_cu == 0
    assert of(size=1024, vgprs=128).workgroups_per_cu == 1


@given(isa=st.sampled_from(sorted(COMPUTE_UNITS)), vgprs=st.integers(1, 512),
       sgprs=st.integers(1, 112), lds=st.integers(0, 163840), size=st.integers(1, 1024))
def test_what_is_resident_fits(isa: str, vgprs: int, sgprs: int, lds: int, size: int) -> None:
    unit = COMPUTE_UNITS[isa]
    found = of(isa, vgprs=vgprs, sgprs=sgprs, lds=lds, size=size)
    waves = found.workgroups_per_cu * found.waves_per_workgroup
    assert waves <= unit.simds * unit.wave_slots
    assert waves * vgprs <= unit.simds * unit.vgprs
    assert waves * sgprs <= unit.simds * unit.sgprs
    assert found.workgroups_per_cu * lds <= unit.lds_bytes
    assert found.waves_per_simd <= unit.wave_slots
    assert bool(found.waves_per_simd) == bool(found.workgroups_per_cu)
    assert found.limited_by
    more = of(isa, vgprs=min(vgprs + 8, 512), sgprs=sgprs, lds=lds, size=size)
    assert more.workgroups_per_cu <= found.workgroups_per_cu


@pytest.mark.parametrize(("change", "message"), [
    ({"isa": "gfx1100"}, "occupancy of gfx1100 is not known"), ({"size": 0}, "not 0"),
    ({"size": 1025}, "not 1025"), ({"lds": -1}, "cannot be negative"),
])
def test_impossible_launches_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(CodeObjectError, match=message):
        of(**change)
