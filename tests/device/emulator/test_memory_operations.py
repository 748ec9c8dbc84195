"""Loads, stores, buffer bounds, LDS and DPP."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import asmevo_core as core
import numpy as np
import numpy.typing as npt
import pytest

if TYPE_CHECKING:
    from tests.device.emulator.conftest import Bench

U32 = npt.NDArray[np.uint32]
BASE = 0x6000_0000_0000
LANES = np.arange(64)
GARBAGE = 0xABCD0000


def resource(base: int, records: int, stride: int = 0, word3: int = 0x20000) -> list[int]:
    return [base & 0xFFFFFFFF, base >> 32 | stride << 16, records, word3]


def launch(bench: Bench, body: list[str], data: U32, sgprs: dict[int, int]) -> None:
    """Run one wave whose only memory is ``data`` at BASE; s[0:1] is BASE."""
    values = [0] * 80
    values[0], values[1] = BASE & 0xFFFFFFFF, BASE >> 32
    for number, value in sgprs.items():
        values[number] = value
    memory = core.Memory([("data", BASE, data.view(np.uint8), True)])
    bench.launch(bench.assemble([*body, "s_endpgm"]), memory, values, 1, lds_bytes=512)


@pytest.mark.parametrize("words", [1, 2, 3, 4])
@pytest.mark.parametrize("spread", [0, 4, 36])
@pytest.mark.parametrize("exec_mask", [(1 << 64) - 1, 0x00FF_00FF_8000_0001])
@pytest.mark.parametrize("kind", ["buffer", "saddr", "global"])
def test_copy(bench: Bench, words: int, spread: int, exec_mask: int, kind: str) -> None:
    """Copies at several strides between lanes; consecutive lanes take another path."""
    stride = 4 * words + spread
    size = stride * 64 // 4 + 16
    data = np.arange(2 * size, dtype=np.uint32) * np.uint32(2654435761)
    before = data.copy()
    suffix = "" if words == 1 else f"x{words}"
    data_register = "v8" if words == 1 else f"v[8:{7 + words}]"
    address = {"buffer": ("v2, s[4:7], s9 offen offset:8", "v2, s[4:7], s9 offen offset:8"),
               "saddr": ("v2, s[0:1] offset:12", ""), "global": ("v[4:5], off offset:12", "")}[kind]
    body = ["s_mov_b64 exec, s[10:11]", f"v_mul_u32_u24_e32 v2, {stride}, v0"]
    if kind == "buffer":
        body += [f"buffer_load_dword{suffix} {data_register}, {address[0]}",
                 "s_waitcnt vmcnt(0)", f"v_add_u32_e32 v2, {4 * size}, v2",
                 f"buffer_store_dword{suffix} {data_register}, {address[0]}"]
    elif kind == "saddr":
        body += [f"global_load_dword{suffix} {data_register}, {address[0]}",
                 "s_waitcnt vmcnt(0)", f"v_add_u32_e32 v2, {4 * size}, v2",
                 f"global_store_dword{suffix} v2, {data_register}, s[0:1] offset:12"]
    else:
        body += ["v_mov_b32_e32 v6, s1", "v_add_co_u32_e32 v4, vcc, s0, v2",
                 "v_addc_co_u32_e32 v5, vcc, 0, v6, vcc",
                 f"global_load_dword{suffix} {data_register}, {address[0]}",
                 "s_waitcnt vmcnt(0)", f"v_add_u32_e32 v4, {4 * size}, v4",
                 f"global_store_dword{suffix} v[4:5], {data_register}, off offset:12"]
    words4 = resource(BASE, 8 * size)
    launch(bench, body, data, {**{4 + k: w for k, w in enumerate(words4)}, 9: 4,
                               10: exec_mask & 0xFFFFFFFF, 11: exec_mask >> 32})
    expected = before.copy()
    for lane in range(64):
        if exec_mask >> lane & 1:
            at = (stride * lane + 12) // 4
            expected[size + at:size + at + words] = before[at:at + words]
    np.testing.assert_array_equal(data, expected)


@pytest.mark.parametrize("exec_mask", [(1 << 64) - 1, (1 << 64) - 2])
def test_buffer_bounds_are_checked_per_dword(bench: Bench, exec_mask: int) -> None:
    """Out-of-range dwords read 0 and are not stored, although the region is larger."""
    data = np.arange(1, 1025, dtype=np.uint32)
    records = 4 * 250  # lane 62 of a dwordx4 access reaches halfway across the end
    body = ["s_mov_b64 exec, s[10:11]", "v_lshlrev_b32_e32 v2, 4, v0",
            "buffer_load_dwordx4 v[8:11], v2, s[4:7], 0 offen", "s_waitcnt vmcnt(0)",
            "global_store_dwordx4 v2, v[8:11], s[0:1] offset:2048"]
    launch(bench, body, data, {**{4 + k: w for k, w in enumerate(resource(BASE, records))},
                               10: exec_mask & 0xFFFFFFFF, 11: exec_mask >> 32})
    source = np.arange(1, 257)
    expected = np.where(np.arange(256) < 250, source, 0)
    if not exec_mask & 1:
        expected[:4] = np.arange(513, 517)
    np.testing.assert_array_equal(data[512:768], expected)

    data = np.zeros(1024, np.uint32)
    body = ["v_lshlrev_b32_e32 v2, 4, v0", *(f"v_mov_b32_e32 v{8 + k}, {k + 1}" for k in range(4)),
            "buffer_store_dwordx4 v[8:11], v2, s[4:7], 0 offen"]
    launch(bench, body, data, dict(zip(range(4, 8), resource(BASE, records), strict=True)))
    np.testing.assert_array_equal(data[:256], np.where(np.arange(256) < 250,
                                                       np.arange(256) % 4 + 1, 0))


@pytest.mark.parametrize("exec_mask", [(1 << 64) - 1, (1 << 64) - 2])
def test_soffset_counts_against_the_records(bench: Bench, exec_mask: int) -> None:
    """Out of range is an offset from num_records - sgpr_offset on (CDNA3 ISA, "Range Checking")."""
    data = np.arange(1, 257, dtype=np.uint32)
    body = ["v_lshlrev_b32_e32 v2, 2, v0", "s_mov_b64 exec, s[10:11]",
            "buffer_load_dword v8, v2, s[4:7], s9 offen offset:4",
            "buffer_load_dword v9, v2, s[4:7], s12 offen", "s_waitcnt vmcnt(0)",
            "global_store_dword v2, v8, s[0:1] offset:512",
            "global_store_dword v2, v9, s[0:1] offset:768"]
    launch(bench, body, data, {**dict(zip(range(4, 8), resource(BASE, 128), strict=True)), 9: 96,
                               10: exec_mask & 0xFFFFFFFF, 11: exec_mask >> 32, 12: 132})
    expected = np.where(LANES < 7, LANES + 26, 0)
    beyond = np.zeros(64)
    if not exec_mask & 1:
        expected[0], beyond[0] = 129, 193
    np.testing.assert_array_equal(data[128:192], expected)
    np.testing.assert_array_equal(data[192:256], beyond)


@pytest.mark.parametrize("exec_mask", [(1 << 64) - 1, (1 << 64) - 2])
def test_a_negative_offset_is_out_of_range(bench: Bench, exec_mask: int) -> None:
    """The sum with the instruction's offset does not wrap (LLVM, splitBufferOffsets)."""
    data = np.arange(1, 257, dtype=np.uint32)
    body = ["v_lshlrev_b32_e32 v3, 2, v0", "v_subrev_u32_e32 v2, 16, v3",
            "s_mov_b64 exec, s[10:11]", "buffer_load_dword v8, v2, s[4:7], 0 offen offset:32",
            "s_waitcnt vmcnt(0)", "global_store_dword v3, v8, s[0:1] offset:512"]
    launch(bench, body, data, {**dict(zip(range(4, 8), resource(BASE, 4096), strict=True)),
                               10: exec_mask & 0xFFFFFFFF, 11: exec_mask >> 32})
    expected = np.where(LANES < 4, 0, LANES + 5)
    if not exec_mask & 1:
        expected[0] = 129
    np.testing.assert_array_equal(data[128:192], expected)


