"""What compute units share: L2, MALL, HBM, and how lines are shared with units left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import asmevo_core
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.device.emulator.sampling import Sample
from asmevo.device.emulator.timing import TimingModel
from asmevo.device.emulator.timing_result import MEMORY_LEVELS, TimingResult
from asmevo.profile.profile import MemoryLevel
from tests.device.emulator.test_timing import (
    END,
    LOAD,
    LOAD4,
    MODEL,
    STORE,
    TURN,
    P,
    Row,
    Wave,
    fresh,
    straight,
)

LINE = 128
WAIT = "s_waitcnt vmcnt(0)"


def model(**memory: int) -> TimingModel:
    return TimingModel(replace(P, memory=replace(P.memory, **memory)))


def run(groups: list[Wave], *, units: int = 1, of_xcd: int | None = None, busy: int | None = None,
        timing: TimingModel = MODEL, buffers: list[tuple[int, int]] | None = None,
        timeline: int = 0, seconds: float = 0.0) -> TimingResult:
    """Each wave is a workgroup; as many compute units of an XCD run them.

    The longest wave runs all of the program, the others its end.
    """
    longest = max(groups, key=lambda w: len(w.steps)).steps
    program = straight([text for text, _ in longest])
    rows: list[Row] = []
    for number, wave in enumerate(groups):
        accesses = [access for _, access in wave.steps if access]
        count = iter(range(len(accesses)))
        skipped = len(longest) - len(wave.steps)
        rows.append((number, [(skipped + i, next(count) if access else -1)
                              for i, (_, access) in enumerate(wave.steps)], accesses))
    sample = Sample(0, units, tuple(range(len(groups))), of_xcd or units, busy or of_xcd or units)
    return timing.run(program, asmevo_core.trace_from_waves(1, rows), sample, vgprs=512, agprs=0,
                      sgprs=32, lds_bytes=65536, workgroup_waves=1, buffers=buffers or [],
                      timeline_limit=timeline, seconds=seconds)


def loads(lines: list[int], *, waits: bool = True) -> Wave:
    wave = Wave()
    for line in lines:
        wave.touch(LOAD, [line], LINE)
        if waits:
            wave.run(WAIT)
    return wave


def levels(result: TimingResult) -> dict[MemoryLevel, int]:
    counts = np.asarray(result.core.lines).sum(axis=1)
    return {level: int(count) for level, count in zip(MEMORY_LEVELS, counts, strict=True) if count}


def test_a_line_that_another_unit_brought_is_found_in_l2() -> None:
    line = fresh()
    first = loads(line).run(END)
    second = Wave().run(*["s_sleep 40"]).touch(LOAD, line, LINE).run(WAIT, END)
    result = run([first, second], units=2)
    assert levels(result) == {MemoryLevel.HBM: 1, MemoryLevel.L2: 1}
    assert result.cycles == pytest.approx(40 * 64 + P.memory.l2_latency, abs=4 * TURN)


def test_units_of_the_same_xcd_wait_for_one_line_in_flight() -> None:
    line = fresh()
    result = run([loads(line).run(END) for _ in range(4)], units=4)
    assert levels(result) == {MemoryLevel.HBM: 1, MemoryLevel.L2: 3}
    assert result.cycles == pytest.approx(P.memory.hbm_latency, abs=4 * TURN)


def test_what_leaves_l2_is_found_in_the_mall() -> None:
    small = model(l2_bytes=LINE * 16, vl1d_bytes=LINE)
    line, *others = fresh(17)
    wave = loads([line, *others, line]).run(END)
    result = run([wave], timing=small)
    assert levels(result) == {MemoryLevel.HBM: 17, MemoryLevel.MALL: 1}
    without = run([loads([line, *others]).run(END)], timing=small)
    assert result.cycles - without.cycles == P.memory.mall_latency + TURN
    tiny = model(l2_bytes=LINE * 16, vl1d_bytes=LINE, mall_bytes=LINE * 16)
    assert levels(run([wave], timing=tiny)) == {MemoryLevel.HBM: 18}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=80), st.integers(1, 16))
def test_levels_are_those_of_caches_that_forget_the_least_recent(
        touched: list[int], capacity: int) -> None:
    small = model(vl1d_bytes=LINE, l2_bytes=LINE * capacity)
    result = run([loads(touched).run(END)], timing=small)
    recent: list[int] = []
    expected = dict.fromkeys(MEMORY_LEVELS, 0)
    seen: set[int] = set()
    last = None
    for line in touched:
        if line == last:
            expected[MemoryLevel.L1] += 1
            continue  # L2 is not asked
        level = (MemoryLevel.L2 if line in recent else
                 MemoryLevel.MALL if line in seen else MemoryLevel.HBM)
        expected[level] += 1
        recent = [*(x for x in recent if x != line), line][-capacity:]
        seen.add(line)
        last = line
    assert levels(result) == {level: count for level, count in expected.items() if count}


def stream(units: int, lines: int) -> list[Wave]:
    return [Wave([(LOAD4, (fresh(8), 0, 1024)) for _ in range(lines // 8)]).run(WAIT, END)
            for _ in range(units)]


@pytest.mark.parametrize("units", [2, 10, 38])
def test_a_sample_streams_at_its_share_of_hbm(units: int) -> None:
    """Whatever part of a full device is simulated, it takes as long as all of it would."""
    result = run(stream(units, 400), units=units, of_xcd=38, busy=304)
    bytes_per_clk = P.memory.hbm_read_gigabytes_per_second * 1000 / P.machine.clock_mhz
    expected = 400 * LINE * 304 / bytes_per_clk + P.memory.hbm_latency
    assert result.cycles == pytest.approx(expected, rel=0.05)


def test_a_machine_at_the_core_s_limit_has_no_bandwidth_for_free() -> None:
    slow = model(mall_gigabytes_per_second=1, hbm_read_gigabytes_per_second=1)
    almost, most = (run(stream(1, 16), of_xcd=busy, busy=busy, timing=slow).cycles
                    for busy in (4095, 4096))
    assert most == pytest.approx(almost, rel=0.01)


def test_a_simulation_ends_after_its_seconds() -> None:
    endless = [Wave().run(*["v_add_f32_e32 v0, v1, v2"] * 400_000, END)] * 8
    with pytest.raises(TimeoutError, match="too long"):
        run(endless, units=8, seconds=0.001)


def test_l2_serves_a_line_per_channel_and_clk() -> None:
    """Two lines a clk: a quarter of the bytes a clk that the channels of a whole L2 could."""
    narrow = model(l2_channels=2, vl1d_bytes=LINE)
    lines = fresh(64)
    def again() -> Wave:
        wave = Wave()
        for i in [*range(8)] * 10:
            wave.touch(LOAD4, lines[8 * i:8 * i + 8], 1024)
        return wave.run(WAIT, END)

    one = [again() for _ in range(20)]
    warm = run(one, units=20, timing=narrow)
    assert warm.cycles == pytest.approx(640 * 20 / 2 + P.memory.hbm_latency, rel=0.15)
    wide = run(one, units=20, timing=model(vl1d_bytes=LINE))
    assert wide.cycles < 0.6 * warm.cycles


def test_what_all_units_read_is_paid_once() -> None:
    """Four units of a full device read the same lines: so does everyone else."""
    lines = fresh(800)
    shared = [Wave([(LOAD4, (lines[i:i + 8], 0, 1024)) for i in range(0, 800, 8)]).run(WAIT, END)
              for _ in range(4)]
    together = run(shared, units=4, of_xcd=38, busy=304)
    apart = run(stream(4, 800), units=4, of_xcd=38, busy=304)
    assert apart.cycles > 2 * together.cycles
    # Of 800 distinct lines that 304 units read, the four pay for their part alone.
    assert levels(together)[MemoryLevel.HBM] == pytest.approx(800 * 4 / 304, abs=8)
    assert levels(apart) == {MemoryLevel.HBM: 3200}


def test_a_buffer_bounds_what_there_is_to_read() -> None:
    """Each unit reads lines of its own, more than the buffer would hold were that so of all."""
    base = 1 << 20
    waves = [Wave([(LOAD4, (list(range(base + unit * 400 + i, base + unit * 400 + i + 8)), 0, 1024))
                   for i in range(0, 400, 8)]).run(WAIT, END) for unit in range(4)]
    sample: dict[str, Any] = {"units": 4, "of_xcd": 38, "busy": 304}
    lines = 304 * 400 // 8  # each line is read by eight units
    found = levels(run(waves, **sample, buffers=[(base * LINE, lines * LINE)]))
    assert found[MemoryLevel.HBM] == pytest.approx(1600 / 8, rel=0.2)
    assert sum(found.values()) == 1600
    assert levels(run(waves, **sample)) == {MemoryLevel.HBM: 1600}


def test_stores_leave_for_hbm_behind_the_last_wave() -> None:
    wave = Wave()
    for _ in range(64):
        wave.touch(STORE, fresh(8), 1024)
    result = run([wave.run(END)], units=1, of_xcd=38, busy=304)
    bytes_per_clk = P.memory.hbm_write_gigabytes_per_second * 1000 / P.machine.clock_mhz / 304
    assert result.cycles == pytest.approx(64 * 1024 / bytes_per_clk, rel=0.05)


def test_a_workgroup_goes_to_the_unit_that_is_free_first() -> None:
    long, short = (Wave().run(*["s_sleep 100"] * count, END) for count in (3, 1))
    result = run([long, short, short], units=2)
    assert [w[0] for w in np.asarray(result.core.waves).tolist()] == [0, 1, 1]
    assert result.cycles == pytest.approx(300 * 64, rel=0.01)


def test_waves_are_launched_one_after_another() -> None:
    slow = TimingModel(replace(P, launch=replace(P.launch, wave_interval=50)))
    result = run([Wave().run(END) for _ in range(4)], units=4, timing=slow)
    starts = [row[5] for row in np.asarray(result.core.waves).tolist()]
    assert [round(start / 50) for start in starts] == [0, 1, 2, 3]


@pytest.mark.parametrize(("ahead", "stalls"), [(0, [0, 1, 2, 3]), (1, [0, 2]), (3, [0])])
def test_a_line_of_code_is_fetched_before_it_runs(ahead: int, stalls: list[int]) -> None:
    """Sixteen instructions of 8 bytes a line; what is fetched ahead comes with its line."""
    fetching = TimingModel(replace(P, issue=replace(P.issue, code_miss=288,
                                                    code_lines_ahead=ahead)))
    result = run([Wave().run(*["s_nop 0"] * 63, END)], timing=fetching)
    fetch = np.asarray(result.core.stalls)[5]
    waited = [line for line in range(4) if fetch[16 * line] > 200]
    assert waited == [line for line in stalls if line < 4]


def test_a_timeline_adds_up_to_the_stalls() -> None:
    waves = [loads(fresh(3)).run("s_nop 3", "v_exp_f32_e32 v3, v4", "v_exp_f32_e32 v3, v4",
                                 "s_barrier", END) for _ in range(3)]
    result = run(waves, units=2, timeline=1000)
    program = straight([text for text, _ in waves[0].steps])
    profile = result.profile(program, "d", "device")
    assert len(profile.timeline) == len(profile.waves) == 3
    for wave, events in zip(profile.waves, profile.timeline, strict=True):
        assert len(events) == wave.issued
        waited: dict[object, int] = {}
        for event, after in zip(events, [*events[1:], None], strict=True):
            assert event.ready <= event.held <= event.issue <= event.resume - TURN
            if after is not None:
                assert after.ready == event.resume
            for cause, clk in ((event.cause, event.held - event.ready),
                               ("unit-busy", event.issue - event.held),
                               (event.after, event.resume - event.issue - TURN)):
                if clk:
                    waited[str(cause)] = waited.get(str(cause), 0) + clk
        stalls = {str(cause): clk for cause, clk in wave.stalls.items() if cause != "occupancy"}
        assert waited == stalls
    short = run(waves, units=2, timeline=5).profile(program, "d", "device")
    assert sum(map(len, short.timeline)) == 5
    assert "ends early" in short.scope


def test_a_wave_without_a_slot_waits_for_occupancy() -> None:
    result = run([Wave().run("s_sleep 10", END)] * 2, units=1)
    second = result.profile(straight(["s_sleep 10", END]), "d", "device").waves[1]
    assert second.stalls["occupancy"] == second.start == pytest.approx(640, abs=8)  # type: ignore[index]


def test_the_clock_falls_with_matrix_work() -> None:
    machine = P.machine
    assert machine.clock(0, 0) == pytest.approx(machine.clock_mhz)
    assert machine.clock(1, 0) == pytest.approx(machine.matrix_clock_mhz)
    assert machine.clock(0, 1) == pytest.approx(machine.byte_matrix_clock_mhz)
    half = machine.clock(0.5, 0)
    assert 2 / half == pytest.approx(1 / machine.clock_mhz + 1 / machine.matrix_clock_mhz)
