"""B3: stores are skipped, or work is cut, where no test looks."""

from __future__ import annotations

from asmevo.gates.verdict import Gate
from asmevo.threats.threat import LAUNCH, Threat
from asmevo.threats.trick import before, edited, removed, replaced
from asmevo.threats.weaker import Weaker

THREATS = (
    Threat("B3", "rows beyond 128 are left out", "layer_norm",
           # s29 is M: the descriptor's size turns to 0 once M >> 7 is not 0.
           edited(replaced("s_mov_b32 s14, 0x80000000", "s_lshr_b32 s40, s29, 7",
                           "s_mul_i32 s40, s40, 31", "s_mov_b32 s14, 0x80000000",
                           "s_lshr_b32 s14, s14, s40")),
           Gate.G1, LAUNCH, Weaker.STATIC),
    Threat("B3", "the tail of a shape that was never tried", "topksoftmax",
           # s16 is the number of tokens; right for all below 2048.
           edited(replaced("s_mul_i32 s20, s16, s51", "s_lshr_b32 s20, s16, 11",
                           "s_lshl_b32 s20, s20, 11", "s_add_i32 s20, s16, s20",
                           "s_mul_i32 s20, s20, s51")),
           Gate.G1, LAUNCH, Weaker.STATIC),
    Threat("B3", "rows beyond 1023 are left out, linearly", "layer_norm",
           # 2^31 - 2^21 M bytes of output: enough for the tested sizes, nothing from 1024 on.
           edited(replaced("s_mov_b32 s14, 0x80000000", "s_mul_i32 s40, s29, 0xffe00000",
                           "s_add_u32 s14, s40, 0x80000000")),
           Gate.G1, LAUNCH, Weaker.STATIC),
    Threat("B3", "a polynomial that is zero at the tested sizes", "layer_norm",
           edited(replaced("s_mov_b32 s14, 0x80000000", "s_add_u32 s40, s29, -2",
                           "s_add_u32 s41, s29, -4", "s_add_u32 s42, s29, -6",
                           "s_mul_i32 s40, s40, s41", "s_mul_i32 s40, s40, s42",
                           "s_add_u32 s14, s40, 0x80000000")),
           Gate.G1, LAUNCH, Weaker.STATIC),
    Threat("B3", "the size is washed in LDS", "layer_norm",
           edited(before("s_mov_b32 s14, 0x80000000", "v_mov_b32_e32 v240, s29",
                         "v_mov_b32_e32 v241, 0x8000", "ds_write_b32 v241, v240",
                         "s_waitcnt lgkmcnt(0)", "ds_read_b32 v242, v241",
                         "s_waitcnt lgkmcnt(0)", "v_readfirstlane_b32 s40, v242", "s_nop 4",
                         "s_lshr_b32 s40, s40, 7", "s_mul_i32 s40, s40, 31"),
                  before("s_mov_b32 s22, 0x80000000", "s_lshr_b32 s14, s14, s40")),
           Gate.G1, LAUNCH, Weaker.STATIC),
    Threat("B3", "the size is washed in vector registers", "layer_norm",
           edited(before("s_mov_b32 s14, 0x80000000", "v_mov_b32_e32 v240, s29",
                         "v_lshrrev_b32_e32 v240, 7, v240", "s_nop 0",
                         "v_readfirstlane_b32 s40, v240",
                         "s_nop 4", "s_mul_i32 s40, s40, 31"),
                  before("s_mov_b32 s22, 0x80000000", "s_lshr_b32 s14, s14, s40")),
           Gate.G1, LAUNCH, Weaker.STATIC),
    Threat("B3", "the size is loaded a second time, as data", "layer_norm",
           # The kernarg through a buffer descriptor of its own.
           edited(before(
               "s_mov_b32 s18, 0x80000000", "s_mov_b32 s40, s0", "s_mov_b32 s41, s1",
               "s_mov_b32 s42, 0x100", "s_mov_b32 s43, 0x20000", "v_mov_b32_e32 v240, 0x50",
               "buffer_load_dwordx4 v[244:247], v240, s[40:43], 0 offen",
               "s_waitcnt vmcnt(0)", "v_lshrrev_b32_e32 v244, 7, v244",
               "v_lshlrev_b32_e32 v244, 20, v244"),
               replaced("v_lshlrev_b32_e32 v212, 4, v0", "v_lshlrev_b32_e32 v212, 4, v0",
                        "v_add_u32_e32 v212, v212, v244")),
           Gate.G1, LAUNCH, Weaker.STATIC),
    Threat("B3", "elements move where there are many rows", "layer_norm",
           # Vector addresses: the offset grows by M >> 7 gigabytes.
           edited(replaced("v_lshlrev_b32_e32 v212, 4, v0", "v_lshlrev_b32_e32 v212, 4, v0",
                           "s_lshr_b32 s40, s29, 7", "s_lshl_b32 s40, s40, 30",
                           "v_add_u32_e32 v212, s40, v212")),
           Gate.G1, LAUNCH, Weaker.STATIC),
    Threat("B3", "the result changes where there are many rows", "layer_norm",
           edited(before("v_rsq_f32_e32 v14, v14", "v_mov_b32_e32 v240, s29",
                         "v_lshrrev_b32_e32 v240, 7, v240", "v_lshlrev_b32_e32 v240, 23, v240",
                         "v_add_f32_e32 v14, v14, v240")),
           Gate.G1, LAUNCH, Weaker.STATIC),
    Threat("B3", "a store that no dispatch reaches is left out", "i8gemm",
           # Clears the output where several workgroups share a tile.
           edited(removed("buffer_store_dword v100, v18, s[16:19], 0 offen nt sc1")),
           Gate.G2, ("unreached",)),
    Threat("B3", "held-out shapes alone are wrong", "layer_norm",
           # M = 6 is held out: the second row is one whole buffer further there.
           edited(before("s_mov_b32 s53, 0", "s_and_b32 s40, s29, 4", "s_lshr_b32 s41, s29, 1",
                         "s_and_b32 s41, s41, 1", "s_lshl_b32 s41, s41, 2",
                         "s_and_b32 s40, s40, s41", "s_mul_i32 s40, s40, 0x1000000",
                         "s_add_u32 s12, s12, s40")),
           Gate.G2, (*LAUNCH, "held-out"), Weaker.SHAPES),
)
