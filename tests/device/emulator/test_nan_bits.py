"""Which NaN arithmetic gives is the launch's choice, in every format and for matrix operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytest

from asmevo.device.device import NanBits

if TYPE_CHECKING:
    from tests.device.emulator.conftest import Bench

ONES = np.full(64, 0x3F800000, np.uint32)
PAYLOAD = np.full(64, 0xFFC12345, np.uint32)
F32 = {NanBits.QUIET: 0x7FC00000, NanBits.NEGATIVE: 0xFFC00000, NanBits.FULL: 0x7FFFFFFF,
       NanBits.NEGATIVE_FULL: 0xFFFFFFFF}
F16 = {NanBits.QUIET: 0x7E00, NanBits.NEGATIVE: 0xFE00, NanBits.FULL: 0x7FFF,
       NanBits.NEGATIVE_FULL: 0xFFFF}
F64 = {NanBits.QUIET: 0x7FF80000_00000000, NanBits.NEGATIVE: 0xFFF80000_00000000,
       NanBits.FULL: 0x7FFFFFFF_FFFFFFFF, NanBits.NEGATIVE_FULL: 0xFFFFFFFF_FFFFFFFF}
every_choice = pytest.mark.parametrize("nan", list(NanBits))


def first(bench: Bench, nan: NanBits, lines: Sequence[str], *, words: int = 1) -> int:
    """Lane 0 of v8 and up. v2, v3 hold a NaN, v4, v5 ones, v6, v7 an infinity and its opposite."""
    infinity = np.full(64, 0x7F800000, np.uint32)
    bench.nan = nan
    outcome = bench.run(list(lines), vector={
        2: PAYLOAD, 3: PAYLOAD, 4: ONES, 5: ONES, 6: infinity, 7: infinity | np.uint32(1 << 31)},
        vector_out=[8 + k for k in range(words)])
    return sum(int(outcome.vector[8 + k][0]) << 32 * k for k in range(words))


@every_choice
@pytest.mark.parametrize("line", [
    "v_add_f32_e32 v8, v2, v4", "v_mul_f32_e32 v8, v4, v2", "v_fma_f32 v8, v4, v4, v2",
    "v_add_f32_e32 v8, v6, v7", "v_floor_f32_e32 v8, v2", "v_rsq_f32_e32 v8, v7",
    "v_log_f32_e32 v8, v2", "v_ldexp_f32 v8, v2, 3", "v_pk_mul_f32 v[8:9], v[2:3], v[4:5]",
    "v_fract_f32_e32 v8, v6", "v_sin_f32_e32 v8, v6", "v_add_f32_e64 v8, v2, v4 mul:2",
    "v_cvt_f32_f16_e32 v8, v2", "v_div_scale_f32 v8, vcc, v4, v4, 0",
    "v_dot2_f32_f16 v8, v2, v4, v2",
])
def test_f32(bench: Bench, nan: NanBits, line: str) -> None:
    # The upper half of v2 as f16 is -NaN, the lower one 0x2345; the conversion takes the former.
    line = line.replace("v_cvt_f32_f16_e32 v8, v2",
                        "v_cvt_f32_f16_sdwa v8, v2 dst_sel:DWORD dst_unused:UNUSED_PAD "
                        "src0_sel:WORD_1")
    assert first(bench, nan, [line]) == F32[nan]


@every_choice
@pytest.mark.parametrize("rounding", ["nearest", "up"])
def test_f32_in_every_rounding(bench: Bench, nan: NanBits, rounding: str) -> None:
    """Other rounding modes have a path of their own; setting them keeps the choice."""
    mode = {"nearest": 0, "up": 1}[rounding]
    lines = [f"s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), {mode}", "v_add_f32_e32 v8, v2, v4"]
    assert first(bench, nan, lines) == F32[nan]


@every_choice
@pytest.mark.parametrize("line", [
    "v_cvt_f16_f32_e32 v8, v2", "v_add_f16_e32 v8, v9, v4", "v_fma_f16 v8, v9, v9, v9",
    "v_sqrt_f16_e32 v8, v9", "v_floor_f16_e32 v8, v9", "v_cvt_pkrtz_f16_f32 v8, v2, v4",
])
def test_f16(bench: Bench, nan: NanBits, line: str) -> None:
    found = first(bench, nan, ["v_mov_b32_e32 v9, 0x7d23", line])
    assert found & 0xFFFF == F16[nan]


@every_choice
@pytest.mark.parametrize("line", [
    "v_add_f64 v[8:9], v[2:3], v[4:5]", "v_fma_f64 v[8:9], v[4:5], v[2:3], v[4:5]",
    "v_cvt_f64_f32_e32 v[8:9], v2", "v_rcp_f64_e32 v[8:9], v[2:3]",
    "v_floor_f64_e32 v[8:9], v[2:3]",
])
def test_f64(bench: Bench, nan: NanBits, line: str) -> None:
    found = first(bench, nan, ["v_mov_b32_e32 v3, 0x7ff12345", line], words=2)
    assert found == F64[nan]


@every_choice
@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize(("line", "source"), [
    ("v_mfma_f32_32x32x8_bf16 v[8:23], v[2:3], v[4:5], 0", 0xFFC12345),
    ("v_mfma_f32_32x32x8_f16 v[8:23], v[2:3], v[4:5], 0", 0x7D237D23),
    ("v_mfma_f32_16x16x32_fp8_fp8 v[8:11], v[2:3], v[4:5], 0", 0x80808080),
    ("v_mfma_f32_4x4x4_16b_f16 v[8:11], v[2:3], v[4:5], 0", 0x7D237D23),
])
def test_matrix(bench: Bench, nan: NanBits, narrow: bool, fused: bool, line: str,
                source: int) -> None:
    bench.narrow, bench.fused = narrow, fused
    assert first(bench, nan, [f"v_mov_b32_e32 v2, {source:#x}", f"v_mov_b32_e32 v3, {source:#x}",
                              line]) == F32[nan]


@every_choice
def test_matrix_f64(bench: Bench, nan: NanBits) -> None:
    lines = ["v_mov_b32_e32 v3, 0x7ff12345", "v_mfma_f64_16x16x4_f64 v[8:15], v[2:3], v[4:5], 0"]
    assert first(bench, nan, lines, words=2) == F64[nan]


@every_choice
def test_an_operand_that_is_chosen_keeps_its_bits(bench: Bench, nan: NanBits) -> None:
    """AMD's pseudo-code names what these return."""
    assert first(bench, nan, ["v_max_f32_e32 v8, v2, v2"]) == 0xFFC12345
    assert first(bench, nan, ["v_div_fixup_f32 v8, v4, v4, v2"]) == 0xFFC12345
    assert first(bench, nan, ["v_cvt_pk_fp8_f32 v8, v2, v2"]) & 0xFFFF == 0x8080


@every_choice
def test_rounding_to_bf16_by_an_addition_does_not_see_a_nan(bench: Bench, nan: NanBits) -> None:
    """What compilers guard with a comparison: without it the full payloads carry into the sign."""
    rounded = first(bench, nan, ["v_add_f32_e32 v8, v2, v4", "v_add_u32_e32 v8, 0x7fff, v8"])
    is_nan = rounded & 0x7FFFFFFF > 0x7F800000
    assert is_nan == (nan in (NanBits.QUIET, NanBits.NEGATIVE))


def test_unknown_choices_are_refused(bench: Bench) -> None:
    bench.nan = 4
    with pytest.raises(ValueError, match="nan is 0 to 3"):
        bench.run(["s_nop 0"])
