"""The log in the run folder: appended to, torn by a kill, continued by a resumed run."""

from __future__ import annotations

from pathlib import Path

import pytest

from asmevo.search.eventlog import EventLog, read_log
from asmevo.search.events import EventError
from tests.search.test_events import EXAMPLES


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with EventLog(path) as log:
        log.write(EXAMPLES[:2])
        log.write(EXAMPLES[2:])
        # Nothing waits in a buffer of this process.
        assert read_log(path) == EXAMPLES


@pytest.mark.parametrize("cut", [1, 20, 120])
def test_a_torn_last_line_does_not_count(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "events.jsonl"
    with EventLog(path) as log:
        log.write(EXAMPLES)
    path.write_bytes(path.read_bytes()[:-cut])
    assert read_log(path) == EXAMPLES[:-1]
    with EventLog(path, EXAMPLES[:-1]) as log:
        log.write(EXAMPLES[-1:])
    assert read_log(path) == EXAMPLES


def test_a_resumed_run_has_all_of_it_in_its_own_folder(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with EventLog(path, EXAMPLES[:4]) as log:
        log.write(EXAMPLES[4:])
    assert read_log(path) == EXAMPLES


def test_what_the_log_lacks_of_the_registry_is_added(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with EventLog(path) as log:
        log.write(EXAMPLES[:3])
    with EventLog(path, EXAMPLES[:6]):
        pass
    assert read_log(path) == EXAMPLES[:6]


def test_another_runs_log_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with EventLog(path) as log:
        log.write(EXAMPLES[3:6])
    with EventLog(path) as log:
        log.write(EXAMPLES[:2])
    assert read_log(path) == EXAMPLES[:2]


def test_a_broken_line_in_the_middle_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"kind": "resumed", "attempts_used": 1}\nnonsense\n')
    with pytest.raises((EventError, ValueError)):
        read_log(path)
