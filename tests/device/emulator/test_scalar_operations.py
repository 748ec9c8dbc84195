"""SALU operations against Python's integers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.device.emulator.conftest import Bench

M32 = 0xFFFFFFFF
M64 = 0xFFFFFFFFFFFFFFFF
VALUES = [0, 1, 5, 31, 32, 0x40, 0x7FFF, 0x8000, 0x000C0010, 0x00200000, 0x7FFFFFFF, 0x80000000,
          0x80000001, 0xDEADBEEF, M32 - 1, M32]
# What an operation leaves: the result (None: none) and SCC (None: unchanged).
Result = tuple[int | None, int | None]


def signed(x: int, width: int = 32) -> int:
    return x - (x >> (width - 1) << width)


def logical(value: int, mask: int) -> Result:
    return value & mask, int(value & mask != 0)


def bfe(a: int, b: int, width: int, sign: bool) -> Result:
    offset, count = b & (width - 1), (b >> 16) & 0x7F
    value = (signed(a, width) if sign else a) >> offset & (1 << count) - 1
    if sign and count and value >> (count - 1):
        value -= 1 << count
    return logical(value, (1 << width) - 1)


def reverse(a: int, width: int) -> int:
    return int(f"{a:0{width}b}"[::-1], 2)


def first(a: int) -> int:
    return (a & -a).bit_length() - 1 if a else M32


def leading(a: int, width: int) -> int:
    return width - a.bit_length() if a else M32


# name -> (result dwords, source dwords, reference); a reference takes the sources and SCC.
LOGIC: dict[str, Callable[[int, int], int]] = {
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
    "andn2": lambda a, b: a & ~b, "orn2": lambda a, b: a | ~b, "nand": lambda a, b: ~(a & b),
    "nor": lambda a, b: ~(a | b), "xnor": lambda a, b: ~(a ^ b),
}
OPERATIONS: dict[str, tuple[int, tuple[int, ...], Callable[..., Result]]] = {
    "s_mov_b32": (1, (1,), lambda a, scc: (a, None)),
    "s_mov_b64": (2, (2,), lambda a, scc: (a, None)),
    "s_not_b32": (1, (1,), lambda a, scc: logical(~a, M32)),
    "s_not_b64": (2, (2,), lambda a, scc: logical(~a, M64)),
    "s_brev_b32": (1, (1,), lambda a, scc: (reverse(a, 32), None)),
    "s_brev_b64": (2, (2,), lambda a, scc: (reverse(a, 64), None)),
    "s_bcnt0_i32_b32": (1, (1,), lambda a, scc: logical(32 - a.bit_count(), M32)),
    "s_bcnt0_i32_b64": (1, (2,), lambda a, scc: logical(64 - a.bit_count(), M32)),
    "s_bcnt1_i32_b32": (1, (1,), lambda a, scc: logical(a.bit_count(), M32)),
    "s_bcnt1_i32_b64": (1, (2,), lambda a, scc: logical(a.bit_count(), M32)),
    "s_ff0_i32_b32": (1, (1,), lambda a, scc: (first(~a & M32), None)),
    "s_ff0_i32_b64": (1, (2,), lambda a, scc: (first(~a & M64), None)),
    "s_ff1_i32_b32": (1, (1,), lambda a, scc: (first(a), None)),
    "s_ff1_i32_b64": (1, (2,), lambda a, scc: (first(a), None)),
    "s_flbit_i32_b32": (1, (1,), lambda a, scc: (leading(a, 32), None)),
    "s_flbit_i32_b64": (1, (2,), lambda a, scc: (leading(a, 64), None)),
    "s_flbit_i32": (1, (1,), lambda a, scc: (leading(~a & M32 if a >> 31 else a, 32), None)),
    "s_flbit_i32_i64": (1, (2,), lambda a, scc: (leading(~a & M64 if a >> 63 else a, 64), None)),
    "s_sext_i32_i8": (1, (1,), lambda a, scc: (signed(a & 0xFF, 8) & M32, None)),
    "s_sext_i32_i16": (1, (1,), lambda a, scc: (signed(a & 0xFFFF, 16) & M32, None)),
    "s_abs_i32": (1, (1,), lambda a, scc: logical(abs(signed(a)), M32)),
    "s_add_u32": (1, (1, 1), lambda a, b, scc: ((a + b) & M32, a + b >> 32)),
    "s_addc_u32": (1, (1, 1), lambda a, b, scc: ((a + b + scc) & M32, a + b + scc >> 32)),
    "s_sub_u32": (1, (1, 1), lambda a, b, scc: ((a - b) & M32, int(b > a))),
    "s_subb_u32": (1, (1, 1), lambda a, b, scc: ((a - b - scc) & M32, int(b + scc > a))),
    "s_add_i32": (1, (1, 1), lambda a, b, scc: (
        (a + b) & M32, int(not -2**31 <= signed(a) + signed(b) < 2**31))),
    "s_sub_i32": (1, (1, 1), lambda a, b, scc: (
        (a - b) & M32, int(not -2**31 <= signed(a) - signed(b) < 2**31))),
    "s_mul_i32": (1, (1, 1), lambda a, b, scc: (a * b & M32, None)),
    "s_mul_hi_u32": (1, (1, 1), lambda a, b, scc: (a * b >> 32, None)),
    "s_mul_hi_i32": (1, (1, 1), lambda a, b, scc: (signed(a) * signed(b) >> 32 & M32, None)),
    "s_min_u32": (1, (1, 1), lambda a, b, scc: (min(a, b), int(a < b))),
    "s_max_u32": (1, (1, 1), lambda a, b, scc: (max(a, b), int(a >= b))),
    "s_min_i32": (1, (1, 1), lambda a, b, scc: (min(a, b, key=signed), int(signed(a) < signed(b)))),
    "s_max_i32": (1, (1, 1), lambda a, b, scc: (
        max(a, b, key=signed), int(signed(a) >= signed(b)))),
    "s_absdiff_i32": (1, (1, 1), lambda a, b, scc: logical(abs(signed((a - b) & M32)), M32)),
    "s_cselect_b32": (1, (1, 1), lambda a, b, scc: (a if scc else b, None)),
    "s_cselect_b64": (2, (2, 2), lambda a, b, scc: (a if scc else b, None)),
    "s_lshl_b32": (1, (1, 1), lambda a, b, scc: logical(a << (b & 31), M32)),
    "s_lshl_b64": (2, (2, 1), lambda a, b, scc: logical(a << (b & 63), M64)),
    "s_lshr_b32": (1, (1, 1), lambda a, b, scc: logical(a >> (b & 31), M32)),
    "s_lshr_b64": (2, (2, 1), lambda a, b, scc: logical(a >> (b & 63), M64)),
    "s_ashr_i32": (1, (1, 1), lambda a, b, scc: logical(signed(a) >> (b & 31), M32)),
    "s_ashr_i64": (2, (2, 1), lambda a, b, scc: logical(signed(a, 64) >> (b & 63), M64)),
    "s_bfe_u32": (1, (1, 1), lambda a, b, scc: bfe(a, b, 32, False)),
    "s_bfe_i32": (1, (1, 1), lambda a, b, scc: bfe(a, b, 32, True)),
    "s_bfe_u64": (2, (2, 1), lambda a, b, scc: bfe(a, b, 64, False)),
    "s_bfe_i64": (2, (2, 1), lambda a, b, scc: bfe(a, b, 64, True)),
    "s_bfm_b32": (1, (1, 1), lambda a, b, scc: (
        ((1 << (a & 31)) - 1) << (b & 31) & M32, None)),
    "s_bfm_b64": (2, (1, 1), lambda a, b, scc: (
        ((1 << (a & 63)) - 1) << (b & 63) & M64, None)),
    "s_pack_ll_b32_b16": (1, (1, 1), lambda a, b, scc: (a & 0xFFFF | (b & 0xFFFF) << 16, None)),
    "s_pack_lh_b32_b16": (1, (1, 1), lambda a, b, scc: (a & 0xFFFF | b & 0xFFFF0000, None)),
    "s_pack_hh_b32_b16": (1, (1, 1), lambda a, b, scc: (a >> 16 | b & 0xFFFF0000, None)),
    **{f"s_lshl{n}_add_u32": (1, (1, 1), lambda a, b, scc, n=n: (
        (a << n) + b & M32, int((a << n) + b > M32))) for n in range(1, 5)},
    **{f"s_{name}_b32": (1, (1, 1), lambda a, b, scc, f=f: logical(f(a, b), M32))
       for name, f in LOGIC.items()},
    **{f"s_{name}_b64": (2, (2, 2), lambda a, b, scc, f=f: logical(f(a, b), M64))
       for name, f in LOGIC.items()},
    **{f"s_cmp_{name}_{kind}": (0, (width, width), lambda a, b, scc, f=f, w=32 * width, k=kind: (
        None, int(f(signed(a, w), signed(b, w)) if k == "i32" else f(a, b))))
       for name, f in {"eq": int.__eq__, "lg": int.__ne__, "gt": int.__gt__, "ge": int.__ge__,
                       "lt": int.__lt__, "le": int.__le__}.items()
       for kind, width in (("i32", 1), ("u32", 1), ("u64", 2))
       if kind != "u64" or name in ("eq", "lg")},
    "s_bitcmp0_b32": (0, (1, 1), lambda a, b, scc: (None, 1 - (a >> (b & 31) & 1))),
    "s_bitcmp1_b32": (0, (1, 1), lambda a, b, scc: (None, a >> (b & 31) & 1)),
    "s_bitcmp0_b64": (0, (2, 1), lambda a, b, scc: (None, 1 - (a >> (b & 63) & 1))),
    "s_bitcmp1_b64": (0, (2, 1), lambda a, b, scc: (None, a >> (b & 63) & 1)),
}


def register(first: int, words: int) -> str:
    return f"s{first}" if words == 1 else f"s[{first}:{first + words - 1}]"


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation(bench: Bench, name: str) -> None:
    """Every pair of boundary values; the sources are dwords of one register file."""
    dst_words, widths, reference = OPERATIONS[name]
    pairs = list(itertools.product(VALUES, VALUES if len(widths) == 2 else [0]))
    scalar_out = list(range(20, 20 + dst_words))
    for number, (a, b) in enumerate(pairs):
        scc = number & 1
        sources: list[int] = []
        given: dict[int, int] = {}
        for slot, (value, words) in enumerate(zip((a, b), widths, strict=False)):
            # The upper half differs, so that 64-bit sources are more than zero-extended dwords.
            wide = value | (VALUES[(number * 7 + slot) % len(VALUES)] << 32 if words == 2 else 0)
            given |= {4 + 4 * slot + k: wide >> 32 * k & M32 for k in range(words)}
            sources.append(wide)
        operands = [register(20, dst_words)] if dst_words else []
        operands += [register(4 + 4 * slot, words) for slot, words in enumerate(widths)]
        outcome = bench.run([f"{name} {', '.join(operands)}"], scalar=given, scc=scc,
                            scalar_out=scalar_out)
        result, condition = reference(*sources, scc)
        if result is not None:
            found = sum(int(outcome.scalar[20 + k][0]) << 32 * k for k in range(dst_words))
            assert found == result, (hex(a), hex(b))
        assert outcome.scc[0] == (scc if condition is None else condition), (hex(a), hex(b))


@pytest.mark.parametrize("name", [*LOGIC, "andn1", "orn1"])
def test_saveexec(bench: Bench, name: str) -> None:
    functions: dict[str, Callable[[int, int], int]] = {
        **LOGIC, "andn1": lambda a, b: ~a & b, "orn1": lambda a, b: ~a | b}
    for source, exec_mask in itertools.product((0, M64, 0xF0F0_0000_1234_5678), repeat=2):
        out = bench.run([f"s_{name}_saveexec_b64 s[20:21], s[4:5]", "s_mov_b64 s[22:23], exec"],
                        scalar={4: source & M32, 5: source >> 32}, exec_mask=exec_mask,
                        scalar_out=[20, 21, 22, 23])
        saved, result = (int(out.scalar[n][0]) | int(out.scalar[n + 1][0]) << 32 for n in (20, 22))
        assert saved == exec_mask
        assert result == functions[name](source, exec_mask) & M64
        assert out.scc[0] == (result != 0)


@pytest.mark.parametrize("scc", [0, 1])
def test_conditional_moves(bench: Bench, scc: int) -> None:
    body = ["s_cmov_b32 s20, s4", "s_cmov_b64 s[22:23], s[4:5]", "s_cmovk_i32 s24, 0x8000"]
    out = bench.run(body, scalar={4: 7, 5: 8, 20: 1, 22: 2, 23: 3, 24: 4}, scc=scc,
                    scalar_out=[20, 22, 23, 24])
    assert [int(out.scalar[n][0]) for n in (20, 22, 23, 24)] == (
        [7, 7, 8, 0xFFFF8000] if scc else [1, 2, 3, 4])


def test_immediates_are_sign_extended(bench: Bench) -> None:
    body = ["s_movk_i32 s20, 0x8001", "s_addk_i32 s21, 0xffff", "s_mulk_i32 s22, 0xfffe",
            "s_mov_b64 s[24:25], -2", "s_mov_b64 s[26:27], 0x80000000", "s_bitset1_b32 s28, 35",
            "s_bitset0_b64 s[30:31], 33"]
    out = bench.run(body, scalar={21: 5, 22: 3, 28: 0, 30: M32, 31: M32},
                    scalar_out=[20, 21, 22, 24, 25, 26, 27, 28, 30, 31])
    assert [int(v[0]) for v in out.scalar.values()] == [
        0xFFFF8001, 4, 0xFFFFFFFA, 0xFFFFFFFE, M32, 0x80000000, 0, 8, M32, 0xFFFFFFFD]


@pytest.mark.parametrize("condition", ["eq", "lg", "gt", "ge", "lt", "le"])
def test_compare_with_immediate(bench: Bench, condition: str) -> None:
    compare = {"eq": int.__eq__, "lg": int.__ne__, "gt": int.__gt__, "ge": int.__ge__,
               "lt": int.__lt__, "le": int.__le__}[condition]
    for value in (M32, 0, 0x7FFF, 0xFFFF8000, 0xFFFF):
        out = bench.run([f"s_cmpk_{condition}_i32 s4, 0x8000"], scalar={4: value})
        assert out.scc[0] == compare(signed(value), -0x8000)


@pytest.mark.parametrize(("branch", "taken"), [
    ("s_branch", True), ("s_cbranch_scc0", False), ("s_cbranch_scc1", True),
    ("s_cbranch_vccz", True), ("s_cbranch_vccnz", False), ("s_cbranch_execz", False),
    ("s_cbranch_execnz", True)])
def test_branches(bench: Bench, branch: str, taken: bool) -> None:
    body = ["s_mov_b64 vcc, 0", "s_cmp_eq_u32 s4, s4", "s_mov_b32 s20, 1", f"{branch} skip",
            "s_mov_b32 s20, 2", "skip:"]
    assert (bench.run(body, scalar_out=[20]).scalar[20][0] == 1) == taken


def test_loop_counts(bench: Bench) -> None:
    body = ["s_mov_b32 s20, 0", "top:", "s_add_u32 s20, s20, 3", "s_cmp_lt_u32 s20, s4",
            "s_cbranch_scc1 top"]
    assert bench.run(body, scalar={4: 1000}, scalar_out=[20]).scalar[20][0] == 1002
