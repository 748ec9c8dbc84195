"""The page of a profile: well formed, harmless whatever is in it, and true to the profile."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmevo.report
import asmevo.report.profile_page as profile_page_module
from asmevo.isa.program import Program
from asmevo.profile.hotwindow import HotWindow
from asmevo.profile.profile import InstructionProfile, Profile, StallCause
from asmevo.profile.windows import ProfileError, hot_windows
from asmevo.report.profile_page import Subject, profile_page
from asmevo.report.timeline import Timeline
from tests.report.parsed_page import ParsedPage as _Page

MakeProfile = Callable[..., Profile]

PAGE = Path(asmevo.report.__path__[0]) / "page"
_HOSTILE = "</script><img src=x onerror=alert(1)>'\"&\u202e\x1b]0;"


def _page(name: str, program: Program, profile: Profile,
          windows: Sequence[HotWindow] = ()) -> str:
    return profile_page(Subject(name), program, profile, windows, Timeline.of(profile))


@pytest.fixture
def page(program: Program, make_profile: MakeProfile) -> tuple[Profile, _Page]:
    profile = make_profile()
    windows = hot_windows([profile], program, count=3, max_length=6)
    return profile, _Page(_page("kernel", program, profile, windows))


def test_every_link_leads_somewhere_and_nothing_leaves_the_file(
        page: tuple[Profile, _Page]) -> None:
    _, parsed = page
    identifiers = [a["id"] for _, a in parsed.elements if "id" in a]
    assert len(identifiers) == len(set(identifiers))
    targets = {a["href"] for tag, a in parsed.elements if "href" in a}
    assert targets
    assert {f"#{identifier}" for identifier in identifiers} >= targets
    assert not [a for _, a in parsed.elements if "src" in a or "style" in a
                or any(name.startswith("on") for name in a)]
    described = [a[key] for _, a in parsed.elements
                 for key in ("aria-labelledby", "aria-describedby") if key in a]
    assert set(described) <= set(identifiers)


def test_the_policy_lets_only_the_page_s_own_style_and_script_run(
        page: tuple[Profile, _Page]) -> None:
    _, parsed = page
    (policy,) = (a["content"] or "" for a, _ in parsed.all("meta")
                 if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    executed = [text for a, text in parsed.all("script") if "type" not in a]
    for text in (*executed, *(text for _, text in parsed.all("style"))):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert len(executed) == 1


def test_the_timeline_in_the_page_is_the_profile_s(page: tuple[Profile, _Page]) -> None:
    profile, parsed = page
    data = json.loads(parsed.by_id("timeline-data"))
    columns = np.frombuffer(zlib.decompress(base64.b64decode(data["events"])), "<i4").reshape(6, -1)
    names = [None, *data["causes"]]
    assert data["clock"] == profile.clock_mhz
    at = 0
    stalls: Counter[str | None] = Counter()
    for row, wave, events in zip(data["waves"], profile.waves, profile.timeline, strict=True):
        assert row == [wave.unit, wave.simd, wave.slot, wave.workgroup, wave.wave, wave.start,
                       wave.end, len(events)]
        instruction, clk = 0, wave.start
        for event in events:
            step, wait, held, issue, resume, codes = map(int, columns[:, at])
            instruction += step
            ready = clk + wait
            assert (instruction, ready, ready + held, ready + held + issue,
                    ready + held + issue + resume) == (
                event.instruction, event.ready, event.held, event.issue, event.resume)
            assert (names[codes % 16], names[codes // 16]) == (event.cause, event.after)
            clk = event.resume
            stalls[names[codes % 16]] += held
            stalls["unit-busy"] += issue
            stalls[names[codes // 16]] += resume - data["turn"] if codes // 16 else 0
            at += 1
    assert at == columns.shape[1]
    total: Counter[StallCause] = Counter()
    for counts in profile.instructions:
        total.update(counts.stalls)
    assert {c: n for c, n in stalls.items() if c is not None and n} == {
        c.value: n for c, n in total.items() if n}


def test_the_listing_has_every_line_with_its_counts(
        page: tuple[Profile, _Page], program: Program) -> None:
    profile, parsed = page
    rows = {a["id"]: a for a, _ in parsed.all("tr") if "id" in a}
    assert list(rows) == [f"i{index}" for index in range(len(program))]
    for index, counts in enumerate(profile.instructions):
        text = parsed.by_id(f"i{index}")
        assert program.instructions[index].text in text
        assert f"{counts.issued:,}" in text
        assert not counts.stalled or f"{counts.stalled:,}" in text
        causes = (rows[f"i{index}"].get("data-c") or "").split()
        assert set(causes) == {c.value for c, n in counts.stalls.items() if n}
    headings = [text for a, text in parsed.all("tr") if a.get("class") == "a"]
    assert headings == ["loop from 0x0034"]
    assert "HBM 7" in parsed.by_id("i2")
    assert "conflicts 12 clk" in parsed.by_id("i3")


def test_stall_bars_are_in_proportion(page: tuple[Profile, _Page]) -> None:
    """A bar's coloured parts add up to the line's part of the worst line's stalls."""
    profile, parsed = page
    most = max(counts.stalled for counts in profile.instructions)
    number = -1
    widths: Counter[int] = Counter()
    rows = iter([index for index, counts in enumerate(profile.instructions) if counts.stalled])
    for tag, attributes in parsed.elements:
        if tag == "svg":
            number = next(rows) if attributes.get("class") == "bar" else -1
        elif tag == "rect" and number >= 0:
            widths[number] += int(attributes["width"] or 0)
    for index, width in widths.items():
        assert width == pytest.approx(1000 * profile.instructions[index].stalled / most, abs=16)


