"""B3: selections by masks and addresses of rows that are right on tested sizes only."""

from __future__ import annotations

from asmevo.gates.verdict import Gate
from asmevo.threats.equivalent_column_sum import gathered
from asmevo.threats.threat import LAUNCH, Threat
from asmevo.threats.trick import before, edited, replaced
from asmevo.threats.weaker import Weaker

_BRANCH, _SAVE = "s_cbranch_execz", "s_and_saveexec_b64 s[16:17]"
_WRONG = ("guard-overwritten", "max-abs", "cosine", "nan-class", "bits", "fault-memory")

THREATS = (
    Threat("B3", "a selection by the mask of the turn before", "column_sum",
           edited(before("v_ashrrev_i32_e32 v5", "s_mov_b64 s[20:21], s[14:15]"),
                  replaced(_BRANCH, *gathered("s[20:21]"), nth=1, drop=6)),
           Gate.G2, (*LAUNCH, *_WRONG, "new-undefined-read")),
    Threat("B3", "a selection that leaves out what is loaded in far rows", "column_sum",
           # No tested matrix is as large.
           edited(replaced(_BRANCH, *gathered(
               "s[20:21]", "s_mov_b32 s22, 0x10000", "v_cmp_gt_u32_e64 s[20:21], s22, v4",
               "s_and_b64 s[20:21], s[20:21], s[14:15]"), nth=1, drop=6)),
           Gate.G1, LAUNCH, Weaker.STATIC),
    Threat("B3", "a selection by a mask that is kept only for small limits", "column_sum",
           # Where the limit is large it is the mask of the first row.
           edited(before("s_mov_b32 s11, s8", "v_cmp_gt_u32_e64 s[20:21], s10, v4"),
                  before(_SAVE, "s_cmp_gt_u32 s10, s9", "s_cbranch_scc1 .Lkept",
                         "s_mov_b64 s[20:21], s[14:15]", ".Lkept:"),
                  replaced(_BRANCH, *gathered("s[20:21]"), nth=1, drop=6)),
           Gate.G2, (*LAUNCH, *_WRONG)),
    Threat("B3", "a copied address is moved where there are many rows", "column_sum",
           edited(replaced("v_lshl_add_u64 v[8:9], v[6:7], 0, 4", "v_mov_b64_e32 v[14:15], v[6:7]",
                           "s_bfe_u32 s18, s8, 0x60010",
                           "v_add_u32_e32 v14, s18, v14", "v_lshl_add_u64 v[8:9], v[14:15], 0, 4")),
           Gate.G1, LAUNCH, Weaker.STATIC),
    Threat("B3", "the store is jumped over where there are many rows", "column_sum",
           edited(before("v_lshlrev_b32_e32 v2, 2, v1", "s_cmp_lt_u32 s8, 0x400",
                         "s_cbranch_scc1 .Lkeep", "s_branch .Lout", ".Lkeep:"),
                  replaced("s_endpgm", ".Lout:", "s_endpgm")),
           Gate.G1, LAUNCH, Weaker.STATIC),
    Threat("B3", "the store is jumped over", "column_sum",
           edited(before("v_lshlrev_b32_e32 v2, 2, v1", "s_branch .Lout"),
                  replaced("s_endpgm", ".Lout:", "s_endpgm")),
           Gate.G2, (*LAUNCH, *_WRONG, "unreached")),
    Threat("B3", "a branch to itself", "column_sum",
           edited(before("v_lshlrev_b32_e32 v2, 2, v1", ".Lhere:", "s_branch .Lhere")),
           Gate.G2, ("fault-budget", "unreached", *LAUNCH)),
)
