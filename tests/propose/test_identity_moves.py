"""What counts as writing back the value that was read."""

from __future__ import annotations

from typing import Any

import pytest

from asmevo.propose.rules.identity_moves import IdentityMoves


@pytest.mark.parametrize("text", [
    "s_mov_b32 s2, s2",
    "s_mov_b64 s[2:3], s[2:3]",
    "v_mov_b32_e32 v1, v1",
    "v_add_u32_e32 v1, 0, v1",
    "v_and_b32_e32 v1, -1, v1",
    "v_lshlrev_b32_e32 v1, 0, v1",
    "s_mul_i32 s2, 1, s2",
    "s_or_b32 s2, s2, 0",
    "s_and_b64 s[2:3], s[2:3], -1",
    "s_sub_u32 s2, s2, 0",
])
def test_removed(kernels: Any, text: str) -> None:
    assert kernels.first(IdentityMoves(), f"{text}\ns_endpgm") == ["s_endpgm"]


@pytest.mark.parametrize("text", [
    "s_mov_b32 s2, s3",
    "v_mov_b32_e64 v1, -v1",
    "v_mov_b32_dpp v1, v1 row_ror:4 row_mask:0xf bank_mask:0xf",
    "v_mul_f32_e32 v1, 1.0, v1",           # flushes denormals, quiets NaNs
    "v_add_f32_e32 v1, 0, v1",
    "v_max_f32_e32 v1, v1, v1",
    "v_subrev_u32_e32 v1, v1, v2",
    "s_sub_u32 s2, 0, s2",
    "v_lshlrev_b32_e32 v1, v1, v2",
    "s_lshl_b32 s2, 0, s2",
    "s_and_b64 s[2:3], s[2:3], 0xffffffff",  # the literal is zero-extended
    "v_mul_lo_u32 v1, v1, 2",
])
def test_kept(kernels: Any, text: str) -> None:
    assert kernels.proposals(IdentityMoves(), f"{text}\ns_endpgm") == []


def test_a_used_carry_keeps_the_addition(kernels: Any) -> None:
    text = "s_add_u32 s2, s2, 0\ns_addc_u32 s3, s3, 0\nv_mov_b32_e32 v1, s3\n" \
           "global_store_dword v[2:3], v1, off\ns_endpgm"
    assert kernels.first(IdentityMoves(), text) is None


def test_a_label_stays(kernels: Any) -> None:
    text = "again:\ns_mov_b32 s2, s2\ns_cmp_eq_u32 s2, 0\ns_cbranch_scc1 again\ns_endpgm"
    assert kernels.first(IdentityMoves(), text) == [
        "again:", "s_cmp_eq_u32 s2, 0", "s_cbranch_scc1 again", "s_endpgm"]


def test_indexed_registers_are_not_what_they_seem(kernels: Any) -> None:
    text = "s_set_gpr_idx_on s2, gpr_idx(DST)\nv_mov_b32_e32 v1, v1\ns_set_gpr_idx_off\n" \
           "global_store_dword v[2:3], v4, off\ns_endpgm"
    assert kernels.proposals(IdentityMoves(), text) == []


def test_a_removed_move_may_have_been_a_wait_state(kernels: Any) -> None:
    text = "v_add_u32_e32 v1, v1, v1\nv_mov_b32_e32 v2, v2\nv_readfirstlane_b32 s4, v1\n" \
           "v_mov_b32_e32 v1, s4\nglobal_store_dword v[2:3], v1, off\ns_endpgm"
    assert kernels.first(IdentityMoves(), text)[1] == "s_nop 0"


def test_each_alone_after_all_together(kernels: Any) -> None:
    text = "s_mov_b32 s2, s2\nv_mov_b32_e32 v1, v1\ns_endpgm"
    assert [len(kernels.edited(text, p)) for p in kernels.proposals(IdentityMoves(), text)] == [
        1, 2, 2]
