"""Buffer resources: swizzling, lane indices, range checks; scalar buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import asmevo_core as core
import numpy as np
import numpy.typing as npt
import pytest

if TYPE_CHECKING:
    from tests.device.emulator.conftest import Bench

U32 = npt.NDArray[np.uint32]
BASE = 0x6000_0000_0000
RESULTS = 0x6100_0000_0000
LANES = np.arange(64)
FORMAT = 4 << 15  # data format 32: the resource is bound
ADD_TID = 1 << 23


def resource(records: int, stride: int = 0, *, swizzle: bool = False, index_stride: int = 0,
             flags: int = FORMAT) -> list[int]:
    """``index_stride`` is the field: 8, 16, 32 or 64 records."""
    return [BASE & 0xFFFFFFFF, BASE >> 32 | stride << 16 | swizzle << 31, records,
            flags | index_stride << 21]


def run(bench: Bench, body: list[str], data: U32, words: list[int], s9: int = 0) -> U32:
    """v8 after ``body``; s[4:7] is the resource, v2 the lane, v3 four times the lane."""
    out = np.zeros(64, np.uint32)
    values = [0] * 80
    values[0], values[1], values[9] = RESULTS & 0xFFFFFFFF, RESULTS >> 32, s9
    values[4:8] = words
    memory = core.Memory([("data", BASE, data.view(np.uint8), True),
                          ("out", RESULTS, out.view(np.uint8), True)])
    bench.launch(bench.assemble(["v_mov_b32_e32 v2, v0", "v_lshlrev_b32_e32 v3, 2, v0", *body,
                                 "s_waitcnt vmcnt(0) lgkmcnt(0)",
                                 "global_store_dword v3, v8, s[0:1]", "s_endpgm"]),
                 memory, values, 1)
    return out


@pytest.mark.parametrize("index_stride", [0, 1, 2, 3])
def test_swizzled_records(bench: Bench, index_stride: int) -> None:
    """Records of 12 bytes: the dwords of one group of records lie behind one another."""
    data = np.arange(1024, dtype=np.uint32)
    words = resource(50, 12, swizzle=True, index_stride=index_stride)
    out = run(bench, ["v_mov_b32_e32 v5, 4", "v_mov_b32_e32 v4, v0",
                      "buffer_load_dword v8, v[4:5], s[4:7], s9 idxen offen offset:4"], data, words,
              s9=16)
    group = 8 << index_stride
    place = (LANES // group * 12 + 8) * group + LANES % group * 4
    np.testing.assert_array_equal(out, np.where(LANES < 50, place // 4 + 4, 0))


def test_lane_indices_of_scratch_buffers(bench: Bench) -> None:
    """ADD_TID_ENABLE adds the lane to the index, extends the stride and checks no range."""
    stride = 1 << 14 | 8  # bit 14 is in the data format field
    words = resource(0, 8, flags=ADD_TID | 1 << 15)
    data = np.arange(stride * 64 // 4, dtype=np.uint32)
    out = run(bench, ["buffer_load_dword v8, off, s[4:7], 0 offset:4"], data, words)
    np.testing.assert_array_equal(out, (LANES * stride + 4) // 4)


def test_swizzled_scratch_buffer(bench: Bench) -> None:
    data = np.arange(4096, dtype=np.uint32)
    words = resource(0, 16, swizzle=True, index_stride=3, flags=ADD_TID)
    out = run(bench, ["v_mov_b32_e32 v4, 8", "buffer_load_dword v8, v4, s[4:7], 0 offen"], data,
              words)
    np.testing.assert_array_equal(out, 8 // 4 * 64 + LANES)


def test_an_index_without_stride_reads_one_record(bench: Bench) -> None:
    data = np.arange(64, dtype=np.uint32) + 5
    out = run(bench, ["buffer_load_dword v8, v2, s[4:7], 0 idxen offset:8"], data, resource(12))
    np.testing.assert_array_equal(out, np.full(64, 7))


def test_an_unbound_resource_reads_zero(bench: Bench) -> None:
    data = np.full(64, 3, np.uint32)
    out = run(bench, ["v_mov_b32_e32 v8, 9", "buffer_store_dword v8, v3, s[4:7], 0 offen",
                      "buffer_load_dword v8, v3, s[4:7], 0 offen"], data, [0, 0, 0, 0])
    assert (out == 0).all()
    assert (data == 3).all()


@pytest.mark.parametrize(("text", "words", "what"), [
    ("buffer_load_dword v8, v3, s[4:7], 0 offen", resource(64, 8, swizzle=True), "not documented"),
    ("buffer_load_dword v8, v2, s[4:7], 0 idxen", resource(64, 8, flags=ADD_TID), "not documented"),
    ("buffer_load_dwordx2 v[8:9], v2, s[4:7], 0 idxen", resource(64, 8, swizzle=True), "wider")])
def test_what_the_isa_leaves_open_faults(
        bench: Bench, text: str, words: list[int], what: str) -> None:
    with pytest.raises(core.FaultError, match=what):
        run(bench, [text], np.zeros(256, np.uint32), words)


@pytest.mark.parametrize(("width", "size"), [("ubyte", 1), ("ushort", 2), ("dword", 4)])
def test_the_last_unit_in_range(bench: Bench, width: str, size: int) -> None:
    """A unit that reaches past num_records is out of range as a whole."""
    data = np.arange(64, dtype=np.uint32) + 0x01010101
    records = 4 * 20 + 3
    out = run(bench, [f"buffer_load_{width} v8, v3, s[4:7], 0 offen offset:2"], data,
              resource(records))
    raw = data.view(np.uint8)
    expected = [int.from_bytes(raw[at:at + size].tobytes(), "little") if at + size <= records else 0
                for at in 4 * LANES + 2]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(("stride", "records", "size"), [(0, 40, 40), (12, 3, 36), (0, 39, 36)])
def test_scalar_buffers(bench: Bench, stride: int, records: int, size: int) -> None:
    """Dwords beyond the size read 0 and are not written; the stride only scales it."""
    data = np.arange(100, 164, dtype=np.uint32)
    body = ["s_buffer_load_dwordx8 s[16:23], s[4:7], 0x10", "s_buffer_load_dwordx2 s[24:25], "
            "s[4:7], s9", "s_waitcnt lgkmcnt(0)", "v_mov_b32_e32 v8, 0",
            *(f"v_writelane_b32 v8, s{16 + k}, {k}" for k in range(10)),
            "s_movk_i32 s26, 7", "s_mov_b32 s27, 8", "s_buffer_store_dwordx2 s[26:27], s[4:7], "
            f"{size - 4:#x}"]
    values = resource(records, stride)
    before = data.copy()
    out = run(bench, body, data, values, s9=6)
    expected = [int(before[4 + k]) if 16 + 4 * k + 4 <= size else 0 for k in range(8)]
    assert out[:10].tolist() == [*expected, 101, 102]
    before[size // 4 - 1] = 7
    np.testing.assert_array_equal(data, before)


def test_scalar_scratch_counts_its_register_in_64_bytes(bench: Bench) -> None:
    data = np.arange(100, 164, dtype=np.uint32)
    out = run(bench, ["s_mov_b64 s[2:3], s[4:5]", "s_mov_b32 s10, 2",
                      "s_scratch_load_dword s12, s[2:3], s10", "s_movk_i32 s13, 9",
                      "s_scratch_store_dword s13, s[2:3], s9", "s_waitcnt lgkmcnt(0)",
                      "v_mov_b32_e32 v8, s12"], data, resource(0), s9=3)
    assert (out == 132).all()
    assert data[48] == 9
    assert (np.delete(data, 48) == np.delete(np.arange(100, 164), 48)).all()


def test_timers_never_go_back(bench: Bench) -> None:
    body = []
    for k in range(70):
        body += [f"s_memtime s[{10 + 2 * (k % 2)}:{11 + 2 * (k % 2)}]", "s_waitcnt lgkmcnt(0)"]
        if k:
            a, b = (10, 12) if k % 2 else (12, 10)
            body += [f"s_cmp_lt_u32 s{a}, s{b}", "s_cselect_b32 s14, 1, 0",
                     "s_add_u32 s15, s15, s14"]
    out = bench.run(["s_mov_b32 s15, 0", *body], scalar_out=[15])
    assert out.scalar[15].tolist() == [69]
