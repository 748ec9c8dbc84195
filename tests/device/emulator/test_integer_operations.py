"""Integer, bitwise and lane operations against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest

if TYPE_CHECKING:
    from tests.device.emulator.conftest import Bench

U32 = npt.NDArray[Any]
U64 = npt.NDArray[Any]
EXEC = 0xF0F1_8000_7FFF_1234


def i32(x: U32) -> npt.NDArray[np.int64]:
    return x.view(np.int32).astype(np.int64)


def low(x: npt.NDArray[np.int64] | U64) -> U32:
    return (x.astype(np.int64) & 0xFFFFFFFF).astype(np.uint32)


def u64(x: U32) -> U64:
    return x.astype(np.uint64)


def bits(x: U32) -> npt.NDArray[np.uint8]:
    """Bit n of each value in column n."""
    return np.unpackbits(x[:, None].view(np.uint8), axis=1, bitorder="little")


def from_bits(columns: npt.NDArray[np.uint8]) -> U32:
    return np.packbits(columns, axis=1, bitorder="little").view(np.uint32)[:, 0]


def first_set(columns: npt.NDArray[np.uint8]) -> U32:
    found = columns.any(axis=1)
    return np.where(found, columns.argmax(axis=1), 0xFFFFFFFF).astype(np.uint32)


def sext24(x: U32) -> npt.NDArray[Any]:
    return ((i32(x) & 0xFFFFFF) ^ 0x800000) - 0x800000


def ffbh_i32(a: U32) -> U32:
    magnitude = np.where(a >> 31 == 1, ~a, a)
    return first_set(bits(magnitude)[:, ::-1])


def bfe_i32(a: U32, b: U32, c: U32) -> U32:
    out = []
    for x, offset, width in zip(i32(a).tolist(), (b & 31).tolist(), (c & 31).tolist(), strict=True):
        field = (x >> offset) & ((1 << width) - 1)
        out.append(field - (1 << width) if width and field >> (width - 1) else field)
    return low(np.array(out, np.int64))


def median(*x: U32) -> Any:
    return np.sort(np.stack(x), axis=0)[1]


def perm(a: U32, b: U32, c: U32) -> U32:
    source = np.concatenate([b[:, None].view(np.uint8), a[:, None].view(np.uint8)], axis=1)
    halves = source.view(np.int16) < 0
    out = np.zeros((len(a), 4), np.uint8)
    for lane, selectors in enumerate(c[:, None].view(np.uint8)):
        for k, selector in enumerate(selectors):
            if selector < 8:
                out[lane, k] = source[lane, selector]
            elif selector < 12:
                out[lane, k] = 255 if halves[lane, selector - 8] else 0
            else:
                out[lane, k] = 0 if selector == 12 else 255
    return out.view(np.uint32)[:, 0]


UNARY: dict[str, Callable[[U32], U32]] = {
    "v_mov_b32_e32": lambda a: a,
    "v_not_b32_e32": lambda a: ~a,
    "v_bfrev_b32_e32": lambda a: from_bits(bits(a)[:, ::-1]),
    "v_ffbh_u32_e32": lambda a: first_set(bits(a)[:, ::-1]),
    "v_ffbl_b32_e32": lambda a: first_set(bits(a)),
    "v_ffbh_i32_e32": ffbh_i32,
}
BINARY: dict[str, Callable[[U32, U32], U32]] = {
    "v_and_b32_e32": lambda a, b: a & b,
    "v_or_b32_e32": lambda a, b: a | b,
    "v_xor_b32_e32": lambda a, b: a ^ b,
    "v_xnor_b32_e32": lambda a, b: ~(a ^ b),
    "v_lshlrev_b32_e32": lambda a, b: b << (a & 31),
    "v_lshrrev_b32_e32": lambda a, b: b >> (a & 31),
    "v_ashrrev_i32_e32": lambda a, b: low(i32(b) >> (a & 31)),
    "v_add_u32_e32": lambda a, b: a + b,
    "v_sub_u32_e32": lambda a, b: a - b,
    "v_subrev_u32_e32": lambda a, b: b - a,
    "v_mul_lo_u32": lambda a, b: a * b,
    "v_mul_hi_u32": lambda a, b: low(u64(a) * u64(b) >> np.uint64(32)),
    "v_mul_hi_i32": lambda a, b: low(i32(a) * i32(b) >> 32),
    "v_mul_u32_u24_e32": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    "v_mul_hi_u32_u24_e32": lambda a, b: low(u64(a & 0xFFFFFF) * u64(b & 0xFFFFFF)
                                             >> np.uint64(32)),
    "v_mul_i32_i24_e32": lambda a, b: low(sext24(a) * sext24(b)),
    "v_min_i32_e32": lambda a, b: low(np.minimum(i32(a), i32(b))),
    "v_max_i32_e32": lambda a, b: low(np.maximum(i32(a), i32(b))),
    "v_min_u32_e32": np.minimum,
    "v_max_u32_e32": np.maximum,
    "v_bcnt_u32_b32": lambda a, b: bits(a).sum(axis=1, dtype=np.uint32) + b,
    "v_bfm_b32": lambda a, b: ((np.uint32(1) << (a & 31)) - np.uint32(1)) << (b & 31),
}
TERNARY: dict[str, Callable[[U32, U32, U32], U32]] = {
    "v_mad_u32_u24": lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c,
    "v_mad_i32_i24": lambda a, b, c: low(sext24(a) * sext24(b)) + c,
    "v_add3_u32": lambda a, b, c: a + b + c,
    "v_lshl_add_u32": lambda a, b, c: (a << (b & 31)) + c,
    "v_add_lshl_u32": lambda a, b, c: (a + b) << (c & 31),
    "v_lshl_or_b32": lambda a, b, c: (a << (b & 31)) | c,
    "v_and_or_b32": lambda a, b, c: (a & b) | c,
    "v_or3_b32": lambda a, b, c: a | b | c,
    "v_xad_u32": lambda a, b, c: (a ^ b) + c,
    "v_bfe_u32": lambda a, b, c: (a >> (b & 31)) & ((np.uint32(1) << (c & 31)) - np.uint32(1)),
    "v_bfe_i32": bfe_i32,
    "v_bfi_b32": lambda a, b, c: (a & b) | (~a & c),
    "v_alignbit_b32": lambda a, b, c: low((u64(a) << np.uint64(32) | u64(b)) >> u64(c & 31)),
    "v_alignbyte_b32": lambda a, b, c: low((u64(a) << np.uint64(32) | u64(b)) >> u64(8 * (c & 3))),
    "v_min3_i32": lambda a, b, c: low(np.min([i32(a), i32(b), i32(c)], axis=0)),
    "v_max3_i32": lambda a, b, c: low(np.max([i32(a), i32(b), i32(c)], axis=0)),
    "v_med3_i32": lambda a, b, c: low(median(i32(a), i32(b), i32(c))),
    "v_min3_u32": lambda a, b, c: low(np.min([u64(a), u64(b), u64(c)], axis=0)),
    "v_max3_u32": lambda a, b, c: low(np.max([u64(a), u64(b), u64(c)], axis=0)),
    "v_med3_u32": lambda a, b, c: low(median(*(u64(x).astype(np.int64) for x in (a, b, c)))),
    "v_perm_b32": perm,
}


@pytest.mark.parametrize("name", UNARY)
def test_unary(bench: Bench, name: str) -> None:
    a, = bench.integers(1, 1)
    out = bench.run([f"{name} v20, v2"], vector={2: a}, vector_out=[20])
    np.testing.assert_array_equal(out.vector[20], UNARY[name](a))


@pytest.mark.parametrize("name", BINARY)
def test_binary(bench: Bench, name: str) -> None:
    a, b = bench.integers(2, 2)
    out = bench.run([f"{name} v20, v2, v3"], vector={2: a, 3: b}, vector_out=[20])
    np.testing.assert_array_equal(out.vector[20], BINARY[name](a, b))


@pytest.mark.parametrize("name", TERNARY)
def test_ternary(bench: Bench, name: str) -> None:
    a, b, c = bench.integers(3, 3)
    out = bench.run([f"{name} v20, v2, v3, v4"], vector={2: a, 3: b, 4: c}, vector_out=[20])
    np.testing.assert_array_equal(out.vector[20], TERNARY[name](a, b, c))


@pytest.mark.parametrize("name", BINARY)
def test_partial_exec_keeps_other_lanes(bench: Bench, name: str) -> None:
    """The destination is also a source, and inactive lanes keep their value."""
    a, b = bench.integers(2, 4)
    out = bench.run([f"{name} v2, v2, v3"], vector={2: a, 3: b}, exec_mask=EXEC, vector_out=[2])
    active = np.resize([EXEC >> lane & 1 for lane in range(64)], len(a)).astype(bool)
    np.testing.assert_array_equal(out.vector[2], np.where(active, BINARY[name](a, b), a))


def test_perm_with_uniform_selectors(bench: Bench) -> None:
    a, b = bench.integers(2, 5)
    for selector in (0x07060302, 0x00000000, 0x0C0C0500, 0x080B0A09, 0xFF0D0704):
        out = bench.run(["v_perm_b32 v20, v2, v3, s4"], vector={2: a, 3: b}, scalar={4: selector},
                        vector_out=[20])
        np.testing.assert_array_equal(out.vector[20], perm(a, b, np.full_like(a, selector)))


def test_scalar_and_constant_sources_are_broadcast(bench: Bench) -> None:
    a, = bench.integers(1, 6)
    body = ["v_sub_u32_e32 v20, s5, v2", "v_sub_u32_e32 v21, -16, v2",
            "v_sub_u32_e32 v22, 0x12345678, v2", "v_sub_u32_e32 v23, 1.0, v2"]
    out = bench.run(body, vector={2: a}, scalar={5: 77}, vector_out=[20, 21, 22, 23])
    for register, value in ((20, 77), (21, 0xFFFFFFF0), (22, 0x12345678), (23, 0x3F800000)):
        np.testing.assert_array_equal(out.vector[register], np.uint32(value) - a)


@pytest.mark.parametrize(("name", "reference"), [
    ("v_add_co_u32_e64", lambda a, b, c: a + b),
    ("v_sub_co_u32_e64", lambda a, b, c: a - b),
    ("v_subrev_co_u32_e64", lambda a, b, c: b - a),
    ("v_addc_co_u32_e64", lambda a, b, c: a + b + c),
    ("v_subb_co_u32_e64", lambda a, b, c: a - b - c),
    ("v_subbrev_co_u32_e64", lambda a, b, c: b - a - c),
])
@pytest.mark.parametrize("exec_mask", [(1 << 64) - 1, EXEC])
def test_carry(bench: Bench, name: str, exec_mask: int,
               reference: Callable[[int, int, int], int]) -> None:
    a, b = bench.integers(2, 7)
    carry_in = 0xA5A5_0FF0_1234_8001
    third = ", s[4:5]" if "subb" in name or "addc" in name else ""
    out = bench.run([f"{name} v2, s[6:7], v2, v3{third}"], vector={2: a, 3: b},
                    scalar={4: carry_in & 0xFFFFFFFF, 5: carry_in >> 32}, exec_mask=exec_mask,
                    vector_out=[2], scalar_out=[6, 7])
    for wave in range(len(a) // 64):
        expected_mask = 0
        for lane in range(64):
            i = 64 * wave + lane
            if not exec_mask >> lane & 1:
                assert out.vector[2][i] == a[i]
                continue
            exact = reference(int(a[i]), int(b[i]), carry_in >> lane & 1)
            assert out.vector[2][i] == exact & 0xFFFFFFFF
            expected_mask |= (not 0 <= exact < 1 << 32) << lane
        assert int(out.scalar[6][wave]) | int(out.scalar[7][wave]) << 32 == expected_mask


WIDE: dict[str, tuple[int, int, int, Callable[[int, int, int], int]]] = {
    "v_lshlrev_b64": (1, 2, 0, lambda a, b, c: b << (a & 63)),
    "v_lshrrev_b64": (1, 2, 0, lambda a, b, c: b >> (a & 63)),
    "v_ashrrev_i64": (1, 2, 0, lambda a, b, c: (b - (b >> 63 << 64)) >> (a & 63)),
    "v_mov_b64_e32": (2, 0, 0, lambda a, b, c: a),
    "v_lshl_add_u64": (2, 1, 2, lambda a, b, c: (a << (b & 7)) + c),
    "v_mad_u64_u32": (1, 1, 2, lambda a, b, c: a * b + c),
}


@pytest.mark.parametrize("name", WIDE)
def test_wide(bench: Bench, name: str) -> None:
    *widths, reference = WIDE[name]
    columns = bench.integers(3, 8) + bench.integers(3, 9)
    if name == "v_lshl_add_u64":
        columns[1] = columns[1] % 5  # larger shifts are reserved
    vector = {2: columns[0], 3: columns[3], 4: columns[1], 5: columns[4], 6: columns[2],
              7: columns[5]}
    names = [f"v[{2 * k + 2}:{2 * k + 3}]" if w == 2 else f"v{2 * k + 2}"
             for k, w in enumerate(widths) if w]
    if name == "v_mad_u64_u32":
        names.insert(0, "s[4:5]")
    out = bench.run([f"{name} v[20:21], {', '.join(names)}"], vector=vector, vector_out=[20, 21],
                    scalar_out=[4, 5])
    for i in range(len(columns[0])):
        values = [int(vector[2 * k + 2][i]) | (int(vector[2 * k + 3][i]) << 32 if w == 2 else 0)
                  for k, w in enumerate(widths)]
        exact = reference(values[0], values[1], values[2])
        result = int(out.vector[20][i]) | int(out.vector[21][i]) << 32
        assert result == exact & (1 << 64) - 1
        if name == "v_mad_u64_u32":
            carry = int(out.scalar[4][i // 64]) | int(out.scalar[5][i // 64]) << 32
            assert carry >> (i % 64) & 1 == exact >> 64


def test_cndmask_takes_scalar_masks_and_modifiers(bench: Bench) -> None:
    a, b = bench.integers(2, 10)
    out = bench.run(["v_cndmask_b32_e64 v20, v2, v3, s[4:5]",
                     "v_cndmask_b32_e64 v21, -v2, |v3|, s[4:5]"],
                    vector={2: a, 3: b}, scalar={4: 0x55550000, 5: 0x80000001},
                    vector_out=[20, 21])
    take = np.resize([0x8000000155550000 >> lane & 1 for lane in range(64)], len(a)).astype(bool)
    np.testing.assert_array_equal(out.vector[20], np.where(take, b, a))
    np.testing.assert_array_equal(out.vector[21],
                                  np.where(take, b & 0x7FFFFFFF, a ^ np.uint32(0x80000000)))


def test_mbcnt_counts_lower_lanes(bench: Bench) -> None:
    mask = 0xF00F_1234_8765_0FF1
    out = bench.run(["v_mbcnt_lo_u32_b32 v20, s4, 5", "v_mbcnt_hi_u32_b32 v21, s5, v20"],
                    scalar={4: mask & 0xFFFFFFFF, 5: mask >> 32}, vector_out=[21])
    expected = [5 + (mask & (1 << lane) - 1).bit_count() for lane in range(64)]
    np.testing.assert_array_equal(out.vector[21], expected)


def test_lane_access_ignores_exec(bench: Bench) -> None:
    a = np.arange(100, 164, dtype=np.uint32)
    body = ["v_readlane_b32 s8, v2, 63", "v_readlane_b32 s9, v2, s4", "v_writelane_b32 v2, s5, 7",
            "v_writelane_b32 v2, -1, s4", "v_readfirstlane_b32 s10, v2", "s_mov_b64 exec, 0",
            "v_readfirstlane_b32 s11, v2"]
    out = bench.run(body, vector={2: a}, scalar={4: 64 + 9, 5: 42}, exec_mask=0x10,
                    vector_out=[2], scalar_out=[8, 9, 10, 11])
    assert [int(out.scalar[n][0]) for n in (8, 9, 10, 11)] == [163, 109, 104, 100]
    expected = a.copy()
    expected[7], expected[9] = 42, 0xFFFFFFFF
    np.testing.assert_array_equal(out.vector[2], expected)


def test_accumulation_registers(bench: Bench) -> None:
    a, = bench.integers(1, 11)
    out = bench.run(["v_accvgpr_write_b32 a5, v2", "v_accvgpr_mov_b32 a6, a5",
                     "v_accvgpr_read_b32 v20, a6"], vector={2: a}, vector_out=[20])
    np.testing.assert_array_equal(out.vector[20], a)


COMPARES: dict[str, Callable[[npt.NDArray[np.int64], npt.NDArray[np.int64]], object]] = {
    "f": lambda a, b: np.zeros(len(a), bool), "lt": lambda a, b: a < b,
    "eq": lambda a, b: a == b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b,
    "ne": lambda a, b: a != b, "ge": lambda a, b: a >= b, "t": lambda a, b: np.ones(len(a), bool),
}


@pytest.mark.parametrize("condition", COMPARES)
@pytest.mark.parametrize("kind", ["i32", "u32"])
@pytest.mark.parametrize("exec_mask", [(1 << 64) - 1, EXEC])
def test_compare(bench: Bench, condition: str, kind: str, exec_mask: int) -> None:
    a, b = bench.integers(2, 12)
    wide = (i32(a), i32(b)) if kind == "i32" else (a.astype(np.int64), b.astype(np.int64))
    body = [f"v_cmp_{condition}_{kind}_e64 s[6:7], v2, v3",
            f"v_cmpx_{condition}_{kind}_e32 vcc, v2, v3", "s_mov_b64 s[8:9], exec"]
    out = bench.run(body, vector={2: a, 3: b}, exec_mask=exec_mask,
                    scalar_out=[6, 7, 8, 9, 106, 107])
    truth = np.asarray(COMPARES[condition](*wide)).reshape(-1, 64)
    expected = np.array([sum(1 << i for i in range(64) if row[i]) & exec_mask for row in truth],
                        np.uint64)
    for lo, hi in ((6, 7), (8, 9), (106, 107)):
        mask = u64(out.scalar[lo]) | u64(out.scalar[hi]) << np.uint64(32)
        np.testing.assert_array_equal(mask, expected)
