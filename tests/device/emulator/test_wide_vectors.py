"""Operations compiled for AVX-512 give the bytes of those that run on any host.

Hosts without it compare nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from tests.device.emulator.conftest import Bench

EXEC = 0xF0F1_8000_7FFF_1234
FLOATS = [
    *(f"v_{name}_f32 v10, v2, v3" for name in ("add", "sub", "mul", "max", "min")),
    *(f"v_{name}_f32 v10, v2, -v3, |v4|" for name in ("fma", "max3", "min3", "med3")),
    *(f"v_{name}_f32 v10, v2" for name in ("floor", "ceil", "trunc", "rndne", "exp", "log", "rcp",
                                           "rsq", "sqrt")),
    "v_pk_add_f32 v[10:11], v[2:3], v[4:5]", "v_pk_mul_f32 v[10:11], v[2:3], v[4:5] op_sel:[1,0]",
    "v_pk_fma_f32 v[10:11], v[2:3], v[4:5], v[6:7] neg_lo:[1,0,0]", "v_add_f32 v10, v2, v3 clamp",
    "v_cmp_lt_f32 vcc, v2, v3\nv_cndmask_b32 v10, v4, v5, vcc",
    "v_cmp_u_f32 vcc, v2, v3\nv_cndmask_b32 v10, v4, v5, vcc",
]
INTEGERS = [
    *(f"v_{name} v10, v2, v3" for name in ("and_b32", "or_b32", "xor_b32", "lshlrev_b32",
                                           "lshrrev_b32", "ashrrev_i32", "add_u32", "sub_u32",
                                           "max_i32", "min_u32", "mul_lo_u32", "mul_hi_u32")),
    *(f"v_{name} v10, v2, v3, v4" for name in ("bfe_u32", "bfi_b32", "add3_u32", "and_or_b32",
                                               "lshl_add_u32", "perm_b32", "alignbit_b32")),
    "v_lshlrev_b64 v[10:11], v2, v[4:5]",
    "v_cmp_gt_u32 vcc, v2, v3\nv_cndmask_b32 v10, v4, v5, vcc",
]


@pytest.mark.parametrize("exec_mask", [(1 << 64) - 1, EXEC])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("text", [*FLOATS, *INTEGERS])
def test_every_vector_width_gives_the_same_bytes(bench: Bench, text: str, keep: bool,
                                                 exec_mask: int) -> None:
    columns = bench.floats(3, 5) + bench.floats(3, 6)
    vector = dict(enumerate(columns, start=2))
    wide, narrow = (
        replace(bench, narrow=flag, keep_denormals=keep).run(
            text.split("\n"), vector=vector, vector_out=[10, 11], exec_mask=exec_mask).vector
        for flag in (False, True))
    for n in (10, 11):
        np.testing.assert_array_equal(wide[n], narrow[n])


@pytest.mark.parametrize("selector", [0x07060302, 0x05040100, 0x05040302, 0x03020504, 0x06050100,
                                      0x04030201, 0x0C0C0706, 0x00010203, 0x08090A0B, 0x0D040100])
def test_byte_permutation(bench: Bench, selector: int) -> None:
    """A constant selector, taken by halves where it is made of those, is the one in a register."""
    a, b = bench.integers(2, 3)
    vector = {2: a, 3: b, 4: np.full(len(a), selector, np.uint32)}
    out = bench.run(["v_perm_b32 v10, v2, v3, v4", f"s_mov_b32 s20, {selector:#x}",
                     "v_perm_b32 v11, v2, v3, s20"], vector=vector, vector_out=[10, 11]).vector
    np.testing.assert_array_equal(out[10], out[11])
