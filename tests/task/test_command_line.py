"""The command line as a person uses it: in a folder of their own, in a process of its own."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest

import asmevo

SCHEMA = json.loads((Path(asmevo.__file__).parent / "report" / "result.schema.json").read_text())
SHORT = ("kernel.shapes=[{M:2}]", "kernel.held_out_shapes=[{M:4}]", "search.budget.attempts=6")


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "asmevo", *arguments]


def environment() -> dict[str, str]:
    source = str(Path(asmevo.__file__).parent.parent)
    return {**os.environ, "PYTHONPATH": source, "COLUMNS": "200"}


def run(folder: Path, *arguments: str, module: str = "asmevo") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", module, *arguments], cwd=folder, env=environment(),
        capture_output=True, text=True, timeout=300, check=False,
    )


def results(folder: Path) -> list[dict[str, object]]:
    found = [json.loads(p.read_text()) for p in sorted(folder.glob("runs/**/result.json"))]
    for result in found:
        jsonschema.validate(result, SCHEMA)
    return found


def original_object() -> Path:
    files = importlib.metadata.distribution("amd-aiter").files
    assert files is not None
    return Path(str(next(f for f in files if f.name == "layer_norm.co").locate()))


def local(path: Path) -> tuple[str, ...]:
    return (
        "~kernel.source.distribution",
        "kernel.source._target_=asmevo.codeobject.source.LocalFile",
        f"kernel.source.path={path}",
    )


@pytest.fixture(scope="module")
def optimised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a short search has committed something."""
    folder = tmp_path_factory.mktemp("optimised")
    done = run(folder, *SHORT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return folder


def test_optimize_commits_and_says_where_the_number_comes_from(optimised: Path) -> None:
    (result,) = results(optimised)
    assert result["status"] == "committed"
    assert result["timing_source"] == "modelled"
    assert isinstance(result["speedup"], float)
    assert result["speedup"] > 1.002
    folder = Path(str(result["folder"]))
    replacement = (folder / "replacement.co").read_bytes()
    assert replacement != original_object().read_bytes()
    attempts = [json.loads(line) for line in (folder / "attempts.jsonl").open()]
    assert len(attempts) == result["attempts"]
    lineage = json.loads((folder / "lineage.json").read_text())
    assert lineage[-1]["sha256"] == result["replacement_sha256"]
    assert (folder / "original.s").read_text().startswith("\t.amdgcn_target")


def test_verify_passes_in_a_process_of_its_own(optimised: Path) -> None:
    (result,) = [r for r in results(optimised) if r["task"] == "optimize"]
    done = run(
        optimised, "task=verify", "kernel=aiter_layer_norm",
        f"candidate={result['replacement_sha256']}", *SHORT[:2],
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (verified,) = [r for r in results(optimised) if r["task"] == "verify"]
    assert verified["status"] == "verified"
    assert verified["speedup"] == pytest.approx(result["speedup"])
    counts = verified["verdicts"]
    assert isinstance(counts, dict)
    # G2 three times, and once under the sanitizer.
    assert [counts[g]["pass"] for g in ("G0", "G1", "G2", "G3", "G4")] == [1, 1, 4, 1, 0]


def test_a_replacement_is_profiled_beside_its_original(optimised: Path) -> None:
    (result,) = [r for r in results(optimised) if r["task"] == "optimize"]
    done = run(
        optimised, "task=profile", "kernel=aiter_layer_norm", "task.shapes=all",
        f"candidate={result['replacement_sha256']}", *SHORT[:2],
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (profiled,) = [r for r in results(optimised) if r["task"] == "profile"]
    assert profiled["replacement_sha256"] == result["replacement_sha256"]
    details = profiled["details"]
    assert isinstance(details, dict)
    pairs = list(zip(details["launches"][::2], details["launches"][1::2], strict=True))
    for before, after in pairs:
        assert before["dispatch"] == after["dispatch"]
        assert (before["version"], after["version"]) == ("original", "replacement")
        assert after["cycles"] < before["cycles"]
        assert before["page"] != after["page"]
        beside = f'href="{Path(before["page"]).name}">original</a>'
        assert beside in Path(after["page"]).read_text()
    assert done.stdout.count(" replacement ") >= 2 * len(pairs)



def test_pull_refuses_a_modelled_timing_unless_told(optimised: Path) -> None:
    (result,) = [r for r in results(optimised) if r["task"] == "optimize"]
    target = optimised / "faster.co"
    pull = ("pull", "--original", str(original_object()), "-o", str(target))
    refused = run(optimised, *pull, module="asmevo.registry")
    assert refused.returncode != 0
    assert "--allow-modelled" in refused.stderr
    assert not target.exists()
    assert run(optimised, *pull, "--allow-modelled", module="asmevo.registry").returncode == 0
    assert target.read_bytes() == (Path(str(result["folder"])) / "replacement.co").read_bytes()


def test_list_for_machines(optimised: Path) -> None:
    listed = run(optimised, "list", "--json", module="asmevo.registry")
    assert listed.returncode == 0
    text = json.dumps(json.loads(listed.stdout))
    assert "modelled" in text
    assert str(results(optimised)[0]["replacement_sha256"]) in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("gates.epsilo=1",), ["gates.epsilo", "did you mean 'gates.epsilon'"]),
        (("nonsense=1",), ["nonsense"]),
        (("kernel=aiter_layernorm",), ["kernel=aiter_layernorm", "aiter_layer_norm"]),
        (("gates.epsilon=much",), ["gates.epsilon", "much"]),
        (("gates.epsilon=-1",), ["gates.epsilon", "negative"]),
        (("gates.repeats=2",), ["gates.repeats", "3"]),
        (("search.workers=0",), ["search.workers"]),
        (("search.executor=cloud",), ["search.executor", "cloud"]),
        (("oracle.families=[nomral]",), ["nomral", "normal"]),
        (("kernel.symbol=wrong_symbol",), ["wrong_symbol", "layer_norm_kernel_func"]),
        (("kernel.source.distribution=no-such-wheel",), ["no-such-wheel", "pip install"]),
        (("kernel.source.path=aiter_meta/none.co",), ["aiter_meta/none.co"]),
        (("kernel=file", "kernel.source.path=/nowhere/at_all.co"), ["/nowhere/at_all.co"]),
        (("kernel=file",), ["kernel.source.path"]),
        (("kernel=file", f"kernel.source.path={original_object()}"), ["shapes"]),
        (("kernel.shapes=[{M:3}]",), ["M / 2", "3"]),
        (("registry.path=/proc/asmevo",), ["/proc/asmevo"]),
        (("task=verify",), ["candidate="]),
        (("task=verify", "candidate=xyz"), ["xyz"]),
        (("task=verify", "candidate=" + "0" * 64), ["registry"]),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(
    tmp_path: Path, arguments: tuple[str, ...], words: list[str]
) -> None:
    done = run(tmp_path, *arguments)
    _expect_sentence(done, words)


def _expect_sentence(done: subprocess.CompletedProcess[str], words: list[str]) -> None:
    assert done.returncode == 2, done.stdout + done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("asmevo: ")
    for word in words:
        assert word in lines[0]


def test_truncated_object(tmp_path: Path) -> None:
    (tmp_path / "short.co").write_bytes(original_object().read_bytes()[:5000])
    _expect_sentence(run(tmp_path, *local(tmp_path / "short.co")), [])
    (error,) = results(tmp_path)
    assert error["status"] == "error"
    assert not (tmp_path / "registry" / "blobs").exists() or not any(
        (tmp_path / "registry" / "blobs").rglob("*.zst")
    )


def test_object_of_another_machine(tmp_path: Path) -> None:
    _expect_sentence(run(tmp_path, *local(Path(sys.executable).resolve())), ["AMD"])


def test_registry_path_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    _expect_sentence(run(tmp_path, f"registry.path={tmp_path}/taken"), ["taken"])
    assert (tmp_path / "taken").read_text() == "mine"


@pytest.mark.parametrize("search", ["greedy", "team"])
def test_ctrl_c_ends_cleanly(tmp_path: Path, search: str) -> None:
    # Uncommitted work only: with an impossible floor the search would go on for long.
    process = subprocess.Popen(
        command(f"search={search}", "gates.s_floor=100"), cwd=tmp_path, env=environment(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        logs = list(tmp_path.glob("runs/**/attempts.jsonl"))
        if logs and logs[0].read_text().count("\n") >= 3:
            break
        time.sleep(0.05)
    # As a terminal does: to the whole process group.
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    (result,) = results(tmp_path)
    assert result["status"] == "interrupted"
    database = sqlite3.connect(tmp_path / "registry" / "asmevo.db")
    assert database.execute("pragma integrity_check").fetchone() == ("ok",)
    assert database.execute("select status from run").fetchall() == [("interrupted",)]
    (count,) = database.execute("select count(*) from candidate").fetchone()
    assert count == result["attempts"]
    database.close()
    assert not list(tmp_path.glob("runs/**/.*.json.*"))


def test_sweep_runs_every_combination(tmp_path: Path) -> None:
    done = run(
        tmp_path, "-m", "gates.k=0.5,0.85", "search.seed=1,2", *SHORT[:2],
        "search.budget.attempts=2",
    )
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr
    assert len(results(tmp_path)) == 4


def test_team_runs_over_one_lineage(tmp_path: Path) -> None:
    done = run(tmp_path, "search=team", *SHORT[:2], "search.budget.attempts=24")
    assert done.returncode == 0, done.stdout + done.stderr
    (result,) = results(tmp_path)
    attempts = [
        json.loads(line) for line in (Path(str(result["folder"])) / "attempts.jsonl").open()
    ]
    assert len({a["worker"] for a in attempts}) >= 2
    assert len({a["direction"] for a in attempts}) >= 2


def test_help_names_every_group(tmp_path: Path) -> None:
    done = run(tmp_path, "--help")
    assert done.returncode == 0
    for group in ("kernel", "task", "device", "oracle", "gates", "profile", "proposer", "search",
                  "registry", "toolchain", "experiment"):
        assert re.search(rf"^{group}: ", done.stdout, re.MULTILINE), group
    assert not (tmp_path / "runs").exists()


def test_a_reader_that_stops_early_is_no_error(tmp_path: Path) -> None:
    pipe = " ".join(command("--help")) + " | head -1"
    done = subprocess.run(
        ["bash", "-c", pipe], cwd=tmp_path, env=environment(), capture_output=True, text=True,
        timeout=60, check=False,
    )
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_cfg_job_shows_the_configuration(tmp_path: Path) -> None:
    done = run(tmp_path, "--cfg", "job", "gates.epsilon=0.001")
    assert done.returncode == 0
    assert "epsilon: 0.001" in done.stdout
    assert not (tmp_path / "runs").exists()
