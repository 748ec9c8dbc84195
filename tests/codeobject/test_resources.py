"""Register use and the allocation that covers it."""

from __future__ import annotations

import pytest

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.descriptor import KernelDescriptor
from asmevo.codeobject.errors import RebuildError
from asmevo.codeobject.resources import (
    Allocation,
    RegisterUse,
    hardware_sgprs,
    register_use,
    required_allocation,
    with_allocation,
)


@pytest.mark.parametrize(("text", "use"), [
    ("s_nop 0", RegisterUse(0, 0, 0)),
    ("v_add_f32_e32 v0, v1, v2", RegisterUse(3, 0, 0)),
    ("v_mul_f32_e64 v0, -v7, |v5|", RegisterUse(8, 0, 0)),
    ("buffer_load_dwordx4 v[12:15], v4, s[8:11], 0 offen offset:99", RegisterUse(16, 0, 12)),
    ("v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[16:31]", RegisterUse(4, 32, 0)),
    ("s_load_dwordx2 s[12:13], s[0:1], 0x63", RegisterUse(0, 0, 14)),
    ("v_cmp_eq_u32_e64 s[98:99], v1, v0", RegisterUse(2, 0, 100)),
    ("v_cndmask_b32_e32 v0, v255, v127, vcc", RegisterUse(256, 0, 0)),
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


@pytest.mark.parametrize(("use", "allocation"), [
    (RegisterUse(10, 0, 10), Allocation(64, 32, 26)),
    (RegisterUse(64, 0, 26), Allocation(64, 32, 26)),  # beyond accum_offset, but without AGPRs
    (RegisterUse(65, 0, 27), Allocation(72, 32, 34)),
    (RegisterUse(32, 32, 0), Allocation(64, 32, 26)),
    (RegisterUse(32, 33, 0), Allocation(72, 32, 26)),
    (RegisterUse(33, 1, 0), Allocation(64, 36, 26)),   # AGPRs start behind the last VGPR
    (RegisterUse(256, 256, 102), Allocation(512, 256, 102)),
])
def test_allocation_grows_with_use(use: RegisterUse, allocation: Allocation) -> None:
    before = descriptor(64, 32, 26)
    assert Allocation.of(before) == Allocation(64, 32, 26)
    assert required_allocation(before, use) == allocation
    assert Allocation.of(with_allocation(before, allocation)) == allocation


@pytest.mark.parametrize(("use", "allocation"), [
    (RegisterUse(10, 0, 10), Allocation(16, 12, 10)),
    (RegisterUse(0, 0, 0), Allocation(8, 4, 2)),
    (RegisterUse(9, 3, 40), Allocation(16, 12, 42)),
])
def test_lowering(use: RegisterUse, allocation: Allocation) -> None:
    assert required_allocation(descriptor(64, 32, 26), use, allow_lower=True) == allocation


def test_lowering_with_indirect_registers_is_refused() -> None:
    with pytest.raises(RebuildError, match="through M0"):
        required_allocation(descriptor(64, 32, 26), RegisterUse(1, 0, 1, indirect=True),
                            allow_lower=True)


def test_more_registers_than_a_wave_has() -> None:
    with pytest.raises(RebuildError, match="more than the 512"):
        required_allocation(descriptor(64, 32, 26), RegisterUse(260, 256, 0))


def test_registers_that_the_hardware_fills_are_counted(layer_norm: CodeObject) -> None:
    kernel = layer_norm.kernel()
    assert hardware_sgprs(kernel.descriptor) == 2 + 3
    lowered = required_allocation(kernel.descriptor, RegisterUse(0, 0, 0), allow_lower=True)
    assert lowered.sgprs >= 5