def test_indexed_buffer_counts_records_of_the_stride(bench: Bench) -> None:
    data = np.arange(1, 1025, dtype=np.uint32)
    body = ["v_mov_b32_e32 v2, v0", "v_mov_b32_e32 v3, 4", "v_lshlrev_b32_e32 v4, 2, v0",
            "buffer_load_dword v8, v[2:3], s[4:7], 0 idxen offen",
            "buffer_load_dword v9, v2, s[4:7], 0 idxen", "s_waitcnt vmcnt(0)",
            "global_store_dword v4, v8, s[0:1] offset:2048",
            "global_store_dword v4, v9, s[0:1] offset:2304"]
    launch(bench, body, data, dict(zip(range(4, 8), resource(BASE, 20, 12), strict=True)))
    np.testing.assert_array_equal(data[512:576], np.where(LANES < 20, 3 * LANES + 2, 0))
    np.testing.assert_array_equal(data[576:640], np.where(LANES < 20, 3 * LANES + 1, 0))


@pytest.mark.parametrize(("words", "what"), [
    (resource(BASE, 64, 1 << 15), "not documented"),
    (resource(BASE, 64, word3=1 << 30), "word 3")])
def test_resources_that_are_not_modelled_fault(bench: Bench, words: list[int], what: str) -> None:
    data = np.zeros(64, np.uint32)
    body = ["buffer_load_dword v2, off, s[4:7], 0"]
    with pytest.raises(core.FaultError, match=what):
        launch(bench, body, data, dict(zip(range(4, 8), words, strict=True)))


