"""Micro traces whose cycles follow from the parameter table by hand."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import asmevo_core
import numpy as np
import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.device.device import UnsupportedError
from asmevo.device.emulator.residency import ResidencyError, residency
from asmevo.device.emulator.sampling import Sample
from asmevo.device.emulator.timing import TimingModel
from asmevo.device.emulator.timing_result import STALL_CAUSES, TimingResult
from asmevo.isa.program import Program
from asmevo.profile.profile import MemoryLevel, MemoryProfile, StallCause, WaveProfile

CONF = Path(__file__).parents[3] / "conf"


def load_model(name: str) -> TimingModel:
    with initialize_config_dir(str(CONF / "device"), version_base="1.3"):
        model = instantiate(compose(name).timing)
    assert isinstance(model, TimingModel)
    return model


def without_code_misses(model: TimingModel) -> TimingModel:
    """Hand-made traces are shorter than a miss of the instruction cache; that has its own tests."""
    parameters = model.parameters
    return TimingModel(replace(
        parameters, issue=replace(parameters.issue, code_miss=0),
        launch=replace(parameters.launch, overhead_ns=0, wave_interval=0)), model.sampling)


MODEL = without_code_misses(load_model("emulator"))
P = MODEL.parameters
TURN = 4

VALU = "v_add_f32_e32 v0, v1, v2"
TRANS = "v_exp_f32_e32 v3, v4"
SALU = "s_add_u32 s0, s1, s2"
LOAD = "buffer_load_dword v5, v6, s[8:11], 0 offen"
LOAD4 = "buffer_load_dwordx4 v[8:11], v6, s[8:11], 0 offen"
STORE = "buffer_store_dword v5, v6, s[8:11], 0 offen"
SMEM = "s_load_dword s4, s[6:7], 0x0"
DS_READ = "ds_read_b32 v7, v8"
DS_WRITE = "ds_write_b32 v7, v8"
BARRIER = "s_barrier"
END = "s_endpgm"
LINES = itertools.count(1000)

Access = tuple[list[int], int, int]  # lines, LDS data cycles, bytes
Row = tuple[int, list[tuple[int, int]], list[Access]]


@dataclass
class Wave:
    """Instructions as executed; a line of the program appears once however often it runs."""

    steps: list[tuple[str, Access | None]] = field(default_factory=list)

    def run(self, *texts: str) -> Wave:
        self.steps += [(text, None) for text in texts]
        return self

    def touch(self, text: str, lines: Sequence[int], size: int) -> Wave:
        self.steps.append((text, (list(lines), 0, size)))
        return self

    def lds(self, text: str, cycles: int, size: int = 256) -> Wave:
        self.steps.append((text, ([], cycles, size)))
        return self


def straight(steps: Sequence[str]) -> Program:
    """A program with every instruction at an 8-byte boundary, so that fetching costs nothing."""
    return Program.from_disassembly([(8 * i, 4, text) for i, text in enumerate(steps)], {})


def one_unit(traced: int, workgroups: int = 1, model: TimingModel = MODEL) -> Sample:
    """A compute unit that runs the traced workgroups in a launch of so many."""
    machine = model.parameters.machine
    in_xcd = min(-(-workgroups // machine.xcds), machine.compute_units_per_xcd)
    busy = max(in_xcd, min(workgroups, machine.compute_units))
    return Sample(0, 1, tuple(range(traced)), in_xcd, busy)


def time_waves(waves: Sequence[Wave], *, waves_per_workgroup: int | None = None, vgprs: int = 32,
               lds_bytes: int = 0, workgroups: int = 1, model: TimingModel = MODEL,
               program: Program | None = None) -> TimingResult:
    """Time waves that all run to the end of one program made of their distinct steps in order."""
    per_group = waves_per_workgroup or len(waves)
    longest = max(waves, key=lambda w: len(w.steps)).steps
    program = program or straight([text for text, _ in longest])
    rows: list[Row] = []
    for number, wave in enumerate(waves):
        entries: list[tuple[int, int]] = []
        accesses: list[Access] = []
        for index, (_, access) in enumerate(wave.steps):
            entries.append((index, len(accesses) if access else -1))
            if access:
                accesses.append(access)
        rows.append((number // per_group, entries, accesses))
    trace = asmevo_core.trace_from_waves(per_group, rows)
    sample = one_unit(len(waves) // per_group, workgroups, model)
    return model.run(program, trace, sample, vgprs=vgprs, agprs=0, sgprs=32, lds_bytes=lds_bytes,
                     workgroup_waves=per_group)


def cycles(wave: Wave) -> int:
    return time_waves([wave]).cycles


def stalled(result: TimingResult, cause: StallCause) -> int:
    return int(result.stalls[STALL_CAUSES.index(cause)].sum())


def fresh(count: int = 1) -> list[int]:
    return list(itertools.islice(LINES, count))


def test_a_valu_stream_costs_four_clk_each() -> None:
    assert cycles(Wave().run(*[VALU] * 100, END)) == 100 * 4 + TURN


def test_transcendentals_take_the_alu_for_sixteen_clk() -> None:
    result = time_waves([Wave().run(*[TRANS] * 10, VALU, END)])
    assert result.cycles == 10 * 16 + 4 + TURN
    assert stalled(result, StallCause.UNIT_BUSY) == 10 * 12


def test_integer_multiplies_run_at_a_quarter_of_the_rate() -> None:
    """Charged like an addition, they would make strength reduction look like a loss."""
    add = cycles(Wave().run(*["v_add_u32_e64 v1, v2, v3"] * 16, VALU, END))
    multiply = cycles(Wave().run(*["v_mul_lo_u32 v1, v2, v3"] * 16, VALU, END))
    assert multiply - add == 16 * (P.issue.integer_multiply - P.issue.valu)


def test_the_last_transcendental_is_waited_for() -> None:
    assert cycles(Wave().run(TRANS, END)) == 16


def test_scalar_work_of_one_wave_overlaps_valu_work_of_another() -> None:
    """Waves 0 and 4 share SIMD 0; one turn issues one VALU and one SALU instruction."""
    program = straight([VALU] * 50 + [SALU] * 50 + [END])
    vector = [(i, -1) for i in [*range(50), 100]]
    scalar = [(i, -1) for i in range(50, 101)]
    idle = [(100, -1)]
    trace = asmevo_core.trace_from_waves(
        5, [(0, entries, []) for entries in (vector, idle, idle, idle, scalar)])
    result = MODEL.run(program, trace, one_unit(1), vgprs=32, agprs=0, sgprs=32, lds_bytes=0,
                       workgroup_waves=5)
    assert result.cycles == 50 * 4 + TURN
    assert stalled(result, StallCause.UNIT_BUSY) == 0


@pytest.mark.parametrize(("waves", "expected"), [(1, 400), (4, 400), (8, 800), (16, 1600)])
def test_waves_share_the_four_simds(waves: int, expected: int) -> None:
    result = time_waves([Wave().run(*[VALU] * 100, END) for _ in range(waves)])
    # The last SIMD has its first turn at clk 3; ends need no port, so they overlap.
    assert expected + TURN <= result.cycles <= expected + TURN + 3
    assert result.issued.tolist() == [waves] * 101


def test_a_wave_waiting_for_memory_leaves_the_alu_to_another() -> None:
    def mixed() -> Wave:
        return Wave().touch(LOAD, fresh(), 256).run("s_waitcnt vmcnt(0)", *[VALU] * 50, END)

    alone = cycles(mixed())
    together = time_waves([mixed() for _ in range(8)]).cycles
    assert together < 2 * alone
    assert together >= alone + 50 * 4


def test_a_load_then_a_wait_costs_its_latency() -> None:
    wave = Wave().touch(LOAD, fresh(), 128).run("s_waitcnt vmcnt(0)", END)
    result = time_waves([wave])
    assert result.cycles == P.memory.hbm_latency + TURN + TURN
    assert stalled(result, StallCause.VMCNT) == P.memory.hbm_latency - TURN
    assert int(result.stalls[0, 1]) == P.memory.hbm_latency - TURN  # the wait's, not the load's


@pytest.mark.parametrize("hit", ["vl1d", "l2"])
def test_the_second_touch_of_a_line_is_a_cache_hit(hit: str) -> None:
    line = fresh()[0]
    evict = fresh(8 * P.memory.vl1d_bytes // 128 if hit == "l2" else 0)
    before = Wave().touch(LOAD, [line], 128)
    for other in evict:
        before.touch(LOAD, [other], 128)
    before.run("s_waitcnt vmcnt(0)")
    after = Wave([*before.steps]).touch(LOAD, [line], 128).run("s_waitcnt vmcnt(0)", END)
    latency = P.memory.vl1d_latency if hit == "vl1d" else P.memory.l2_latency
    assert cycles(after) - cycles(before.run(END)) == latency + TURN


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=60), st.integers(1, 8))
def test_the_vl1d_replaces_the_least_recently_used_line(lines: list[int], capacity: int) -> None:
    memory = replace(P.memory, vl1d_bytes=128 * capacity)
    cache: OrderedDict[int, None] = OrderedDict()
    seen: set[int] = set()
    expected = TURN
    wave = Wave()
    for line in lines:
        wave.touch(LOAD, [line], 128).run("s_waitcnt vmcnt(0)")
        first = P.memory.l2_latency if line in seen else P.memory.hbm_latency
        expected += TURN + (P.memory.vl1d_latency if line in cache else first)
        seen.add(line)
        cache[line] = None
        cache.move_to_end(line)
        if len(cache) > capacity:
            cache.popitem(last=False)
    result = time_waves([wave.run(END)], model=TimingModel(replace(P, memory=memory)))
    assert result.cycles == expected


def test_a_hit_on_a_line_in_flight_waits_for_the_line() -> None:
    line = fresh()
    wave = Wave().touch(LOAD, line, 128).touch(LOAD, line, 128).run("s_waitcnt vmcnt(0)", END)
    assert cycles(wave) == P.memory.hbm_latency + 2 * TURN


def test_overlapping_loads_cost_one_latency_plus_throughput() -> None:
    wave = Wave()
    for _ in range(8):
        wave.touch(LOAD4, fresh(8), 1024)
    wave.run("s_waitcnt vmcnt(0)", END)
    # Eight instructions of 1,024 bytes at 64 bytes a clk; the last line is looked up 2 clk early.
    assert cycles(wave) == pytest.approx(8 * 16 - 2 + P.memory.hbm_latency + 2 * TURN, abs=TURN)


def test_a_full_device_shares_the_hbm() -> None:
    def many() -> Wave:
        wave = Wave()
        for _ in range(32):
            wave.touch(LOAD4, fresh(8), 1024)
        return wave.run("s_waitcnt vmcnt(0)", END)

    units = P.machine.compute_units
    bytes_per_clk = P.memory.hbm_read_gigabytes_per_second * 1000 / P.machine.clock_mhz / units
    full = time_waves([many()], workgroups=units).cycles
    floor = 32 * 1024 / bytes_per_clk
    assert floor < full < 1.03 * floor + P.memory.hbm_latency + 50
    assert time_waves([many()], workgroups=10 * units).cycles == full


def test_vmcnt_waits_only_for_the_older_load() -> None:
    hit, miss = fresh(2)
    warm = Wave().touch(LOAD, [hit], 128).run("s_waitcnt vmcnt(0)")
    loads = Wave([*warm.steps]).touch(LOAD, [hit], 128).touch(LOAD, [miss], 128)
    result = time_waves([Wave([*loads.steps]).run("s_waitcnt vmcnt(1)", END)])
    assert int(result.stalls[0, 4]) == P.memory.vl1d_latency - 2 * TURN
    result = time_waves([Wave([*loads.steps]).run("s_waitcnt vmcnt(0)", END)])
    assert int(result.stalls[0, 4]) == P.memory.hbm_latency - TURN


def test_vmcnt_returns_in_issue_order() -> None:
    """A hit behind a miss is not back before the miss."""
    hit, miss = fresh(2)
    wave = (Wave().touch(LOAD, [hit], 128).run("s_waitcnt vmcnt(0)")
            .touch(LOAD, [miss], 128).touch(LOAD, [hit], 128).run("s_waitcnt vmcnt(0)", END))
    assert cycles(wave) == 2 * (P.memory.hbm_latency + TURN) + TURN


def test_issue_stalls_when_vmcnt_is_full() -> None:
    wave = Wave()
    for _ in range(64):
        wave.touch(LOAD, fresh(), 128)
    result = time_waves([wave.run(END)])
    # The 64th load must wait for the first: 63 is the counter's maximum.
    assert int(result.stalls[0, 62]) == 0
    assert int(result.stalls[0, 63]) == P.memory.hbm_latency - 63 * TURN


def test_issue_stalls_when_lgkmcnt_is_full() -> None:
    wave = Wave()
    for _ in range(40):
        wave.lds(DS_READ, 8)  # 8 clk of data each: the LDS falls behind issue
    result = time_waves([wave.run(END)])
    lgkm = result.stalls[STALL_CAUSES.index(StallCause.LGKMCNT)]
    # Read n is back at 48 + 8 * (n + 1) and issues at 4 n: the 16th waits for the first at 60.
    assert not lgkm[:15].any()
    assert result.cycles == 48 + 40 * 8
    slow = Wave()
    for _ in range(40):
        slow.lds(DS_READ, 64)
    lgkm = time_waves([slow.run(END)]).stalls[STALL_CAUSES.index(StallCause.LGKMCNT)]
    assert not lgkm[:15].any()
    assert int(lgkm[15]) == 48 + 64 - 15 * TURN
    assert [int(clk) for clk in lgkm[16:40]] == [60] * 24


def test_stores_count_even_when_nothing_waits_for_them() -> None:
    stores = Wave().touch(STORE, fresh(), 128)
    assert cycles(Wave([*stores.steps]).run(END)) == P.memory.store_latency
    waited = cycles(Wave([*stores.steps]).run("s_waitcnt vmcnt(0)", END))
    assert waited == P.memory.store_latency + 2 * TURN


def test_a_later_wait_hides_latency() -> None:
    load = Wave().touch(LOAD, fresh(), 128)
    early = cycles(Wave([*load.steps]).run("s_waitcnt vmcnt(0)", *[VALU] * 20, END))
    late = cycles(Wave([*load.steps]).run(*[VALU] * 20, "s_waitcnt vmcnt(0)", END))
    assert early - late == 20 * 4


@pytest.mark.parametrize("states", [1, 2, 8, 16])
def test_a_nop_costs_its_wait_states(states: int) -> None:
    result = time_waves([Wave().run(f"s_nop {states - 1}", END)])
    assert result.cycles == states * TURN + TURN
    assert stalled(result, StallCause.NOP) == (states - 1) * TURN


def test_scalar_loads_miss_to_hbm_then_hit() -> None:
    line = fresh()
    wave = Wave().touch(SMEM, line, 4).run("s_waitcnt lgkmcnt(0)")
    first = cycles(Wave([*wave.steps]).run(END))
    second = cycles(wave.touch(SMEM, line, 4).run("s_waitcnt lgkmcnt(0)", END))
    assert first == P.memory.hbm_latency + 2 * TURN
    assert second - first == P.memory.sl1d_latency + TURN


def test_a_partial_wait_gains_nothing_from_scalar_loads() -> None:
    """Scalar loads return out of order: lgkmcnt(1) proves nothing about either."""
    hit, miss = fresh(2)
    warm = Wave().touch(SMEM, [hit], 4).run("s_waitcnt lgkmcnt(0)")
    loads = Wave([*warm.steps]).touch(SMEM, [hit], 4).touch(SMEM, [miss], 4)
    partial, full = (cycles(Wave([*loads.steps]).run(f"s_waitcnt lgkmcnt({n})", END))
                     for n in (1, 0))
    assert partial == full


def test_lds_returns_in_order() -> None:
    reads = Wave().lds(DS_READ, 2).lds(DS_READ, 2)
    result = time_waves([Wave([*reads.steps]).run("s_waitcnt lgkmcnt(1)", END)])
    assert int(result.stalls[1, 2]) == 52 - 2 * TURN
    result = time_waves([Wave([*reads.steps]).run("s_waitcnt lgkmcnt(0)", END)])
    assert int(result.stalls[1, 2]) == 52 - TURN


@pytest.mark.parametrize(("text", "data", "size", "latency"), [
    (DS_READ, 2, 256, 52),               # PYHIP, MT4G: b32 52 clk
    ("ds_read_b128 v[12:15], v8", 8, 1024, 64),  # b128 64 clk
    (DS_READ, 64, 256, 48 + 64),         # 32-way conflict: 64 clk
])
def test_lds_latency_and_conflicts(text: str, data: int, size: int, latency: int) -> None:
    wave = Wave().lds(text, data, size).run("s_waitcnt lgkmcnt(0)", END)
    assert cycles(wave) == latency + 2 * TURN


@pytest.mark.parametrize(("text", "size", "clk"), [
    ("ds_read_b128 v[12:15], v8", 1024, 16),
    (DS_WRITE, 256, 8),
    ("ds_write_b128 v8, v[12:15]", 1024, 20),
])
def test_lds_throughput_of_one_simd(text: str, size: int, clk: int) -> None:
    def stream(count: int) -> int:
        wave = Wave()
        for _ in range(count):
            wave.lds(text, size // 128, size)
        return cycles(wave.run(END))

    assert stream(12) - stream(4) == 8 * clk


def test_two_lds_paths_share_the_banks() -> None:
    """ds_read_b128 takes 16 clk from one SIMD and 8 from two on different paths (PYHIP)."""
    def reads() -> Wave:
        wave = Wave()
        for _ in range(10):
            wave.lds("ds_read_b128 v[12:15], v8", 8, 1024)
        return wave.run(END)

    alone = time_waves([reads()]).cycles
    together = time_waves([reads() for _ in range(4)]).cycles
    assert together - alone == pytest.approx(4 * 10 * 8 - 10 * 16, abs=24)


def test_a_barrier_waits_for_the_slowest_wave() -> None:
    program = straight([VALU] * 100 + [BARRIER, END])
    trace = asmevo_core.trace_from_waves(2, [
        (0, [(i, -1) for i in range(102)], []),
        (0, [(i, -1) for i in range(90, 102)], []),
    ])
    result = MODEL.run(program, trace, one_unit(1), vgprs=32, agprs=0, sgprs=32, lds_bytes=0,
                       workgroup_waves=2)
    release = P.issue.barrier_release
    # The fast wave is on SIMD 1, whose turns are one clk later.
    assert result.cycles == 400 + TURN + release + TURN + 1
    assert stalled(result, StallCause.BARRIER) == release + (90 * 4 + release)


def test_a_barrier_does_not_wait_for_ended_waves() -> None:
    program = straight([BARRIER, END])
    trace = asmevo_core.trace_from_waves(
        2, [(0, [(0, -1), (1, -1)], []), (0, [(1, -1)], [])])
    result = MODEL.run(program, trace, one_unit(1), vgprs=32, agprs=0, sgprs=32, lds_bytes=0,
                       workgroup_waves=2)
    assert result.issued.tolist() == [1, 2]


@pytest.mark.parametrize(("vgprs", "rounds"), [(128, 1), (256, 2), (512, 4)])
def test_registers_limit_how_many_workgroups_overlap(vgprs: int, rounds: int) -> None:
    def wave() -> Wave:
        return Wave().touch(LOAD, fresh(), 128).run("s_waitcnt vmcnt(0)", END)

    result = time_waves([wave() for _ in range(16)], waves_per_workgroup=4, vgprs=vgprs)
    once = P.memory.hbm_latency + 2 * TURN
    assert result.cycles == pytest.approx(rounds * once, abs=100)


def test_lds_limits_how_many_workgroups_overlap() -> None:
    def run(lds_bytes: int) -> int:
        waves = [Wave().touch(LOAD, fresh(), 128).run("s_waitcnt vmcnt(0)", END)
                 for _ in range(4)]
        return time_waves(waves, waves_per_workgroup=1, lds_bytes=lds_bytes).cycles

    assert run(40000) > 3 * run(16384)


@pytest.mark.parametrize(("vgprs", "agprs", "sgprs", "slots"), [
    (64, 0, 96, 8), (65, 0, 96, 7), (128, 0, 96, 4), (224, 0, 96, 2), (128, 128, 96, 2),
    (125, 4, 96, 3), (32, 0, 102, 7), (256, 256, 96, 1),
])
def test_waves_a_simd(vgprs: int, agprs: int, sgprs: int, slots: int) -> None:
    """VGPR rows agree with LLVM's occupancy for gfx942 (getNumWavesPerEUWithNumVGPRs)."""
    assert residency(P.machine, vgprs=vgprs, agprs=agprs, sgprs=sgprs, lds_bytes=0,
                     workgroup_waves=4).slots == slots


