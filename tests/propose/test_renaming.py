"""Registers in instruction texts get other numbers, and nothing else does."""

from __future__ import annotations

import pytest

from asmevo.isa.registers import VGPR0
from asmevo.propose.renaming import renamed

V = VGPR0


@pytest.mark.parametrize(("text", "registers", "only", "expected"), [
    ("v_add_f32_e32 v1, v2, v1", {V + 1: V + 9}, None, "v_add_f32_e32 v9, v2, v9"),
    ("v_add_f32_e32 v1, v2, v1", {V + 1: V + 9}, 0, "v_add_f32_e32 v9, v2, v1"),
    ("v_fma_f32 v1, -v2, |v3|, s2", {V + 2: V + 7, V + 3: V + 8}, None,
     "v_fma_f32 v1, -v7, |v8|, s2"),
    ("global_load_dwordx2 v[2:3], v[4:5], off offset:2", {V + 2: V + 6, V + 3: V + 7}, None,
     "global_load_dwordx2 v[6:7], v[4:5], off offset:2"),
    ("v_pk_fma_f32 v[2:3], v[4:5], v[6:7], v[2:3]", {V + 3: V + 9}, None, None),
    ("s_load_dword s2, s[6:7], 0x2", {2: 30}, None, "s_load_dword s30, s[6:7], 0x2"),
])
def test_renaming(
    text: str, registers: dict[int, int], only: int | None, expected: str | None,
) -> None:
    assert renamed(text, registers, only=only) == expected
