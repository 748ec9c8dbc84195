"""Which violations of two kernels are the same."""

from __future__ import annotations

import pytest

from asmevo.isa.violation import Violation


def violation(producer: str, consumer: str, kind: str = "k", registers: int = 1) -> Violation:
    return Violation(kind, 3, 9, producer, consumer, registers, 2, 0)


@pytest.mark.parametrize(("one", "other"), [
    (("v_add_u32_e32 v1, 0, v2", "v_mov_b32_e32 v3, v1"),
     ("v_add_u32_e64 v1, 0, v2", "v_mov_b32_e64 v3, v1")),
    (("v_cmp_eq_u32_e32 vcc, v1, v2", "s_cbranch_vccz 12"),
     ("v_cmp_eq_u32_e32 vcc, v1, v2", "s_cbranch_vccz 65530")),
])
def test_encodings_and_distances_do_not_matter(one: tuple[str, str], other: tuple[str, str],
                                               ) -> None:
    assert violation(*one).signature == violation(*other).signature


@pytest.mark.parametrize(("one", "other"), [
    (("v_add_u32_e32 v1, 0, v2", "s_nop 0"), ("v_add_u32_e32 v1, 0, v3", "s_nop 0")),
    (("v_mov_b32_dpp v1, v2", "s_nop 0"), ("v_mov_b32_e32 v1, v2", "s_nop 0")),
    (("", "s_cbranch_vccz 12"), ("", "s_cbranch_vccnz 12")),
    (("", "ds_read_b32 v1, v2 offset:4"), ("", "ds_read_b32 v1, v2 offset:8")),
])
def test_everything_else_does(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert violation(*one).signature != violation(*other).signature
