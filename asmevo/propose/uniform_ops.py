"""Which scalar operations give what a vector operation gives in each lane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ScalarForm:
    """How a vector operation is done on scalars (CDNA3 ISA, "SALU" and "VALU Instructions").

    ``texts(to, sources)`` are the instructions; ``sets_scc`` says whether they write SCC.
    """

    texts: Callable[[str, Sequence[str]], tuple[str, ...]]
    sets_scc: bool = True


def _same(op: str, *order: int, sets_scc: bool = True) -> ScalarForm:
    def texts(to: str, sources: Sequence[str]) -> tuple[str, ...]:
        return (f"{op} {', '.join((to, *(sources[k] for k in order)))}",)
    return ScalarForm(texts, sets_scc)


def _two(first: str, a: int, b: int, second: str, c: int) -> ScalarForm:
    """``second(first(a, b), c)``; the register in between is the result's."""
    def texts(to: str, sources: Sequence[str]) -> tuple[str, ...]:
        return (f"{first} {to}, {sources[a]}, {sources[b]}", f"{second} {to}, {to}, {sources[c]}")
    return ScalarForm(texts)


# 32-bit integers: both units are modulo 2^32 and shift by the low five bits. There is no scalar
# floating point.
SCALAR_FORMS = {
    "v_mov_b32": _same("s_mov_b32", 0, sets_scc=False),
    "v_not_b32": _same("s_not_b32", 0),
    "v_bfrev_b32": _same("s_brev_b32", 0, sets_scc=False),
    "v_add_u32": _same("s_add_i32", 0, 1),
    "v_add_i32": _same("s_add_i32", 0, 1),
    "v_sub_u32": _same("s_sub_i32", 0, 1),
    "v_sub_i32": _same("s_sub_i32", 0, 1),
    "v_subrev_u32": _same("s_sub_i32", 1, 0),
    "v_and_b32": _same("s_and_b32", 0, 1),
    "v_or_b32": _same("s_or_b32", 0, 1),
    "v_xor_b32": _same("s_xor_b32", 0, 1),
    "v_xnor_b32": _same("s_xnor_b32", 0, 1),
    "v_lshlrev_b32": _same("s_lshl_b32", 1, 0),
    "v_lshrrev_b32": _same("s_lshr_b32", 1, 0),
    "v_ashrrev_i32": _same("s_ashr_i32", 1, 0),
    "v_min_i32": _same("s_min_i32", 0, 1),
    "v_max_i32": _same("s_max_i32", 0, 1),
    "v_min_u32": _same("s_min_u32", 0, 1),
    "v_max_u32": _same("s_max_u32", 0, 1),
    "v_mul_lo_u32": _same("s_mul_i32", 0, 1, sets_scc=False),
    "v_mul_hi_u32": _same("s_mul_hi_u32", 0, 1, sets_scc=False),
    "v_mul_hi_i32": _same("s_mul_hi_i32", 0, 1, sets_scc=False),
    "v_lshl_add_u32": _two("s_lshl_b32", 0, 1, "s_add_i32", 2),
    "v_add_lshl_u32": _two("s_add_i32", 0, 1, "s_lshl_b32", 2),
    "v_add3_u32": _two("s_add_i32", 0, 1, "s_add_i32", 2),
    "v_lshl_or_b32": _two("s_lshl_b32", 0, 1, "s_or_b32", 2),
    "v_and_or_b32": _two("s_and_b32", 0, 1, "s_or_b32", 2),
    "v_or3_b32": _two("s_or_b32", 0, 1, "s_or_b32", 2),
    "v_xad_u32": _two("s_xor_b32", 0, 1, "s_add_i32", 2),
}