@pytest.mark.parametrize(("vgprs", "lds_bytes", "waves"), [
    (256, 0, 9), (520, 0, 1), (32, 65537, 1)])
def test_a_workgroup_that_cannot_fit_is_refused(vgprs: int, lds_bytes: int, waves: int) -> None:
    with pytest.raises(ResidencyError, match="does not fit"):
        residency(P.machine, vgprs=vgprs, agprs=0, sgprs=32, lds_bytes=lds_bytes,
                  workgroup_waves=waves)


@pytest.mark.parametrize("aligned", [True, False])
def test_misaligned_long_instructions_take_five_clk(aligned: bool) -> None:
    long = "v_add_f32_e64 v0, v1, v2"
    rows = [] if aligned else [(0, 4, SALU)]
    start = 4 * len(rows)
    rows += [(start + 8 * i, 8, long) for i in range(400)]
    rows += [(start + 3200, 4, END)]
    program = Program.from_disassembly(rows, {})
    result = time_waves([Wave().run(*[text for _, _, text in rows])], program=program)
    assert result.cycles / 400 == pytest.approx(4 if aligned else 5, rel=0.01)
    assert (stalled(result, StallCause.FETCH) > 0) is not aligned


@pytest.mark.parametrize("taken", [True, False])
def test_branches_cost_what_the_table_says(taken: bool) -> None:
    program = Program.from_disassembly(
        [(0, 4, "s_cbranch_scc0 1"), (4, 4, SALU), (8, 4, END)], {})
    path = [0, 2] if taken else [0, 1, 2]
    trace = asmevo_core.trace_from_waves(1, [(0, [(i, -1) for i in path], [])])
    result = MODEL.run(program, trace, one_unit(1), vgprs=32, agprs=0, sgprs=32, lds_bytes=0,
                       workgroup_waves=1)
    cost = P.issue.branch_taken if taken else P.issue.branch_not_taken + TURN
    assert result.cycles == cost + TURN


