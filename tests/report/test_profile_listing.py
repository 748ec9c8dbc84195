"""The listing of hot windows on terminals of several widths."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import asmevo.report
from asmevo.isa.program import Program
from asmevo.isa.registers import AGPR0, VGPR0, mask
from asmevo.profile.profile import MemoryLevel, Profile, StallCause
from asmevo.profile.windows import hot_windows
from asmevo.report.annotated import annotated, register_list
from asmevo.report.causes import CAUSES, LEVELS
from asmevo.report.profile_listing import Comparison, WindowListing, stall_bar
from asmevo.report.window_facts import to_dict

MakeProfile = Callable[..., Profile]


def _printed(part: Any, width: int, **options: Any) -> str:
    console = Console(file=io.StringIO(), width=width, **options)
    console.print(part)
    output: Any = console.file
    return str(output.getvalue())


@pytest.fixture
def window(program: Program, make_profile: MakeProfile) -> dict[str, Any]:
    profile = make_profile()
    (found,) = hot_windows([profile], program, count=1, max_length=9)
    # With the branch at the loop's end, wherever the search ends the window.
    found = replace(found, start=2, stop=11)
    return to_dict(found, program, annotated(program, profile, [found]))


@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_no_line_is_wider_than_the_terminal(window: dict[str, Any], width: int) -> None:
    text = _printed(WindowListing(window, 1, 3), width)
    assert max(map(len, text.splitlines())) <= width
    assert "loop:" in text
    for line in window["lines"]:
        assert f"{line['offset']:#06x}" in text
        assert line["text"][:20] in text
        if sum(line["stalls"].values()):
            assert f"{sum(line['stalls'].values()):,}" in text
    assert "HBM 7" in text
    assert "conflicts: 12 clk" in text
    assert "to 0x8" in text


def test_without_colour_causes_are_still_told(window: dict[str, Any]) -> None:
    """NO_COLOR and pipes: names stand beside the bars."""
    plain = _printed(WindowListing(window, 1, 1), 100)
    assert "\x1b" not in plain
    for cause in ("vmcnt", "dependency", "barrier", "fetch"):
        assert cause in plain
    coloured = _printed(WindowListing(window, 1, 1), 100, force_terminal=True,
                        color_system="standard", no_color=True)
    assert "\x1b[3" not in coloured.replace("\x1b[3m", "")


def test_hostile_text_does_not_reach_the_terminal(window: dict[str, Any]) -> None:
    window["lines"][0]["text"] = "v_nop \x1b]0;owned\x07 [bold red]x"
    window["lines"][0]["label"] = "[link=x]\x1b[2J"
    text = _printed(WindowListing(window, 1, 1), 160)
    assert "\x1b" not in text
    assert "[bold red]x" in text


def test_lines_that_never_stall_are_counted_together(window: dict[str, Any]) -> None:
    quiet = {**window["lines"][1], "stalls": {}, "block": False, "sources": [], "label": None,
             "target": None}
    window["lines"] = [window["lines"][0], *[quiet] * 20, window["lines"][-1]]
    text = _printed(WindowListing(window, 1, 1), 100)
    assert "... 16 lines that never stall" in text


@pytest.mark.parametrize(("stalls", "bar"), [
    ({"vmcnt": 80}, "████████"),
    ({"vmcnt": 40}, "████    "),
    ({"vmcnt": 40, "barrier": 40}, "████████"),
    ({"vmcnt": 45}, "████▌   "),
    ({"nop": 1}, "▏       "),
    ({}, "        "),
])
def test_bars(stalls: dict[str, int], bar: str) -> None:
    assert stall_bar(stalls, 80, 8).plain == bar


def test_a_bar_has_the_colours_of_its_causes() -> None:
    bar = stall_bar({"vmcnt": 60, "barrier": 20}, 80, 8)
    assert [(span.start, span.end, span.style) for span in bar.spans[:2]] == [
        (0, 6, "yellow"), (6, 8, "bright_cyan")]


def test_every_cause_and_level_has_its_looks() -> None:
    assert set(CAUSES) == set(StallCause)
    assert set(LEVELS) == set(MemoryLevel)
    for looks in ([a.light for a in CAUSES.values()], [a.dark for a in CAUSES.values()],
                  [a.terminal for a in CAUSES.values()]):
        assert len(set(looks)) == len(looks)
    schema = json.loads((Path(asmevo.report.__path__[0]) / "result.schema.json").read_text())
    assert set(schema["$defs"]["stalls"]["propertyNames"]["enum"]) == {c.value for c in StallCause}


def test_versions_stand_side_by_side() -> None:
    launch = {"dispatch": "M48", "version": "original", "cycles": 1000, "microseconds": 0.5,
              "issued": 9, "stalls": {"vmcnt": 70}}
    both = Comparison([launch, {**launch, "version": "replacement", "cycles": 900,
                                "stalls": {"vmcnt": 40, "nop": 3}}])
    rows = [row.split() for row in _printed(both, 120).splitlines()]
    assert rows == [
        ["dispatch", "version", "clk", "us", "issued", "stalled", "vmcnt", "nop"],
        ["M48", "original", "1,000", "0.50", "9", "70", "70", "0"],
        ["M48", "replacement", "900", "0.50", "9", "43", "40", "3"]]
    narrow = _printed(both, 80)
    assert "vmcnt" not in narrow
    assert max(map(len, narrow.splitlines())) <= 80


def test_registers_are_listed_as_ranges() -> None:
    registers = mask(4, 3) | 1 << 9 | mask(106, 2)
    registers |= mask(VGPR0, 2) | mask(VGPR0 + 255) | mask(AGPR0)
    assert register_list(registers) == "s[4:6], s9, vcc_lo, vcc_hi, v[0:1], v255, a0"
    assert register_list(0) == "nothing"


def test_a_listing_knows_loops_and_branches(program: Program, make_profile: MakeProfile) -> None:
    listing = annotated(program, make_profile())
    assert listing.loops_unknown is None
    assert [line.depth for line in listing.lines] == [0, 0, *[1] * 9, 0]
    assert [line.index for line in listing.lines if line.header] == [2]
    assert listing.lines[2].sources == (10,)
    assert listing.lines[10].target == 2
    assert [line.index for line in listing.lines if line.block] == [0, 2, 11]
    assert StallCause.VMCNT in listing.lines[4].counts.stalls
