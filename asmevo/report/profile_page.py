"""A profile as one HTML file: listing, hot windows, memory and a wave timeline.

The file needs nothing beside it and no network. Everything in it that comes from a code object or
a profiler's output is escaped, and its Content-Security-Policy lets only the style and the script
run that are in the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from asmevo.failure import printable
from asmevo.isa.program import Program
from asmevo.profile.hotwindow import HotWindow
from asmevo.profile.profile import MemoryLevel, Profile
from asmevo.profile.roofline import Roofline
from asmevo.report import window_facts
from asmevo.report.annotated import (
    Line,
    Listing,
    annotated,
    by_cause,
    issues,
    microseconds,
    register_list,
    total_stalls,
)
from asmevo.report.causes import CAUSES, LEVELS
from asmevo.report.dependence_graph import dependence_graph, kinds
from asmevo.report.page_style import FOLDER, environment, fills, policy, variables
from asmevo.report.roofline_plot import caption, ceiling_name, roofline_plot
from asmevo.report.stall_bar import BAR, stall_bar
from asmevo.report.timeline import Timeline, packed

_SCRIPTS = ("timeline_data.js", "profile.js")
_CHUNK = 150        # lines of a table: the browser lays out only those near the window
_MOST_SOURCES = 8   # branches named at a target
_MOST_LINES = 50_000  # of the listing; AITER's longest kernel has 31,782
_MOST_ROWS = 1000   # of the tables of waves and of memory instructions


@dataclass(frozen=True, slots=True)
class Subject:
    """What was profiled, in words; ``version`` tells replacements from originals, and ``beside``
    are file names of the other versions' pages in the same folder."""

    kernel: str
    version: str = ""
    occupancy: str = ""
    beside: Mapping[str, str] = field(default_factory=dict)


