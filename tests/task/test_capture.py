"""``task=capture``, and everything that works on what it leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from asmevo.codeobject.assembly import Edit
from asmevo.device.emulator.emulator import Emulator
from asmevo.dispatch.captured.errors import CaptureError
from asmevo.dispatch.captured.folder import DOCUMENT, read_capture
from asmevo.gates.baseline import OracleError
from asmevo.gates.verdict import Gate
from asmevo.report.result import Result, Status
from asmevo.report.terminal import print_result
from asmevo.task.session import ConfigError
from tests.cheats.conftest import configured

SMALL = ("kernel=aiter_topksoftmax", "kernel.shapes=[{T:50,S:8}]",
         "kernel.held_out_shapes=[{T:13,S:8}]", "oracle.families=[normal]",
         "oracle.held_out_families=[wide]")


@pytest.fixture
def captures(run: Callable[..., Result], tmp_path: Path) -> Path:
    """A visible and a held-out dispatch, captured."""
    result = run("task=capture", *SMALL)
    assert result.status is Status.CAPTURED
    assert result.exit_status == 0
    (tmp_path / "run" / "captures").rename(tmp_path / "captures")
    return tmp_path / "captures"


def from_capture(folder: Path, held_out: Path | None = None) -> tuple[str, ...]:
    hidden = () if held_out is None else (f"oracle.held_out={held_out}",)
    return ("kernel=captured", "oracle=captured", f"oracle.path={folder}", *hidden)


def test_what_is_recorded(run: Callable[..., Result], tmp_path: Path,
                          capsys: pytest.CaptureFixture[str]) -> None:
    result = run("task=capture", *SMALL, "task.dispatches=[T50_S8-normal]", "task.registered=true")
    assert result.details is not None
    (facts,) = result.details["captures"]
    assert facts["dispatch"] == "T50_S8-normal"
    assert (facts["memory"], facts["movable"]) == (50 * 8 * 8 + 50 * 128 * 4, True)
    assert facts["outputs"] == 50 * 8 * 8
    capture = read_capture(Path(facts["folder"]))
    assert capture.code_object == result.original_sha256
    assert capture.origin == result.device
    session = configured(tmp_path, *SMALL)
    (record,) = session.registry.captures(capture.code_object, capture.kernel)
    assert record.sha256 == facts["registered"]
    assert session.registry.load_capture(record.sha256) == capture
    assert session.counterexamples == ()
    print_result(result)
    assert "T50_S8-normal" in capsys.readouterr().out


def test_a_dispatch_that_is_not_there(run: Callable[..., Result]) -> None:
    with pytest.raises(ConfigError, match=r"no dispatch 'T51' \(T50_S8-normal, T13_S8-wide, "):
        run("task=capture", *SMALL, "task.dispatches=[T51]")


def test_a_granularity_that_is_none(run: Callable[..., Result]) -> None:
    with pytest.raises(CaptureError, match="power of two"):
        run("task=capture", *SMALL, "task.granularity=1000")


def test_a_launch_that_faults(run: Callable[..., Result]) -> None:
    result = run("task=capture", "kernel=aiter_layer_norm", "kernel.launch.grid=[M, 1, 1]")
    assert result.status is Status.FAULTED
    assert result.exit_status == 1


def test_every_task_works_on_a_capture(run: Callable[..., Result], captures: Path) -> None:
    """With the kernel from the capture as well: its folder is all there is."""
    given = from_capture(captures / "T50_S8-normal", captures / "T13_S8-wide")
    ran = run("task=run", *given)
    assert ran.status is Status.RAN
    assert ran.details is not None
    assert [launch["dispatch"] for launch in ran.details["launches"]] == [
        "T50_S8-normal", "T13_S8-wide"]
    assert all(launch["fault"] is None for launch in ran.details["launches"])
    profiled = run("task=profile", *given)
    assert profiled.status is Status.PROFILED
    optimised = run("task=optimize", *given, "search.budget.attempts=4")
    assert optimised.status is Status.COMMITTED
    assert optimised.verdicts["G2"]["pass"] >= 1
    verified = run("task=verify", *given, f"candidate={optimised.replacement_sha256}")
    assert verified.status is Status.VERIFIED


def test_a_capture_is_captured_again(run: Callable[..., Result], captures: Path) -> None:
    result = run("task=capture", *from_capture(captures), "task.granularity=128")
    assert result.details is not None
    again = {c["dispatch"]: read_capture(Path(c["folder"])) for c in result.details["captures"]}
    for name in ("T50_S8-normal", "T13_S8-wide"):
        first, second = read_capture(captures / name), again[name]
        assert second.size <= first.size
        assert (second.kernarg, second.grid, second.code_object) == (
            first.kernarg, first.grid, first.code_object)


def test_a_capture_of_another_object_is_refused(run: Callable[..., Result],
                                                captures: Path) -> None:
    with pytest.raises(CaptureError, match="is of the code object"):
        run("task=run", "kernel=aiter_layer_norm", "oracle=captured", f"oracle.path={captures}")


def test_two_captures_of_one_name_are_refused(run: Callable[..., Result], captures: Path) -> None:
    with pytest.raises(CaptureError, match="two captures named"):
        run("task=run", *from_capture(captures, captures))


@pytest.mark.parametrize(("path", "words"), [
    ("nowhere", "there is no capture"), ("''", "must name a folder"), ("[]", "names no capture"),
])
def test_paths_that_hold_none(run: Callable[..., Result], tmp_path: Path, path: str,
                              words: str) -> None:
    with pytest.raises(Exception, match=words):
        run("task=run", "kernel=aiter_topksoftmax", "oracle=captured", f"oracle.path={path}")


def test_the_path_must_be_given(run: Callable[..., Result], tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"oracle\.path"):
        run("task=run", "kernel=aiter_topksoftmax", "oracle=captured")


def altered(folder: Path, allocation: str, byte: int) -> None:
    """Change one byte that was recorded after the dispatch."""
    from asmevo.dispatch.captured.blobs import BlobFolder

    document = json.loads((folder / DOCUMENT).read_text())
    (segment,) = next(a["segments"] for a in document["allocations"] if a["name"] == allocation)
    blobs = BlobFolder(folder / "blobs")
    post = bytearray(blobs.get(segment["post"], segment["size"]))
    post[byte] ^= 0x40
    segment["post"] = blobs.put(bytes(post))
    (folder / DOCUMENT).write_text(json.dumps(document))


@pytest.mark.parametrize(("allocation", "code"), [("indices", "bits"), ("weights", "max-abs")])
def test_nothing_is_judged_by_a_replay_that_differs(run: Callable[..., Result], captures: Path,
                                                    allocation: str, code: str) -> None:
    folder = captures / "T50_S8-normal"
    altered(folder, allocation, 3)
    with pytest.raises(OracleError, match=f"differs from what was recorded in '{allocation}'"):
        run("task=optimize", *from_capture(folder), "search.budget.attempts=1")


def test_an_unmapped_pointer_is_no_oracle(run: Callable[..., Result], captures: Path) -> None:
    folder = captures / "T50_S8-normal"
    document = json.loads((folder / DOCUMENT).read_text())
    document["allocations"] = [a for a in document["allocations"] if a["name"] != "gating"]
    document["pointers"] = None
    (folder / DOCUMENT).write_text(json.dumps(document))
    with pytest.raises(OracleError, match="faults on the replay"):
        run("task=optimize", *from_capture(folder), "search.budget.attempts=1")


def test_a_dispatch_that_changes_nothing_is_no_oracle(run: Callable[..., Result],
                                                      captures: Path) -> None:
    """The output of a capture may hold the answer before it: then s_endpgm would be right."""
    folder = captures / "T50_S8-normal"
    document = json.loads((folder / DOCUMENT).read_text())
    for allocation in document["allocations"]:
        for segment in allocation["segments"]:
            segment["pre"] = segment["post"]
    (folder / DOCUMENT).write_text(json.dumps(document))
    with pytest.raises(OracleError, match="records no change of memory"):
        run("task=optimize", *from_capture(folder), "search.budget.attempts=1")


CHEATS = {
    # B1: the recorded output is still there, or would be, were it not filled with noise
    "ends at once": ("s_", ("s_endpgm",), True),
    # B13, B14: beyond what the dispatch touched there is nothing
    "writes beyond the output": ("s_endpgm", (
        "s_load_dwordx2 s[8:9], s[0:1], 0x0", "s_waitcnt lgkmcnt(0)", "v_mov_b32_e32 v0, 0x2000",
        "global_store_dword v0, v0, s[8:9]", "s_endpgm"), False),
}


@pytest.mark.parametrize("cheat", list(CHEATS))
def test_cheats_against_a_capture(run: Callable[..., Result], captures: Path, tmp_path: Path,
                                  cheat: str) -> None:
    start, new, first = CHEATS[cheat]
    session = configured(tmp_path, *from_capture(captures / "T50_S8-normal"))
    assert isinstance(session.device, Emulator)
    lines = [line.text for line in session.assembly.body(session.symbol).lines if line.text]
    at = next(i for i, line in enumerate(lines) if first or line.startswith(start))
    edit = Edit(session.symbol, at, at + 1, new, cheat)
    session.baseline.self_check(session.gates.tolerance)
    _, verdicts = session.gates.judge(session.baseline, session.toolchain,
                                      assembly=session.assembly.apply([edit]))
    assert not verdicts[-1].passed
    assert verdicts[-1].gate in (Gate.G1, Gate.G2)
