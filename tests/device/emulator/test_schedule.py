"""Workgroups on several host threads and workgroups that depend on one another."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import asmevo_core as core
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.device.emulator.lower import lower
from tests.device.emulator.conftest import U32, assemble

BASE = 0x7F00_0000_0000
THREADS = [1, 2, 3, 4]
# s[0:1] points to the buffer, s8 is the workgroup, v1 its lane's dword of 64 per workgroup.
OWN_DWORD = ["s_lshl_b32 s9, s8, 8", "v_lshl_add_u32 v1, v0, 2, s9"]
END = ["s_waitcnt vmcnt(0) lgkmcnt(0)", "s_endpgm"]
SPIN = ["spin:", "s_sleep 1", "global_load_dword v3, v2, s[0:1]", "s_waitcnt vmcnt(0)",
        "v_readfirstlane_b32 s10, v3", "s_cmp_eq_u32 s10, 0", "s_cbranch_scc1 spin"]


def delay(turns: int) -> list[str]:
    """A loop of some hundred instructions a turn."""
    return [f"s_movk_i32 s11, {turns}", "delay:", *["s_nop 0"] * 96, "s_sub_u32 s11, s11, 1",
            "s_cmp_lg_u32 s11, 0", "s_cbranch_scc1 delay"]


@dataclass(slots=True)
class Grid:
    """A one-dimensional launch over one writable buffer."""

    body: Sequence[str]
    groups: int
    data: U32
    workgroup: int = 64

    def run(self, threads: int = 1, order: Sequence[int] | None = None, *, resident: int = 16,
            budget: int = 60_000_000, seconds: float = 0.0, poison: int = 5,
            lds_bytes: int = 0, prompt: bool = False) -> U32:
        data = self.data.copy()
        memory = core.Memory([("data", BASE, data.view(np.uint8), True)])
        self.launch(memory, threads, order, resident, budget, seconds, poison, lds_bytes,
                    prompt)
        return data

    def launch(self, memory: core.Memory, threads: int = 1, order: Sequence[int] | None = None,
               resident: int = 16, budget: int = 60_000_000, seconds: float = 0.0,
               poison: int = 5, lds_bytes: int = 0, prompt: bool = False) -> int:
        program = core.Program(lower(assemble([*OWN_DWORD, *self.body, *END])), vgprs=16, agprs=0,
                               mode=0xF0)
        ids = np.array(range(self.groups) if order is None else order, np.uint32)
        return core.launch(
            program, memory, ids, grid=(self.groups, 1, 1), workgroup=(self.workgroup, 1, 1),
            user_sgprs=[BASE & 0xFFFFFFFF, BASE >> 32], group_id_sgprs=(8, -1, -1),
            work_item_dimensions=1, lds_bytes=lds_bytes, poison=poison, instruction_budget=budget,
            resident=resident, threads=threads, seconds=seconds, prompt_returns=prompt)

    def fault(self, threads: int, *, resident: int = 16, budget: int = 60_000_000,
              seconds: float = 0.0) -> tuple[object, ...]:
        with pytest.raises(core.FaultError) as caught:
            self.run(threads, resident=resident, budget=budget, seconds=seconds)
        return caught.value.args

    def same(self, resident: int = 16) -> U32:
        """The result, which may not depend on the number of threads."""
        results = [self.run(threads, resident=resident) for threads in THREADS]
        for result in results[1:]:
            np.testing.assert_array_equal(result, results[0])
        return results[0]


@pytest.mark.parametrize("threads", THREADS)
def test_independent_workgroups(threads: int) -> None:
    grid = Grid(["global_load_dword v2, v1, s[0:1]", "s_waitcnt vmcnt(0)",
                 "v_add_u32_e32 v2, s8, v2", "global_store_dword v1, v2, s[0:1]"], 300,
                np.arange(300 * 64, dtype=np.uint32))
    expected = np.arange(300 * 64) + np.arange(300 * 64) // 64
    np.testing.assert_array_equal(grid.run(threads=threads), expected)


@pytest.mark.parametrize("descending", [False, True])
def test_float_atomics_add_up_in_launch_order(descending: bool) -> None:
    """Workgroups take longer the earlier they are, and each adds another magnitude."""
    groups = 40
    values = np.random.default_rng(1).normal(size=groups).astype(np.float32)
    values *= np.float32(10) ** np.arange(groups, dtype=np.float32).__mod__(7)
    data = np.concatenate([np.zeros(64, np.float32), values]).view(np.uint32)
    body = [f"s_sub_u32 s11, {groups}, s8", "delay:", *["s_nop 0"] * 50, "s_sub_u32 s11, s11, 1",
            "s_cmp_lg_u32 s11, 0", "s_cbranch_scc1 delay",
            "s_lshl_b32 s12, s8, 2", "s_add_u32 s12, s12, 256", "s_load_dword s13, s[0:1], s12",
            "s_waitcnt lgkmcnt(0)", "v_mov_b32_e32 v3, s13", "v_lshlrev_b32_e32 v2, 2, v0",
            "global_atomic_add_f32 v2, v3, s[0:1]"]
    order = list(range(groups))[::-1] if descending else list(range(groups))
    total = np.float32(0)
    for group in order:
        total += values[group]
    for threads in THREADS:
        found = Grid(body, groups, data).run(threads=threads, order=order)
        np.testing.assert_array_equal(found[:64], np.full(64, total).view(np.uint32))


def test_workgroups_that_clear_and_then_add_run_together() -> None:
    """What AITER's split-K kernels do: each workgroup clears a part, all add to all of it."""
    groups = 8
    body = ["v_mov_b32_e32 v2, 0", "global_store_dword v1, v2, s[0:1]", *delay(6),
            "v_mov_b32_e32 v3, 1", "v_lshlrev_b32_e32 v2, 2, v0",
            *[f"global_atomic_add v2, v3, s[0:1] offset:{256 * k}" for k in range(groups)]]
    grid = Grid(body, groups, np.full(64 * groups, 99, np.uint32))
    np.testing.assert_array_equal(grid.same(), np.full(64 * groups, groups))
    # One after another, the last to come clears what the others added.
    alone = grid.same(resident=1)
    np.testing.assert_array_equal(alone.reshape(groups, 64)[:, 0], np.arange(groups, 0, -1))