def test_microseconds_follow_the_clock() -> None:
    result = time_waves([Wave().run(*[VALU] * 1049, END)])
    assert result.microseconds == result.cycles / 2100


def test_a_profile_repeats_the_matrix() -> None:
    result = time_waves([Wave().touch(LOAD, fresh(), 128).run("s_waitcnt vmcnt(0)", END)])
    program = straight([LOAD, "s_waitcnt vmcnt(0)", END])
    profile = result.profile(program, "d", "emulator:gfx942:mi300x")
    assert profile.source == "modelled"
    assert profile.cycles == result.cycles
    assert [i.issued for i in profile.instructions] == [1, 1, 1]
    assert profile.instructions[1].stalls == {StallCause.VMCNT: P.memory.hbm_latency - TURN}
    assert profile.instructions[0].memory == MemoryProfile(128, {MemoryLevel.HBM: 1})
    assert profile.waves == (WaveProfile(0, 0, 0, 0, 0, 0, result.cycles, 3,
                                         profile.instructions[1].stalls),)


@pytest.mark.parametrize("text", [
    "s_scratch_load_dword s0, s[2:3], s4", "ds_nop", "s_icache_inv",
    "s_sethalt 1", "s_trap 2",
    "ds_gws_barrier v0 gds",
])
def test_what_has_no_timing_is_refused_by_name(text: str) -> None:
    program = Program.from_disassembly([(0, 8, text), (8, 4, END)], {})
    with pytest.raises(UnsupportedError, match=text.split()[0]):
        MODEL.check(program)


