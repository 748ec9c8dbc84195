"""Register use and the allocation that covers it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.descriptor import KernelDescriptor
from asmevo.codeobject.errors import RebuildError
from asmevo.codeobject.resources import (
    Allocation,
    Counts,
    RegisterUse,
    extra_sgprs,
    hardware_sgprs,
    register_use,
    required_allocation,
    with_allocation,
    with_counts,
)
from asmevo.codeobject.target import Feature, Target


@pytest.mark.parametrize(("text", "use"), [
    ("s_nop 0", RegisterUse(0, 0, 0)),
    ("v_add_f32_e32 v0, v1, v2", RegisterUse(3, 0, 0)),
    ("v_mul_f32_e64 v0, -v7, |v5|", RegisterUse(8, 0, 0)),
    ("buffer_load_dwordx4 v[12:15], v4, s[8:11], 0 offen offset:99", RegisterUse(16, 0, 12)),
    ("v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[16:31]", RegisterUse(4, 32, 0)),
    ("s_load_dwordx2 s[12:13], s[0:1], 0x63", RegisterUse(0, 0, 14)),
    ("v_cmp_eq_u32_e64 s[98:99], v1, v0", RegisterUse(2, 0, 100)),
    ("v_cndmask_b32_e32 v0, v255, v127, vcc", RegisterUse(256, 0, 0, vcc=True)),
    ("v_div_fmas_f32 v1, v2, v3, v4", RegisterUse(5, 0, 0, vcc=True)),
    ("s_cbranch_vccnz 7", RegisterUse(0, 0, 0, vcc=True)),
    ("s_add_u32 flat_scratch_lo, s6, s9", RegisterUse(0, 0, 10, flat_scratch=True)),
    ("s_mov_b32 xnack_mask_lo, ttmp7", RegisterUse(0, 0, 0, xnack_mask=True)),
    ("v_cvt_f32_f16_sdwa v0, sext(v9) dst_sel:DWORD src0_sel:WORD_1", RegisterUse(10, 0, 0)),
    ("ds_read_b32 v3, v200 offset:400", RegisterUse(201, 0, 0)),
    ("s_waitcnt vmcnt(30) lgkmcnt(15)", RegisterUse(0, 0, 0)),
    ("s_setreg_b32 hwreg(HW_REG_MODE, 0, 8), s77", RegisterUse(0, 0, 78)),
    ("s_set_gpr_idx_on s5, gpr_idx(SRC0)", RegisterUse(0, 0, 6, indirect=True)),
])
def test_register_use(text: str, use: RegisterUse) -> None:
    assert register_use([(0, 8, text)]) == use


def descriptor(vgprs: int, accum_offset: int, sgprs: int) -> KernelDescriptor:
    empty = KernelDescriptor(0, 0, 0, 0, 0, 0, 0, 0, 0)
    return with_allocation(empty, Allocation(vgprs, accum_offset, sgprs))


GFX942 = Target("gfx942")


@pytest.mark.parametrize(("use", "allocation"), [
    (RegisterUse(10, 0, 10), Allocation(64, 32, 32)),
    (RegisterUse(64, 0, 26), Allocation(64, 32, 32)),  # beyond accum_offset, but without AGPRs
    (RegisterUse(65, 0, 27), Allocation(72, 32, 40)),
    (RegisterUse(32, 32, 0), Allocation(64, 32, 32)),
    (RegisterUse(32, 33, 0), Allocation(72, 32, 32)),
    (RegisterUse(33, 1, 0), Allocation(64, 36, 32)),   # AGPRs start behind the last VGPR
    (RegisterUse(256, 256, 102), Allocation(512, 256, 112)),
])
def test_allocation_grows_with_use(use: RegisterUse, allocation: Allocation) -> None:
    before = descriptor(64, 32, 32)
    assert Allocation.of(before) == Allocation(64, 32, 32)
    assert required_allocation(before, use, GFX942) == allocation
    assert Allocation.of(with_allocation(before, allocation)) == allocation


@pytest.mark.parametrize(("use", "allocation"), [
    (RegisterUse(10, 0, 10), Allocation(16, 12, 16)),
    (RegisterUse(0, 0, 0), Allocation(8, 4, 8)),
    (RegisterUse(0, 128, 0), Allocation(136, 4, 8)),
    (RegisterUse(9, 3, 40), Allocation(16, 12, 48)),
])
def test_lowering(use: RegisterUse, allocation: Allocation) -> None:
    assert required_allocation(descriptor(64, 32, 32), use, GFX942, allow_lower=True) == allocation


def test_lowering_with_indirect_registers_is_refused() -> None:
    with pytest.raises(RebuildError, match="through M0"):
        required_allocation(descriptor(64, 32, 32), RegisterUse(1, 0, 1, indirect=True), GFX942,
                            allow_lower=True)


def test_more_registers_than_a_wave_has() -> None:
    with pytest.raises(RebuildError, match="more than the 512"):
        required_allocation(descriptor(64, 32, 32), RegisterUse(260, 256, 0), GFX942)


@pytest.mark.parametrize(("target", "use", "extra"), [
    (Target("gfx942", xnack=Feature.OFF), RegisterUse(0, 0, 0), 6),
    (Target("gfx950", xnack=Feature.OFF), RegisterUse(0, 0, 0), 6),
    (Target("gfx90a", xnack=Feature.OFF), RegisterUse(0, 0, 0), 0),
    (Target("gfx90a", xnack=Feature.OFF), RegisterUse(0, 0, 0, vcc=True), 2),
    (Target("gfx90a", xnack=Feature.OFF), RegisterUse(0, 0, 0, xnack_mask=True), 4),
    (Target("gfx90a", xnack=Feature.ON), RegisterUse(0, 0, 0, vcc=True), 4),
    (Target("gfx90a", xnack=Feature.ANY), RegisterUse(0, 0, 0), 4),
    (Target("gfx90a", xnack=Feature.ANY), RegisterUse(0, 0, 0, flat_scratch=True), 6),
])
def test_extra_sgprs(target: Target, use: RegisterUse, extra: int) -> None:
    assert extra_sgprs(target, use) == extra


def test_registers_that_the_hardware_fills_are_counted(layer_norm: CodeObject) -> None:
    kernel = layer_norm.kernel()
    assert hardware_sgprs(kernel.descriptor) == 2 + 3
    nothing = Target("gfx90a", xnack=Feature.OFF)
    wide = replace(kernel.descriptor, compute_pgm_rsrc2=kernel.descriptor.compute_pgm_rsrc2 | 0x3E)
    assert hardware_sgprs(wide) == 31 + 3
    lowered = required_allocation(wide, RegisterUse(0, 0, 0), nothing, allow_lower=True)
    assert lowered.sgprs == 40


def test_use_of_two_codes_together() -> None:
    a, b = RegisterUse(3, 0, 9, vcc=True), RegisterUse(1, 7, 8, indirect=True)
    assert a | b == RegisterUse(3, 7, 9, vcc=True, indirect=True)
    assert a.within(a | b)
    assert not (a | b).within(a)


def test_metadata_counts_rise_but_fall_only_with_leave() -> None:
    metadata = {".vgpr_count": 20, ".name": "k", ".sgpr_count": 90}
    assert with_counts(metadata, Counts(24, 4, 10)) == {
        ".vgpr_count": 24, ".name": "k", ".sgpr_count": 90}
    assert with_counts(metadata, Counts(8, 4, 10), allow_lower=True) == {
        ".vgpr_count": 8, ".name": "k", ".sgpr_count": 10}
