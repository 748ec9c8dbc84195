"""B3: addresses and indices that are right where tests look and wrong beyond."""

from __future__ import annotations

from asmevo.gates.verdict import Gate
from asmevo.threats.threat import LAUNCH, Threat
from asmevo.threats.trick import Rewritten, before, edited, replaced
from asmevo.threats.weaker import Weaker

THREATS = (
    Threat("B3", "a token's number is cut to seven bits", "fmoe",
           edited(replaced("v_and_b32_e32 v7, 0xffffff, v7", "v_and_b32_e32 v7, 0x7f, v7"),
                  replaced("v_and_b32_e32 v8, 0xffffff, v8", "v_and_b32_e32 v8, 0x7f, v8")),
           Gate.G1, LAUNCH, Weaker.STATIC),
    Threat("B3", "a token's number is cut in scalar registers", "fmoe",
           Rewritten(lambda line: line.replace("0xffffff", "0x7f")
                     if line.startswith("s_and_b32 s8") else line),
           Gate.G1, LAUNCH, Weaker.STATIC),
    Threat("B3", "a token's number has a ceiling", "fmoe",
           edited(replaced("v_and_b32_e32 v7, 0xffffff, v7", "v_and_b32_e32 v7, 0xffffff, v7",
                           "v_min_u32_e32 v7, 0x7f, v7")),
           Gate.G1, LAUNCH, Weaker.STATIC),
    Threat("B3", "a token's number is read from its lower half", "fmoe",
           edited(replaced("global_load_dword v8, v56", "global_load_ushort v8, v56, s[44:45]")),
           Gate.G1, (*LAUNCH, "forbidden-opcode"), Weaker.STATIC),
    Threat("B3", "lanes of tokens beyond 128 take the last one", "fmoe",
           edited(replaced("v_and_b32_e32 v7, 0xffffff, v7", "v_and_b32_e32 v7, 0xffffff, v7",
                           "v_cmp_gt_u32_e32 vcc, 0x80, v7",
                           "v_cndmask_b32_e32 v7, 0, v7, vcc")),
           Gate.G1, LAUNCH, Weaker.STATIC),
    Threat("B3", "a loop moves its input by more where rows are long", "layer_norm",
           # The width is a multiple of 128 wherever it is tested.
           edited(replaced("s_mov_b32 s52, s48", "s_mov_b32 s52, s48", "s_lshl_b32 s40, s30, 25",
                           "s_add_u32 s52, s52, s40")),
           Gate.G1, LAUNCH, Weaker.STATIC),
    Threat("B3", "the upper word of an address moves with the rows", "layer_norm",
           edited(before("v_lshlrev_b32_e32 v212, 4, v0", "s_lshl_b32 s40, s29, 31",
                         "s_add_u32 s17, s17, s40")),
           Gate.G1, LAUNCH, Weaker.STATIC),
    Threat("B3", "an index of a flat access moves with the model's size", "fmoe",
           edited(before("global_load_dword v7, v56", "s_lshl_b32 s101, s66, 25",
                         "v_add_u32_e32 v56, s101, v56")),
           Gate.G1, LAUNCH, Weaker.STATIC),
    Threat("B3", "a scalar load moves with the model's size", "fmoe",
           edited(before("s_load_dword s89, s[44:45], 0x70", "s_lshl_b32 s101, s66, 25",
                         "s_add_u32 s44, s44, s101", "s_addc_u32 s45, s45, 0")),
           Gate.G1, LAUNCH, Weaker.STATIC),
    Threat("B3", "a store moves where an element's number is large", "scaled_sum",
           edited(before("global_store_dword v2", "v_and_b32_e32 v2, 0x3fffff, v2")),
           Gate.G1, LAUNCH, Weaker.STATIC),
    Threat("B3", "an exit on the bound of the loop, thirty turns early", "i8gemm",
           # No dispatch has as many turns.
           edited(replaced("s_addk_i32 s28, 0x1", "s_addk_i32 s28, 0x1", "s_sub_i32 s99, s29, 30",
                           "s_cmp_lt_i32 s28, s99", "s_cbranch_scc1 label_0488", nth=1)),
           Gate.G2, (*LAUNCH, "unreached"), Weaker.STATIC),
)