def random_wave(kinds: Sequence[str]) -> Wave:
    """Memory steps touch lines of their own, so that no step warms a cache for another."""
    wave = Wave()
    for index, text in enumerate(kinds):
        if text in (LOAD, STORE, LOAD4, SMEM):
            lines = [(index + 1) << 20, ((index + 1) << 20) + 1]
            wave.touch(text, lines, 1024 if text == LOAD4 else 256)
        elif text in (DS_READ, DS_WRITE):
            wave.lds(text, 2)
        else:
            wave.run(text)
    return wave


ANY_STEPS = st.lists(st.sampled_from([
    VALU, TRANS, SALU, LOAD, LOAD4, STORE, SMEM, DS_READ, DS_WRITE, "s_nop 3",
    "s_waitcnt vmcnt(0)", "s_waitcnt vmcnt(2)", "s_waitcnt lgkmcnt(0)"]), min_size=1, max_size=80)
# Long runs without waits fill the counters.
MEMORY_STEPS = st.lists(
    st.sampled_from([LOAD, STORE, SMEM, DS_READ, DS_WRITE, VALU]), min_size=20, max_size=150)
STEPS = ANY_STEPS | MEMORY_STEPS


@settings(max_examples=60, deadline=None)
@given(STEPS, st.integers(1, 12))
def test_the_model_is_deterministic(kinds: list[str], waves: int) -> None:
    first, second = (time_waves([random_wave([*kinds, END]) for _ in range(waves)])
                     for _ in range(2))
    assert first.cycles == second.cycles
    assert np.array_equal(first.issued, second.issued)
    assert np.array_equal(first.stalls, second.stalls)


@settings(max_examples=150, deadline=None)
@given(STEPS, st.data())
def test_removing_an_instruction_never_costs_time(kinds: list[str], data: st.DataObject) -> None:
    whole = random_wave([*kinds, END])
    position = data.draw(st.integers(0, len(kinds) - 1))
    less = Wave(whole.steps[:position] + whole.steps[position + 1:])
    assert cycles(less) <= cycles(whole)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_a_single_wave_is_issuing_or_stalled(kinds: list[str]) -> None:
    """Every clk until the wave ends is an issue turn or charged to a cause."""
    result = time_waves([random_wave([*kinds, END])])
    busy = int(result.issued.sum()) * TURN + int(result.stalls.sum())
    assert busy <= result.cycles
    drained = time_waves([random_wave(
        [*kinds, "s_waitcnt vmcnt(0) lgkmcnt(0)", TRANS, VALU, END])])
    assert int(drained.issued.sum()) * TURN + int(drained.stalls.sum()) == drained.cycles