def test_a_workgroup_waits_for_a_later_one() -> None:
    body = ["v_mov_b32_e32 v2, 0x1000", "s_cmp_lg_u32 s8, 0", "s_cbranch_scc1 set", *SPIN,
            "v_mov_b32_e32 v4, 7", "global_store_dword v1, v4, s[0:1]", "s_branch out", "set:",
            *delay(30), "v_mov_b32_e32 v4, 1", "global_store_dword v2, v4, s[0:1]", "out:"]
    grid = Grid(body, 2, np.zeros(2048, np.uint32))
    assert [grid.run(threads)[0] for threads in (1, 2)] == [7, 7]
    kind, message, *_ = grid.fault(1, resident=1, budget=10_000_000)
    assert (kind, message) == (
        "budget", "the launch exceeded its budget of 10000000 wave-instructions")


@pytest.mark.parametrize("budget", [20_000, 500_000, 7_000_000])
def test_that_one_waits_is_found_out_with_any_budget(budget: int) -> None:
    """The first waits for the last, in both orders. Budgets above the patience are tested above."""
    body = ["v_mov_b32_e32 v2, 0x1000", "s_cmp_eq_u32 s8, 0", "s_cbranch_scc1 spin",
            "s_cmp_eq_u32 s8, 3", "s_cbranch_scc0 out", "v_mov_b32_e32 v4, 1",
            "global_store_dword v2, v4, s[0:1]", "s_branch out", *SPIN,
            "v_mov_b32_e32 v4, 7", "global_store_dword v1, v4, s[0:1]", "out:"]
    grid = Grid(body, 4, np.zeros(2048, np.uint32))
    for threads in THREADS:
        for order in ([0, 1, 2, 3], [3, 2, 1, 0]):
            assert grid.run(threads, order, budget=budget)[0] == 7


