"""A profile made here whose parts all say the same: totals are sums over the timeline."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest

from asmevo.isa.program import Program
from asmevo.profile.profile import (
    Event,
    InstructionProfile,
    MemoryLevel,
    MemoryProfile,
    Profile,
    StallCause,
    WaveProfile,
)
from asmevo.report.timeline import spans

MakeProfile = Callable[..., Profile]

_TEXTS = (
    (4, "s_load_dwordx2 s[0:1], s[4:5], 0x0"),
    (4, "s_waitcnt lgkmcnt(0)"),
    (8, "global_load_dwordx4 v[4:7], v0, s[0:1]"),
    (8, "ds_read_b128 v[8:11], v1"),
    (4, "s_waitcnt vmcnt(0) lgkmcnt(0)"),
    (4, "v_add_f32_e32 v4, v4, v8"),
    (8, "v_mfma_f32_16x16x16_f16 v[16:19], v[4:5], v[8:9], v[16:19]"),
    (4, "s_barrier"),
    (4, "s_sub_u32 s2, s2, 1"),
    (4, "s_cmp_lg_u32 s2, 0"),
    (4, "s_cbranch_scc1 65525"),
    (4, "s_endpgm"),
)
_MEMORY = {
    0: MemoryProfile(8, {MemoryLevel.L2: 1}),
    2: MemoryProfile(1024, {MemoryLevel.L1: 1, MemoryLevel.HBM: 7}),
    3: MemoryProfile(1024, {}, conflicts=12),
}
_CAUSES = {1: StallCause.LGKMCNT, 4: StallCause.VMCNT, 5: StallCause.DEPENDENCY}


@pytest.fixture
def program() -> Program:
    """A loop from instruction 2 to 10."""
    rows, offset = [], 0
    for size, text in _TEXTS:
        rows.append((offset, size, text))
        offset += size
    back = (rows[2][0] - rows[11][0]) // 4 & 0xFFFF
    rows[10] = (rows[10][0], 4, f"s_cbranch_scc1 {back}")
    return Program.from_disassembly(rows, {rows[2][0]: "loop"})


def _wave(trips: int, start: int, chance: random.Random) -> list[Event]:
    events, clk = [], start
    for index in [0, 1, *list(range(2, 11)) * trips, 11]:
        cause = _CAUSES.get(index)
        held = clk + (chance.randrange(4, 400, 4) if cause else 0)
        issue = held + (chance.randrange(4) if index != 11 else 0)
        after = {7: StallCause.BARRIER, 10: StallCause.FETCH}.get(index)
        resume = issue + (4 if after is None else chance.randrange(4, 80, 4))
        events.append(Event(index, clk, held, issue, resume, cause, after))
        clk = resume
    return events


@pytest.fixture
def make_profile(program: Program) -> MakeProfile:
    """Makes the profile of so many waves on so many compute units with so many trips each."""

    def make(*, waves: int = 10, trips: int = 3, units: int = 2, source: str = "modelled",
             dispatch: str = "M48-normal", device: str = "emulator:gfx942:test",
             clock_mhz: int = 2100) -> Profile:
        chance = random.Random(5)
        issued: Counter[int] = Counter()
        stalls: list[Counter[StallCause]] = [Counter() for _ in range(len(program))]
        found, timeline, free = [], [], dict.fromkeys(range(units * 8), 0)
        for number in range(waves):
            place = min(free, key=lambda p: (free[p], p))
            start = free[place] + 40
            events = _wave(trips, start, chance)
            own: Counter[StallCause] = Counter()
            for event in events:
                issued[event.instruction] += 1
                for span in spans(event):
                    if span.cause is not None:
                        own[span.cause] += span.end - span.start
                        stalls[event.instruction][span.cause] += span.end - span.start
            free[place] = events[-1].resume
            found.append(WaveProfile(place // 8, place % 4, place % 8 // 4, number // 4, number % 4,
                                     start, events[-1].resume, len(events), dict(own)))
            timeline.append(tuple(events))
        return Profile(
            dispatch, source, device, max(free.values()),
            tuple(InstructionProfile(issued[i], dict(stalls[i]), _MEMORY.get(i))
                  for i in range(len(program))),
            clock_mhz, tuple(found), tuple(timeline), "2 of 304 compute units, made up for a test.")

    return make