def profile_page(subject: Subject, program: Program, profile: Profile,
                 windows: Sequence[HotWindow], timeline: Timeline,
                 roofline: Roofline | None = None) -> str:
    """The page; ``timeline`` is as much of the profile's as it shall show. Raises
    `ProfileError` when the profile is of another program."""
    listing = annotated(program, profile, windows)
    templates = environment()
    style = templates.get_template("profile.css").render(variables=variables, fills=fills)
    script = "".join((FOLDER / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    stalls = list(_stalls(profile))
    lines = _shown(listing)
    shown = {line.index for line in lines}
    return templates.get_template("profile.html.j2").render(
        kernel=printable(subject.kernel), version=printable(subject.version),
        beside=[(printable(name), quote(page)) for name, page in subject.beside.items()],
        profile=_Printable(printable(profile.dispatch), printable(profile.device),
                           printable(profile.scope)),
        source=printable(profile.source),
        not_measured="" if profile.source == "measured" else
        "No GPU measured this: take it as a reason to measure.",
        policy=policy(style, script), style=Markup(style), script=Markup(script),  # noqa: S704
        offset=lambda index: _offset(program.offsets[index]),
        facts=list(_facts(subject, profile)),
        roofline=None if roofline is None else _roofline(roofline),
        stalls=stalls,
        stalls_spoken=", ".join(f"{part['cause']} {part['share']}" for part in stalls),
        causes_shown=[cause.value for cause in CAUSES if total_stalls(profile)[cause]],
        lanes=len({(w.unit, w.simd, w.slot) for w in timeline.waves}),
        truncation=timeline.truncation,
        wave_rows=list(_waves(profile)), wave_count=len(profile.waves),
        timeline_json=_json({**packed(timeline), "clock": profile.clock_mhz}),
        windows=[_window(window, listing) for window in windows],
        windows_sentence=f"{window_facts.sentence(windows)}.",
        memory=list(islice(_memory(listing), _MOST_ROWS)), levels=list(LEVELS.values()),
        memory_count=sum(line.counts.memory is not None for line in listing.lines),
        loops_unknown=listing.loops_unknown, chunks=list(_chunks(lines)), shown=shown,
        left_out=len(listing.lines) - len(lines),
    )


@dataclass(frozen=True, slots=True)
class _Printable:
    """The parts of a profile that are text out of files."""

    dispatch: str
    device: str
    scope: str


def _json(value: Mapping[str, Any]) -> Markup:
    """JSON inside a script element, where only ``</`` and ``<!--`` would end or change it."""
    text = json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")
    return Markup(text)  # noqa: S704


def _offset(offset: int) -> str:
    return f"{offset:#06x}"


def _facts(subject: Subject, profile: Profile) -> Iterator[tuple[str, str]]:
    micro = microseconds(profile.cycles, profile)
    if profile.cycles:
        yield "time", f"{profile.cycles:,} clk" + (
            f", {micro:,.2f} µs at {profile.clock_mhz} MHz" if micro is not None else "") + (
            f"; timed as {profile.microseconds:,.2f} µs with the launch"
            if profile.microseconds else "")
    name, issued = issues(profile)
    stalled = total_stalls(profile).total()
    yield name, f"{issued:,}"
    yield "clk stalled", f"{stalled:,}" + (
        f", {stalled / issued:.1f} for each of these" if issued else "")
    if profile.waves:
        units = len({wave.unit for wave in profile.waves})
        yield "waves", f"{len(profile.waves):,} on {units} simulated compute unit" + (
            "s" if units > 1 else "")
    if subject.occupancy:
        yield "occupancy", subject.occupancy
    yield "lines of code", f"{len(profile.instructions):,}"


def _roofline(roofline: Roofline) -> dict[str, Any]:
    return {
        "caption": caption(roofline), "svg": roofline_plot(roofline) or "",
        "ceilings": [{
            "name": ceiling_name(ceiling), "width": round(BAR * min(ceiling.utilisation, 1.0)),
            "share": window_facts.percent(ceiling.utilisation),
        } for ceiling in roofline.ceilings],
        "evidence": "; ".join(roofline.evidence[:1]),
    }


def _stalls(profile: Profile) -> Iterator[dict[str, Any]]:
    stalls = total_stalls(profile)
    total, x = stalls.total(), 0.0
    for cause, clk in sorted(stalls.items(), key=lambda item: -item[1]):
        if clk:
            width = 10000 * clk / total
            yield {"cause": cause.value, "clk": f"{clk:,}",
                   "share": window_facts.percent(clk / total),
                   "meaning": CAUSES[cause].meaning, "x": f"{x:.1f}", "width": f"{width:.1f}"}
            x += width


def _waves(profile: Profile) -> Iterator[dict[str, Any]]:
    for wave in profile.waves[:_MOST_ROWS]:
        mostly = max(wave.stalls, key=lambda c: wave.stalls[c]) if wave.stalled else None
        yield {
            "workgroup": wave.workgroup, "wave": wave.wave, "unit": wave.unit, "simd": wave.simd,
            "slot": wave.slot, "start": f"{wave.start:,}", "end": f"{wave.end:,}",
            "issued": f"{wave.issued:,}", "stalled": f"{wave.stalled:,}",
            "mostly": "" if mostly is None else mostly.value,
        }


def _window(window: HotWindow, listing: Listing) -> dict[str, Any]:
    return {
        "start": window.start, "last": window.stop - 1, "cause": window.cause.value,
        "headline": window_facts.headline(window),
        "facts": [
            ("size", f"{window.stop - window.start} instructions, {window_facts.place(window)}"),
            ("stalled", ", ".join(f"{c} {n:,}" for c, n in by_cause(window.causes).items())),
            ("live in", register_list(window.live_in)),
            ("live out", register_list(window.live_out)),
            ("live through", register_list(window.live_through)),
            ("pressure", f"at most {window.pressure} VGPRs and AGPRs live at once"),
        ],
        "lists": [
            ("Waits", [_references(w.index, " waits for ", *_joined(w.operations))
                       for w in window.waits]),
            ("Hazards", [_references(h.producer, " to ", h.consumer,
                                     f": {h.kind}, needs {h.needed} wait states, has {h.found}")
                         for h in window.hazards]),
        ],
        "edges": len(window.edges), "graph": dependence_graph(window, listing),
        "kinds": kinds(window),
    }


def _references(*parts: int | str) -> list[dict[str, Any]]:
    """Indices of instructions become links."""
    return [{"index": part} if isinstance(part, int) else {"text": part} for part in parts]


def _joined(indices: Sequence[int]) -> Iterator[int | str]:
    for number, index in enumerate(indices):
        yield from (", ", index) if number else (index,)
    if not indices:
        yield "nothing"


def _memory(listing: Listing) -> Iterator[dict[str, Any]]:
    for line in sorted(listing.lines, key=lambda line: (-line.counts.stalled, line.index)):
        memory = line.counts.memory
        if memory is not None:
            yield {
                "index": line.index, "text": line.text, "issued": f"{line.counts.issued:,}",
                "bytes": f"{memory.bytes:,}", "conflicts": f"{memory.conflicts:,}",
                "lines": [f"{memory.lines[level]:,}" if level in memory.lines else ""
                          for level in LEVELS],
                "stalled": f"{line.counts.stalled:,}",
            }


def _shown(listing: Listing) -> Sequence[Line]:
    """As many lines as a page can hold, those that tell nothing left out first."""
    if len(listing.lines) <= _MOST_LINES:
        return listing.lines
    ranked = sorted(listing.lines, key=lambda line: (
        line.window is None, not line.counts.stalled, not line.counts.issued, line.index))
    return sorted(ranked[:_MOST_LINES], key=lambda line: line.index)


def _chunks(lines: Sequence[Line]) -> Iterator[list[dict[str, Any]]]:
    most = max((line.counts.stalled for line in lines), default=0)
    for first in range(0, len(lines), _CHUNK):
        yield [_line(line, most) for line in lines[first:first + _CHUNK]]


def _line(line: Line, most: int) -> dict[str, Any]:
    counts = line.counts
    kinds = [kind for kind, holds in (
        ("w", line.window is not None), ("y", counts.memory is not None),
        ("z", not counts.issued)) if holds]
    named = line.label is not None or line.sources
    return {
        "index": line.index, "offset": _offset(line.offset), "text": line.text,
        "issued": f"{counts.issued:,}" if counts.issued else "",
        "stalled": f"{counts.stalled:,}" if counts.stalled else "",
        "bar": stall_bar(counts.stalls, most), "kind": " ".join(kinds),
        "causes": " ".join(by_cause(counts.stalls)),
        "flow": flow(line), "window": line.window if line.first else None, "notes": notes(line),
        "target": line.target,
        "heading": (line.label or "target") if named else None,
        "sources": line.sources[:_MOST_SOURCES],
        "more_sources": max(len(line.sources) - _MOST_SOURCES, 0),
    }


def flow(line: Line) -> str:
    """A line's place in loops and blocks, in a few characters."""
    depth = line.depth
    if line.header:
        return "│" * (depth - 1) + "┌"
    return "│" * depth + ("·" if line.block and line.index else "")


def notes(line: Line) -> str:
    """Where a memory instruction found its lines, and its bank conflicts."""
    memory = line.counts.memory
    if memory is None:
        return ""
    parts = [f"{LEVELS[level]} {memory.lines[level]:,}" for level in MemoryLevel
             if memory.lines.get(level)]
    if memory.conflicts:
        parts.append(f"conflicts {memory.conflicts:,} clk")
    return " ".join(parts)
