"""Operation counts and ceilings against AMD's published peaks of an MI300X."""

from __future__ import annotations

import pytest

from asmevo.isa.parse import parse
from asmevo.profile.arithmetic import Number, OperationClass, operations, peak

# TFLOPS and TOPS without sparsity of 304 compute units at 2100 MHz: AMD Instinct MI300X data sheet.
PEAKS = [
    (Number.F64, True, 163.4), (Number.F32, True, 163.4), (Number.XF32, True, 653.7),
    (Number.F16, True, 1307.4), (Number.BF16, True, 1307.4), (Number.FP8, True, 2614.9),
    (Number.I8, True, 2614.9), (Number.F64, False, 81.7), (Number.F32, False, 163.4),
]


@pytest.mark.parametrize(("number", "matrix", "tera"), PEAKS)
def test_ceilings_are_the_data_sheets(number: Number, matrix: bool, tera: float) -> None:
    most = peak(OperationClass(number, matrix), "gfx942")
    assert most is not None
    assert most * 304 * 2100e6 / 1e12 == pytest.approx(tera, rel=1e-3)


@pytest.mark.parametrize(("text", "number", "matrix", "count"), [
    ("v_add_f32_e32 v0, v1, v2", Number.F32, False, 64),
    ("v_fmac_f32_e32 v0, v1, v2", Number.F32, False, 128),
    ("v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7]", Number.F32, False, 256),
    ("v_pk_mul_f16 v0, v1, v2", Number.F16, False, 128),
    ("v_fma_f64 v[0:1], v[2:3], v[4:5], v[6:7]", Number.F64, False, 128),
    ("v_exp_f32_e32 v0, v1", Number.F32, False, 64),
    ("v_dot4_i32_i8 v0, v1, v2, v3", Number.I8, False, 512),
    ("v_mad_u64_u32 v[0:1], vcc, v2, v3, v[4:5]", Number.I32, False, 128),
    ("v_add_co_u32_e32 v0, vcc, v1, v2", Number.I32, False, 64),
    ("v_mul_lo_u32 v0, v1, v2", Number.I32, False, 64),
    # 2 x rows x columns x depth x blocks (AMD matrix instruction calculator).
    ("v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]", Number.F16, True, 8192),
    ("v_mfma_f32_4x4x4_16b_bf16 a[0:3], v[0:1], v[2:3], a[0:3]", Number.BF16, True, 2048),
    ("v_mfma_f32_32x32x1_2b_f32 a[0:31], v0, v1, a[0:31]", Number.F32, True, 4096),
    ("v_mfma_i32_32x32x16_i8 a[0:15], v[0:1], v[2:3], a[0:15]", Number.I8, True, 32768),
    ("v_smfmac_f32_16x16x32_bf16 v[10:13], v[20:21], v[22:25], v0", Number.BF16, True, 16384),
])
def test_operations_of_an_instruction(text: str, number: Number, matrix: bool,
                                      count: int) -> None:
    assert operations(parse(text)) == (OperationClass(number, matrix), count)


@pytest.mark.parametrize("text", [
    "v_mov_b32_e32 v0, v1", "v_max_f32_e32 v0, v1, v2", "v_cvt_f32_f16_e32 v0, v1",
    "v_cmp_lt_f32_e32 vcc, v0, v1", "s_add_u32 s0, s1, s2", "v_lshlrev_b32_e32 v0, 1, v2",
])
def test_what_is_no_arithmetic(text: str) -> None:
    assert operations(parse(text)) is None
