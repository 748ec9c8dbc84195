"""``task=profile``: from a kernel's YAML to listing, page and trace."""

from __future__ import annotations

import gzip
import importlib.metadata
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from asmevo.codeobject.source import LocalFile
from asmevo.dispatch.generator import GeneratorError
from asmevo.dispatch.kernel import Kernel, Launch
from asmevo.profile.errors import ProfileError
from asmevo.report.result import Result, Status
from asmevo.report.terminal import print_result
from asmevo.task.profile import Profile
from asmevo.task.session import ConfigError
from asmevo.task.shapes import selected

RunTask = Callable[..., Result]


def _launches(result: Result) -> list[dict[str, Any]]:
    assert result.details is not None
    launches: list[dict[str, Any]] = result.details["launches"]
    return launches


def test_a_kernel_s_largest_shape_is_profiled(
        run: RunTask, capsys: pytest.CaptureFixture[str]) -> None:
    result = run("task=profile")
    assert (result.status, result.exit_status) == (Status.PROFILED, 0)
    (launch,) = _launches(result)
    assert (launch["dispatch"], launch["version"]) == ("M48-normal", "original")
    assert launch["source"] == result.timing_source == "modelled"
    assert launch["device"].startswith("emulator:gfx942:mi300x")
    assert launch["cycles"] > 0
    assert launch["microseconds"] == pytest.approx(launch["cycles"] / launch["clock_mhz"])
    windows = launch["windows"]
    assert len(windows) == 8
    gains = [w["recoverable"] for w in windows]
    assert gains == sorted(gains, reverse=True)
    assert 0 < sum(gains) < sum(launch["stalls"].values())
    stalled = sum(launch["stalls"].values())
    for window in windows:
        own = sum(sum(line["stalls"].values()) for line in window["lines"])
        assert own == pytest.approx(window["share"] * stalled, rel=1e-9)
    assert launch["occupancy"]["limited_by"] == ["VGPRs", "LDS"]
    assert launch["occupancy"]["vgprs"]["used"] == 512
    page = Path(launch["page"]).read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert launch["occupancy"]["sentence"] in page
    assert f"{launch['cycles']:,} clk" in page
    capsys.readouterr()
    print_result(result)
    shown = capsys.readouterr().out
    assert "M48-normal" in shown
    assert "modelled" in shown
    assert "window 3 of 8" in shown
    assert "window 4 of 8" not in shown
    assert "5 more on the page" in shown


def test_the_trace_of_a_launch(run: RunTask) -> None:
    result = run("task=profile", "kernel=aiter_topksoftmax", "task.shown=0")
    (launch,) = _launches(result)
    trace = json.loads(gzip.decompress(Path(launch["trace"]).read_bytes()))
    assert trace["otherData"]["dispatch"] == launch["dispatch"]
    stalls: dict[str, int] = {}
    for event in trace["traceEvents"]:
        if event.get("cat") == "stall":
            cause = event["name"].removeprefix("stall: ")
            stalls[cause] = stalls.get(cause, 0) + event["args"]["clk"]
    # No event shows what waves waited for before they had a slot.
    assert stalls == {c: n for c, n in launch["stalls"].items() if c != "occupancy"}


def test_shapes_are_chosen(run: RunTask) -> None:
    result = run("task=profile", "task.shapes=[M6,{M:4}]", "task.trace=null", "task.events=0")
    launches = _launches(result)
    assert [launch["dispatch"] for launch in launches] == ["M6-normal", "M4-normal"]
    assert len({launch["page"] for launch in launches}) == len(launches)
    assert {launch["trace"] for launch in launches} == {None}
    assert "<canvas" not in Path(launches[0]["page"]).read_text()


def test_without_a_launch_the_code_is_estimated(
        run: RunTask, tmp_path: Path, layer_norm_bytes: bytes,
        capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "my.co").write_bytes(layer_norm_bytes)
    result = run("task=profile", "kernel=file", f"kernel.source.path={tmp_path}/my.co")
    (launch,) = _launches(result)
    assert launch["source"] == "static"
    assert result.timing_source is None
    assert (launch["waves"], launch["trace"], launch["roofline"]) == (0, None, None)
    assert launch["windows"]
    page = Path(launch["page"]).read_text()
    assert 'class="badge static"' in page
    assert "<canvas" not in page
    print_result(result)
    assert "static" in capsys.readouterr().out
    assert _launches(run("task=profile", "task.static=true"))[0]["stalls"] == launch["stalls"]


