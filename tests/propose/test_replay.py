"""Recordings of runs: what is written is what is proposed again, and damage is named."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from asmevo.codeobject.assembly import Edit
from asmevo.propose.errors import ProposerError
from asmevo.propose.proposal import Direction, Evidence, Proposal
from asmevo.propose.recording import NAME, Recorded, Recording, read_recording
from asmevo.propose.replay import ReplayProposer
from tests.propose.conftest import KERNEL, Kernels

BASE, CHILD = "a" * 64, "b" * 64


def proposal(text: str, direction: Direction = Direction.SIMPLIFICATION) -> Proposal:
    return Proposal(
        (Edit(KERNEL, 0, 1, (text, "s_nop 0"), "why"), Edit(KERNEL, 2, 2, (), "also")), "rule",
        direction, "because", "nothing overlaps", "someone")


def write(folder: Path, *attempts: tuple[str, Proposal, str | None]) -> Path:
    recording = Recording(folder / NAME)
    for base, made, sha256 in attempts:
        recording.add(Recorded(base, made, sha256))
    recording.close()
    return folder / NAME


@pytest.fixture
def evidence(kernels: Kernels) -> Evidence:
    return replace(kernels.evidence("s_nop 1\ns_nop 2\ns_endpgm"), base=BASE)


def test_what_was_recorded_is_proposed_again(
        tmp_path: Path, evidence: Evidence) -> None:
    first, second, third = (proposal(f"s_nop {n}") for n in (3, 4, 5))
    path = write(tmp_path, (BASE, first, CHILD), (CHILD, second, None), (BASE, third, None))
    replayed = ReplayProposer(str(path))
    assert list(replayed.propose(evidence)) == [first, third]
    assert list(replayed.propose(replace(evidence, base=CHILD))) == [second]
    # The run folder does as well.
    assert list(ReplayProposer(str(tmp_path)).propose(evidence)) == [first, third]


def test_compositions_are_left_to_the_search(tmp_path: Path, evidence: Evidence) -> None:
    recording = Recording(tmp_path / NAME)
    recording.add(Recorded(BASE, proposal("s_nop 3"), CHILD, composed=True))
    recording.close()
    assert list(ReplayProposer(str(tmp_path)).propose(evidence)) == []
    # What was composed is known all the same.
    assert list(ReplayProposer(str(tmp_path)).propose(replace(evidence, base=CHILD))) == []


def test_refusals_are_repeated(tmp_path: Path, evidence: Evidence) -> None:
    refused = Proposal((), "malformed", Direction.SIMPLIFICATION, "", refusal="not a list")
    assert list(ReplayProposer(str(write(tmp_path, (BASE, refused, None)))).propose(evidence)) == [
        refused]


def test_only_the_wanted_directions(tmp_path: Path, evidence: Evidence) -> None:
    memory = proposal("s_nop 3", Direction.MEMORY_ACCESS)
    path = write(tmp_path, (BASE, proposal("s_nop 4"), None), (BASE, memory, None))
    wanted = replace(evidence, directions=(Direction.MEMORY_ACCESS,))
    assert [p.direction for p in ReplayProposer(str(path)).propose(wanted)] == [memory.direction]


def test_a_node_on_which_nothing_was_tried_gives_nothing(
        tmp_path: Path, evidence: Evidence) -> None:
    path = write(tmp_path, (BASE, proposal("s_nop 3"), CHILD))
    assert list(ReplayProposer(str(path)).propose(replace(evidence, base=CHILD))) == []


def test_another_object_is_an_error(tmp_path: Path, evidence: Evidence) -> None:
    path = write(tmp_path, (BASE, proposal("s_nop 3"), CHILD))
    with pytest.raises(ProposerError, match="records no attempt on the object cccc"):
        list(ReplayProposer(str(path)).propose(replace(evidence, base="c" * 64)))


def test_the_end_of_a_killed_run_is_left_out(tmp_path: Path) -> None:
    path = write(tmp_path, (BASE, proposal("s_nop 3"), None))
    with path.open("a") as file:
        file.write('{"base": "aaaa", "edi')
    assert len(list(read_recording(path))) == 1


@pytest.mark.parametrize(("field", "value", "words"), [
    ("edits", 3, "'edits' is no list"),
    ("edits", [{"kernel": "k", "start": "0", "stop": 1, "lines": [], "reason": ""}],
     "'start' is no int"),
    ("edits", [{"kernel": "k", "start": 0, "stop": 1, "lines": [7], "reason": ""}],
     "something other than text"),
    ("direction", "sideways", "sideways"),
    ("base", None, "'base' is no str"),
])
def test_a_damaged_line_is_named(tmp_path: Path, field: str, value: object, words: str) -> None:
    good = write(tmp_path, (BASE, proposal("s_nop 3"), None)).read_text()
    record = {**json.loads(good), field: value}
    path = tmp_path / NAME
    path.write_text(good + json.dumps(record) + "\n")
    with pytest.raises(ProposerError, match=r"line 2 of .*" + words):
        list(read_recording(path))


def test_other_logs_are_no_recording(tmp_path: Path) -> None:
    (tmp_path / "attempts.jsonl").write_text('{"candidate": "x", "edits": 2}\n')
    with pytest.raises(ProposerError, match="line 1 of"):
        list(read_recording(tmp_path / "attempts.jsonl"))


def test_no_transcript_is_one_sentence(tmp_path: Path, evidence: Evidence) -> None:
    with pytest.raises(ProposerError, match=r"proposer\.transcript="):
        ReplayProposer(None)
    with pytest.raises(ProposerError, match="No such file"):
        list(ReplayProposer(str(tmp_path / "none.jsonl")).propose(evidence))


@pytest.mark.parametrize("what", ["/dev/zero", "/dev/null", "pipe", "nul\0"])
def test_only_regular_files_are_read(tmp_path: Path, what: str) -> None:
    """Without hanging: a device has no end, and a pipe waits for who writes."""
    if what == "pipe":
        os.mkfifo(tmp_path / "pipe")
        what = str(tmp_path / "pipe")
    with pytest.raises(ProposerError, match=r"no regular file|no path of a recording"):
        list(read_recording(Path(what)))


def test_no_more_than_the_configured_bytes_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, (BASE, proposal("s_nop 3"), None))
    size = path.stat().st_size
    assert len(list(read_recording(path, size))) == 1
    with pytest.raises(ProposerError, match=rf"more than {size - 1} bytes"):
        list(read_recording(path, size - 1))
    with path.open("ab") as file:  # a hole: nothing of it is on disk, all of it would be one line
        file.truncate(1 << 40)
    with pytest.raises(ProposerError, match=r"proposer\.most_bytes"):
        ReplayProposer(str(path), 1 << 16).prepare(tmp_path)
    with pytest.raises(ProposerError, match="most_bytes must be"):
        ReplayProposer(str(path), 0)
