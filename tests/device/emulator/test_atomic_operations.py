"""Atomics, loads to LDS, lane permutes, scalar stores and VSKIP against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import asmevo_core as core
import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

if TYPE_CHECKING:
    from tests.device.emulator.conftest import Bench

U32 = npt.NDArray[np.uint32]
Words = npt.NDArray[Any]
BASE = 0x6000_0000_0000
EXEC = 0xF0F1_8000_7FFF_1234
ACTIVE = [lane for lane in range(64) if EXEC >> lane & 1]


def launch(bench: Bench, body: list[str], data: Words, sgprs: dict[int, int] | None = None,
           groups: int = 1, workgroup: int = 64) -> None:
    """Workgroups whose only memory is ``data`` at s[0:1]; s[4:7] is a buffer over it."""
    values = [0] * 80
    values[0], values[1] = BASE & 0xFFFFFFFF, BASE >> 32
    values[4:8] = [BASE & 0xFFFFFFFF, BASE >> 32, data.nbytes, 0x20000]
    values[10], values[11] = EXEC & 0xFFFFFFFF, EXEC >> 32
    for number, value in (sgprs or {}).items():
        values[number] = value
    memory = core.Memory([("data", BASE, data.view(np.uint8), True)])
    bench.launch(bench.assemble([*body, "s_waitcnt vmcnt(0) lgkmcnt(0)", "s_endpgm"]), memory,
                 values, groups, lds_bytes=1024, workgroup=workgroup)


def pairs(kind: Any) -> Callable[[int, int], int]:
    def add(old: int, operand: int) -> int:
        both = np.array([old, operand], np.uint32).view(kind).reshape(2, 2)
        with np.errstate(all="ignore"):
            total = both[0].astype(np.float64) + both[1].astype(np.float64)
        return int(total.astype(kind).view(np.uint32)[0])
    return add


def add_f32(old: int, operand: int) -> int:
    a, b = np.array([old, operand], np.uint32).view(np.float32)
    return int((a + b).view(np.uint32))


def signed(x: int, bits: int) -> int:
    return x - (x >> bits - 1 << bits)


FLOATS: dict[str, tuple[Callable[[int, int], int], Any]] = {
    "add_f32": (add_f32, np.float32), "pk_add_f16": (pairs(np.float16), np.float16),
    "pk_add_bf16": (pairs(ml_dtypes.bfloat16), ml_dtypes.bfloat16)}


# gfx942 has no buffer_atomic_pk_add_bf16.
@pytest.mark.parametrize(("name", "kind"), [
    (name, kind) for name in FLOATS for kind in ("buffer", "global", "returning", "flat")
    if (name, kind) != ("pk_add_bf16", "buffer")])
def test_float_atomics_add_lane_after_lane(bench: Bench, name: str, kind: str) -> None:
    """Lanes collide in eights: the result depends on their order, which is the documented one."""
    function, element = FLOATS[name]
    rng = np.random.default_rng(1)
    floats = (rng.normal(0, 1, 1024) * np.exp2(rng.integers(-20, 12, 1024))).astype(element)
    data = np.zeros(192, np.uint32)
    data[:128] = floats.view(np.uint32)[:128]
    data[3] = 0x80018001  # negative denormals, also of bf16 pairs
    expected = data.copy()
    body = ["v_lshlrev_b32_e32 v2, 2, v0", "global_load_dword v3, v2, s[0:1] offset:256",
            "v_and_b32_e32 v4, 28, v2", "v_mov_b32_e32 v5, 0x1234567", "s_mov_b64 exec, s[10:11]",
            "s_waitcnt vmcnt(0)"]
    body += {"buffer": [f"buffer_atomic_{name} v3, v4, s[4:7], 0 offen offset:8"],
             "global": [f"global_atomic_{name} v4, v3, s[0:1] offset:8"],
             "flat": ["v_add_u32_e32 v6, s0, v4", "v_mov_b32_e32 v7, s1",
                      f"flat_atomic_{name} v[6:7], v3 offset:8"],
             "returning": [f"global_atomic_{name} v5, v4, v3, s[0:1] offset:8 sc0"]}[kind]
    body += ["s_waitcnt vmcnt(0)", "s_mov_b64 exec, -1",
             "global_store_dword v2, v5, s[0:1] offset:512"]
    launch(bench, body, data)
    expected[128:192] = 0x1234567
    for lane in ACTIVE:
        at = lane % 8 + 2
        if kind == "returning":
            expected[128 + lane] = expected[at]
        expected[at] = function(int(expected[at]), int(expected[64 + lane]))
    np.testing.assert_array_equal(data, expected)


def integer(name: str, bits: int) -> Callable[[int, int], int]:
    mask = (1 << bits) - 1
    functions: dict[str, Callable[[int, int], int]] = {
        "add": lambda a, b: a + b & mask, "sub": lambda a, b: a - b & mask,
        "swap": lambda a, b: b, "and": lambda a, b: a & b, "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b, "umin": min, "umax": max,
        "smin": lambda a, b: min(a, b, key=lambda x: signed(x, bits)),
        "smax": lambda a, b: max(a, b, key=lambda x: signed(x, bits)),
        "inc": lambda a, b: 0 if a >= b else a + 1,
        "dec": lambda a, b: b if a == 0 or a > b else a - 1}
    return functions[name]


@pytest.mark.parametrize("name", ["add", "sub", "swap", "and", "or", "xor", "umin", "umax", "smin",
                                  "smax", "inc", "dec"])
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("kind", ["buffer", "global", "flat", "lds", "scalar"])
def test_integer_atomics(bench: Bench, name: str, bits: int, kind: str) -> None:
    rng = np.random.default_rng(2)
    dtype: Any = np.uint32 if bits == 32 else np.uint64
    size, words = bits // 8, bits // 32
    boundary = [0, 1, 2, (1 << bits - 1) - 1, 1 << bits - 1, (1 << bits) - 2, (1 << bits) - 1, 5]
    data = np.concatenate([np.array(boundary, dtype),
                           rng.choice(np.array(boundary, dtype), 64), np.zeros(64, dtype)])
    expected = data.copy()
    value, suffix, width = ("v6", "", "dword") if words == 1 else ("v[6:7]", "_x2", "dwordx2")
    body = [f"v_lshlrev_b32_e32 v2, {size.bit_length() - 1}, v0",
            f"global_load_{width} {value}, v2, s[0:1] offset:{8 * size}",
            f"v_and_b32_e32 v4, {7 * size}, v2", "s_waitcnt vmcnt(0)"]
    if kind == "scalar":
        scalar_atomics(bench, name, bits, data)
        return
    address = ["v_add_u32_e32 v8, s0, v4", "v_mov_b32_e32 v9, s1"]
    if kind == "lds":  # through its flat aperture
        address = [f"global_load_{width} {value.replace('6', '10').replace('7', '11')}, v4, s[0:1]",
                   "s_waitcnt vmcnt(0)",
                   f"ds_write_b{bits} v4, {value.replace('6', '10').replace('7', '11')}",
                   "s_mov_b64 s[20:21], src_shared_base", "v_mov_b32_e32 v8, v4",
                   "v_mov_b32_e32 v9, s21"]
    body += [*address, {
        "buffer": f"buffer_atomic_{name}{suffix} {value}, v4, s[4:7], 0 offen sc0",
        "global": f"global_atomic_{name}{suffix} {value}, v4, {value}, s[0:1] sc0"}.get(
            kind, f"flat_atomic_{name}{suffix} {value}, v[8:9], {value} sc0")]
    body += ["s_waitcnt vmcnt(0) lgkmcnt(0)",
             f"global_store_{width} v2, {value}, s[0:1] offset:{72 * size}"]
    if kind == "lds":
        body += [f"ds_read_b{bits} {value}, v4", "s_waitcnt lgkmcnt(0)",
                 f"global_store_{width} v4, {value}, s[0:1]"]
    launch(bench, body, data)
    for lane in range(64):
        old = int(expected[lane % 8])
        expected[72 + lane] = old
        expected[lane % 8] = integer(name, bits)(old, int(expected[8 + lane]))
    np.testing.assert_array_equal(data, expected)


def scalar_atomics(bench: Bench, name: str, bits: int, data: Words) -> None:
    """s_atomic and s_buffer_atomic, one after another on every boundary value."""
    expected = data.copy()
    size = bits // 8
    width, pair = ("", "s20") if bits == 32 else ("x2", "s[20:21]")
    suffix = "" if bits == 32 else "_x2"
    body = []
    for k in range(64):
        where = f"s[0:1], {k % 8 * size:#x}" if k % 2 else f"s[4:7], {k % 8 * size:#x}"
        prefix = "s_atomic" if k % 2 else "s_buffer_atomic"
        body += [f"s_load_dword{width} {pair}, s[0:1], {(8 + k) * size:#x}", "s_waitcnt lgkmcnt(0)",
                 f"{prefix}_{name}{suffix} {pair}, {where} glc", "s_waitcnt lgkmcnt(0)",
                 f"s_store_dword{width} {pair}, s[0:1], {(72 + k) * size:#x}"]
        old = int(expected[k % 8])
        expected[72 + k] = old
        expected[k % 8] = integer(name, bits)(old, int(expected[8 + k]))
    launch(bench, body, data)
    np.testing.assert_array_equal(data, expected)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("kind", ["buffer", "global", "flat", "scalar", "scalar_buffer"])
def test_compare_and_swap(bench: Bench, bits: int, kind: str) -> None:
    """The data is the new value and what it is compared with; half of it returns."""
    dtype: Any = np.uint32 if bits == 32 else np.uint64
    size, suffix = bits // 8, "" if bits == 32 else "_x2"
    width, double = ("dword", "dwordx2") if bits == 32 else ("dwordx2", "dwordx4")
    pair, single = ("v[6:7]", "v6") if bits == 32 else ("v[6:9]", "v[6:7]")
    old = np.arange(64, dtype=dtype) + dtype(1 << bits - 3)
    swap = np.stack([old * dtype(3), np.where(np.arange(64) % 3 == 0, old, old + dtype(1))], 1)
    data = np.concatenate([old, swap.ravel(), np.zeros(64, dtype)])
    if "scalar" in kind:
        op, base = (("s_atomic", "s[0:1]") if kind == "scalar" else ("s_buffer_atomic", "s[4:7]"))
        words = bits // 32
        registers, first = f"s[20:{19 + 2 * words}]", "s20" if words == 1 else "s[20:21]"
        body = []
        for k in range(64):
            body += [f"s_load_{double} {registers}, s[0:1], {(64 + 2 * k) * size:#x}",
                     "s_waitcnt lgkmcnt(0)",
                     f"{op}_cmpswap{suffix} {registers}, {base}, {k * size:#x} glc",
                     "s_waitcnt lgkmcnt(0)",
                     f"s_store_{width} {first}, s[0:1], {(192 + k) * size:#x}"]
    else:
        text = {"buffer": f"buffer_atomic_cmpswap{suffix} {pair}, v2, s[4:7], 0 offen sc0",
                "global": f"global_atomic_cmpswap{suffix} {single}, v2, {pair}, s[0:1] sc0",
                "flat": f"flat_atomic_cmpswap{suffix} {single}, v[4:5], {pair} sc0"}[kind]
        body = [f"v_lshlrev_b32_e32 v2, {size.bit_length() - 1}, v0", "v_lshlrev_b32_e32 v3, 1, v2",
                f"global_load_{double} {pair}, v3, s[0:1] offset:{64 * size}",
                "v_add_u32_e32 v4, s0, v2", "v_mov_b32_e32 v5, s1", "s_waitcnt vmcnt(0)", text,
                "s_waitcnt vmcnt(0) lgkmcnt(0)",
                f"global_store_{width} v2, {single}, s[0:1] offset:{192 * size}"]
    launch(bench, body, data)
    np.testing.assert_array_equal(data[192:], old)
    np.testing.assert_array_equal(data[:64], np.where(np.arange(64) % 3 == 0, swap[:, 0], old))


@pytest.mark.parametrize("name", ["add_f64", "min_f64", "max_f64"])
@pytest.mark.parametrize("kind", ["buffer", "global", "flat"])
def test_f64_atomics(bench: Bench, name: str, kind: str) -> None:
    rng = np.random.default_rng(6)
    data = rng.normal(0, 1, 136) * np.exp2(rng.integers(-30, 30, 136))
    data[3] = -5e-324
    expected = data.copy()
    text = {"buffer": f"buffer_atomic_{name} v[6:7], v4, s[4:7], 0 offen sc0",
            "global": f"global_atomic_{name} v[6:7], v4, v[6:7], s[0:1] sc0",
            "flat": f"flat_atomic_{name} v[6:7], v[8:9], v[6:7] sc0"}[kind]
    launch(bench, ["v_lshlrev_b32_e32 v2, 3, v0", "v_and_b32_e32 v4, 56, v2",
                   "v_add_u32_e32 v8, s0, v4", "v_mov_b32_e32 v9, s1",
                   "global_load_dwordx2 v[6:7], v2, s[0:1] offset:64", "s_waitcnt vmcnt(0)", text,
                   "s_waitcnt vmcnt(0) lgkmcnt(0)",
                   "global_store_dwordx2 v2, v[6:7], s[0:1] offset:576"], data)
    for lane in range(64):
        expected[72 + lane] = expected[lane % 8]
        operation: Any = {"add": np.add, "min": np.minimum, "max": np.maximum}[name[:3]]
        expected[lane % 8] = operation(expected[lane % 8], expected[8 + lane])
    np.testing.assert_array_equal(data, expected)


def test_buffer_atomic_out_of_range_is_dropped_and_returns_zero(bench: Bench) -> None:
    data = np.ones(128, np.uint32)
    launch(bench, ["v_lshlrev_b32_e32 v2, 2, v0", "v_mov_b32_e32 v3, 5",
                   "buffer_atomic_add v3, v2, s[4:7], 0 offen sc0", "s_waitcnt vmcnt(0)",
                   "global_store_dword v2, v3, s[0:1] offset:256"], data, {6: 40})
    assert data[:64].tolist() == [6] * 10 + [1] * 54
    assert data[64:].tolist() == [1] * 10 + [0] * 54


def test_misaligned_atomic_faults(bench: Bench) -> None:
    data = np.zeros(64, np.uint32)
    with pytest.raises(core.FaultError, match="multiple of its size"):
        launch(bench, ["v_mov_b32_e32 v2, 2", "global_atomic_add v2, v2, s[0:1]"], data)


def test_workgroups_and_waves_add_in_the_order_of_the_launch(bench: Bench) -> None:
    """Each workgroup takes a ticket; two launches agree and no ticket is lost."""
    found = []
    for _ in range(2):
        data = np.zeros(64, np.uint32)
        launch(bench, ["v_mov_b32_e32 v2, 0", "v_mov_b32_e32 v3, 1",
                       "global_atomic_add v4, v2, v3, s[0:1] sc0", "s_waitcnt vmcnt(0)",
                       "v_readfirstlane_b32 s20, v4", "s_lshl_b32 s21, s80, 2",
                       "v_mov_b32_e32 v5, s21", "v_mov_b32_e32 v6, s20",
                       "global_store_dword v5, v6, s[0:1] offset:4"], data, groups=8)
        found.append(data)
    assert found[0][:9].tolist() == [512, *range(0, 512, 64)]
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize("exec_mask", [(1 << 64) - 1, EXEC])
def test_load_to_lds_arrives_with_the_wait(bench: Bench, exec_mask: int) -> None:
    data = np.arange(1000, 1320, dtype=np.uint32)
    before = data.copy()
    body = ["v_lshlrev_b32_e32 v2, 2, v0", "v_mov_b32_e32 v3, 7", "s_movk_i32 m0, 0x100",
            "ds_write_b32 v2, v3 offset:264", "v_xor_b32_e32 v4, 252, v2",
            "s_mov_b64 exec, s[10:11]", "buffer_load_dword v4, s[4:7], 0 offen offset:8 lds",
            "s_mov_b32 m0, 0", "s_mov_b64 exec, -1", "ds_read_b32 v5, v2 offset:264",
            "s_waitcnt vmcnt(0)", "ds_read_b32 v6, v2 offset:264", "s_waitcnt lgkmcnt(0)",
            "global_store_dword v2, v5, s[0:1] offset:512",
            "global_store_dword v2, v6, s[0:1] offset:768"]
    launch(bench, body, data, {6: 4 * 40, 10: exec_mask & 0xFFFFFFFF, 11: exec_mask >> 32})
    assert (data[128:192] == 7).all()
    expected = np.full(64, 7, np.uint32)
    for lane in range(64):
        if exec_mask >> lane & 1:
            source = (lane ^ 63) + 2
            expected[lane] = before[source] if source < 40 else 0
    np.testing.assert_array_equal(data[192:256], expected)


def test_load_to_lds_past_its_end_is_dropped(bench: Bench) -> None:
    data = np.arange(64, dtype=np.uint32)
    launch(bench, ["s_movk_i32 m0, 0x3f0", "v_lshlrev_b32_e32 v2, 2, v0", "s_nop 0",
                   "buffer_load_dword v2, s[4:7], 0 offen lds", "s_waitcnt vmcnt(0)",
                   "ds_read_b32 v3, v2 offset:1008", "s_waitcnt lgkmcnt(0)",
                   "global_store_dword v2, v3, s[0:1]"], data)
    assert data.tolist() == [0, 1, 2, 3] + [0] * 60


@pytest.mark.parametrize("exec_mask", [(1 << 64) - 1, EXEC])
def test_permutes(bench: Bench, exec_mask: int) -> None:
    rng = np.random.default_rng(3)
    address, value = (rng.integers(0, 1 << 32, 64, dtype=np.uint32) for _ in range(2))
    old = np.full(64, 99, np.uint32)
    out = bench.run(["ds_permute_b32 v4, v2, v3 offset:8", "ds_bpermute_b32 v5, v2, v3 offset:8",
                     "s_waitcnt lgkmcnt(0)"], vector={2: address, 3: value, 4: old, 5: old},
                    exec_mask=exec_mask, vector_out=[4, 5]).vector
    forward, backward = old.copy(), old.copy()
    active = [lane for lane in range(64) if exec_mask >> lane & 1]
    target = [(int(a) + 8) // 4 % 64 for a in address]
    for lane in active:
        writers = [i for i in active if target[i] == lane]
        forward[lane] = value[writers[-1]] if writers else 0
        backward[lane] = value[target[lane]] if target[lane] in active else 0
    np.testing.assert_array_equal(out[4], forward)
    np.testing.assert_array_equal(out[5], backward)


def test_scalar_stores_and_atomics(bench: Bench) -> None:
    data = np.array([5, 9, 7, 0, 0, 0, 0, 0], np.uint32)
    launch(bench, ["s_mov_b32 s20, 11", "s_mov_b32 s21, 12", "s_mov_b32 s22, 16",
                   "s_store_dword s20, s[0:1], 0xc", "s_store_dwordx2 s[20:21], s[0:1], s22 glc",
                   "s_movk_i32 s24, 7", "s_mov_b32 s25, s24", "s_atomic_inc s24, s[0:1], 0x0",
                   "s_atomic_inc s25, s[0:1], 0x4 glc", "s_waitcnt lgkmcnt(0)",
                   "s_store_dword s24, s[0:1], 0x18", "s_store_dword s25, s[0:1], 0x1c"], data)
    assert data.tolist() == [6, 0, 7, 11, 11, 12, 7, 9]


def test_vskip_skips_vector_instructions_only(bench: Bench) -> None:
    data = np.zeros(128, np.uint32)
    launch(bench, ["v_lshlrev_b32_e32 v2, 2, v0", "v_mov_b32_e32 v3, 1", "s_mov_b32 s20, 4",
                   "s_setvskip s20, 2", "v_mov_b32_e32 v3, 2", "s_add_u32 s20, s20, 1",
                   "global_store_dword v2, v3, s[0:1]", "v_readfirstlane_b32 s20, v3",
                   "v_cmp_eq_u32_e32 vcc, 99, v3", "s_setvskip s20, 1",
                   "v_mov_b32_e32 v4, s20", "global_store_dword v2, v4, s[0:1] offset:256",
                   "s_setvskip 0, 0", "v_add_u32_e32 v4, s20, v3",
                   "global_store_dword v2, v4, s[0:1] offset:256"], data)
    # s20 was 5 when its bit 1 was taken: VSKIP went off there already.
    assert (data[:64] == 0).all()
    assert (data[64:] == 6).all()


@pytest.mark.parametrize(("name", "value", "immediate", "truth"), [
    ("eq", 0xFFFF, "0xffff", 1), ("eq", 0xFFFFFFFF, "0xffff", 0), ("lg", 3, "0x3", 0),
    ("gt", 0x10000, "0xffff", 1), ("ge", 0x8000, "0x8000", 1), ("lt", 0x7FFF, "0x8000", 1),
    ("le", 0x8001, "0x8000", 0)])
def test_unsigned_compare_with_an_immediate(
        bench: Bench, name: str, value: int, immediate: str, truth: int) -> None:
    out = bench.run([f"s_cmpk_{name}_u32 s4, {immediate}"], scalar={4: value}, scc=1 - truth)
    assert out.scc.tolist() == [truth]


def test_integer_add_and_sub(bench: Bench) -> None:
    a, b = bench.integers(2, 4)
    out = bench.run(["v_add_i32 v20, v2, v3", "v_sub_i32 v21, v2, v3", "v_nop"],
                    vector={2: a, 3: b}, vector_out=[20, 21]).vector
    np.testing.assert_array_equal(out[20], a + b)
    np.testing.assert_array_equal(out[21], a - b)
