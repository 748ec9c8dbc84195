"""The command line, as a user or a deployment script runs it."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import asmevo
from asmevo.device.device import TimingSource
from asmevo.gates.verdict import Gate, Outcome
from asmevo.registry.command.line import main
from asmevo.registry.records import CandidateStatus

if TYPE_CHECKING:
    from tests.registry.conftest import Scene

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(asmevo.__file__).parents[1])}


def command(*arguments: object, folder: Path) -> list[str]:
    return [sys.executable, "-m", "asmevo.registry", *map(str, arguments), "--registry",
            str(folder)]


def run_process(*arguments: object, folder: Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command(*arguments, folder=folder), capture_output=True, text=True,
                          check=False, env=ENVIRONMENT, timeout=60)
    assert "Traceback" not in done.stderr
    return done


def run(*arguments: object, folder: Path) -> subprocess.CompletedProcess[str]:
    """The same in this process, which saves half a second each time."""
    words = [*map(str, arguments)]
    if words[:1] != ["keygen"]:  # which is about no registry
        words += ["--registry", str(folder)]
    status: str | int | None
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        try:
            status = main(words)
        except SystemExit as end:  # argparse's way to end
            status = end.code
    assert isinstance(status, int)
    return subprocess.CompletedProcess(words, status, out.getvalue(), err.getvalue())


def document(*arguments: object, folder: Path, status: int = 0) -> dict[str, Any]:
    done = run(*arguments, "--json", folder=folder)
    assert done.returncode == status, done.stderr

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    loaded: dict[str, Any] = json.loads(done.stdout, parse_constant=refuse)
    assert loaded.pop("schema_version") == 1
    return loaded


def check_time(text: str) -> None:
    assert text.endswith("+00:00")


REPLACEMENT = {
    "id": int, "original_sha256": str, "kernel": str, "isa": str, "candidate_id": str,
    "run_id": str, "replacement_sha256": str, "speedup": float, "timing_source": str,
    "device": str, "evidence_complete": bool, "created": str,
    "speedup_again": type(None), "withdrawn": bool,
    "judgement": dict, "weaker": list, "status": str,
}


def check_replacement(entry: dict[str, Any], **more: type) -> None:
    assert {name: type(value) for name, value in entry.items()} == REPLACEMENT | more
    check_time(entry["created"])


def test_list(scene: Scene) -> None:
    scene.commit("m", number=1, speedup=1.5, source=TimingSource.MODELLED)
    record = scene.commit("h", number=2, speedup=1.25)
    done = run_process("list", folder=scene.registry.path)
    assert (done.returncode, done.stderr) == (0, "")
    header, measured, modelled = done.stdout.splitlines()
    assert header.split() == ["original", "kernel", "replacement", "speedup", "source",
                              "device", "date", "status"]
    assert measured.split() == [
        record.original_sha256[:10], record.kernel, record.object_sha256[:10], "1.2500x",
        "measured", "device-measured", f"{record.created:%Y-%m-%d}", "committed"]
    assert "1.5000x" in modelled
    assert "modelled" in modelled

    listed = document("list", folder=scene.registry.path)
    assert set(listed) == {"replacements", "total"}
    assert listed["total"] == 2
    assert [r["speedup"] for r in listed["replacements"]] == [1.25, 1.5]
    for entry in listed["replacements"]:
        check_replacement(entry, signed_by=list)


def test_empty_list(scene: Scene) -> None:
    done = run("list", folder=scene.registry.path)
    assert done.returncode == 1
    assert "no replacements" in done.stdout
    assert document("list", folder=scene.registry.path, status=1) == {
        "replacements": [], "total": 0}


def test_show(scene: Scene) -> None:
    record = scene.commit("c1", number=1)
    scene.registry.record_recovered(scene.original.sha256, "s_endpgm", {"masks": []}, {})
    original = document("show", scene.original.sha256[:10], folder=scene.registry.path)
    assert set(original) == {"kind", "object", "recovered", "replacements", "replaces",
                             "captures"}
    assert original["kind"] == "object"
    assert original["object"]["sha256"] == scene.original.sha256
    assert original["object"]["content"] == "verified"
    assert original["object"]["kernels"] == [scene.kernel]
    assert original["recovered"][0]["report"] == {"masks": []}
    check_replacement(original["replacements"][0])
    assert original["replaces"] == []

    built = document("show", record.object_sha256, folder=scene.registry.path)
    [role] = built["replaces"]
    check_replacement(role["replacement"])
    assert [v["gate"] for v in role["candidate"]["verdicts"]] == [
        "G0", "G1", "G2", "G2", "G2", "G3", "G4"]
    [timing] = role["candidate"]["timings"]
    assert timing == {
        "dispatch_sha256": scene.dispatch.sha256, "samples_us": [10.5, 10.25],
        "median_us": 10.375, "source": "measured", "device": "device-measured", "warmup": 3}

    done = run("show", record.object_sha256, folder=scene.registry.path)
    assert done.returncode == 0
    assert f"candidate    {record.candidate_id}\n" in done.stdout
    assert done.stdout.count("G2") == 3
    [blob] = scene.registry.path.glob(f"blobs/*/{record.object_sha256}.zst")
    blob.unlink()
    assert "missing" in run("show", record.object_sha256, folder=scene.registry.path).stdout


def test_log(scene: Scene) -> None:
    scene.commit("base", number=1)
    scene.registry.record_candidate(scene.candidate(
        "child", parent="base", gates=(Gate.G0, Gate.G1), outcome=Outcome.FAIL,
        status=CandidateStatus.REJECTED))
    done = run("log", folder=scene.registry.path)
    assert done.returncode == 0
    title, root, base, rest = done.stdout.splitlines()
    assert scene.run_id in title
    assert "original" in root
    assert "1 1.2500x" in base
    assert "1 candidate rejected: G1 mismatch 1" in rest

    done = run("log", "--all", folder=scene.registry.path)
    assert done.returncode == 0
    root, base, child = done.stdout.splitlines()
    assert scene.run_id in root
    assert "base  committed  1.2500x" in base
    assert "child  rejected  G1 mismatch" in child
    assert child.index("child") > base.index("base")

    logged = document("log", "--run", scene.run_id, folder=scene.registry.path)
    assert set(logged) == {"run", "candidates"}
    assert logged["run"]["id"] == scene.run_id
    check_time(logged["run"]["started"])
    assert [(c["id"], c["parent_id"], c["speedup"]) for c in logged["candidates"]] == [
        ("base", None, 1.25), ("child", "base", None)]
    assert set(logged["candidates"][0]) == {
        "id", "run_id", "original_sha256", "kernel", "edits", "rule", "direction", "rationale",
        "status", "parent_id", "worker", "verdicts", "timings", "assembly_sha256",
        "object_sha256", "created", "speedup"}
    assert run("log", "--run", "20991231", folder=scene.registry.path).returncode == 1


def test_pull(scene: Scene, tmp_path: Path) -> None:
    record = scene.commit("c1", number=1)
    original, output = tmp_path / "o.co", tmp_path / "out" / "new.co"
    original.write_bytes(scene.original.data)
    output.parent.mkdir()
    for given in (original, scene.original.sha256, scene.original.sha256[:12]):
        done = run_process("pull", "--original", given, "-o", output, folder=scene.registry.path)
        assert (done.returncode, done.stderr) == (0, "")
        assert "1.2500x measured on device-measured" in done.stdout
        assert output.read_bytes() == scene.variant(1).data
        assert list(output.parent.iterdir()) == [output]
        output.unlink()
    pulled = document("pull", "--original", original, "-o", output, folder=scene.registry.path)
    assert (pulled["status"], pulled["output"]) == ("pulled", str(output))
    check_replacement(pulled["replacement"])
    assert pulled["replacement"]["replacement_sha256"] == record.object_sha256


def test_pull_refuses_to_overwrite(scene: Scene, tmp_path: Path) -> None:
    scene.commit("c1", number=1)
    output = tmp_path / "new.co"
    output.write_bytes(b"mine")
    arguments = ("pull", "--original", scene.original.sha256, "-o", output)
    done = run(*arguments, folder=scene.registry.path)
    assert done.returncode == 2
    assert "--force overwrites it" in done.stderr
    assert output.read_bytes() == b"mine"
    assert run(*arguments, "--force", folder=scene.registry.path).returncode == 0
    assert output.read_bytes() == scene.variant(1).data


def test_pull_of_modelled(scene: Scene, tmp_path: Path) -> None:
    scene.commit("c1", number=1, source=TimingSource.MODELLED)
    output = tmp_path / "new.co"
    arguments = ("pull", "--original", scene.original.sha256, "-o", output)
    done = run(*arguments, folder=scene.registry.path)
    assert done.returncode == 3
    assert "--allow-modelled" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    refused = document(*arguments, folder=scene.registry.path, status=3)
    assert refused["status"] == "refused"
    assert refused["code"] == "modelled-only"
    assert not output.exists()
    assert run(*arguments, "--allow-modelled", folder=scene.registry.path).returncode == 0
    assert output.read_bytes() == scene.variant(1).data


def test_pull_of_nothing(scene: Scene, tmp_path: Path) -> None:
    refused = document("pull", "--original", scene.original.sha256, "-o", tmp_path / "x",
                       folder=scene.registry.path, status=1)
    assert refused["code"] == "no-replacement"


@pytest.mark.parametrize("arguments", [
    ("list",), ("log",), ("show", "abcdef"), ("pull", "--original", "0" * 64, "-o", "x"),
])
def test_missing_registry(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = run_process(*arguments, folder=tmp_path / "none")
    assert done.returncode == 2
    assert done.stderr == f"asmevo-registry: no registry at {tmp_path / 'none'}\n"
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("arguments", "status"), [
    (("show", "zzz"), 2), (("show", "abc"), 2), (("show", "0" * 64), 1), (("show", ""), 2),
    (("pull", "--original", "missing.co", "-o", "x"), 2),
    (("pull", "--original", "0" * 64, "-o", "/"), 2),
    (("pull", "--original", "0" * 64), 2), (("pull",), 2), (("frobnicate",), 2), ((), 2),
    (("list", "--bogus"), 2),
])
def test_bad_input(scene: Scene, arguments: tuple[str, ...], status: int) -> None:
    done = run(*arguments, folder=scene.registry.path)
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr


def test_output_folder_is_missing(scene: Scene, tmp_path: Path) -> None:
    scene.commit("c1", number=1)
    done = run("pull", "--original", scene.original.sha256, "-o", tmp_path / "no" / "f",
               folder=scene.registry.path)
    assert done.returncode == 2
    assert "cannot write" in done.stderr


def test_hostile_names_reach_no_terminal(scene: Scene) -> None:
    scene.commit("c1", number=1)
    with closing(sqlite3.connect(scene.registry.path / "asmevo.db")) as connection:
        connection.execute("UPDATE replacement SET kernel = ?", ("[red]k\x1b[2J\n\x07",))
        connection.commit()
    done = run("list", folder=scene.registry.path)
    assert "[red]k\\x1b[2J\\n\\x07" in done.stdout
    assert "\x1b" not in done.stdout


def test_reader_of_a_pipe_may_leave(scene: Scene) -> None:
    scene.commit("c1", number=1)
    with subprocess.Popen(command("list", folder=scene.registry.path), env=ENVIRONMENT,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_interrupt(scene: Scene, monkeypatch: pytest.MonkeyPatch,
                   capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("asmevo.registry.catalog.catalog.Catalog.select", interrupted)
    assert main(["list", "--registry", str(scene.registry.path)]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_help_names_every_command() -> None:
    done = subprocess.run([sys.executable, "-m", "asmevo.registry", "--help"], env=ENVIRONMENT,
                          capture_output=True, text=True, check=True)
    for name in ("list", "show", "log", "pull"):
        assert name in done.stdout