def test_scalar_loads(bench: Bench) -> None:
    data = np.arange(100, 164, dtype=np.uint32)
    out = np.zeros(64, np.uint32)
    values = [0] * 80
    values[0], values[1], values[2] = BASE & 0xFFFFFFFF, BASE >> 32, 8
    memory = core.Memory([("data", BASE, data.view(np.uint8), False),
                          ("out", BASE + 0x1000, out.view(np.uint8), True)])
    body = ["s_load_dword s8, s[0:1], 0x4", "s_load_dwordx2 s[10:11], s[0:1], s2",
            "s_load_dwordx4 s[12:15], s[0:1], 0x12", "s_load_dwordx8 s[16:23], s[0:1], 0x20",
            "s_load_dwordx16 s[24:39], s[0:1], 0x40", "s_waitcnt lgkmcnt(0)", "v_mov_b32_e32 v2, 0"]
    registers = [8, 10, 11, 12, 15, 16, 23, 24, 39]
    for slot, register in enumerate(registers):
        body += [f"v_mov_b32_e32 v3, s{register}",
                 f"global_store_dword v2, v3, s[4:5] offset:{4 * slot}"]
    values[4], values[5] = (BASE + 0x1000) & 0xFFFFFFFF, BASE >> 32
    bench.launch(bench.assemble([*body, "s_endpgm"]), memory, values, 1)
    # The offset 0x12 is rounded down to a dword.
    assert out[:9].tolist() == [101, 102, 103, 104, 107, 108, 115, 116, 131]


@pytest.mark.parametrize(("write", "read", "words"), [
    ("ds_write_b32 v2, v8", "ds_read_b32 v12, v2", 1),
    ("ds_write_b64 v2, v[8:9]", "ds_read_b64 v[12:13], v2", 2),
    ("ds_write_b128 v2, v[8:11]", "ds_read_b128 v[12:15], v2", 4),
    ("ds_write2_b32 v2, v8, v9 offset1:1", "ds_read2_b32 v[12:13], v2 offset1:1", 2),
    ("ds_write2_b64 v2, v[8:9], v[10:11] offset1:1",
     "ds_read2_b64 v[12:15], v2 offset0:0 offset1:1", 4),
    ("ds_write2st64_b32 v2, v8, v9 offset0:0 offset1:4",
     "ds_read2st64_b32 v[12:13], v2 offset1:4", 2),
    ("ds_write2st64_b64 v2, v[8:9], v[10:11] offset1:4",
     "ds_read2st64_b64 v[12:15], v2 offset1:4", 4)])
def test_lds_round_trip(bench: Bench, write: str, read: str, words: int) -> None:
    columns = bench.integers(2, 20) + bench.integers(2, 19)
    vector = {8 + k: columns[k][:128] for k in range(4)}
    step = 16 if "st64" not in write else 8 if "b64" in write else 4
    out = bench.run([f"v_mul_u32_u24_e32 v2, {step}, v0", write, read, "s_waitcnt lgkmcnt(0)"],
                    vector=vector, vector_out=range(12, 12 + words), lds_bytes=8192)
    for k in range(words):
        np.testing.assert_array_equal(out.vector[12 + k], vector[8 + k])


def test_lds_exchanges_lanes_and_honours_exec(bench: Bench) -> None:
    a = np.arange(64, dtype=np.uint32) + 500
    body = ["v_lshlrev_b32_e32 v3, 2, v0", "v_xor_b32_e32 v4, 0xfc, v3", "v_mov_b32_e32 v5, 9",
            "ds_write_b32 v3, v2", "s_mov_b64 exec, s[4:5]", "ds_read_b32 v5, v4",
            "s_waitcnt lgkmcnt(0)"]
    out = bench.run(body, vector={2: a}, scalar={4: 0xFF, 5: 0}, vector_out=[5], lds_bytes=256)
    np.testing.assert_array_equal(out.vector[5], np.where(LANES < 8, a[::-1], 9))