def test_hostile_names_are_only_text(program: Program, make_profile: MakeProfile) -> None:
    hostile = replace(
        make_profile(dispatch=_HOSTILE, device=_HOSTILE, source="measured"), scope=_HOSTILE)
    odd = replace(program, labels={2: _HOSTILE}, instructions=tuple(
        replace(instruction, text=f"{instruction.text} {_HOSTILE}")
        for instruction in program.instructions))
    windows = hot_windows([hostile], program, count=2, max_length=6)
    text = profile_page(Subject(_HOSTILE, _HOSTILE), odd, hostile, windows,
                        Timeline.of(hostile))
    parsed = _Page(text)
    assert not [tag for tag, _ in parsed.elements if tag == "img"]
    assert [a.get("type") for a, _ in parsed.all("script")] == ["application/json", None]
    shown = "</script><img src=x onerror=alert(1)>'\"&\\u202e\\x1b]0;"
    assert shown in parsed.by_id("i0")
    assert [t for _, t in parsed.all("h1")] == [f"{shown} measured"]
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_what_was_measured_is_not_called_modelled(
        program: Program, make_profile: MakeProfile) -> None:
    for source, doubt in (("measured", False), ("modelled", True), ("static", True)):
        text = _page("k", program, make_profile(source=source))
        assert f'<span class="badge {source}">{source}</span>' in text
        assert ("No GPU measured this" in text) is doubt


def test_a_profile_without_timeline_or_stalls(program: Program, make_profile: MakeProfile) -> None:
    nothing = Profile("d", "static", "none", 0,
                      tuple(InstructionProfile(0) for _ in program.instructions))
    parsed = _Page(_page("k", program, nothing))
    assert not parsed.all("canvas")
    assert len(parsed.all("script")) == 1
    assert "No wave ever waited" in parsed.by_id("stalls")
    alone = replace(make_profile(), waves=(), timeline=())
    assert not _Page(_page("k", program, alone)).all("canvas")


def test_what_is_cut_off_is_said(program: Program, make_profile: MakeProfile) -> None:
    profile = make_profile()
    total = sum(map(len, profile.timeline))
    parsed = _Page(profile_page(Subject("k"), program, profile, (),
                                Timeline.of(profile, limit=50)))
    data = json.loads(parsed.by_id("timeline-data"))
    kept = [row[-1] for row in data["waves"]]
    assert 40 <= sum(kept) <= 50
    assert len(kept) == 10
    assert f"{sum(kept)} of {total:,} events" in parsed.by_id("timeline")
    everything = Timeline.of(profile, limit=total)
    assert everything == Timeline.of(profile)
    assert not everything.truncation
    assert not Timeline.of(profile, limit=0).waves


