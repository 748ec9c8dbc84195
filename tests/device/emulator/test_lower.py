"""Lowering: LLVM agrees with what the tests write, and what is not modelled is refused by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from asmevo.codeobject import disassemble
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.source import InstalledFile
from asmevo.codeobject.target import Target
from asmevo.device.device import UnsupportedError
from asmevo.device.emulator.lower import lower
from asmevo.device.emulator.record import OPERATIONS
from asmevo.isa import opcodes
from asmevo.isa.parse import UnknownInstructionError, parse
from asmevo.isa.program import Program

if TYPE_CHECKING:
    from tests.device.emulator.conftest import Bench

# Another way to write what LLVM prints in its own canonical form.
FORMS = [
    "s_add_u32 s5, s6, 0x1234", "s_mov_b64 exec, -1", "s_mov_b64 s[4:5], 0xffffffff",
    "s_movk_i32 s3, 0x8000", "s_addk_i32 s3, 0xfff0", "s_cmpk_eq_i32 s3, 0xfff0",
    "s_load_dwordx4 s[4:7], s[2:3], 0x40", "s_load_dword s4, s[2:3], s9",
    "s_waitcnt vmcnt(3) lgkmcnt(2)", "s_waitcnt lgkmcnt(0)", "s_nop 4",
    "s_set_gpr_idx_on s4, gpr_idx(SRC0,DST)", "s_set_gpr_idx_mode gpr_idx(SRC1)",
    "v_add_f32_e64 v1, -v2, |s4| clamp", "v_fma_f32 v1, -|v2|, 2.0, s4",
    "v_fmac_f32_e32 v1, v2, v3", "v_fmaak_f32 v1, v2, v3, 0x40490fdb",
    "v_fmamk_f32 v1, v2, 0x40490fdb, v3", "v_mov_b32_e32 v1, 0.5", "v_mov_b32_e32 v1, -4.0",
    "v_cndmask_b32_e32 v1, v2, v3, vcc", "v_cndmask_b32_e64 v1, v2, -v3, s[4:5]",
    "v_addc_co_u32_e32 v1, vcc, v2, v3, vcc", "v_add_co_u32_e64 v1, s[4:5], v2, v3",
    "v_mad_u64_u32 v[2:3], s[4:5], v6, v7, v[8:9]", "v_lshlrev_b64 v[2:3], 4, v[6:7]",
    "v_readlane_b32 s4, v5, 63", "v_writelane_b32 v4, s5, m0", "v_readfirstlane_b32 s4, v5",
    "v_cmp_lt_f32_e64 s[4:5], -v2, |v3|", "v_cmpx_ge_u32_e32 vcc, v2, v3",
    "v_pk_fma_f32 v[2:3], v[4:5], v[6:7], v[8:9] op_sel:[1,0,1] op_sel_hi:[0,1,1] neg_lo:[1,0,0] "
    "neg_hi:[0,0,1]", "v_pk_mov_b32 v[2:3], v[4:5], v[6:7] op_sel:[1,0]",
    "v_pk_mul_f32 v[2:3], v[4:5], s[6:7]",
    "v_add_f32_dpp v1, v2, v3 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf",
    "v_mov_b32_dpp v1, v2 row_shr:4 row_mask:0xa bank_mask:0x3 bound_ctrl:0",
    "v_mov_b32_dpp v1, v2 row_newbcast:7 row_mask:0xf bank_mask:0xf",
    "v_mov_b32_dpp v1, v2 row_bcast:31 row_mask:0xf bank_mask:0xf",
    "v_mov_b32_dpp v1, v2 wave_ror:1 row_mask:0xf bank_mask:0xf",
    "v_mov_b32_dpp v1, v2 row_half_mirror row_mask:0xf bank_mask:0xf",
    "buffer_load_dwordx4 v[4:7], v1, s[8:11], s3 offen offset:16",
    "buffer_load_dword v4, v[2:3], s[8:11], 0 idxen offen sc0 nt",
    "buffer_store_dwordx2 v[4:5], off, s[8:11], 0 offset:4095",
    "global_load_dwordx3 v[4:6], v[2:3], off offset:-8",
    "global_store_dword v2, v4, s[6:7] offset:4095 sc1",
    "ds_read2_b32 v[4:5], v2 offset0:3 offset1:255",
    "ds_write2st64_b64 v2, v[4:5], v[6:7] offset1:1",
    "ds_read_b128 v[4:7], v2 offset:65520", "v_accvgpr_write_b32 a5, v2",
    "v_mfma_f32_16x16x32_fp8_fp8 v[4:7], a[0:1], v[2:3], 0",
    "v_mfma_i32_32x32x16_i8 a[0:15], v[0:1], a[18:19], a[0:15]",
    "v_mfma_f32_16x16x16_bf16 v[4:7], v[0:1], v[2:3], 1.0",
    "v_cvt_pk_fp8_f32 v1, -v2, |v3| op_sel:[0,0,1]", "v_pack_b32_f16 v1, v2, v3 op_sel:[1,0,0]",
    "v_cvt_f32_f16_sdwa v1, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1",
    "v_add_u32_sdwa v1, sext(v2), v3 dst_sel:BYTE_2 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_1 "
    "src1_sel:DWORD", "v_cvt_pk_f32_fp8_sdwa v[2:3], v4 src0_sel:WORD_1",
    "buffer_load_dword v1, s[4:7], 0 offen lds", "buffer_load_dword off, s[4:7], 0 offset:8 lds",
    "global_atomic_pk_add_bf16 v2, v4, s[6:7] offset:256",
    "global_atomic_add_f32 v1, v[2:3], v4, off sc0",
    "buffer_atomic_add_f32 v4, v1, s[8:11], 0 offen offset:256", "ds_bpermute_b32 v1, v2, v3",
    "s_store_dword s4, s[6:7], s8 glc", "s_atomic_inc s4, s[6:7], s8", "s_setvskip s4, 3",
    "s_atomic_inc s4, s[6:7], 0x10 glc", "s_cmpk_eq_u32 s4, 0xffff",
    "v_accvgpr_read_b32 v2, a5", "global_load_dwordx4 a[4:7], v2, s[6:7]",
    "flat_load_dwordx3 v[4:6], v[2:3] offset:4095", "flat_store_byte_d16_hi v[2:3], v4",
    "flat_atomic_cmpswap_x2 v[4:5], v[2:3], v[6:9] sc0", "flat_atomic_add_f64 v[2:3], v[4:5]",
    "global_atomic_cmpswap v4, v2, v[6:7], s[4:5] sc0", "buffer_atomic_cmpswap_x2 v[4:7], off, "
    "s[8:11], 0 sc0", "global_load_lds_dword v[2:3], off offset:-16",
    "global_load_lds_ushort v2, s[6:7]", "scratch_load_ubyte v1, off, off offset:12",
    "scratch_load_dwordx4 v[4:7], v2, off offset:-8", "scratch_store_short off, v4, s33 offset:6",
    "scratch_store_dwordx2 v1, v[4:5], s3", "buffer_load_sbyte_d16_hi v4, off, s[8:11], 0",
    "buffer_store_short_d16_hi v4, v1, s[8:11], s3 offen", "buffer_wbl2 sc0 sc1", "buffer_inv sc1",
    "buffer_load_ushort v1, s[4:7], 0 offen lds", "s_buffer_load_dwordx8 s[8:15], s[4:7], 0x40",
    "s_buffer_store_dwordx2 s[8:9], s[4:7], 0x8", "s_scratch_load_dwordx2 s[8:9], s[4:5], s6",
    "s_atomic_cmpswap_x2 s[8:11], s[4:5], 0x8 glc", "s_buffer_atomic_umax s8, s[4:7], s9",
    "s_memtime s[4:5]", "s_memrealtime s[4:5]", "s_dcache_inv", "s_dcache_wb",
    "ds_read_u8_d16_hi v1, v2 offset:3", "ds_write_b96 v1, v[4:6] offset:8", "ds_nop",
    "ds_write_b8_d16_hi v1, v2", "ds_add_rtn_f64 v[2:3], v1, v[4:5]", "ds_append v1 offset:16",
    "ds_cmpst_rtn_b64 v[2:3], v1, v[4:5], v[6:7]", "ds_pk_add_bf16 v1, v2 offset:4",
    "ds_wrxchg2st64_rtn_b64 v[2:5], v1, v[6:7], v[8:9] offset0:1 offset1:2",
    "ds_condxchg32_rtn_b64 v[2:3], v1, v[4:5]", "ds_read_addtid_b32 v1 offset:4",
    "ds_write_addtid_b32 v1 offset:8", "ds_mskor_rtn_b32 v1, v2, v3, v4",
    "s_mov_b64 s[4:5], src_shared_base", "s_mov_b64 s[4:5], src_private_base",
    *(f"ds_swizzle_b32 v1, v2 offset:{pattern}" for pattern in (
        "swizzle(QUAD_PERM,3,1,0,2)", 'swizzle(BITMASK_PERM,"01pip")', "swizzle(BROADCAST,8,5)",
        "swizzle(SWAP,4)", "swizzle(REVERSE,16)", "0xc0a0", "0xe00f", "0xe01f")),
]


def one(text: str) -> Program:
    return Program.from_disassembly([(0, 8, text)], {})


def test_llvm_reads_and_prints_the_same_instructions(tmp_path: Path) -> None:
    """What LLVM assembles a text to, disassembled again, lowers to the same record."""
    source, binary = tmp_path / "forms.s", tmp_path / "forms.o"
    source.write_text("\n".join(FORMS) + "\n")
    clang = [sys.executable, "-m", "ziglang", "clang", "-c", "-x", "assembler", "-target",
             "amdgcn-amd-amdhsa", "-mcpu=gfx942", str(source), "-o", str(binary)]
    subprocess.run(clang, check=True)
    with binary.open("rb") as stream:
        section = ELFFile(stream).get_section_by_name(".text")
        assert section is not None
        code = section.data()
    rows = disassemble.rows(code, Target("gfx942"))
    assert len(rows) == len(FORMS)
    for text, (_, _, printed) in zip(FORMS, rows, strict=True):
        np.testing.assert_array_equal(lower(one(text)), lower(one(printed)), printed)


def test_every_operation_is_an_instruction_of_the_isa() -> None:
    """The core's table and the decoder's agree on names."""
    for name in OPERATIONS:
        assert opcodes.find(name) is not None, name


@pytest.mark.parametrize(("text", "what"), [
    ("v_mfma_f32_32x32x64_f8f6f4 a[0:15], v[0:7], v[8:15], a[0:15]", "v_mfma_f32_32x32x64_f8f6f4"),
    ("v_mfma_f32_32x32x8_bf16 a[0:15], v[0:1], v[2:3], a[0:15] blgp:1", "blgp"),
    ("v_screen_partition_4se_b32_e32 v1, v2", "v_screen_partition_4se_b32"),
    ("s_setreg_b32 hwreg(HW_REG_TRAPSTS), s4", "HW_REG_TRAPSTS"),
    ("s_getreg_b32 s4, hwreg(HW_REG_HW_ID)", "HW_REG_HW_ID"),
    ("v_mul_f32_e64 v1, v2, v3 mul:3", "'mul'"),
    ("v_mad_u32_u16 v1, v2, v3, v4 op_sel:[0,0,0,1]", "op_sel"),
    ("v_dot2_f32_f16 v1, v2, v3, v4 op_sel:[1,0,0]", "op_sel"),
    ("v_fma_mix_f32 v1, v2, 70000.0, v4 op_sel_hi:[0,1,0]", "does not fit"),
    ("v_cvt_pk_fp8_f32 v1, v2, v3 op_sel:[1,0,0]", "op_sel"),
    ("v_pack_b32_f16 v1, v2, v3 op_sel:[0,0,1]", "op_sel"),
    ("v_pk_add_f32 v[2:3], v[4:5], 1.0", "half of a constant"),
    ("v_mov_b32_e32 v1, src_shared_base", "src_shared_base"),
    ("ds_read_b32 v1, v2 gds", "'gds'"),
    ("buffer_load_format_x v1, off, s[4:7], 0", "buffer_load_format_x"),
    ("tbuffer_load_format_x v1, off, s[4:7], 0 format:1", "tbuffer_load_format_x"),
    ("ds_gws_barrier v1", "ds_gws_barrier")])
def test_what_is_not_modelled_is_refused_by_name(text: str, what: str) -> None:
    with pytest.raises(UnsupportedError, match="at offset 0x8: ") as caught:
        lower(Program.from_disassembly([(0, 8, "s_nop 0"), (8, 8, text)], {}))
    assert what in str(caught.value)
    assert f"'{parse(text).text}'" in str(caught.value)


def test_integer_clamp_and_unallocated_registers_are_refused(bench: Bench) -> None:
    for text, what in (("v_xor_b32_e64 v1, v2, v3 clamp", "clamp"),
                       ("v_mov_b32_e32 v96, v2", "VGPR beyond"),
                       ("v_accvgpr_read_b32 v1, a32", "AGPR beyond"),
                       ("s_mov_b32 s4, ttmp3", "scalar register")):
        with pytest.raises(ValueError, match=what):
            bench.program(one(text))


def test_unknown_text_is_a_typed_error() -> None:
    with pytest.raises(UnknownInstructionError):
        one("v_do_what_i_mean v1")


NAMES = ["layer_norm.co", *(f"topksoftmax/topksoftmax_{rows}x{experts}x{top}.co"
                            for rows in (4, 12) for experts in (128, 256) for top in (6, 8))]


@pytest.mark.parametrize("name", NAMES)
def test_corpus_kernels_lower_completely(name: str) -> None:
    file = InstalledFile("amd-aiter", f"aiter_meta/hsa/gfx942/{name}")
    program = disassemble.program(CodeObject.parse(file.read()))
    assert len(lower(program)) % len(program) == 0
