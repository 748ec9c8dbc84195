"""The trace says what the profile says, in a form that viewers take."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from asmevo.isa.program import Program
from asmevo.profile.profile import Profile
from asmevo.report.chrome_trace import chrome_trace, write_trace
from asmevo.report.timeline import Timeline

MakeProfile = Callable[..., Profile]


def _trace(program: Program, profile: Profile) -> dict[str, Any]:
    trace: dict[str, Any] = json.loads("".join(
        chrome_trace(program, profile, Timeline.of(profile), kernel="k")))
    return trace


def test_stalls_add_up_to_the_profile_s(program: Program, make_profile: MakeProfile) -> None:
    profile = make_profile(waves=12, trips=5)
    events = _trace(program, profile)["traceEvents"]
    found: Counter[tuple[int, str]] = Counter()
    issued: Counter[int] = Counter()
    for event in events:
        if event.get("cat") == "stall":
            cause = event["name"].removeprefix("stall: ")
            found[event["args"]["instruction"], cause] += event["args"]["clk"]
        elif event.get("cat") == "issue":
            issued[event["args"]["instruction"]] += 1
            assert event["name"] == program.instructions[event["args"]["instruction"]].text
    assert found == {(index, cause.value): clk
                     for index, counts in enumerate(profile.instructions)
                     for cause, clk in counts.stalls.items() if clk}
    assert issued == {index: counts.issued for index, counts in enumerate(profile.instructions)}
    waves = [e for e in events if e.get("cat") == "wave"]
    assert sum(e["args"]["issued"] for e in waves) == sum(w.issued for w in profile.waves)
    assert [e["args"]["clk"] for e in waves] == [w.end - w.start for w in profile.waves]


def test_events_have_the_format_s_fields(program: Program, make_profile: MakeProfile) -> None:
    """Trace Event Format: complete, metadata and counter events, times in microseconds."""
    profile = make_profile()
    trace = _trace(program, profile)
    assert trace["displayTimeUnit"] == "ns"
    assert trace["otherData"]["source"] == "modelled"
    assert "2100 MHz" in trace["otherData"]["clock"]
    named = {(e["pid"], e["tid"]) for e in trace["traceEvents"] if e["name"] == "thread_name"}
    processes = {e["pid"] for e in trace["traceEvents"] if e["name"] == "process_name"}
    for event in trace["traceEvents"]:
        assert event["ph"] in ("X", "M", "C")
        assert isinstance(event["args"], dict)
        if event["ph"] == "X":
            assert event["ts"] >= 0
            assert event["dur"] >= 0
            assert (event["pid"], event["tid"]) in named
            assert event["pid"] in processes
    assert len(named) == len({(w.unit, w.simd, w.slot) for w in profile.waves})
    end = max(e["ts"] + e["dur"] for e in trace["traceEvents"] if e["ph"] == "X")
    assert end == pytest.approx(profile.cycles / 2100, abs=0.002)


def test_slices_nest_in_whole_nanoseconds(program: Program, make_profile: MakeProfile) -> None:
    """Viewers keep nanoseconds and refuse slices of a thread that overlap."""
    trace = _trace(program, make_profile(waves=20, trips=9))
    threads: defaultdict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            start, length = round(event["ts"] * 1000), round(event["dur"] * 1000)
            assert event["ts"] == start / 1000
            assert event["dur"] == length / 1000
            threads[event["pid"], event["tid"]].append((start, start + length))
    for slices in threads.values():
        around: list[int] = []
        for start, end in sorted(slices, key=lambda s: (s[0], -s[1])):
            while around and around[-1] <= start:
                around.pop()
            assert not around or end <= around[-1]
            if end > start:
                around.append(end)


def test_resident_waves_are_counted(program: Program, make_profile: MakeProfile) -> None:
    profile = make_profile(waves=30)
    counts = [e["args"]["waves"] for e in _trace(program, profile)["traceEvents"]
              if e["ph"] == "C" and e["pid"] == 0]
    assert max(counts) == 8
    assert counts[-1] == 0


def test_an_unknown_clock_is_said(program: Program, make_profile: MakeProfile) -> None:
    profile = make_profile(clock_mhz=0)
    trace = _trace(program, profile)
    assert "1 us stands for 1 clk" in trace["otherData"]["clock"]
    first = next(e for e in trace["traceEvents"] if e.get("cat") == "issue")
    assert first["dur"] == first["args"]["clk"]


def test_compressed_and_plain_are_the_same(
        program: Program, make_profile: MakeProfile, tmp_path: Path) -> None:
    profile = make_profile()
    for name in ("a.json", "a.json.gz"):
        write_trace(tmp_path / name, program, profile, Timeline.of(profile), kernel="k")
    plain = (tmp_path / "a.json").read_bytes()
    assert gzip.decompress((tmp_path / "a.json.gz").read_bytes()) == plain
    assert json.loads(plain)["otherData"]["left out"] == "nothing"
