"""What code provably does to LDS and scratch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from asmevo.codeobject.descriptor import KernelDescriptor
from asmevo.codeobject.segments import Reach, SegmentUse, segment_use

EMPTY = KernelDescriptor(0, 0, 0, 0, 0, 0, 0, 0, 0)


def use(*lines: str, descriptor: KernelDescriptor = EMPTY) -> SegmentUse:
    return segment_use([(4 * i, 4, text) for i, text in enumerate(lines)], descriptor)


@pytest.mark.parametrize(("line", "likely"), [
    ("ds_read_b32 v0, v1", 4), ("ds_read_b128 v[0:3], v4 offset:16", 32),
    ("ds_write_b8 v0, v1 offset:7", 8), ("ds_write_b96 v0, v[1:3]", 12),
    ("ds_read_u16 v0, v1 offset:2", 4), ("ds_read2_b32 v[0:1], v2 offset0:3 offset1:9", 40),
    ("ds_write2_b64 v0, v[2:3], v[4:5] offset1:1", 16),
    ("ds_read2st64_b32 v[0:1], v2 offset1:1", 260),
    ("ds_write2st64_b64 v0, v[2:3], v[4:5] offset0:2", 1032),
    ("ds_add_u32 v0, v1 offset:100", 104), ("ds_add_rtn_f64 v[0:1], v2, v[4:5]", 8),
    ("ds_pk_add_f16 v0, v1 offset:4", 8), ("ds_cmpst_rtn_b64 v[0:1], v2, v[4:5], v[6:7]", 8),
    ("ds_append v0 offset:12", 16), ("ds_read_b64_tr_b16 v[0:1], v2 offset:8", 16),
    ("ds_read_u8_d16_hi v0, v1 offset:5", 6),
])
def test_offsets_of_lds_accesses(line: str, likely: int) -> None:
    assert use(line) == SegmentUse(group=Reach(True, 0, likely))


@pytest.mark.parametrize("line", [
    "ds_bpermute_b32 v0, v1, v2 offset:4", "ds_swizzle_b32 v0, v1 offset:swizzle(SWAP,1)",
    "ds_nop", "s_nop 0", "global_load_dword v0, v[2:3], off offset:8",
    "buffer_load_dword v0, off, s[0:3], 0 offset:4", "ds_read_b32 v0, v1 offset:4 gds",
])
def test_no_segment(line: str) -> None:
    assert use(line) == SegmentUse()


@pytest.mark.parametrize("line", [
    "buffer_load_dword v1, s[8:11], 0 offen lds", "global_load_lds_dwordx4 v[0:1], off",
    "s_mov_b64 s[0:1], src_shared_base",
])
def test_lds_by_other_ways(line: str) -> None:
    assert use(line) == SegmentUse(group=Reach(True))


def test_private_base() -> None:
    assert use("s_mov_b64 s[0:1], src_private_base") == SegmentUse(private=Reach(True))


def test_constants_are_followed_within_a_block() -> None:
    move = "v_mov_b32_e32 v1, 0x100"
    read = "ds_read_b32 v0, v1 offset:4"
    assert use(move, read).group == Reach(True, 0x108, 0x108)
    assert use("s_mov_b32 s5, 0x200", "v_mov_b32_e32 v1, s5", read).group.proven == 0x208
    assert use(move, "ds_write_b32 v1, v1", "s_waitcnt lgkmcnt(0)", read).group.proven == 0x108
    assert use("v_mov_b32_e32 v1, -4", read).group == Reach(True, 4, 8)
    unknown = Reach(True, 0, 8)
    for between in ("v_add_u32_e32 v1, v1, v2", "ds_read_b64 v[0:1], v7", "v_cmpx_eq_u32_e32 0, v3",
                    "s_mov_b64 exec, s[0:1]", "v_swap_b32 v9, v1", "s_swappc_b64 s[0:1], s[2:3]",
                    "v_mov_b32_e32 v1, v8"):
        seen = use(move, between, read).group
        assert seen.proven in (0, 8), between
        assert seen.likely == unknown.likely, between


def test_a_branch_target_forgets_constants() -> None:
    lines = ["v_mov_b32_e32 v1, 0x100", "ds_read_b32 v0, v1", "s_cbranch_scc1 65534"]
    assert use(*lines).group.proven == 0
    assert use(*lines[:2], "s_cbranch_scc1 65533").group.proven == 0x104


@pytest.mark.parametrize(("line", "reach"), [
    ("scratch_load_dword v1, off, off offset:16", Reach(True, 20, 20)),
    ("scratch_store_dwordx4 off, v[0:3], off", Reach(True, 16, 16)),
    ("scratch_load_ubyte v1, off, s32 offset:3", Reach(True, 0, 4)),
    ("scratch_store_short v9, v0, off", Reach(True, 0, 2)),
])
def test_scratch(line: str, reach: Reach) -> None:
    assert use(line) == SegmentUse(private=reach)
    if "s32" in line:
        assert use("s_mov_b32 s32, 64", line).private == Reach(True, 68, 68)


def test_scratch_through_the_private_segment_buffer() -> None:
    """gfx90a: only where the kernel has such a buffer and a private segment."""
    descriptor = replace(EMPTY, compute_pgm_rsrc2=1, kernel_code_properties=1)
    for line, reach in (
        ("buffer_store_dword v0, off, s[0:3], 0 offset:4", Reach(True, 8, 8)),
        ("buffer_load_dwordx2 v[0:1], v3, s[0:3], 0 offen", Reach(True, 0, 8)),
        ("buffer_load_dword v0, off, s[0:3], s32 offset:8", Reach(True, 0, 12)),
    ):
        assert use(line, descriptor=descriptor) == SegmentUse(private=reach)
    assert use("buffer_load_dword v0, off, s[4:7], 0", descriptor=descriptor) == SegmentUse()