def test_an_estimate_for_another_processor_says_so(run: RunTask) -> None:
    other = next(str(file.locate()) for file in importlib.metadata.files("amd-aiter") or ()
                 if file.name == "bf16gemm_outf32_tn_32x64_pf3.co" and "gfx950" in str(file))
    (launch,) = _launches(run("task=profile", "kernel=file", f"kernel.source.path={other}"))
    assert "the object is for gfx950, latencies are those of emulator:gfx942" in launch["scope"]


def test_the_roofline_is_that_of_the_launch(
        run: RunTask, capsys: pytest.CaptureFixture[str]) -> None:
    """The launch reads two buffers of 48 x 8192 bf16 and writes two; every line crosses L2."""
    result = run("task=profile")
    (launch,) = _launches(result)
    placed = launch["roofline"]
    assert placed["bytes"]["l1"] >= 4 * 48 * 8192 * 2
    assert placed["bytes"]["hbm"] == pytest.approx(4 * 48 * 8192 * 2, rel=0.05)
    assert max(placed["utilisation"].values()) <= 1
    assert placed["limit"] in ("latency", "bandwidth")
    page = Path(launch["page"]).read_text()
    assert placed["caption"].replace("&", "&amp;") in page
    assert 'class="roofline"' in page
    print_result(result)
    assert "the limit is" in " ".join(capsys.readouterr().out.split())


def _samples(path: Path, stalled: str, count: int) -> None:
    """As rocprofv3 writes PC samples: ``count`` at a wait, one that issues."""
    none, wait = (f"ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_{reason}"
                  for reason in ("NONE", "WAITCNT"))
    rows = ["Sample_Timestamp,Exec_Mask,Dispatch_Id,Instruction,Instruction_Comment,"
            "Correlation_Id,Wave_Issued_Instruction,Instruction_Type,Stall_Reason,Wave_Count"]
    rows += [f'{n},1,2,"{stalled}","",2,0,ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_NO_INST,{wait},6'
             for n in range(count)]
    rows.append(f'{count},1,2,"{stalled}","",2,1,'
                f"ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_NO_INST,{none},6")
    path.write_text("\n".join(rows) + "\n")


def test_what_rocprof_measured(run: RunTask, tmp_path: Path,
                               capsys: pytest.CaptureFixture[str]) -> None:
    _samples(tmp_path / "pc.csv", "s_waitcnt vmcnt(6)", 25)
    result = run("task=profile", f"task.samples={tmp_path}/pc.csv")
    (launch,) = _launches(result)
    assert launch["source"] == result.timing_source == "measured"
    assert launch["stalls"] == {"vmcnt": 100}
    assert launch["issued"] == 1
    assert launch["roofline"] is None
    page = Path(launch["page"]).read_text()
    assert 'class="badge measured"' in page
    assert "No GPU measured this" not in page
    (window,) = launch["windows"]
    assert window["lines"][-1]["text"] == "s_waitcnt vmcnt(6)"
    print_result(result)
    assert "measured on" in capsys.readouterr().out


def test_counters_place_what_was_measured(run: RunTask, tmp_path: Path) -> None:
    """2 MiB read and as much written in 1 us are 4.2 of the 4.4 TB/s that HBM gives."""
    _samples(tmp_path / "pc.csv", "s_waitcnt vmcnt(6)", 25)
    (tmp_path / "trace.csv").write_text(
        "Kind,Dispatch_Id,Kernel_Name,Start_Timestamp,End_Timestamp\n"
        "KERNEL_DISPATCH,2,my_norm,1000,2000\n")
    (tmp_path / "counters.csv").write_text(
        "Dispatch_Id,Kernel_Name,Counter_Name,Counter_Value\n"
        "2,my_norm,FETCH_SIZE,2048\n2,my_norm,WRITE_SIZE,2048\n")
    files = ",".join(f"{tmp_path}/{name}.csv" for name in ("pc", "trace", "counters"))
    result = run("task=profile", f"task.samples=[{files}]", "task.recorded_as=my_norm")
    (launch,) = _launches(result)
    placed = launch["roofline"]
    assert (placed["limit"], placed["level"]) == ("bandwidth", "hbm")
    assert placed["utilisation"] == {"HBM bandwidth": pytest.approx(0.953, abs=0.01)}
    assert "the limit is HBM bandwidth" in Path(launch["page"]).read_text()