def test_lds_out_of_range_reads_zero_and_drops(bench: Bench) -> None:
    body = ["v_lshlrev_b32_e32 v3, 2, v0", "v_mov_b32_e32 v2, 7", "ds_write_b32 v3, v2",
            "ds_read_b32 v4, v3", "ds_read_b32 v5, v3 offset:65532", "s_waitcnt lgkmcnt(0)"]
    out = bench.run(body, vector_out=[4, 5], lds_bytes=128)
    np.testing.assert_array_equal(out.vector[4], np.where(LANES < 32, 7, 0))
    np.testing.assert_array_equal(out.vector[5], np.zeros(64))


# DPP control -> source lane, or -1.
DPP: dict[str, Callable[[int], int]] = {
    "quad_perm:[1,0,3,2]": lambda i: i ^ 1,
    "quad_perm:[3,3,0,1]": lambda i: i // 4 * 4 + (3, 3, 0, 1)[i % 4],
    "row_shl:3": lambda i: i + 3 if i % 16 + 3 < 16 else -1,
    "row_shr:4": lambda i: i - 4 if i % 16 >= 4 else -1,
    "row_ror:6": lambda i: i // 16 * 16 + (i - 6) % 16,
    "row_mirror": lambda i: i // 16 * 16 + 15 - i % 16,
    "row_half_mirror": lambda i: i // 8 * 8 + 7 - i % 8,
    "row_bcast:15": lambda i: i // 16 * 16 - 1,
    "row_bcast:31": lambda i: 31 if i >= 32 else -1,
    "row_newbcast:5": lambda i: i // 16 * 16 + 5,
    "wave_shl:1": lambda i: i + 1 if i < 63 else -1,
    "wave_shr:1": lambda i: i - 1,
    "wave_rol:1": lambda i: (i + 1) % 64,
    "wave_ror:1": lambda i: (i - 1) % 64,
}


@pytest.mark.parametrize("control", DPP)
@pytest.mark.parametrize(("masks", "bound"), [("row_mask:0xf bank_mask:0xf", False),
                                              ("row_mask:0xf bank_mask:0xf bound_ctrl:0", True),
                                              ("row_mask:0xa bank_mask:0x6", False)])
@pytest.mark.parametrize("exec_mask", [(1 << 64) - 1, 0x7FFF_FFF0_FFFF_7FFE])
def test_dpp(bench: Bench, control: str, masks: str, bound: bool, exec_mask: int) -> None:
    """Invalid source lanes keep the old value, or read 0 with bound_ctrl."""
    rng = np.random.default_rng(21)
    a, b, old = (rng.integers(0, 1 << 32, 64, dtype=np.uint32) for _ in range(3))
    out = bench.run([f"v_sub_u32_dpp v4, v2, v3 {control} {masks}",
                     f"v_mov_b32_dpp v2, v2 {control} {masks}"],
                    vector={2: a, 3: b, 4: old}, exec_mask=exec_mask, vector_out=[2, 4])
    row_mask, bank_mask = (0xA, 0x6) if "0xa" in masks else (0xF, 0xF)
    for lane in range(64):
        source = DPP[control](lane)
        valid = source >= 0 and exec_mask >> source & 1
        written = (exec_mask >> lane & 1 and row_mask >> lane // 16 & 1
                   and bank_mask >> lane // 4 % 4 & 1 and (valid or bound))
        moved = int(a[source]) if valid else 0
        assert out.vector[2][lane] == (moved if written else a[lane])
        assert out.vector[4][lane] == ((moved - int(b[lane])) & 0xFFFFFFFF if written
                                       else old[lane])


def test_dpp_source_modifiers_apply_to_the_permuted_value(bench: Bench) -> None:
    """A lane that reads 0 out of range reads -0 with neg."""
    one = np.full(64, 0x3F800000, np.uint32)
    body = ["v_mul_f32_dpp v20, -v2, |v3| row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:0"]
    out = bench.run(body, vector={2: one, 3: one | np.uint32(0x80000000)}, vector_out=[20])
    np.testing.assert_array_equal(out.vector[20],
                                  np.where(LANES % 16 == 0, 0x80000000, 0xBF800000))
