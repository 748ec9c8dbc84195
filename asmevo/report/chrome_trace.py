"""A profile's timeline in the Trace Event Format, for Perfetto and ``chrome://tracing``.

One process a compute unit, one thread a wave slot of a SIMD, on it a slice for each wave and in
that one for each issue and each stall. The format's times are microseconds, and readers round them
to nanoseconds, of which a clk has half a one: all times are therefore rounded down to whole
nanoseconds here, so that slices still nest, and ``args.clk`` has the exact length.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from asmevo.durable import write_atomically
from asmevo.failure import printable
from asmevo.isa.program import Program
from asmevo.profile.profile import Profile
from asmevo.report.timeline import Timeline, spans

_SLOTS = 64  # more than a SIMD has, so that a thread's number names SIMD and slot


def trace_events(program: Program, profile: Profile,
                 timeline: Timeline) -> Iterator[dict[str, Any]]:
    """Metadata, slices and a counter of resident waves a compute unit."""
    yield from _names(timeline)
    yield from _residency(profile, timeline)
    names = [printable(instruction.text) for instruction in program.instructions]
    for wave, events in zip(timeline.waves, timeline.events, strict=True):
        where = {"pid": wave.unit, "tid": wave.simd * _SLOTS + wave.slot}
        yield _slice(profile, where, f"workgroup {wave.workgroup} wave {wave.wave}", "wave",
                     min(wave.start, events[0].ready), max(wave.end, events[-1].resume),
                     {"workgroup": wave.workgroup, "wave": wave.wave, "issued": wave.issued})
        for event in events:
            text = names[event.instruction]
            at = {"instruction": event.instruction,
                  "offset": f"{program.offsets[event.instruction]:#x}"}
            for span in spans(event):
                stall = span.cause is not None
                yield _slice(
                    profile, where, f"stall: {span.cause.value}" if span.cause else text,
                    "stall" if stall else "issue", span.start, span.end,
                    {"of": text, **at} if stall else at)


def chrome_trace(program: Program, profile: Profile, timeline: Timeline, *,
                 kernel: str) -> Iterator[str]:
    """The JSON text, in pieces."""
    known = profile.clock_mhz > 0
    about = {
        "kernel": printable(kernel), "dispatch": printable(profile.dispatch),
        "device": printable(profile.device), "source": profile.source, "cycles": profile.cycles,
        "clock": f"{profile.clock_mhz} MHz" if known else "unknown: 1 us stands for 1 clk",
        "scope": printable(profile.scope), "left out": timeline.truncation or "nothing",
    }
    yield '{"displayTimeUnit":"ns","otherData":' + json.dumps(about) + ',"traceEvents":[\n'
    separator = ""
    for event in trace_events(program, profile, timeline):
        yield separator + json.dumps(event, separators=(",", ":"))
        separator = ",\n"
    yield "\n]}\n"


def write_trace(path: Path, program: Program, profile: Profile, timeline: Timeline, *,
                kernel: str) -> None:
    """Write the trace, compressed when the name ends in ``.gz``; both viewers read that."""
    pieces: Iterator[bytes] = (
        piece.encode() for piece in chrome_trace(program, profile, timeline, kernel=kernel))
    if path.suffix == ".gz":
        pieces = _compressed(pieces)
    write_atomically(path, b"".join(pieces))


def _compressed(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """As gzip has it, without the whole text in memory."""
    compressor = zlib.compressobj(6, wbits=31)
    for piece in pieces:
        yield compressor.compress(piece)
    yield compressor.flush()


def _names(timeline: Timeline) -> Iterator[dict[str, Any]]:
    for unit in sorted({wave.unit for wave in timeline.waves}):
        yield _metadata("process_name", {"name": f"compute unit {unit}"}, pid=unit)
        yield _metadata("process_sort_index", {"sort_index": unit}, pid=unit)
    for unit, simd, slot in sorted({(w.unit, w.simd, w.slot) for w in timeline.waves}):
        tid = simd * _SLOTS + slot
        yield _metadata("thread_name", {"name": f"SIMD {simd} slot {slot}"}, pid=unit, tid=tid)
        yield _metadata("thread_sort_index", {"sort_index": tid}, pid=unit, tid=tid)


def _metadata(name: str, args: Mapping[str, object], *, pid: int, tid: int = 0) -> dict[str, Any]:
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "args": args}


def _residency(profile: Profile, timeline: Timeline) -> Iterator[dict[str, Any]]:
    for unit in sorted({wave.unit for wave in timeline.waves}):
        changes: dict[int, int] = {}
        for wave in timeline.waves:
            if wave.unit == unit:
                changes[wave.start] = changes.get(wave.start, 0) + 1
                changes[wave.end] = changes.get(wave.end, 0) - 1
        resident = 0
        for clk in sorted(changes):
            resident += changes[clk]
            yield {"ph": "C", "name": "resident waves", "pid": unit, "tid": 0,
                   "ts": _nanoseconds(profile, clk) / 1000, "args": {"waves": resident}}


def _slice(profile: Profile, where: Mapping[str, int], name: str, category: str, start: int,
           end: int, args: Mapping[str, object]) -> dict[str, Any]:
    first = _nanoseconds(profile, start)
    return {"ph": "X", "name": name, "cat": category, **where, "ts": first / 1000,
            "dur": (_nanoseconds(profile, end) - first) / 1000,
            "args": {**args, "clk": end - start}}


def _nanoseconds(profile: Profile, clk: int) -> int:
    return clk * 1000 // (profile.clock_mhz or 1)