def test_files_that_rocprof_did_not_write(run: RunTask, tmp_path: Path) -> None:
    (tmp_path / "pc.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ProfileError, match=r"pc\.csv is no PC sampling"):
        run("task=profile", f"task.samples=[{tmp_path}/pc.csv]")
    with pytest.raises(ProfileError, match=r"none\.csv cannot be read"):
        run("task=profile", f"task.samples={tmp_path}/none.csv")


@pytest.mark.parametrize(("override", "sentence"), [
    ("task.samples=[]", r"task.samples must be a file of rocprofv3 or a list of files"),
    ("task.shapes=M3", r"has no shape 'M3' \(M2, M16, M48, M6, M70\)"),
    ("task.trace=xml", r"task.trace must be gz, json or null, not 'xml'"),
    ("candidate=12", r"candidate=12 is not a SHA-256"),
])
def test_bad_settings_are_one_sentence(run: RunTask, override: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        run("task=profile", override)


@pytest.mark.parametrize(("settings", "sentence"), [
    ({"shown": -1}, r"task.shown must not be negative"),
    ({"events": -1}, r"task.events must not be negative"),
    ({"static": True, "samples": "pc.csv"}, r"exclude each other"),
])
def test_settings_that_make_no_sense(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        Profile(**settings)


KERNEL = Kernel(
    name="k", source=LocalFile("k.co"), launch=Launch(grid=("M * 2", "N", 1), workgroup=(64, 1, 1)),
    constants={"N": 3}, shapes=({"M": 7, "K": 1}, {"M": 2, "K": 9}), held_out_shapes=(
        {"M": 1, "K": 1},))


@pytest.mark.parametrize(("wanted", "shapes"), [
    ("largest", ({"M": 7, "K": 1},)),
    ("all", ({"M": 7, "K": 1}, {"M": 2, "K": 9})),
    (["M1_K1", {"M": 5, "K": 5}], ({"M": 1, "K": 1}, {"M": 5, "K": 5})),
    ({"M": 5, "K": 5, "N": 4}, ({"M": 5, "K": 5, "N": 4},)),
])
def test_shapes_by_name_and_by_value(wanted: object, shapes: object) -> None:
    assert selected(KERNEL, wanted) == shapes


@pytest.mark.parametrize(("wanted", "sentence"), [
    ([], r"must be largest, all or a list of shapes"),
    (7, r"must be largest, all or a list of shapes"),
    ([3], r"'3' is neither a shape's name nor a shape"),
    ([{"M": "big", "K": 1}], r"neither a shape's name nor a shape"),
    ([{"M": True, "K": 1}], r"neither a shape's name nor a shape"),
    ([{"M": 1}], r"a shape of kernel 'k' gives K, M, not M"),
])
def test_shapes_that_are_none(wanted: object, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        selected(KERNEL, wanted)


def test_an_unknown_input_family(run: RunTask) -> None:
    with pytest.raises(GeneratorError, match="unknown input family 'odd'"):
        run("task=profile", "task.family=odd")


def test_a_launch_that_faults(run: RunTask) -> None:
    result = run("task=profile", "kernel.launch.grid=[M, 1, 1]", "kernel.shapes=[{M:2}]")
    assert (result.status, result.exit_status) == (Status.FAULTED, 1)
    assert result.error
    assert _launches(result) == []
    print_result(result)


def test_the_command_line(command_line: Callable[..., Any],
                          read_result: Callable[[], dict[str, Any]]) -> None:
    done = command_line("task=profile", "task.shapes=M2")
    assert (done.returncode, done.stderr) == (0, "")
    assert "window 1 of" in done.stdout
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 200
    details = read_result()["details"]
    assert [launch["dispatch"] for launch in details["launches"]] == ["M2-normal"]
