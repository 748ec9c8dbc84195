"""The page of a search: well formed, harmless whatever is in it, and true to the run."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from asmevo.isa.program import Program
from asmevo.profile.profile import Profile
from asmevo.profile.windows import hot_windows
from asmevo.report import page_style, version_profile
from asmevo.report.lineage_svg import lineage_svg
from asmevo.report.progress_plot import progress_plot, ticks
from asmevo.report.search_page import search_page
from asmevo.report.search_state import Record, SearchState
from asmevo.report.stored_run import StoredRun
from asmevo.report.version_profile import (
    ORIGINAL,
    WINNER,
    StoredProfileError,
    VersionProfile,
)
from asmevo.search.events import Committed
from tests.report import made_search
from tests.report.parsed_page import ParsedPage

MakeProfile = Callable[..., Profile]
MakeRun = Callable[..., StoredRun]
HOSTILE = "</script><img src=x onerror=alert(1)>'\"&\u202e\x1b]0;"


def winner_of(program: Program) -> Program:
    """Two instructions more, and one with other operands; labels as they were."""
    rows, offset = [], 0
    for index, instruction in enumerate(program.instructions):
        size = program.offsets[index + 1] - program.offsets[index]
        text = instruction.text.replace("v4, v4, v8", "v4, v5, v8")
        if index == 10:
            text = "s_cbranch_scc1 loop"
        for line in (["s_nop 0", text] if index in (0, 11) else [text]):
            length = 4 if line == "s_nop 0" else size
            rows.append((offset, length, line))
            offset += length
    at = next(o for o, _, line in rows if line.startswith("global_load"))
    return Program.from_disassembly(rows, {at: "loop"})


@pytest.fixture
def make_run(program: Program, make_profile: MakeProfile) -> MakeRun:
    def make(*, attempts: int = 80, text: str = "layer_norm", **result: Any) -> StoredRun:
        state = SearchState.of(made_search.events(attempts, name=text, cost=5.0))
        winner, profile = winner_of(program), make_profile()
        windows = hot_windows([profile], program, count=3, max_length=6)
        longer = replace(profile, instructions=(
            *profile.instructions[:1], *profile.instructions, profile.instructions[-1]))
        assert len(longer.instructions) == len(winner)
        best = state.best
        assert best is not None
        return StoredRun(
            {"task": "optimize", "status": "committed", "kernel": text, "symbol": text,
             "original_sha256": made_search.sha(0), "replacement_sha256": best.sha256,
             "speedup": best.speedup, "speedup_again": 1.0317, "timing_source": "modelled",
             "device": "emulator:test", "attempts": state.judged, "commits": state.commits,
             "stopped": "attempts", "run_id": "run-1", "registry": "/r", "wall_seconds": 12.5,
             "counterexamples": {"used": [], "kept": [text], "refused": []},
             "timings": [{"dispatch": text, "original_us": 4.63, "replacement_us": 4.42,
                          "speedup": 1.0475, "again_original_us": 4.63, "again_us": 4.43,
                          "again_speedup": 1.0451}], **result},
            state, config=f"kernel:\n  name: {text}\n", overrides=("search=team", text),
            original=program, winner=winner,
            profiles={ORIGINAL: VersionProfile.of("a", profile, windows),
                      WINNER: VersionProfile.of("b", longer, ())},
            again={"outcome": "pass", "reason": text, "evidence": {
                "interval": [1.01, 1.04], "variation": 0.001, "caches": "cold"}},
            missing=[text])

    return make


def test_every_link_leads_somewhere_and_nothing_leaves_the_file(make_run: MakeRun) -> None:
    page = search_page(make_run())
    parsed = ParsedPage(page)
    identifiers = [a["id"] for _, a in parsed.elements if "id" in a]
    assert len(identifiers) == len(set(identifiers))
    targets = {a["href"] for _, a in parsed.elements if "href" in a}
    assert targets
    assert {f"#{identifier}" for identifier in identifiers} >= targets
    assert not [a for _, a in parsed.elements if "src" in a or "style" in a
                or any(name.startswith("on") for name in a)]
    described = {name for _, a in parsed.elements for key in ("aria-labelledby", "aria-describedby")
                 for name in (a.get(key) or "").split()}
    assert described
    assert described <= set(identifiers)
    assert "http:" not in page.replace("http-equiv", "")
    assert "https:" not in page
    policy = next(a["content"] for tag, a in parsed.elements
                  if a.get("http-equiv") == "Content-Security-Policy")
    (style,), (script,) = ([text for _, text in parsed.all(tag)] for tag in ("style", "script"))
    assert policy == page_style.policy(style, script)


def test_pictures_have_words(make_run: MakeRun) -> None:
    parsed = ParsedPage(search_page(make_run()))
    pictures = [a for tag, a in parsed.elements if tag == "svg"]
    assert len(pictures) > 10
    for attributes in pictures:
        assert attributes.get("aria-hidden") == "true" or (
            attributes.get("role") == "img"
            and ("aria-label" in attributes or "aria-labelledby" in attributes))


def test_text_from_anywhere_stays_text(make_run: MakeRun) -> None:
    page = search_page(make_run(text=HOSTILE))
    parsed = ParsedPage(page)
    assert not parsed.all("img")
    assert len(parsed.all("script")) == 1
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert page.count("&lt;/script&gt;&lt;img src=x") > 10


def test_figures_of_the_run(make_run: MakeRun) -> None:
    run = make_run()
    parsed = ParsedPage(search_page(run))
    summary = parsed.by_id("summary")
    assert "1.0317x timed again in a fresh process" in " ".join(summary.split())
    assert "no GPU measured" in summary
    assert "budget of attempts was used up" in summary
    gates = parsed.by_id("gates")
    for gate in made_search.GATES:
        counts = run.state.verdicts[gate]
        assert f"{gate}: {counts['pass']} passed, {counts['fail']} failed" in gates
    for code in made_search.REASONS.values():
        assert code in gates
    rules = parsed.by_id("rules")
    for rule in run.state.rules:
        assert rule in rules
    assert "4.630" in parsed.by_id("timings")
    lineage = parsed.by_id("lineage")
    for node in run.state.nodes[1:]:
        assert f"{node.number}  {node.speedup:.4f}x" in lineage
    diff = parsed.by_id("diff")
    assert "12 instructions became 14: 0 moved, 1 with other operands, 0 removed, 2 added" in diff
    provenance = parsed.by_id("provenance")
    for fact in (made_search.sha(0), "emulator:test", "search=team", "name: layer_norm"):
        assert fact in provenance


def test_a_run_that_found_nothing(make_run: MakeRun) -> None:
    run = make_run(replacement_sha256=None, speedup=1.0, speedup_again=None, status="none")
    run.winner, run.again, run.profiles = None, None, {}
    run.state = SearchState()
    parsed = ParsedPage(search_page(run))
    assert "there is no replacement" in parsed.by_id("summary")
    assert "There is no winner" in parsed.by_id("diff")
    assert not [a for _, a in parsed.elements if a.get("id") in ("lineage", "windows", "gates")]


def test_a_winner_that_was_not_confirmed(make_run: MakeRun) -> None:
    parsed = ParsedPage(search_page(make_run(status="none", speedup_again=0.99)))
    assert "not faster when it was timed again" in parsed.by_id("summary")


def test_the_lineage_has_each_node_once() -> None:
    state = SearchState.of(made_search.events(200))
    page = ParsedPage(f"<p>{lineage_svg(state.nodes)}</p>")
    circles = [a for tag, a in page.elements if tag == "circle"]
    assert len(circles) == len(state.nodes)
    assert len({(a["cx"], a["cy"]) for a in circles}) == len(circles)
    joined = [a for tag, a in page.elements if tag == "path" and "other" not in (a["class"] or "")]
    assert len(joined) == len(state.nodes) - 1
    composed = [e for e in made_search.events(200) if isinstance(e, Committed) and e.parents]
    assert composed
    assert len([a for tag, a in page.elements if "edge other" in (a.get("class") or "")]) == sum(
        p.node is not None and p.node != e.parent for e in composed for p in e.parents)


@pytest.mark.parametrize("over", ["attempts", "seconds"])
@pytest.mark.parametrize("attempts", [1, 5, 60, 500])
def test_plots_stay_inside_their_axes(over: str, attempts: int) -> None:
    state = SearchState.of(made_search.events(attempts))
    page = ParsedPage(f"<p>{progress_plot(state, over)}</p>")
    circles = [(float(a["cx"] or 0), float(a["cy"] or 0)) for tag, a in page.elements
               if tag == "circle"]
    assert len(circles) == state.commits
    assert all(58 <= x <= 580 and 14 <= y <= 258 for x, y in circles)
    if state.commits:  # faster is higher
        speeds = [node.speedup for node in state.nodes[1:]]
        assert circles[speeds.index(max(speeds))][1] == min(y for _, y in circles)


def test_ticks_are_round() -> None:
    assert ticks(0.0, 60.0, 6) == [0, 10, 20, 30, 40, 50, 60]
    assert ticks(0.97, 1.05, 5) == pytest.approx([0.98, 1.0, 1.02, 1.04])
    assert ticks(1.0, 1.0, 5) == [1.0]


def test_colours_are_readable() -> None:
    """WCAG 2: text at least 4.5 to 1 on its background, in both themes."""
    base, own = ((page_style.FOLDER / name).read_text() for name in ("base.css", "search.css"))
    for theme in (0, 1):
        colours: dict[str, str] = {}
        for style in (base, own):
            part = style.split("@media (prefers-color-scheme: dark)")[theme]
            colours |= dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", part))
        for ink in ("text", "register", "literal", "label", "link"):
            for back in ("back", "gone", "new", "changed", "moved"):
                assert _contrast(colours[ink], colours[back]) >= 4.5, (theme, ink, back)


def _contrast(one: str, other: str) -> float:
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    linear = [c / 12.92 if c <= 0.04045 else float(((c + 0.055) / 1.055) ** 2.4)
              for c in (int(colour[n:n + 2], 16) / 255 for n in (1, 3, 5))]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_several_rules_at_once_are_one_line(make_run: MakeRun) -> None:
    run = make_run()
    first, second = (Record(proposed=n, passed=n, seconds=1.0) for n in (2, 3))
    run.state.rules.update({"a+b": first, "a+c": second})
    rules = ParsedPage(search_page(run)).by_id("rules")
    assert "several rules at once55" in rules
    assert "a+b" not in rules


def test_profiles_are_read_as_written(
        program: Program, make_profile: MakeProfile, tmp_path: Path) -> None:
    profile = make_profile()
    windows = hot_windows([profile], program, count=3, max_length=6)
    stored = VersionProfile.of("a" * 64, profile, windows)
    assert version_profile.read(tmp_path) == {}
    version_profile.write(tmp_path, {ORIGINAL: stored})
    assert version_profile.read(tmp_path) == {ORIGINAL: stored}
    total = sum(counts.stalled for counts in profile.instructions)
    assert stored.by_cause.total() == total


@pytest.mark.parametrize("content", [
    "", "[]", "{}", '{"schema": "asmevo.profiles/9"}',
    '{"schema": "asmevo.profiles/1", "original": {"sha256": "a"}}',
    '{"schema": "asmevo.profiles/1", "original": 5}'])
def test_profiles_that_are_none(content: str, tmp_path: Path) -> None:
    (tmp_path / version_profile.FILE).write_text(content)
    with pytest.raises(StoredProfileError):
        version_profile.read(tmp_path)
