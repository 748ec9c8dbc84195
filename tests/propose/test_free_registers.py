"""Which registers an edit may take, and what one lane may still read."""

from __future__ import annotations

from typing import Any

import pytest

from asmevo.isa.registers import VGPR0, mask
from asmevo.propose import free_registers
from asmevo.propose.free_registers import FreeRegisters

MASKED = """
v_cmp_gt_u32_e32 vcc, s4, v0
s_and_saveexec_b64 s[0:1], vcc
v_mov_b32_e32 v3, v0
v_add_u32_e32 v4, v3, v3
buffer_store_dword v4, v3, s[8:11], 0 offen
s_or_b64 exec, exec, s[0:1]
buffer_store_dword v0, v1, s[8:11], 0 offen
s_endpgm
"""


def _free(kernels: Any, text: str, steps: int = 0) -> FreeRegisters:
    return FreeRegisters(kernels.context(text).program, steps=steps)


def _vgpr(number: int) -> int:
    return mask(VGPR0 + number)


def test_a_temporary_of_a_masked_region_is_free_outside_of_it(kernels: Any) -> None:
    free = _free(kernels, MASKED)
    assert free.within(0, 2) & (_vgpr(3) | _vgpr(4)) == _vgpr(3) | _vgpr(4)
    assert not free.during(range(2, 5)) & (_vgpr(3) | _vgpr(4))


def test_what_lanes_that_are_off_need_later_is_not_free_where_they_are_on(kernels: Any) -> None:
    free = _free(kernels, MASKED)
    # v1 is read behind the region by every lane.
    assert not free.during(range(2, 5)) & _vgpr(1)
    # In front of the mask, a lane that will be off keeps what it has until it is on again.
    late = MASKED.replace("buffer_store_dword v0, v1", "buffer_store_dword v3, v1")
    assert not _free(kernels, late).within(0, 2) & _vgpr(3)


@pytest.mark.parametrize("reader", [
    "v_readlane_b32 s20, v3, 5",
    "v_mov_b32_dpp v4, v3 row_ror:4 row_mask:0xf bank_mask:0xf",
    "ds_bpermute_b32 v4, v5, v3",
])
def test_other_lanes_may_be_read_whatever_exec_says(kernels: Any, reader: str) -> None:
    text = ("v_mov_b32_e32 v3, 1\ns_and_saveexec_b64 s[0:1], vcc\nv_mov_b32_e32 v3, v0\n"
            f"{reader}\nbuffer_store_dword v4, v3, s[8:11], 0 offen\ns_endpgm")
    # The lanes that are off keep the 1, and others read it.
    assert not _free(kernels, text).during([1]) & _vgpr(3)


def test_the_halves_of_a_branch_do_not_end_each_others_lives(kernels: Any) -> None:
    text = """
        s_and_saveexec_b64 s[0:1], vcc
        v_mov_b32_e32 v3, 1
        s_xor_b64 exec, exec, s[0:1]
        buffer_store_dword v3, v1, s[8:11], 0 offen
        s_endpgm"""
    assert not _free(kernels, text).during([0]) & _vgpr(3)


def test_limits_follow_occupancy(kernels: Any) -> None:
    text = "v_mov_b32_e32 v{}, v0\ns_endpgm"
    assert _free(kernels, text.format(5)).vgpr_limit == 64
    assert _free(kernels, text.format(64)).vgpr_limit == 72
    assert _free(kernels, text.format(64), steps=1).vgpr_limit == 80
    assert _free(kernels, text.format(200)).vgpr_limit == 256
    # 64 + 64 registers: four waves; the VGPRs cannot grow without losing one.
    both = "v_mov_b32_e32 v63, v0\nv_accvgpr_write_b32 a63, v0\ns_endpgm"
    assert _free(kernels, both).vgpr_limit == 64


def test_runs_are_aligned(kernels: Any) -> None:
    free = mask(VGPR0 + 3, 5) | mask(3, 6)
    assert free_registers.vector(free, 2, 2) == VGPR0 + 4
    assert free_registers.vector(free, 2) == VGPR0 + 3
    assert free_registers.vector(free, 6) is None
    assert free_registers.scalar(free, 2) == 4
    assert free_registers.scalar(free, 4) == 4
    assert free_registers.text(VGPR0 + 4, 2) == "v[4:5]"
    assert free_registers.text(106, 2) == "vcc"
