"""Jumps that make no difference because nothing behind them does anything without lanes."""

from __future__ import annotations

import pytest

from asmevo.isa.lane_skips import skips_nothing
from asmevo.isa.program import Program


def _skips(*inside: str, jump: str = "s_cbranch_execz over") -> bool:
    rows = [(4 * k, 4, text) for k, text in enumerate((jump, *inside, "s_endpgm"))]
    return skips_nothing(Program.from_disassembly(rows, {4 * len(inside) + 4: "over"}), 0)


@pytest.mark.parametrize("inside", [
    "v_add_f32_e32 v1, v2, v3", "v_rcp_f32_e32 v1, v2", "global_load_dword v1, v[2:3], off",
    "global_store_dword v[2:3], v1, off", "ds_write_b32 v1, v2", "ds_read_b32 v1, v2",
    "global_atomic_add_f32 v[2:3], v1, off", "s_nop 0", "s_waitcnt vmcnt(0)",
    "s_cbranch_execz over",
])
def test_vector_work_does_nothing(inside: str) -> None:
    assert _skips(inside)
    assert not _skips(inside, jump="s_cbranch_execnz over")
    assert not _skips(inside, jump="s_cbranch_vccz over")


@pytest.mark.parametrize("inside", [
    "s_mov_b32 s1, s2", "s_or_b64 exec, exec, s[0:1]", "s_barrier", "s_setprio 1",
    "v_cmp_eq_u32_e32 vcc, v1, v2", "v_cmpx_eq_u32_e32 vcc, v1, v2",
    "v_add_co_u32_e32 v1, vcc, v2, v3", "v_readfirstlane_b32 s1, v2", "v_readlane_b32 s1, v2, 3",
    "v_writelane_b32 v1, s2, 3", "v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]",
    "v_accvgpr_write_b32 a0, v1", "s_load_dword s1, s[2:3], 0x0", "buffer_inv sc1",
    "s_branch over", "s_endpgm",
])
def test_what_works_without_lanes(inside: str) -> None:
    assert not _skips("v_mov_b32_e32 v1, v2", inside)


def test_jumps_back() -> None:
    rows = [(0, 4, "v_mov_b32_e32 v1, v2"), (4, 4, "s_cbranch_execz back"), (8, 4, "s_endpgm")]
    assert not skips_nothing(Program.from_disassembly(rows, {0: "back"}), 1)
