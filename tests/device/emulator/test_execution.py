"""Launches: barriers, faults, budget, GPR indexing, undefined state, traces."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import asmevo_core as core
import numpy as np
import numpy.typing as npt
import pytest

if TYPE_CHECKING:
    from tests.device.emulator.conftest import Bench

BASE = 0x6000_0000_0000
SGPRS = [BASE & 0xFFFFFFFF, BASE >> 32]
EXCHANGE = [
    # Every work-item hands its number to the one opposite, in another wave.
    "v_lshlrev_b32_e32 v2, 2, v0", "v_add_u32_e32 v3, 1000, v0", "ds_write_b32 v2, v3",
    "s_waitcnt lgkmcnt(0)", "s_barrier", "v_sub_u32_e32 v4, 255, v0",
    "v_lshlrev_b32_e32 v4, 2, v4", "ds_read_b32 v5, v4", "s_waitcnt lgkmcnt(0)",
    "s_lshl_b32 s4, s80, 10", "v_add_u32_e32 v2, s4, v2", "global_store_dword v2, v5, s[0:1]",
    "s_endpgm"]


def memory_of(data: npt.NDArray[np.uint32]) -> core.Memory:
    return core.Memory([("data", BASE, data.view(np.uint8), True)])


def test_barrier_orders_waves(bench: Bench) -> None:
    data = np.zeros(512, np.uint32)
    bench.launch(bench.assemble(EXCHANGE), memory_of(data), SGPRS, 2, workgroup=256, lds_bytes=1024)
    np.testing.assert_array_equal(data, np.tile(np.arange(1255, 999, -1), 2))


def test_missing_barrier_is_seen(bench: Bench) -> None:
    data = np.zeros(512, np.uint32)
    racy = [line for line in EXCHANGE if line != "s_barrier"]
    bench.launch(bench.assemble(racy), memory_of(data), SGPRS, 2, workgroup=256, lds_bytes=1024)
    assert not np.array_equal(data, np.tile(np.arange(1255, 999, -1), 2))


def test_ended_waves_do_not_hold_up_a_barrier(bench: Bench) -> None:
    data = np.zeros(64, np.uint32)
    body = ["v_readfirstlane_b32 s4, v0", "s_cmp_lg_u32 s4, 0", "s_cbranch_scc1 end", "s_barrier",
            "v_lshlrev_b32_e32 v2, 2, v0", "global_store_dword v2, v2, s[0:1]", "end:", "s_endpgm"]
    bench.launch(bench.assemble(body), memory_of(data), SGPRS, 1, workgroup=128)
    np.testing.assert_array_equal(data, np.arange(64) * 4)


def test_last_wave_is_partial(bench: Bench) -> None:
    data = np.zeros(128, np.uint32)
    body = ["v_lshlrev_b32_e32 v2, 2, v0", "v_mov_b32_e32 v3, 1",
            "global_store_dword v2, v3, s[0:1]", "s_endpgm"]
    bench.launch(bench.assemble(body), memory_of(data), SGPRS, 1, workgroup=100)
    np.testing.assert_array_equal(data, np.arange(128) < 100)


def test_work_item_and_workgroup_ids(bench: Bench) -> None:
    program = bench.assemble([
        "s_mul_i32 s5, s83, 6", "s_mul_i32 s6, s82, 2", "s_add_u32 s5, s5, s6",
        "s_add_u32 s5, s5, s81", "s_lshl_b32 s5, s5, 6",  # 16 work-items a workgroup
        "v_mov_b32_e32 v2, v0", "v_mbcnt_lo_u32_b32 v3, -1, 0", "v_lshlrev_b32_e32 v3, 2, v3",
        "v_add_u32_e32 v3, s5, v3", "global_store_dword v3, v2, s[0:1]", "s_endpgm"])
    data = np.zeros(16 * 12, np.uint32)
    core.launch(bench.program(program), memory_of(data), np.arange(12, dtype=np.uint32),
                grid=(2, 3, 2), workgroup=(4, 2, 2), user_sgprs=SGPRS, group_id_sgprs=(81, 82, 83),
                work_item_dimensions=3, lds_bytes=0, poison=1, instruction_budget=10000)
    expected = [x | y << 10 | z << 20 for z in range(2) for y in range(2) for x in range(4)]
    np.testing.assert_array_equal(data, np.tile(expected, 12))


@pytest.mark.parametrize(("body", "address", "lane", "write"), [
    (["v_lshlrev_b32_e32 v2, 4, v0", "global_load_dword v3, v2, s[0:1]"], BASE + 512, 32, False),
    (["v_lshlrev_b32_e32 v2, 3, v0", "global_store_dword v2, v3, s[0:1] offset:12"],
     BASE + 516, 63, True),
    (["v_mov_b32_e32 v2, 0", "global_load_dwordx4 v[4:7], v2, s[0:1] offset:500"],
     BASE + 500, 0, False),
    (["s_load_dwordx2 s[4:5], s[0:1], 0x1fc"], BASE + 508, 0, False)])
def test_access_outside_every_region(bench: Bench, body: list[str], address: int, lane: int,
                                     write: bool) -> None:
    data = np.zeros(128, np.uint32)
    program = bench.assemble([*body, "s_endpgm"])
    with pytest.raises(core.FaultError, match="nearest is 'data'") as caught:
        bench.launch(program, memory_of(data), SGPRS, 1)
    kind, message, index, workgroup, found_lane, found_address = caught.value.args
    assert (kind, index, workgroup, found_lane) == ("memory", len(body) - 1, 0, lane)
    assert found_address == address
    assert ("store" in message) == write


def test_read_only_region(bench: Bench) -> None:
    data = np.zeros(128, np.uint32)
    memory = core.Memory([("kernarg", BASE, data.view(np.uint8), False)])
    program = bench.assemble(["v_mov_b32_e32 v2, 0", "global_store_dword v2, v2, s[0:1]",
                              "s_endpgm"])
    with pytest.raises(core.FaultError, match="'kernarg' is read-only"):
        bench.launch(program, memory, SGPRS, 1)


def test_regions_are_found_among_many(bench: Bench) -> None:
    rng = np.random.default_rng(1)
    arrays = [rng.integers(0, 1 << 32, 64, dtype=np.uint32) for _ in range(40)]
    memory = core.Memory([(f"r{i}", BASE + 256 * i, a.view(np.uint8), True)
                          for i, a in enumerate(arrays)])
    body = ["v_mul_u32_u24_e32 v2, 160, v0", "global_load_dword v3, v2, s[0:1]",
            "s_waitcnt vmcnt(0)", "v_lshlrev_b32_e32 v4, 2, v0",
            "global_store_dword v4, v3, s[0:1]", "s_endpgm"]
    expected = np.concatenate(arrays)[40 * np.arange(64)]
    bench.launch(bench.assemble(body), memory, SGPRS, 1)
    np.testing.assert_array_equal(arrays[0], expected)


@pytest.mark.parametrize(("regions", "what"), [
    ([(BASE, 64), (BASE + 32, 64)], "overlap"), ([((1 << 64) - 32, 64)], "wraps around")])
def test_impossible_regions(regions: list[tuple[int, int]], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        core.Memory([("r", base, np.zeros(size, np.uint8), True) for base, size in regions])


def test_budget_stops_an_endless_loop(bench: Bench) -> None:
    program = bench.assemble(["top:", "s_nop 0", "s_branch top", "s_endpgm"])
    with pytest.raises(core.FaultError, match="budget of 5000") as caught:
        bench.launch(program, core.Memory([]), [], 3, budget=5000)
    assert caught.value.args[0] == "budget"


def test_budget_counts_every_wave_instruction(bench: Bench) -> None:
    program = bench.assemble(["s_nop 0", "s_nop 0", "s_endpgm"])
    assert bench.launch(program, core.Memory([]), [], 5, workgroup=256, budget=60) == 60
    with pytest.raises(core.FaultError):
        bench.launch(program, core.Memory([]), [], 5, workgroup=256, budget=59)


def test_running_off_the_end(bench: Bench) -> None:
    with pytest.raises(core.FaultError, match="past the last instruction") as caught:
        bench.launch(bench.assemble(["s_nop 0"]), core.Memory([]), [], 1)
    assert caught.value.args[0] == "illegal"


MODES = ["SRC0", "SRC1", "SRC2", "DST"]


@pytest.mark.parametrize("mode", MODES)
def test_gpr_indexing(bench: Bench, mode: str) -> None:
    """v_mad_u32_u24 v10, v2, v4, v6 with one operand moved by 3."""
    registers = {2: 3, 5: 5, 4: 7, 7: 11, 6: 13, 9: 17}
    vector = {n: np.full(64, v, np.uint32) for n, v in registers.items()}
    body = ["v_mov_b32_e32 v10, 1", "v_mov_b32_e32 v13, 2", f"s_set_gpr_idx_on s4, gpr_idx({mode})",
            "v_mad_u32_u24 v10, v2, v4, v6", "s_set_gpr_idx_off",
            "v_mov_b32_e32 v20, v10", "v_mov_b32_e32 v21, v13"]
    out = bench.run(body, vector=vector, scalar={4: 0x103}, vector_out=[20, 21])
    r = dict(registers)
    moved = {"SRC0": r[5] * r[4] + r[6], "SRC1": r[2] * r[7] + r[6], "SRC2": r[2] * r[4] + r[9],
             "DST": r[2] * r[4] + r[6]}[mode]
    expected = (1, moved) if mode == "DST" else (moved, 2)
    assert (out.vector[20][0], out.vector[21][0]) == expected


def test_gpr_indexing_of_writelane_and_change_of_index(bench: Bench) -> None:
    body = [*(f"v_mov_b32_e32 v{n}, 0" for n in range(10, 16)),
            "s_set_gpr_idx_on 2, gpr_idx(DST)", "v_writelane_b32 v10, 7, 5",
            "s_set_gpr_idx_idx 4", "v_writelane_b32 v10, 8, 6",
            "s_set_gpr_idx_mode gpr_idx(SRC0)", "v_writelane_b32 v10, 9, 7", "s_set_gpr_idx_off",
            "v_writelane_b32 v10, 6, 8"]
    out = bench.run(body, vector_out=[10, 12, 14], scalar_out=[124])
    expected = np.zeros((3, 64), np.uint32)
    expected[0, 7], expected[0, 8], expected[1, 5], expected[2, 6] = 9, 6, 7, 8
    np.testing.assert_array_equal(np.stack(list(out.vector.values())), expected)
    assert out.scalar[124][0] & 0xF0FF == 0x1004


@pytest.mark.parametrize("mode", MODES)
def test_gpr_index_out_of_range_is_a_fault(bench: Bench, mode: str) -> None:
    body = [f"s_set_gpr_idx_on s4, gpr_idx({mode})", "v_mad_u32_u24 v10, v10, v10, v10",
            "s_set_gpr_idx_off"]
    bench.run(body, scalar={4: bench.vgprs - 11})
    with pytest.raises(core.FaultError, match="leaves the 64 VGPRs"):
        bench.run(body, scalar={4: bench.vgprs - 10})


def test_undefined_state_depends_on_the_poison_only(bench: Bench) -> None:
    def state(poison: int) -> npt.NDArray[np.uint32]:
        out = bench.run(["v_accvgpr_read_b32 v20, a3", "v_lshlrev_b32_e32 v4, 2, v0",
                         "ds_read_b32 v21, v4", "s_waitcnt lgkmcnt(0)"], waves=3,
                        vector_out=[20, 21, 30, 31], scalar_out=[106, 124], lds_bytes=512,
                        poison=poison)
        scalars = np.repeat(np.stack(list(out.scalar.values())), 64, axis=1)
        return np.concatenate([np.stack(list(out.vector.values())), scalars])

    first, again, other = state(3), state(3), state(4)
    np.testing.assert_array_equal(first, again)
    assert (first != other).mean() > 0.999
    # Every register, wave and lane has its own pattern.
    assert len(np.unique(first[:4])) == first[:4].size


@pytest.mark.parametrize(("change", "what"), [
    ({"workgroup": (2048, 1, 1)}, "workgroup dimension"), ({"workgroup": (64, 64, 1)}, "1024"),
    ({"workgroup": (0, 1, 1)}, "positive"), ({"grid": (0, 1, 1)}, "positive"),
    ({"grid": (1 << 20, 1 << 20, 1)}, "workgroups"), ({"lds_bytes": 65537}, "64 KiB"),
    ({"user_sgprs": [0] * 103}, "user SGPRs"), ({"group_id_sgprs": (102, -1, -1)}, "workgroup id"),
    ({"work_item_dimensions": 4}, "dimensions")])
def test_impossible_launches(bench: Bench, change: dict[str, Any], what: str) -> None:
    arguments: dict[str, Any] = {
        "grid": (1, 1, 1), "workgroup": (64, 1, 1), "user_sgprs": [],
        "group_id_sgprs": (-1, -1, -1), "work_item_dimensions": 1, "lds_bytes": 0, "poison": 0,
        "instruction_budget": 10} | change
    program = bench.program(bench.assemble(["s_endpgm"]))
    with pytest.raises(ValueError, match=what):
        core.launch(program, core.Memory([]), np.zeros(1, np.uint32), **arguments)


def test_workgroup_outside_the_grid(bench: Bench) -> None:
    program = bench.program(bench.assemble(["s_endpgm"]))
    with pytest.raises(ValueError, match="outside the grid"):
        core.launch(program, core.Memory([]), np.array([1], np.uint32), grid=(1, 1, 1),
                    workgroup=(64, 1, 1), user_sgprs=[], group_id_sgprs=(-1, -1, -1),
                    work_item_dimensions=1, lds_bytes=0, poison=0, instruction_budget=10)


# Lane strides in bytes -> LDS data cycles of 64 lanes, from the bank rule: 32 banks of 4 bytes.
@pytest.mark.parametrize(("text", "stride", "cycles"), [
    ("ds_read_b32 v4, v2", 4, 2), ("ds_read_b32 v4, v2", 0, 2), ("ds_read_b32 v4, v2", 8, 4),
    ("ds_read_b32 v4, v2", 128, 64), ("ds_write_b32 v2, v4", 12, 2),
    ("ds_read_b64 v[4:5], v2", 8, 4), ("ds_read_b64 v[4:5], v2", 16, 8),
    ("ds_read_b128 v[4:7], v2", 16, 8), ("ds_write_b128 v2, v[4:7]", 16, 8),
    ("ds_write_b128 v2, v[4:7]", 128, 64), ("ds_read2_b32 v[4:5], v2 offset1:64", 4, 4)])
def test_lds_cycles_in_the_trace(bench: Bench, text: str, stride: int, cycles: int) -> None:
    program = bench.assemble([f"v_mul_u32_u24_e32 v2, {stride}, v0", text, "s_endpgm"])
    trace = core.Trace()
    core.launch(bench.program(program), core.Memory([]), np.zeros(1, np.uint32), grid=(1, 1, 1),
                workgroup=(64, 1, 1), user_sgprs=[], group_id_sgprs=(-1, -1, -1),
                work_item_dimensions=1, lds_bytes=65536, poison=0, instruction_budget=10,
                trace=trace)
    (instruction, lines, found, moved), = trace.accesses(0)
    words = 4 if "128" in text else 2 if "b64" in text or "read2" in text else 1
    assert (instruction, lines, found, moved) == (1, 0, cycles, 256 * words)


def test_trace_records_lines_and_issues(bench: Bench) -> None:
    data = np.zeros(4096, np.uint32)
    program = bench.assemble([
        "s_mov_b32 s4, 3", "top:", "v_lshlrev_b32_e32 v2, 4, v0",
        "global_load_dword v3, v2, s[0:1]",
        "s_sub_u32 s4, s4, 1", "s_cmp_lg_u32 s4, 0", "s_cbranch_scc1 top", "s_endpgm"])
    trace = core.Trace()
    core.launch(bench.program(program), memory_of(data), np.array([1, 0], np.uint32),
                grid=(2, 1, 1), workgroup=(128, 1, 1), user_sgprs=SGPRS,
                group_id_sgprs=(80, -1, -1), work_item_dimensions=1, lds_bytes=0, poison=0,
                instruction_budget=1000, trace=trace)
    assert (trace.waves_per_workgroup, trace.wave_count) == (2, 4)
    np.testing.assert_array_equal(trace.issue_counts(len(program)), [4, 12, 12, 12, 12, 12, 4])
    assert trace.entry_count == 68
    # 64 lanes 16 bytes apart touch 8 lines of 128 bytes.
    assert trace.accesses(3) == [(2, 8, 0, 256)] * 3


def test_signals_interrupt_a_launch(bench: Bench) -> None:
    """Ctrl-C works during a launch: the core looks for Python signals every few million steps."""
    def stop(number: int, frame: object) -> None:
        raise InterruptedError

    program = bench.assemble(["top:", "s_nop 0", "s_branch top", "s_endpgm"])
    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(InterruptedError):
            bench.launch(program, core.Memory([]), [], 1, budget=1 << 60)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