def test_lines_left_out_are_those_without_stalls(
        program: Program, make_profile: MakeProfile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile_page_module, "_MOST_LINES", 9)
    monkeypatch.setattr(profile_page_module, "_MOST_ROWS", 2)
    profile = make_profile()
    windows = hot_windows([profile], program, count=1, max_length=6)
    parsed = _Page(_page("k", program, profile, windows))
    kept = [a["id"] for a, _ in parsed.all("tr") if "id" in a]
    stalled = {f"i{i}" for i, counts in enumerate(profile.instructions) if counts.stalled}
    assert len(kept) == 9
    assert {f"i{i}" for i in range(windows[0].start, windows[0].stop)} <= set(kept)
    assert set(kept) <= stalled
    identifiers = {f"#{a['id']}" for _, a in parsed.elements if "id" in a}
    assert {a["href"] for _, a in parsed.elements if "href" in a} <= identifiers
    assert "3 lines that hold least" in parsed.by_id("listing")
    assert "The 2 of 3 with the most stalled clk" in parsed.by_id("memory")


def test_a_large_page_stays_small(program: Program, make_profile: MakeProfile) -> None:
    profile = make_profile(waves=40, trips=550)
    assert sum(map(len, profile.timeline)) > 190_000
    assert len(_page("k", program, profile)) < 2_000_000


def test_the_profile_of_another_program_is_refused(
        program: Program, make_profile: MakeProfile) -> None:
    profile = make_profile()
    other = replace(profile, instructions=profile.instructions[:-1])
    with pytest.raises(ProfileError, match="covers 11 instructions, the program has 12"):
        _page("k", program, other)


def test_the_script_refers_to_elements_that_exist(page: tuple[Profile, _Page]) -> None:
    _, parsed = page
    names = set(re.findall(r'\$\("([\w-]+)"\)', (PAGE / "profile.js").read_text()))
    identifiers = {a["id"] for _, a in parsed.elements if "id" in a}
    assert names <= identifiers


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
def test_the_script_finds_the_profile_s_stalls(page: tuple[Profile, _Page]) -> None:
    profile, parsed = page
    added = """
    const packed = JSON.parse(require("fs").readFileSync(0, "utf8"));
    unpackTimeline(packed).then(({spans, waves}) => {
      const clk = waves.map(() => ({}));
      waves.forEach((wave, n) => {
        for (let at = wave.first; at < wave.last; at++) {
          if (at > wave.first && spans.start[at] < spans.end[at - 1]) throw Error("overlap");
          const name = spans.code[at] ? packed.causes[spans.code[at] - 1] : "issue";
          clk[n][name] = (clk[n][name] || 0) + spans.end[at] - spans.start[at];
        }
      });
      console.log(JSON.stringify(clk));
    });
    """
    (script,) = [text for a, text in parsed.all("script") if "type" not in a]
    checked = subprocess.run(["node", "--check", "-"], input=script, text=True, check=False,
                             capture_output=True)
    assert checked.stderr == ""
    done = subprocess.run(
        ["node", "-e", (PAGE / "timeline_data.js").read_text() + added], text=True,
        input=parsed.by_id("timeline-data"), capture_output=True, check=True)
    found = json.loads(done.stdout)
    for wave, clk in zip(profile.waves, found, strict=True):
        assert clk.pop("issue") == wave.end - wave.start - wave.stalled
        assert clk == {cause.value: n for cause, n in wave.stalls.items() if n}


def test_colours_are_readable() -> None:
    """WCAG 2: text at least 4.5 to 1 on its background, in both themes."""
    style = (PAGE / "base.css").read_text()
    themes = [dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", part))
              for part in style.split("@media (prefers-color-scheme: dark)")[:2]]
    assert len(themes) == 2
    for theme in themes:
        for ink in ("text", "dim", "link", "hot"):
            for back in ("back", "panel", "stripe"):
                assert _contrast(theme[ink], theme[back]) >= 4.5, (ink, back)
        assert _contrast(theme["text"], theme["mark"]) >= 4.5


def _contrast(one: str, other: str) -> float:
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    channels: Any = [int(colour[n:n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
