"""Loads and stores of every width in every address space, against NumPy views of the same bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import asmevo_core as core
import numpy as np
import numpy.typing as npt
import pytest

if TYPE_CHECKING:
    from tests.device.emulator.conftest import Bench

U32 = npt.NDArray[np.uint32]
Bytes = npt.NDArray[np.uint8]
BASE = 0x6000_0000_0000
OLD = 0x89ABCDEF
SPACES = ("global", "saddr", "flat", "flat_lds", "flat_private", "buffer", "scratch", "lds")
EXECS = ((1 << 64) - 1, 0xF0F1_8000_7FFF_1234)
# Bytes that a lane owns, and where in them it accesses memory: not a multiple of any size.
PITCH, OFFSET = 32, 5

# Width, what it becomes in 32 bits.
LOADS: dict[str, tuple[Any, bool | None]] = {
    "ubyte": (np.uint8, None), "sbyte": (np.int8, None), "ushort": (np.uint16, None),
    "sshort": (np.int16, None), "ubyte_d16": (np.uint8, False), "ubyte_d16_hi": (np.uint8, True),
    "sbyte_d16": (np.int8, False), "sbyte_d16_hi": (np.int8, True),
    "short_d16": (np.uint16, False), "short_d16_hi": (np.uint16, True)}
STORES = {"byte": (1, 0), "byte_d16_hi": (1, 16), "short": (2, 0), "short_d16_hi": (2, 16)}
LDS_LOADS = {"ubyte": "u8", "sbyte": "i8", "ushort": "u16", "sshort": "i16", "ubyte_d16": "u8_d16",
             "ubyte_d16_hi": "u8_d16_hi", "sbyte_d16": "i8_d16", "sbyte_d16_hi": "i8_d16_hi",
             "short_d16": "u16_d16", "short_d16_hi": "u16_d16_hi"}
LDS_STORES = {"byte": "b8", "byte_d16_hi": "b8_d16_hi", "short": "b16",
              "short_d16_hi": "b16_d16_hi"}
WIDE = {"dword": 1, "dwordx2": 2, "dwordx3": 3, "dwordx4": 4}
LDS_WIDE = {"dword": "b32", "dwordx2": "b64", "dwordx3": "b96", "dwordx4": "b128"}


def address(space: str) -> str:
    """The operands that reach byte OFFSET of what a lane owns."""
    return {"global": "v[4:5], off", "saddr": "v2, s[0:1]", "flat": "v[4:5]", "flat_lds": "v[6:7]",
            "flat_private": "v[18:19]", "buffer": "v2, s[4:7], 0 offen", "scratch": "v3, off",
            "lds": "v2"}[space] + f" offset:{OFFSET}"


def run(bench: Bench, space: str, access: list[str], owned: U32, data: list[int],
        exec_mask: int) -> tuple[U32, Bytes]:
    """v[8:11] and the lanes' own bytes after an access in a space that holds ``owned``."""
    memory = np.zeros(64 * PITCH // 4 + 256, np.uint32)
    memory[:512] = owned
    body = [f"v_mul_u32_u24_e32 v2, {PITCH}, v0", "v_mov_b32_e32 v3, 0",
            "v_add_u32_e32 v4, s0, v2", "v_mov_b32_e32 v5, s1", "s_mov_b64 s[20:21], "
            "src_shared_base", "v_mov_b32_e32 v7, s21", "v_mov_b32_e32 v6, v2",
            "s_mov_b64 s[20:21], src_private_base", "v_mov_b32_e32 v19, s21",
            "v_mov_b32_e32 v18, s20"]
    copy = []
    for half in (0, 16):
        copy += [f"global_load_dwordx4 v[12:15], v2, s[0:1] offset:{half}", "s_waitcnt vmcnt(0)",
                 f"scratch_store_dwordx4 off, v[12:15], off offset:{half}",
                 f"ds_write_b128 v2, v[12:15] offset:{half}"]
    body += [*copy, *(f"v_mov_b32_e32 v{8 + k}, {x:#x}" for k, x in enumerate(data)),
             "s_mov_b64 exec, s[10:11]", *access, "s_waitcnt vmcnt(0) lgkmcnt(0)",
             "s_mov_b64 exec, -1"]
    if space in ("scratch", "flat_private", "lds", "flat_lds"):
        for half in (0, 16):
            body += [f"scratch_load_dwordx4 v[12:15], v3, off offset:{half}" if "lds" not in space
                     else f"ds_read_b128 v[12:15], v2 offset:{half}",
                     "s_waitcnt vmcnt(0) lgkmcnt(0)",
                     f"global_store_dwordx4 v2, v[12:15], s[0:1] offset:{half}"]
    body += ["v_lshlrev_b32_e32 v2, 4, v0", "global_store_dwordx4 v2, v[8:11], s[2:3]",
             "s_endpgm"]
    values = [0] * 80
    values[0], values[1] = BASE & 0xFFFFFFFF, BASE >> 32
    values[4:8] = [BASE & 0xFFFFFFFF, BASE >> 32, 64 * PITCH, 0x20000]
    values[10], values[11] = exec_mask & 0xFFFFFFFF, exec_mask >> 32
    values[2], values[3] = (BASE + 2048) & 0xFFFFFFFF, BASE >> 32
    region = core.Memory([("data", BASE, memory.view(np.uint8), True)])
    bench.launch(bench.assemble(body), region, values, 1, lds_bytes=64 * PITCH,
                 private_bytes=PITCH)
    return memory[512:768].reshape(64, 4), memory[:512].view(np.uint8).reshape(64, PITCH)


def active(exec_mask: int) -> npt.NDArray[np.bool_]:
    return np.array([exec_mask >> lane & 1 for lane in range(64)], bool)


def load_name(space: str, width: str) -> str:
    prefix = {"saddr": "global", "flat_lds": "flat", "flat_private": "flat"}.get(space, space)
    if prefix == "lds":
        return f"ds_read_{LDS_LOADS.get(width) or LDS_WIDE[width]}"
    return f"{prefix}_load_{width}"


def store_text(space: str, width: str, data: str) -> str:
    prefix = {"saddr": "global", "flat_lds": "flat", "flat_private": "flat"}.get(space, space)
    where = address(space)
    if prefix == "lds":
        prefix, width = "ds_write", LDS_STORES.get(width) or LDS_WIDE[width]
        first, _, rest = where.partition(" ")
        return f"ds_write_{width} {first}, {data} {rest}"
    if prefix == "buffer":
        return f"buffer_store_{width} {data}, {where}"
    operands, _, modifiers = where.partition(" offset")
    operand, _, base = operands.partition(", ")
    tail = f", {base}" if base else ""
    return f"{prefix}_store_{width} {operand}, {data}{tail} offset{modifiers}"


@pytest.mark.parametrize("width", LOADS)
@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("exec_mask", EXECS)
def test_narrow_loads(bench: Bench, space: str, width: str, exec_mask: int) -> None:
    owned = np.random.default_rng(1).integers(0, 1 << 32, 512, dtype=np.uint32)
    registers, after = run(bench, space, [f"{load_name(space, width)} v8, {address(space)}"], owned,
                           [OLD] * 4, exec_mask)
    element, high = LOADS[width]
    raw = owned.view(np.uint8).reshape(64, PITCH)[:, OFFSET:OFFSET + np.dtype(element).itemsize]
    value = np.ascontiguousarray(raw).view(element)[:, 0].astype(np.int64)
    if high is not None:
        # The other half is cleared: MI300 runs with ECC.
        value = (value & 0xFFFF) << (16 if high else 0)
    expected = np.where(active(exec_mask), value & 0xFFFFFFFF, OLD)
    np.testing.assert_array_equal(registers[:, 0], expected)
    np.testing.assert_array_equal(after, owned.view(np.uint8).reshape(64, PITCH))


@pytest.mark.parametrize("width", STORES)
@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("exec_mask", EXECS)
def test_narrow_stores(bench: Bench, space: str, width: str, exec_mask: int) -> None:
    owned = np.random.default_rng(2).integers(0, 1 << 32, 512, dtype=np.uint32)
    _, after = run(bench, space, [store_text(space, width, "v8")], owned, [OLD] * 4, exec_mask)
    size, shift = STORES[width]
    expected = owned.view(np.uint8).reshape(64, PITCH).copy()
    written = np.frombuffer((OLD >> shift).to_bytes(4, "little")[:size], np.uint8)
    expected[active(exec_mask), OFFSET:OFFSET + size] = written
    np.testing.assert_array_equal(after, expected)


@pytest.mark.parametrize("width", WIDE)
@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("exec_mask", EXECS)
def test_dwords(bench: Bench, space: str, width: str, exec_mask: int) -> None:
    """A load of unaligned dwords, and their store a few bytes further."""
    owned = np.random.default_rng(3).integers(0, 1 << 32, 512, dtype=np.uint32)
    words = WIDE[width]
    data = "v8" if words == 1 else f"v[8:{7 + words}]"
    store = store_text(space, width, data).replace(f"offset:{OFFSET}", "offset:13")
    registers, after = run(
        bench, space, [f"{load_name(space, width)} {data}, {address(space)}",
                       "s_waitcnt vmcnt(0) lgkmcnt(0)", store], owned, [OLD] * 4, exec_mask)
    rows = owned.view(np.uint8).reshape(64, PITCH)
    moved = np.ascontiguousarray(rows[:, OFFSET:OFFSET + 4 * words])
    lanes = active(exec_mask)
    np.testing.assert_array_equal(registers[:, :words],
                                  np.where(lanes[:, None], moved.view("<u4"), OLD))
    expected = rows.copy()
    expected[lanes, 13:13 + 4 * words] = moved[lanes]
    np.testing.assert_array_equal(after, expected)


@pytest.mark.parametrize(("body", "what"), [
    (["scratch_load_dword v2, off, off offset:29"], "private segment of 32 bytes"),
    (["v_mov_b32_e32 v3, -1", "scratch_store_byte v3, v2, off"], "private segment of 32 bytes"),
    (["s_mov_b64 s[20:21], src_private_base", "v_mov_b32_e32 v2, 32", "v_mov_b32_e32 v3, s21",
      "flat_load_ubyte v2, v[2:3]"], "private segment of 32 bytes"),
    (["s_mov_b64 s[20:21], src_shared_base", "v_mov_b32_e32 v2, -1", "v_mov_b32_e32 v3, s21",
      "flat_store_byte v[2:3], v2"], "leaves the 512 bytes of the workgroup"),
    (["v_mov_b32_e32 v2, 0", "v_mov_b32_e32 v3, 3", "flat_load_dword v2, v[2:3]"],
     "no memory is mapped")])
def test_accesses_outside_their_space_fault(bench: Bench, body: list[str], what: str) -> None:
    with pytest.raises(core.FaultError, match=what) as caught:
        bench.launch(bench.assemble([*body, "s_endpgm"]), core.Memory([]), [0] * 80, 1,
                     lds_bytes=512, private_bytes=PITCH)
    assert caught.value.args[0] == "memory"


@pytest.mark.parametrize(("text", "offset"), [
    ("scratch_store_dword off, v4, off offset:8", 8), ("scratch_store_dword v3, v4, off", 12),
    ("scratch_store_dword off, v4, s5 offset:-4", 16),
    ("scratch_store_dword v3, v4, s5 offset:-8", 24)])
def test_scratch_addressing(bench: Bench, text: str, offset: int) -> None:
    """Offset, VGPR and SGPR add up; lanes have memory of their own."""
    data = np.zeros(64, np.uint32)
    values = [0] * 80
    values[0], values[1], values[5] = BASE & 0xFFFFFFFF, BASE >> 32, 20
    body = ["v_mov_b32_e32 v3, 12", "v_mul_u32_u24_e32 v4, 3, v0", text,
            f"scratch_load_dword v6, off, off offset:{offset}", "v_lshlrev_b32_e32 v2, 2, v0",
            "s_waitcnt vmcnt(0)", "global_store_dword v2, v6, s[0:1]", "s_endpgm"]
    memory = core.Memory([("data", BASE, data.view(np.uint8), True)])
    bench.launch(bench.assemble(body), memory, values, 1, private_bytes=PITCH)
    np.testing.assert_array_equal(data, 3 * np.arange(64))


@pytest.mark.parametrize(("width", "element"), [
    ("dword", np.uint32), ("ubyte", np.uint8), ("sbyte", np.int8), ("ushort", np.uint16),
    ("sshort", np.int16)])
@pytest.mark.parametrize("space", ["buffer", "global", "saddr", "scratch"])
@pytest.mark.parametrize("exec_mask", EXECS)
def test_loads_to_lds(bench: Bench, width: str, element: Any, space: str, exec_mask: int) -> None:
    """The offset counts in memory and in LDS; a narrow value fills a dword."""
    owned = np.random.default_rng(4).integers(0, 1 << 32, 512, dtype=np.uint32)
    load = {"buffer": f"buffer_load_{width} v2, s[4:7], 0 offen offset:8 lds",
            "global": f"global_load_lds_{width} v[4:5], off offset:8",
            "saddr": f"global_load_lds_{width} v2, s[0:1] offset:8",
            "scratch": f"scratch_load_lds_{width} v3, off offset:8"}[space]
    registers, _ = run(
        bench, space, ["s_mov_b64 exec, -1", "v_lshlrev_b32_e32 v12, 2, v0",
                       "ds_write_b32 v12, v8 offset:264", "s_movk_i32 m0, 0x100",
                       "s_mov_b64 exec, s[10:11]", load, "s_waitcnt vmcnt(0)",
                       "s_mov_b64 exec, -1", "ds_read_b32 v8, v12 offset:264"],
        owned, [OLD] * 4, exec_mask)
    raw = owned.view(np.uint8).reshape(64, PITCH)[:, 8:8 + np.dtype(element).itemsize]
    value = np.ascontiguousarray(raw).view(element)[:, 0].astype(np.int64) & 0xFFFFFFFF
    np.testing.assert_array_equal(registers[:, 0], np.where(active(exec_mask), value, OLD))
