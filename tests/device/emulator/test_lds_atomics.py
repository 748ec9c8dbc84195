"""LDS atomics, swizzles and lane-addressed accesses against plain Python and NumPy."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import asmevo_core as core
import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

if TYPE_CHECKING:
    from tests.device.emulator.conftest import Bench

BASE = 0x6000_0000_0000
EXEC = 0xF0F1_8000_7FFF_1234
ACTIVE = [lane for lane in range(64) if EXEC >> lane & 1]
Words = npt.NDArray[Any]


def signed(x: int, bits: int) -> int:
    return x - (x >> bits - 1 << bits)


def real(x: int, bits: int) -> float:
    value: float = struct.unpack("<f" if bits == 32 else "<d", x.to_bytes(bits // 8, "little"))[0]
    return value


def image(x: float, bits: int) -> int:
    return int.from_bytes(np.array(x, f"<f{bits // 8}").tobytes(), "little")


def is_nan(x: int, bits: int) -> bool:
    exponent, quiet = (0x7F800000, 22) if bits == 32 else (0x7FF << 52, 51)
    assert exponent >> quiet + 1 & 1
    return x & (1 << bits - 1) - 1 > exponent


def quiet(x: int, bits: int) -> int:
    return x | 1 << (22 if bits == 32 else 51)


def select(old: int, data: int, bits: int, largest: bool) -> int:
    """Minimum or maximum (CDNA3 ISA, "FP Max Selection Rules"): quiet NaNs lose, -0 < +0."""
    for x in (old, data):
        if is_nan(x, bits) and quiet(x, bits) != x:
            return quiet(x, bits)
    numbers = [x for x in (old, data) if not is_nan(x, bits)]
    if not numbers:
        return old
    chosen = max if largest else min
    return chosen(numbers, key=lambda x: (real(x, bits), -(x >> bits - 1)))


def add(old: int, data: int, bits: int) -> int:
    for x in (old, data):
        if is_nan(x, bits):
            return quiet(x, bits)
    kind = np.float32 if bits == 32 else np.float64
    with np.errstate(all="ignore"):
        total = kind(real(old, bits)) + kind(real(data, bits))
    return image(float(total), bits) & ~(1 << bits - 1) if np.isnan(total) else int.from_bytes(
        np.array(total).tobytes(), "little")


def pairs(old: int, data: int, kind: Any) -> int:
    both = np.array([old, data], np.uint32).view(kind).reshape(2, 2)
    with np.errstate(all="ignore"):
        total = both[0].astype(np.float64) + both[1].astype(np.float64)
    return int(total.astype(kind).view(np.uint32)[0])


def same(old: int, comparand: int, bits: int) -> bool:
    return real(old, bits) == real(comparand, bits)


# Operation -> its type suffixes and what it makes of (old, data, second data, bits).
Function = Callable[[int, int, int, int], int]
INTEGERS: dict[str, tuple[str, Function]] = {
    "add": ("u", lambda a, b, c, n: a + b), "sub": ("u", lambda a, b, c, n: a - b),
    "rsub": ("u", lambda a, b, c, n: b - a),
    "inc": ("u", lambda a, b, c, n: 0 if a >= b else a + 1),
    "dec": ("u", lambda a, b, c, n: b if a == 0 or a > b else a - 1),
    "min": ("iu", lambda a, b, c, n: min(a, b)), "max": ("iu", lambda a, b, c, n: max(a, b)),
    "and": ("b", lambda a, b, c, n: a & b), "or": ("b", lambda a, b, c, n: a | b),
    "xor": ("b", lambda a, b, c, n: a ^ b), "mskor": ("b", lambda a, b, c, n: a & ~b | c),
    "cmpst": ("b", lambda a, b, c, n: c if a == b else a),
    "wrxchg": ("b", lambda a, b, c, n: b),
    "wrap": ("b", lambda a, b, c, n: a - b if a >= b else a + c)}
FLOATS: dict[str, Function] = {
    "add_f32": lambda a, b, c, n: add(a, b, n), "add_f64": lambda a, b, c, n: add(a, b, n),
    "min_f32": lambda a, b, c, n: select(a, b, n, False),
    "max_f32": lambda a, b, c, n: select(a, b, n, True),
    "min_f64": lambda a, b, c, n: select(a, b, n, False),
    "max_f64": lambda a, b, c, n: select(a, b, n, True),
    "cmpst_f32": lambda a, b, c, n: c if same(a, b, n) else a,
    "cmpst_f64": lambda a, b, c, n: c if same(a, b, n) else a,
    "pk_add_f16": lambda a, b, c, n: pairs(a, b, np.float16),
    "pk_add_bf16": lambda a, b, c, n: pairs(a, b, ml_dtypes.bfloat16)}
THREE = {"mskor", "cmpst", "wrap"}


def cases() -> list[tuple[str, int, bool]]:
    found = []
    for name, (kinds, _) in INTEGERS.items():
        for kind in kinds:
            for bits in (32, 64) if name != "wrap" else (32,):
                found.append((f"{name}_{kind}{bits}", bits, name not in ("wrxchg", "wrap")))
    return found + [(name, 64 if name.endswith("64") else 32, True) for name in FLOATS]


def reference(name: str, bits: int) -> Function:
    operation, _, kind = name.rpartition("_")
    if name in FLOATS:
        return FLOATS[name]
    function = INTEGERS[operation][1]
    if kind[0] != "i":
        return lambda a, b, c, n: function(a, b, c, n) & (1 << bits) - 1
    return lambda a, b, c, n: function(signed(a, n), signed(b, n), c, n) & (1 << bits) - 1


def values(name: str, bits: int, count: int, seed: int) -> Words:
    rng = np.random.default_rng(seed)
    dtype: Any = np.uint32 if bits == 32 else np.uint64
    if name in FLOATS:
        numbers = rng.normal(0, 1, 64) * np.exp2(rng.integers(-8, 8, 64))
        if name.startswith("pk"):
            kind = np.float16 if name.endswith("_f16") else ml_dtypes.bfloat16
            pool = np.concatenate([numbers, numbers]).astype(kind).view(np.uint32)
        else:
            infinity = 0x7F800000 if bits == 32 else 0x7FF << 52
            special = [0, 1 << bits - 1, infinity, infinity | 1 << bits - 1, quiet(infinity, bits),
                       infinity | 5, 1, (1 << bits - 1) | 3, infinity - 1]
            kind = np.float32 if bits == 32 else np.float64
            pool = np.concatenate([numbers.astype(kind).view(dtype), np.array(special * 3, dtype)])
    else:
        half = 1 << bits - 1
        pool = np.array([0, 1, 2, 5, half - 1, half, half + 1, 2 * half - 2, 2 * half - 1], dtype)
    chosen: Words = rng.choice(pool, count)
    return chosen


def launch(bench: Bench, body: list[str], data: Words, m0: int = 0) -> None:
    """One wave over ``data`` at s[0:1]; s[10:11] is a partial EXEC."""
    sgprs = [0] * 80
    sgprs[0], sgprs[1] = BASE & 0xFFFFFFFF, BASE >> 32
    sgprs[10], sgprs[11] = EXEC & 0xFFFFFFFF, EXEC >> 32
    sgprs[12] = m0
    memory = core.Memory([("data", BASE, data.view(np.uint8), True)])
    bench.keep_denormals = True
    bench.launch(bench.assemble([*body, "s_endpgm"]), memory, sgprs, 1, lds_bytes=2048)


@pytest.mark.parametrize(("name", "bits", "plain"), cases())
def test_atomics(bench: Bench, name: str, bits: int, plain: bool) -> None:
    """Lanes collide in eights; each sees what the lanes below it left."""
    function = reference(name, bits)
    operation, _, kind = name.rpartition("_")
    size = bits // 8
    shift, width = size.bit_length() - 1, "dword" if bits == 32 else "dwordx2"
    ds = "b32" if bits == 32 else "b64"

    def rows(first: int) -> str:
        return f"v{first}" if bits == 32 else f"v[{first}:{first + 1}]"

    for returning in (False, True) if plain else (True,):
        start, first, second = (values(name, bits, n, seed)
                                for n, seed in ((8, 1), (64, 2), (64, 3)))
        if operation == "cmpst":
            first[::2] = start[np.arange(0, 64, 2) % 8]
        data = np.concatenate([start, first, second, np.zeros(72, start.dtype)])
        sources = f"{rows(6)}, {rows(8)}" if operation in THREE else rows(6)
        text = (f"ds_{operation}_rtn_{kind} {rows(12)}, v4, {sources} offset:16" if returning
                else f"ds_{name} v4, {sources} offset:16")
        launch(bench, [
            f"v_lshlrev_b32_e32 v2, {shift}, v0", f"v_and_b32_e32 v4, {7 * size}, v2",
            f"global_load_{width} {rows(10)}, v4, s[0:1]",
            f"global_load_{width} {rows(6)}, v2, s[0:1] offset:{8 * size}",
            f"global_load_{width} {rows(8)}, v2, s[0:1] offset:{72 * size}",
            "v_mov_b32_e32 v12, 77", "v_mov_b32_e32 v13, 77", "s_waitcnt vmcnt(0)",
            f"ds_write_{ds} v4, {rows(10)} offset:16", "s_mov_b64 exec, s[10:11]", text,
            "s_waitcnt lgkmcnt(0)", "s_mov_b64 exec, -1", f"ds_read_{ds} {rows(10)}, v4 offset:16",
            f"global_store_{width} v2, {rows(12)}, s[0:1] offset:{144 * size}",
            "s_waitcnt lgkmcnt(0)",
            f"global_store_{width} v4, {rows(10)}, s[0:1] offset:{136 * size}"], data)
        state = [int(x) for x in start]
        olds = [77 if bits == 32 else 77 << 32 | 77] * 64
        for lane in ACTIVE:
            if returning:
                olds[lane] = state[lane % 8]
            state[lane % 8] = function(state[lane % 8], int(first[lane]), int(second[lane]), bits)
        assert data[136:144].tolist() == state
        assert data[144:].tolist() == olds


@pytest.mark.parametrize(("mnemonic", "words", "scale"), [
    ("wrxchg2_rtn_b32", 1, 4), ("wrxchg2_rtn_b64", 2, 8), ("wrxchg2st64_rtn_b32", 1, 256),
    ("wrxchg2st64_rtn_b64", 2, 512)])
def test_two_exchanges(bench: Bench, mnemonic: str, words: int, scale: int) -> None:
    """LDS dword n holds 4 n modulo 256; the offsets 1 and 3 count ``scale`` bytes."""
    data = np.zeros(8, np.uint32)
    a, b, both = (("v6", "v8", "v[12:13]") if words == 1 else
                  ("v[6:7]", "v[8:9]", "v[12:15]"))
    launch(bench, ["v_lshlrev_b32_e32 v2, 2, v0", "v_mov_b32_e32 v3, 0", "v_mov_b32_e32 v4, 64",
                   *(f"ds_write_b32 v2, v2 offset:{256 * k}" for k in range(8)),
                   *(f"v_mov_b32_e32 v{n}, {1000 + n}" for n in range(6, 10)), "s_mov_b64 exec, 1",
                   f"ds_{mnemonic} {both}, v4, {a}, {b} offset0:1 offset1:3",
                   f"ds_read_b32 v10, v4 offset:{scale}",
                   f"ds_read_b32 v11, v4 offset:{3 * scale + 4 * (words - 1)}",
                   "s_waitcnt lgkmcnt(0)", "global_store_dwordx4 v3, v[12:15], s[0:1]",
                   "global_store_dwordx2 v3, v[10:11], s[0:1] offset:16"], data)
    before = [(64 + scale * k + 4 * word) % 256 for k in (1, 3) for word in range(words)]
    assert data[:2 * words].tolist() == before
    assert data[4:6].tolist() == [1006, 1008 + words - 1]


def test_conditional_exchange(bench: Bench) -> None:
    """Bit 31 of each half decides whether it replaces, without that bit, its dword."""
    data = np.array([0x80000005, 7, 9, 0x80000003, 0, 0, 0, 0], np.uint32)
    launch(bench, ["v_mov_b32_e32 v2, 0", "global_load_dwordx4 v[4:7], v2, s[0:1]",
                   "v_mov_b32_e32 v3, 12", "s_mov_b64 exec, 1", "s_waitcnt vmcnt(0)",
                   "ds_write_b64 v3, v[6:7] offset:4",
                   "ds_condxchg32_rtn_b64 v[8:9], v3, v[4:5] offset:7",
                   "ds_read_b64 v[10:11], v3 offset:4", "s_waitcnt lgkmcnt(0)",
                   "global_store_dwordx4 v2, v[8:11], s[0:1] offset:16"], data)
    assert data[4:].tolist() == [9, 0x80000003, 5, 0x80000003]


def test_append_and_consume_count_the_active_lanes(bench: Bench) -> None:
    data = np.zeros(64 * 4, np.uint32)
    launch(bench, ["v_mov_b32_e32 v3, 100", "v_mov_b32_e32 v2, 40", "ds_write_b32 v2, v3",
                   "v_mov_b32_e32 v4, 1", "v_mov_b32_e32 v5, 1", "s_mov_b32 m0, s12",
                   "s_mov_b64 exec, s[10:11]", "ds_append v4 offset:8", "s_mov_b64 exec, 7",
                   "ds_consume v5 offset:8", "s_mov_b64 exec, 0", "ds_append v4 offset:8",
                   "s_mov_b64 exec, -1", "ds_read_b32 v6, v2", "v_mov_b32_e32 v7, 0",
                   "v_lshlrev_b32_e32 v2, 4, v0", "s_waitcnt lgkmcnt(0)",
                   "global_store_dwordx4 v2, v[4:7], s[0:1]"], data, m0=0xABC0020)
    rows = data.reshape(64, 4)
    assert rows[:, 0].tolist() == [100 if lane in ACTIVE else 1 for lane in range(64)]
    assert rows[:, 1].tolist() == [100 + len(ACTIVE)] * 3 + [1] * 61
    assert (rows[:, 2] == 100 + len(ACTIVE) - 3).all()


def test_lane_addressed_accesses(bench: Bench) -> None:
    data = np.zeros(128, np.uint32)
    launch(bench, ["s_mov_b32 m0, s12", "v_mul_u32_u24_e32 v3, 5, v0",
                   "v_lshlrev_b32_e32 v2, 2, v0", "ds_write_addtid_b32 v3 offset:24",
                   "ds_read_b32 v4, v2 offset:56", "ds_write_b32 v2, v2 offset:512",
                   "ds_read_addtid_b32 v5 offset:480",
                   "s_waitcnt lgkmcnt(0)", "global_store_dword v2, v4, s[0:1]",
                   "global_store_dword v2, v5, s[0:1] offset:256"], data, m0=0xFF0020)
    assert data[:64].tolist() == [5 * lane for lane in range(64)]
    assert data[64:].tolist() == [4 * lane for lane in range(64)]


def test_misaligned_and_distant_lds_atomics(bench: Bench) -> None:
    data = np.zeros(64, np.uint32)
    with pytest.raises(core.FaultError, match="multiple of its size"):
        launch(bench, ["v_mov_b32_e32 v2, 4", "ds_add_u64 v2, v[2:3]"], data)
    launch(bench, ["v_mov_b32_e32 v2, -4", "v_mov_b32_e32 v3, 9", "v_lshlrev_b32_e32 v5, 2, v0",
                   "ds_add_rtn_u32 v3, v2, v3", "s_waitcnt lgkmcnt(0)",
                   "global_store_dword v5, v3, s[0:1]"], data)
    assert (data == 0).all()


def test_lds_addresses_wrap_at_32_bits(bench: Bench) -> None:
    """A negative address with an offset that makes it positive is in range."""
    data = np.zeros(64, np.uint32)
    launch(bench, ["v_lshlrev_b32_e32 v2, 2, v0", "ds_write_b32 v2, v2",
                   "v_subrev_u32_e32 v3, 64, v2", "ds_read_b32 v4, v3 offset:64",
                   "s_waitcnt lgkmcnt(0)", "global_store_dword v2, v4, s[0:1]"], data)
    assert data.tolist() == [4 * lane for lane in range(64)]


def bits5(text: str) -> int:
    return int(text, 2)


# The two rows of the ISA document's table, which counts lanes from 1.
FFT_0 = (0x01, 0x11, 0x09, 0x19, 0x05, 0x15, 0x0D, 0x1D, 0x03, 0x13, 0x0B, 0x1B, 0x07, 0x17, 0x0F,
         0x1F, 0x02, 0x12, 0x0A, 0x1A, 0x06, 0x16, 0x0E, 0x1E, 0x04, 0x14, 0x0C, 0x1C, 0x08, 0x18,
         0x10, 0x20)
FFT_16 = (0x01, 0x09, 0x05, 0x0D, 0x03, 0x0B, 0x07, 0x0F, 0x02, 0x0A, 0x06, 0x0E, 0x04, 0x0C, 0x08,
          0x10, 0x11, 0x19, 0x15, 0x1D, 0x13, 0x1B, 0x17, 0x1F, 0x12, 0x1A, 0x16, 0x1E, 0x14, 0x1C,
          0x18, 0x20)
# Which lane of its 32 a lane reads, as the ISA document and LLVM's syntax describe each mode.
SWIZZLES: dict[str, Callable[[int], int]] = {
    "swizzle(QUAD_PERM,3,1,0,2)": lambda i: i // 4 * 4 + (3, 1, 0, 2)[i % 4],
    "swizzle(BROADCAST,8,5)": lambda i: i // 8 * 8 + 5,
    "swizzle(SWAP,4)": lambda i: i ^ 4,
    "swizzle(REVERSE,16)": lambda i: i // 16 * 16 + 15 - i % 16,
    'swizzle(BITMASK_PERM,"01pip")': lambda i: i & bits5("00101") | bits5("01000") | (
        ~i & bits5("00010")),
    "swizzle(ROTATE,0,3)": lambda i: (i + 3) % 32, "swizzle(ROTATE,1,3)": lambda i: (i - 3) % 32,
    "swizzle(FFT,31)": lambda i: i,
    "swizzle(FFT,0)": lambda i: FFT_0[i] - 1, "swizzle(FFT,16)": lambda i: FFT_16[i] - 1}


@pytest.mark.parametrize("pattern", SWIZZLES)
@pytest.mark.parametrize("exec_mask", [(1 << 64) - 1, EXEC])
def test_swizzle(bench: Bench, pattern: str, exec_mask: int) -> None:
    a = np.arange(500, 564, dtype=np.uint32)
    out = bench.run([f"ds_swizzle_b32 v3, v2 offset:{pattern}", "s_waitcnt lgkmcnt(0)"],
                    vector={2: a, 3: np.full(64, 9, np.uint32)}, vector_out=[3],
                    exec_mask=exec_mask).vector[3]
    for lane in range(64):
        source = lane // 32 * 32 + SWIZZLES[pattern](lane % 32)
        expected = 9 if not exec_mask >> lane & 1 else (
            a[source] if exec_mask >> source & 1 else 0)
        assert out[lane] == expected, lane


@pytest.mark.parametrize("keep", [False, True])
def test_f32_denormals_follow_the_mode(bench: Bench, keep: bool) -> None:
    """Sums flush operands and result, comparisons only what they compare."""
    bench.keep_denormals = keep
    denormal, other = 0x00000005, 0x80000003
    body = ["v_mov_b32_e32 v2, 0", "v_mov_b32_e32 v3, 0x5", "v_mov_b32_e32 v4, 0x80000003",
            "v_mov_b32_e32 v5, 1.0", "s_mov_b64 exec, 1",
            *(f"ds_write_b32 v2, v3 offset:{4 * k}" for k in range(4)),
            "ds_add_f32 v2, v3", "ds_min_f32 v2, v4 offset:4", "ds_max_f32 v2, v4 offset:8",
            "ds_cmpst_f32 v2, v4, v5 offset:12", "ds_read_b128 v[8:11], v2",
            "s_waitcnt lgkmcnt(0)", "s_mov_b64 exec, -1"]
    out = bench.run(body, vector_out=[8, 9, 10, 11], lds_bytes=512).vector
    # Flushed they are -0 and +0, which order but compare equal.
    expected = [10, other, denormal, denormal] if keep else [0, other, denormal, 0x3F800000]
    assert [int(out[8 + k][0]) for k in range(4)] == expected


@pytest.mark.parametrize("keep", [False, True])
def test_wide_and_half_denormals_follow_the_mode(bench: Bench, keep: bool) -> None:
    """f16 pairs flush like f32; f64 additions never do, f64 comparisons as the mode says."""
    bench.mode = 0xC0 if keep else 0
    body = ["v_mov_b32_e32 v2, 0", "v_mov_b32_e32 v3, 0x50003", "v_mov_b32_e32 v4, 5",
            "v_mov_b32_e32 v5, 0", "v_mov_b32_e32 v6, 0", "v_mov_b32_e32 v7, 0x80000000",
            "s_mov_b64 exec, 1", "ds_write_b32 v2, v3", "ds_write_b64 v2, v[4:5] offset:8",
            "ds_write_b64 v2, v[4:5] offset:16", "ds_add_f64 v2, v[4:5] offset:8",
            "ds_pk_add_f16 v2, v3", "ds_cmpst_b64 v2, v[6:7], v[6:7] offset:16",
            "ds_cmpst_f64 v2, v[6:7], v[4:5] offset:24", "ds_read_b32 v8, v2",
            "ds_read_b64 v[10:11], v2 offset:8", "ds_max_f64 v2, v[6:7] offset:16",
            "ds_cmpst_f64 v2, v[6:7], v[6:7] offset:16", "ds_read_b64 v[12:13], v2 offset:16",
            "s_waitcnt lgkmcnt(0)", "s_mov_b64 exec, -1"]
    out = {k: int(v[0]) for k, v in bench.run(
        body, vector_out=[8, 10, 11, 12, 13], lds_bytes=512).vector.items()}
    assert out[8] == (0xA0006 if keep else 0)
    assert (out[10], out[11]) == (10, 0)
    # A flushed denormal equals -0 and is replaced by it.
    assert (out[12], out[13]) == ((5, 0) if keep else (0, 0x80000000))