def test_tickets_are_the_same_on_any_number_of_threads() -> None:
    body = ["v_mov_b32_e32 v2, 0x4000", "v_mov_b32_e32 v3, 1", "s_mov_b64 exec, 1",
            "global_atomic_add v4, v2, v3, s[0:1] sc0", "s_waitcnt vmcnt(0)",
            "global_store_dword v1, v4, s[0:1]"]
    found = Grid(body, 30, np.zeros(0x1100, np.uint32)).same()
    assert sorted(found[:30 * 64:64].tolist()) == list(range(30))


def test_memory_is_put_back_before_a_launch_starts_over() -> None:
    """Every workgroup increments its dwords once, though the last one depends on the first."""
    body = ["global_load_dword v2, v1, s[0:1]", "s_waitcnt vmcnt(0)", "v_add_u32_e32 v2, 1, v2",
            "global_store_dword v1, v2, s[0:1]", "s_cmp_lg_u32 s8, 19", "s_cbranch_scc1 out",
            "v_mov_b32_e32 v3, 0", "global_load_dword v4, v3, s[0:1]", "out:"]
    data = np.arange(20 * 64, dtype=np.uint32)
    np.testing.assert_array_equal(Grid(body, 20, data).same(), data + 1)


def test_the_first_fault_in_launch_order_is_reported() -> None:
    """Workgroup 5 faults at once, workgroup 2 after a while."""
    wild = ["v_mov_b32_e32 v3, -1", "global_store_dword v3, v3, s[0:1]"]
    body = ["s_cmp_eq_u32 s8, 5", "s_cbranch_scc1 early", "s_cmp_eq_u32 s8, 2",
            "s_cbranch_scc0 out", *delay(100), *wild, "s_branch out", "early:", *wild, "out:"]
    grid = Grid(body, 20, np.zeros(20 * 64, np.uint32))
    faults = {grid.fault(threads) for threads in THREADS}
    (kind, _, _, workgroup, lane, address), = faults
    assert (kind, workgroup, lane, address) == ("memory", 2, 0, BASE + 0xFFFFFFFF)


def test_the_budget_is_that_of_the_whole_launch() -> None:
    grid = Grid(delay(10), 20, np.zeros(64, np.uint32))
    memory = core.Memory([("data", BASE, grid.data.view(np.uint8), True)])
    used = {grid.launch(memory, threads) for threads in THREADS}
    assert len(used) == 1
    needed = used.pop()
    for threads in THREADS:
        grid.run(threads=threads, budget=needed)
    faults = {grid.fault(threads, budget=needed - 1) for threads in THREADS}
    (kind, _, _, workgroup, *_), = faults
    assert (kind, workgroup) == ("budget", 19)


@pytest.mark.parametrize("threads", [1, 2])
def test_watchdog(threads: int) -> None:
    grid = Grid(["top:", "s_branch top"], 4, np.zeros(64, np.uint32))
    kind, message, *_ = grid.fault(threads, seconds=0.05, budget=1 << 60)
    assert kind == "timeout"
    assert "watchdog" in str(message)


@pytest.mark.parametrize("threads", [1, 2])
def test_signals_interrupt_all_threads(threads: int) -> None:
    grid = Grid(["top:", "s_branch top"], 4, np.zeros(64, np.uint32))
    # A shell starts background processes with SIGINT ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            grid.run(threads=threads, budget=1 << 60, seconds=60)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(("threads", "resident", "what"), [
    (0, 1, "host threads"), (300, 1, "host threads"), (1, 0, "resident")])
