"""What is dropped because another register has it, and that results stay what they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from asmevo.isa.hazards import hazards
from asmevo.isa.waits import missing_waits
from asmevo.propose.rules.reuse_results import ReuseResults
from tests.propose.emulated import OUTPUT, stored

# What {body} leaves in v5 is stored.
KERNEL = """
v_lshlrev_b32_e32 v1, 2, v0
v_mul_u32_u24_e32 v2, v0, v0
v_xor_b32_e32 v3, v0, v2
v_mov_b32_e32 v5, v3
{body}
global_store_dword v1, v5, {OUTPUT}
s_endpgm
"""
TWICE = "v_cvt_f32_u32_e32 v6, v2\nv_cvt_f32_u32_e32 v7, v2"


def changed(kernels: Any, body: str) -> list[str] | None:
    """What stands in the place of the body after the first proposal that touches it, if any; each
    proposal has to keep waits, hazards and what the kernel stores."""
    text = KERNEL.format(body=body, OUTPUT=OUTPUT)
    before = [x.strip() for x in text.strip().split("\n")]
    context = kernels.context(text)
    found: list[str] | None = None
    for proposal in ReuseResults().matches(context):
        assert not proposal.assumption
        preview = context.preview.apply(proposal.edits)
        assert not missing_waits(preview.program)
        assert not hazards(preview.program)
        after = list(kernels.edited(text, proposal))
        for scalars in ({6: 5, 7: 9}, {6: 0xFFFFFFFF, 7: 0}):
            assert np.array_equal(stored(before, scalars), stored(after, scalars))
        if found is None and after[:4] == before[:4]:
            found = after[4:-2]
    return found


@pytest.mark.parametrize(("body", "expected"), [
    (f"{TWICE}\nv_add_f32_e32 v5, v6, v7", ["v_cvt_f32_u32_e32 v6, v2",
                                            "v_add_f32_e32 v5, v6, v6"]),
    # The use writes what it reads.
    (f"{TWICE}\nv_add_f32_e32 v7, v6, v7\nv_xor_b32_e32 v5, v7, v3",
     ["v_cvt_f32_u32_e32 v6, v2", "v_add_f32_e32 v7, v6, v6", "v_xor_b32_e32 v5, v7, v3"]),
    ("v_add_u32_e32 v5, 4, v2\nv_add_u32_e32 v5, 4, v2", ["v_add_u32_e32 v5, 4, v2"]),
    ("v_mov_b32_e32 v6, v2\nv_add_u32_e32 v5, v6, v3", ["v_add_u32_e32 v5, v2, v3"]),
    ("s_add_i32 s10, s6, s7\ns_add_i32 s11, s6, s7\nv_mov_b32_e32 v5, s11\n"
     "v_add_u32_e32 v5, s10, v5",
     ["s_add_i32 s10, s6, s7", "v_mov_b32_e32 v5, s10", "v_add_u32_e32 v5, s10, v5"]),
    ("v_lshlrev_b64 v[6:7], 3, v[2:3]\nv_lshlrev_b64 v[8:9], 3, v[2:3]\nv_xor_b32_e32 v5, v8, v9",
     ["v_lshlrev_b64 v[6:7], 3, v[2:3]", "v_xor_b32_e32 v5, v6, v7"]),
    ("v_mov_b32_e32 v6, v2\nv_fma_f32 v5, -v6, |v6|, v3", ["v_fma_f32 v5, -v2, |v2|, v3"]),
])
def test_what_is_reused(kernels: Any, body: str, expected: list[str]) -> None:
    assert changed(kernels, body) == expected


@pytest.mark.parametrize("body", [
    # An operand, or the register that holds it, is written in between.
    "v_cvt_f32_u32_e32 v6, v2\nv_mov_b32_e32 v2, 7\nv_cvt_f32_u32_e32 v7, v2\n"
    "v_add_f32_e32 v5, v6, v7",
    "v_cvt_f32_u32_e32 v6, v2\nv_mov_b32_e32 v6, 7\nv_cvt_f32_u32_e32 v7, v2\n"
    "v_add_f32_e32 v5, v6, v7",
    f"{TWICE}\nv_mov_b32_e32 v6, 7\nv_add_f32_e32 v5, v6, v7",
    # Its own operand.
    "v_add_u32_e32 v6, 1, v6\nv_add_u32_e32 v6, 1, v6\nv_xor_b32_e32 v5, v6, v3",
    # Not the same operation.
    "v_cvt_f32_u32_e32 v6, v2\nv_cvt_f32_i32_e32 v7, v2\nv_add_f32_e32 v5, v6, v7",
    "v_mul_f32_e64 v6, v2, v3\nv_mul_f32_e64 v7, v2, v3 clamp\nv_add_f32_e32 v5, v6, v7",
    # Other lanes, and another rounding.
    "v_cvt_f32_u32_e32 v6, v2\ns_mov_b64 exec, 15\nv_cvt_f32_u32_e32 v7, v2\n"
    "v_add_f32_e32 v5, v6, v7\ns_mov_b64 exec, -1",
    "v_cvt_f32_u32_e32 v6, v2\ns_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 1\n"
    "v_cvt_f32_u32_e32 v7, v2\nv_add_f32_e32 v5, v6, v7",
    # Behind the change of EXEC lanes read it that did not write it.
    f"s_mov_b64 exec, 15\n{TWICE}\ns_mov_b64 exec, -1\nv_add_f32_e32 v5, v6, v7",
    # It reads a lane that is off.
    f"s_mov_b64 exec, 15\n{TWICE}\nv_readlane_b32 s10, v7, 20\ns_mov_b64 exec, -1\n"
    "v_mov_b32_e32 v5, s10",
    # SCC is used.
    "s_add_u32 s10, s6, s7\ns_mov_b32 s12, 1\ns_add_u32 s11, s6, s7\ns_addc_u32 s12, s11, s12\n"
    "v_mov_b32_e32 v5, s12",
    # The use adds to the result.
    f"{TWICE}\nv_fmac_f32_e32 v7, v2, v3\nv_add_f32_e32 v5, v6, v7",
    # No copies: lanes change places, or a part is taken.
    "v_mov_b32_dpp v6, v2 row_ror:4 row_mask:0xf bank_mask:0xf bound_ctrl:0\n"
    "v_xor_b32_e32 v5, v6, v3",
    "v_mov_b32_sdwa v6, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1\n"
    "v_xor_b32_e32 v5, v6, v3",
    # A pair from an odd register on.
    "v_mov_b32_e32 v8, v3\nv_mov_b32_e32 v9, v0\nv_lshlrev_b64 v[6:7], 3, v[8:9]\n"
    "v_xor_b32_e32 v5, v6, v7",
])
def test_what_is_not_reused(kernels: Any, body: str) -> None:
    assert changed(kernels, body) is None
