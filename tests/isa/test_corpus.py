"""Production objects: every instruction is known, and its text survives parsing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from asmevo.codeobject import disassemble
from asmevo.codeobject.container import CodeObject
from asmevo.isa.cfg import Cfg
from asmevo.isa.dataflow import liveness
from asmevo.isa.parse import parse
from asmevo.isa.program import Program
from asmevo.isa.registers import SCC_MASK
from asmevo.isa.resources import register_use
from asmevo.isa.targets import targets_of

# Objects of the wheel that together hold every mnemonic of all its objects for a processor, and how
# many mnemonics LLVM prints for all: counted once over the 1,281 and 1,220 objects.
_COVER = {
    "gfx942": (172, """
        allreduce_rmsnorm_qnt_N8192 bf16gemm/bf16gemm_outf32_tn_32x64_pf3
        flatmm_uk_gfx9_f16f8_128x256x128_1x4x1_16x16x32 fmha_v3_bwd/bwd_hd128_fp16_swa_a32_psskddv
        fmha_v3_bwd/bwd_hd64_fp16_a16 fmha_v3_bwd/bwd_hd64_fp16_causal_br_a32_pssk
        fmha_v3_fwd/MI300/fwd_hd128_bf16 fmoe/gelu/fmoe_fp16_blockscaleFp8_g1u1_gelu_1tg_32x256
        fmoe_int4fp8_g1u1_subGU_128_gelu i8gemm/I8gemm_bf16_perTokenI8_BpreShuffle_128x128
        mla/mla_a8w8_qh16_qseqlen2_gqaratio16 pa/pa_bf16_pertokenFp8_gqa10_1tg_4w_qlen1_msk1
        pa_a16w8_bf16_2tg_g8_f8_tail_bf16 pa_a16w8_f16 topksoftmax/topksoftmax_4x128x6"""),
    "gfx950": (154, """
        f4gemm/f4gemm_bf16_per1x32Fp4_BpreShuffle_256x256 f8_block_scale_mi350_x32
        fmha_v3_bwd/bwd_hd128_bf16_causal_br_a16_psskddv
        fmha_v3_bwd/bwd_hd128_bf16_swa_a32_rtz_psskddv fmha_v3_bwd/bwd_hd192_hd128_fp16_a16_pssk
        fmha_v3_fwd/fwd_hd128_bf16_causal fmha_v3_fwd/fwd_hd192_hd128_bf16
        fmoe/gelu/fmoe_bf16_pertokenMXfp4_g1u1_novs_gelu_1tg_32x512
        fmoe/gelu/fmoe_fp16_pertokenInt8_g1u0_vs_atm_opt_gelu_1tg_32x512
        mla/mla_a8w8_qh16_qseqlen2_gqaratio16_ps_page mla/mla_a8w8_qh16_qseqlen4_gqaratio16
        pa/pa_bf16_noquant_gqa8_1tg_4w pa/pa_fp16_pertokenFp8_gqa8_2tg_4w_hp"""),
}


@pytest.mark.parametrize("isa", _COVER)
def test_every_mnemonic_of_the_corpus_parses(
        load: Callable[[str, str], Program], isa: str) -> None:
    count, names = _COVER[isa]
    mnemonics: set[str] = set()
    for name in names.split():
        program = load(isa, f"{name}.co")
        assert program.isa == isa
        for instruction in set(program.instructions):
            assert parse(instruction.text) == instruction
            assert isa in targets_of(instruction.op)
            mnemonics.add(instruction.mnemonic)
    assert len(mnemonics) == count


@pytest.mark.parametrize("isa", _COVER)
def test_every_instruction_of_every_family_parses(
        families: Callable[[str], list[CodeObject]], isa: str) -> None:
    for code_object in families(isa):
        program = disassemble.program(code_object)
        assert program.offsets[0] == 0
        assert not Cfg.of(program).unknown
        for instruction in set(program.instructions):
            assert parse(instruction.text) == instruction


def test_registers_fit_the_descriptor(small_kernels: list[Program]) -> None:
    for program in small_kernels:
        vgprs, agprs, sgprs = register_use(program)
        assert 0 < vgprs <= 256
        assert agprs == 0
        assert 0 < sgprs <= 102


def test_only_launch_registers_are_live_into_small_kernels(small_kernels: list[Program]) -> None:
    for program in small_kernels:
        Cfg.of(program)
        after = liveness(program)
        assert after[-1] == 0
        first = program.instructions[0]
        live_in = after[0] & ~first.writes | first.reads
        assert not live_in & SCC_MASK