def test_impossible_parameters(threads: int, resident: int, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        Grid([], 1, np.zeros(64, np.uint32)).run(threads, resident=resident)


def test_initial_bytes_have_the_size_of_their_region() -> None:
    data = np.zeros(64, np.uint8)
    with pytest.raises(ValueError, match="another size"):
        core.Memory([("data", BASE, data, True)], [np.zeros(32, np.uint8)])
    with pytest.raises(ValueError, match="for each region"):
        core.Memory([("data", BASE, data, True)], [None, None])


# Dwords of a small array that all workgroups share: their own, each other's, partly in one line.
PLACES = st.sampled_from(["v1", "v5", "v6", "v7"])
ACTIONS = st.one_of(
    PLACES.map(lambda v: [f"global_load_dword v4, {v}, s[0:1]", "s_waitcnt vmcnt(0)"]),
    PLACES.map(lambda v: [f"global_store_dword {v}, v4, s[0:1]"]),
    PLACES.map(lambda v: [f"global_store_dwordx2 {v}, v[4:5], s[0:1]"]),
    PLACES.map(lambda v: [f"global_atomic_add_f32 {v}, v4, s[0:1]"]),
    PLACES.map(lambda v: [f"global_atomic_swap v4, {v}, v4, s[0:1] sc0", "s_waitcnt vmcnt(0)"]),
    st.just(["v_add_u32_e32 v4, s8, v4"]), st.just(["s_nop 0"] * 70), st.just(["s_barrier"]))


@given(st.lists(ACTIONS, min_size=1, max_size=8), st.integers(2, 12), st.sampled_from([64, 128]),
       st.integers(0, 3))
@settings(max_examples=150, deadline=None)
def test_any_accesses_are_the_same_on_any_number_of_threads(
        actions: list[list[str]], groups: int, workgroup: int, special: int) -> None:
    # Long enough for several threads to be at work at the same time.
    body = [*delay(40), "v_mov_b32_e32 v4, s8",
            "v_add_u32_e32 v5, 0x100, v1",  # the next workgroup's
            "v_mov_b32_e32 v6, 64", f"s_cmp_eq_u32 s8, {special}", "s_cselect_b32 s12, 0, 0x600",
            "v_add_u32_e32 v7, s12, v1"]  # far away but for one workgroup
    body += [text for action in actions for text in [*action, *["s_nop 0"] * 30]]
    data = np.random.default_rng(0).normal(size=4096).astype(np.float32).view(np.uint32)
    Grid(body, groups, data, workgroup).same()


def test_wide_accesses_side_by_side() -> None:
    data = np.arange(64 * 4 * 32, dtype=np.uint32)
    body = ["v_lshlrev_b32_e32 v2, 4, v0", "s_lshl_b32 s12, s8, 10", "v_add_u32_e32 v2, s12, v2",
            "global_load_dwordx4 v[4:7], v2, s[0:1]", "s_waitcnt vmcnt(0)",
            *[f"v_add_u32_e32 v{n}, 5, v{n}" for n in range(4, 8)],
            "global_store_dwordx4 v2, v[4:7], s[0:1]"]
    grid = Grid(body, 32, data)
    np.testing.assert_array_equal(grid.same(resident=1), data + 5)


def test_waves_of_a_launch_that_relies_on_time_wait_for_loads_to_lds_in_step() -> None:
    """Each wave reads what its neighbour loaded some 30 instructions ago, after a wait of its own
    but no barrier: AITER's i8gemm 192x128."""
    data = np.arange(512, dtype=np.uint32)
    body = ["s_mov_b32 s4, s0", "s_mov_b32 s5, s1", "s_movk_i32 s6, 0x1000",
            "s_mov_b32 s7, 0x20000", "v_lshlrev_b32_e32 v2, 2, v0",
            # 256 bytes a wave: M0 is the wave's part of LDS.
            "v_and_b32_e32 v3, 0xc0, v0", "v_lshlrev_b32_e32 v3, 2, v3",
            "v_readfirstlane_b32 s12, v3", "s_mov_b32 m0, s12",
            "buffer_load_dword v2, s[4:7], 0 offen lds", *["s_nop 0"] * 30,
            "s_waitcnt vmcnt(0)", "v_xor_b32_e32 v4, 0x100, v2", "ds_read_b32 v5, v4",
            "s_waitcnt lgkmcnt(0)", "global_store_dword v2, v5, s[0:1] offset:1024"]
    grid = Grid(body, 1, data, workgroup=256)
    neighbours = np.arange(256) ^ 64
    for poison in range(6):
        found = grid.run(poison=poison, lds_bytes=1024, prompt=True)
        np.testing.assert_array_equal(found[256:], neighbours)
    strict = [grid.run(poison=poison, lds_bytes=1024)[256:] for poison in range(6)]
    assert any((found != neighbours).any() for found in strict)
