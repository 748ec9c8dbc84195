"""The display never needs more room than the terminal has, and a pipe gets plain lines."""

from __future__ import annotations

import io
import logging
import sys

import pytest
from rich.console import Console

from asmevo.report.live import SearchDisplay
from asmevo.report.live_view import SearchView
from asmevo.report.search_state import Bounds, SearchState
from asmevo.search.events import Resumed
from tests.report import made_search


def drawn(state: SearchState, width: int, height: int, title: str = "layer_norm") -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, height=height, color_system=None)
    console.print(SearchView(state, title, "modelled", lambda: state.seconds))
    return out.getvalue().splitlines()


@pytest.mark.parametrize("width", [20, 40, 72, 80, 100, 120, 200])
@pytest.mark.parametrize("height", [3, 8, 12, 24, 30, 50])
def test_it_fits_any_terminal(width: int, height: int) -> None:
    events = list(made_search.events(300, workers=12, tokens=10**6, cost=5.0))
    state = SearchState()
    for number, event in enumerate(events):
        state.happened(event)
        if number % 40 == 0 or number > len(events) - 2:
            lines = drawn(state, width, height)
            assert len(lines) < height
            assert max(map(len, lines)) <= width


def test_eighty_columns_show_what_matters() -> None:
    state = SearchState.of(list(made_search.events(60, cost=5.0))[:-5])
    text = "\n".join(drawn(state, 80, 24))
    assert state.best is not None
    assert f"best {state.best.speedup:.4f}x modelled, node {state.best.number}" in text
    assert "60 of 60" in text
    assert "of $5.00" in text
    assert "dependency-chains" in text
    for worker in state.workers.values():
        (line,) = (line for line in text.splitlines() if line.startswith(f"{worker.number} "))
        assert [int(word) for word in line.split()[2:9]] == [
            worker.base, worker.attempts, *(worker.rejected[g] for g in made_search.GATES)]
    assert "├─" in text
    assert "was lost: killed (SIGKILL)" in text


def test_names_from_files_stay_text() -> None:
    hostile = "\x1b[2J[bold]x\n\ny"
    state = SearchState.of(made_search.events(30, name=hostile))
    lines = drawn(state, 120, 40, hostile)
    assert "\x1b" not in "".join(lines)
    assert "[bold]x" in lines[0]
    assert len(lines) < 40


def test_a_pipe_gets_a_line_for_each_commit(capsys: pytest.CaptureFixture[str]) -> None:
    display = SearchDisplay("layer_norm", "modelled", Console(file=io.StringIO()))
    with display.shown():
        for event in made_search.events(60):
            display.happened(event)
    out, err = capsys.readouterr()
    lines = [line.split(maxsplit=3) for line in out.splitlines()]
    assert err == ""
    assert sum(kind == "committed" for _, _, kind, _ in lines) == display.state.commits > 0
    assert len(lines) == len(display.state.moments)
    assert {"fault", "redirected", "escalated", "composed"} <= {kind for _, _, kind, _ in lines}


def test_a_terminal_is_left_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    out = io.StringIO()
    console = Console(file=out, width=80, height=24, force_terminal=True)
    display = SearchDisplay("layer_norm", "modelled", console)
    handler = logging.StreamHandler(sys.stderr)
    logging.getLogger().addHandler(handler)
    stream = handler.stream
    try:
        with display.shown():
            for event in made_search.events(60):
                display.happened(event)
            logging.getLogger().warning("the disk is nearly full")
        assert handler.stream is stream
    finally:
        logging.getLogger().removeHandler(handler)
    assert capsys.readouterr().out == ""
    assert "the disk is nearly full" in out.getvalue()
    assert "best" in out.getvalue()


def test_earlier_sittings_are_known_but_told_already(capsys: pytest.CaptureFixture[str]) -> None:
    events = list(made_search.events(60))
    display = SearchDisplay("layer_norm", "modelled", Console(file=io.StringIO()))
    display.replay(events, Bounds(attempts=90, seconds=60.0))
    assert capsys.readouterr().out == ""
    display.happened(Resumed(attempts_used=60, seconds=display.state.seconds))
    assert capsys.readouterr().out.count("\n") == 1
    text = "\n".join(drawn(display.state, 80, 24))
    assert "60 of 90" in text
    assert "of 1:00" in text
