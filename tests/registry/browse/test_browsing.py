"""``list``, ``show``, ``log``, ``diff`` and ``stats`` on a registry as a search leaves it."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import shutil
import sqlite3
import struct
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from asmevo.gates.verdict import Gate, Outcome, Verdict
from asmevo.registry.command.line import main
from asmevo.registry.registry import Registry
from asmevo.registry.replacement.selection import Selection
from tests.registry.documents import check_document
from tests.registry.populated import Populated

SECRET = "s3cr/et"
URLS = [f"postgresql+psycopg://user:{SECRET}@host/db", f"postgresql://u@h/db?password={SECRET}"]


@pytest.fixture
def populated(pristine: Populated, tmp_path: Path) -> Iterator[Populated]:
    shutil.copytree(pristine.registry.path, tmp_path / "registry")
    registry = Registry(tmp_path / "registry", signing_key=pristine.key)
    yield replace(pristine, registry=registry)
    registry.close()


@pytest.fixture
def command(populated: Populated, monkeypatch: pytest.MonkeyPatch,
            ) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.setenv("ASMEVO_REGISTRY", str(populated.registry.path))
    return run


def run(*words: object) -> tuple[int, str, str]:
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        try:
            status: Any = main([*map(str, words)])
        except SystemExit as end:
            status = end.code
    return status, out.getvalue(), err.getvalue()


def document(*words: object) -> dict[str, Any]:
    status, out, err = run(*words, "--json")
    assert (status, err) == (0, "")
    found: dict[str, Any] = json.loads(out)
    check_document(str(words[0]), found)
    return found


def on_terminal(width: int, *words: object) -> list[str]:
    """What a terminal of that width gets, in a process of its own."""
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
        os.environ["TERM"] = "xterm"
        os.environ.pop("COLUMNS", None)
        sys.stdout = os.fdopen(1, "w")
        os._exit(main([*map(str, words)]))
    data = b""
    try:
        while chunk := os.read(terminal, 1 << 16):
            data += chunk
    except OSError:  # the child has gone
        pass
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    return re.sub(r"\x1b\[[0-9;]*m", "", data.decode()).split("\r\n")


Command = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(("options", "speedups"), [
    ([], [1.2, 1.1, 1.05]),
    (["--min-speedup", "1.1x"], [1.2, 1.1]),
    (["--status", "confirmed"], [1.2]),
    (["--status", "committed"], [1.1, 1.05]),
    (["--source", "measured", "--device", "DEVICE-"], [1.2, 1.1, 1.05]),
    (["--kernel", "NORM_kernel", "--sort", "date"], [1.05, 1.2, 1.1]),
    (["--since", "1h", "--limit", "2"], [1.2, 1.1]),
])
def test_list(command: Command, options: list[str], speedups: list[float]) -> None:
    found = document("list", *options)
    assert [r["speedup"] for r in found["replacements"]] == speedups
    assert found["total"] == (3 if "--limit" in options else len(speedups))
    assert all(len(r["signed_by"]) == 1 for r in found["replacements"])


@pytest.mark.parametrize("options", [
    ["--status", "withdrawn"], ["--status", "weaker"], ["--source", "modelled"],
    ["--kernel", "%"], ["--kernel", "_norm_k_"], ["--original", "00"], ["--since", "2999-01-01"],
    ["--min-speedup", "1.3"],
])
def test_filters_that_nothing_meets(command: Command, options: list[str]) -> None:
    status, out, err = command("list", *options)
    assert (status, err) == (1, "")
    assert out.startswith("no replacements that these options ask for in ")


def test_original_is_a_file_or_a_prefix(command: Command, populated: Populated,
                                        tmp_path: Path) -> None:
    file = tmp_path / "o.co"
    file.write_bytes(populated.original.data)
    for given in (file, populated.original.sha256, populated.original.sha256[:5].upper()):
        assert document("list", "--original", given)["total"] == 3
    assert command("list", "--original", tmp_path / "none")[0] == 2


def test_status_in_sql_is_the_status_of_the_record(
        populated: Populated, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of comparing judgements find what the records say."""
    registry = populated.registry
    registry.record_second_timing(
        "lone", 0.9, Verdict(Gate.G3, Outcome.FAIL, "slower", "no"), confirmed=False)
    def weaken(**changes: Any) -> None:
        with sqlite3.connect(registry.path / "asmevo.db") as connection:
            [(text,)] = connection.execute(
                "SELECT data FROM judgement WHERE candidate_id = 'parent'")
            data = json.dumps(json.loads(text) | changes, sort_keys=True, separators=(",", ":"))
            connection.execute("UPDATE judgement SET data = ? WHERE candidate_id = 'parent'",
                               (data,))

    def statuses() -> dict[str, str]:
        found = {}
        for record in registry.replacements():
            own = record.status
            found[record.candidate_id] = own.value
            assert record.candidate_id in {
                r.candidate_id for r in registry.catalog.select(Selection(status=own)).records}
        return found

    for most in (10_000, 0):
        monkeypatch.setattr("asmevo.registry.replacement.selection._MOST_KINDS", most)
        weaken(cosine=0.9999, sanitize=True, held_out=2, extra_ops=[])
        assert statuses() == {"child": "confirmed", "parent": "committed", "lone": "withdrawn"}
        for change in ({"cosine": 0.99}, {"sanitize": False}, {"held_out": 0},
                       {"extra_ops": ["s_sleep"]}):
            weaken(**change)
            assert statuses()["parent"] == "weaker", change
            weaken(cosine=0.9999, sanitize=True, held_out=2, extra_ops=[])


@pytest.mark.parametrize("width", [80, 100, 200])
def test_tables_fit_a_terminal(command: Command, populated: Populated, width: int) -> None:
    lines = on_terminal(width, "list", "--limit", "2")
    assert all(len(line) <= width for line in lines), lines
    header, first, _, more, *rest = lines
    assert header.split()[:3] == ["original", "kernel", "replacement"]
    assert first.split()[3] == "1.2000x"
    assert more == "1 more: --limit 0 lists all"
    shown = {"device", "date", "signed"} & set(header.split())
    assert shown == {80: {"signed"}, 100: {"date", "signed"},
                     200: {"device", "date", "signed"}}[width]
    assert rest == {80: ["no room for device, date: --wide shows all", ""],
                    100: ["no room for device: --wide shows all", ""], 200: [""]}[width]
    for words in (("show", "child"), ("log", "child"), ("stats",)):
        assert max(map(len, on_terminal(width, *words))) <= width


def test_long_names_are_cut_in_the_middle(command: Command, populated: Populated) -> None:
    name = "_ZN7ck_tile" + "i" * 200 + "EEEvv\x1b[31m"
    with sqlite3.connect(populated.registry.path / "asmevo.db") as connection:
        connection.execute("UPDATE replacement SET kernel = ?", (name,))
    line = on_terminal(100, "list")[1]
    assert "_ZN7ck" in line
    assert "…" in line
    assert "[31m" in line
    assert "\x1b" not in line
    wide = on_terminal(100, "list", "--wide")[1]
    assert name.replace("\x1b", "\\x1b") in wide
    assert populated.original.sha256 in wide
    assert name.replace("\x1b", "\\x1b") in command("list")[1]


def test_show_tells_where_a_replacement_comes_from(command: Command,
                                                   populated: Populated) -> None:
    registry = populated.registry
    child = registry.candidate("child")
    shown = document("show", "child")
    assert shown["kind"] == "candidate"
    assert shown["candidate"]["parent_id"] == "parent"
    assert shown["run"]["config"] == "seed: 1\n"
    assert shown["run"]["toolchain"] == {"assembler": "22.1"}
    assert shown["baseline"][0]["median_us"] == 12.625
    assert [s["current"] for s in shown["signatures"]] == [True]
    assert document("show", child.object_sha256)["replaces"][0]["candidate"]["id"] == "child"
    _, out, _ = command("show", child.object_sha256)
    for words in ("judged by", "signed by", "again        1.1900x", "package      asmevo",
                  "seed         1", "toolchain    assembler 22.1", "1.1882x"):
        assert words in out
    assert command("show", "child", "--config") == (0, "seed: 1\n", "")


def test_show_of_the_other_kinds(command: Command, populated: Populated) -> None:
    run = document("show", populated.run_id)
    assert run["candidates"] == {"rejected": 1, "error": 0, "verified": 0, "committed": 2}
    assert [r["speedup"] for r in run["replacements"]] == [1.2, 1.1]
    [timing, *_] = populated.registry.candidate("child").timings
    dispatch = document("show", timing.dispatch[:12])
    assert [r["name"] for r in dispatch["launch"]["regions"]] == ["x", "y"]
    for capture in document("captures")["captures"]:
        assert document("show", capture["sha256"])["capture"]["content"] == "verified"
        assert command("show", capture["sha256"])[0] == 0
    assert document("show", populated.original.sha256)["captures"] == 2


def test_log_of_a_run_an_original_and_a_replacement(command: Command,
                                                    populated: Populated) -> None:
    assert len(document("log", populated.run_id)["candidates"]) == 3
    runs = document("log", populated.original.sha256)["runs"]
    assert [len(entry["candidates"]) for entry in runs] == [1, 3]
    steps = document("log", "child")["steps"]
    assert [(s["candidate"]["id"], s["speedup"]) for s in steps] == [
        ("parent", 1.1), ("child", 1.2)]
    assert steps[1]["gain"] == pytest.approx(1.2 / 1.1)
    _, out, _ = command("log", "child", "--edits")
    assert "+9.09 %" in out
    assert "@ 3:5 of" in out
    assert "  s_nop 0\n" in out
    assert command("log", populated.run_id, "--run", populated.run_id)[0] == 2


def test_stats(command: Command, populated: Populated) -> None:
    found = document("stats")
    assert found["counts"]["candidates"] == 4
    assert found["replacements"]["measured"] == {
        "withdrawn": 0, "weaker": 0, "confirmed": 1, "committed": 2}
    assert {g["gate"]: (g["passed"], g["failed"]) for g in found["gates"]}["G2"] == (3, 1)
    assert found["rules"] == [{"rule": "nop-trim", "attempts": 4, "committed": 3}]
    [speedups] = found["speedups"]
    assert (speedups["least"], speedups["median"], speedups["best"]) == (1.05, 1.1, 1.2)
    kinds = {s["kind"]: s for s in found["storage"]}
    assert kinds["code_objects"]["content_bytes"] == 4 * len(populated.original.data)
    assert kinds["unreferenced"]["blobs"] == 1  # what was stated before the second timing
    files = list((populated.registry.path / "blobs").glob("*/*.zst"))
    assert sum(s["blobs"] for s in found["storage"]) == len(files)
    assert sum(s["stored_bytes"] for s in found["storage"]) == sum(
        f.stat().st_size for f in files)
    populated.registry.blobs.put(b"nobody needs this")
    assert {s["kind"]: s["blobs"] for s in document("stats")["storage"]} == {
        kind: s["blobs"] + (kind == "unreferenced") for kind, s in kinds.items()}


@pytest.mark.parametrize(("words", "sentence"), [
    (("show", "abc"), "is not the identity of anything"),
    (("show", "\x1b[2J"), "is not the identity of anything"),
    (("diff", "child", "par\nent"), "is not the identity of anything"),
    (("list", "--limit", "-3"), "is not a number of lines"),
    (("list", "--since", "soon"), "is no time such as"),
    (("list", "--min-speedup", "nan"), "is not a speedup"),
    (("list", "--status", "fine"), "invalid choice"),
    (("list", "--stat", "weaker"), "unrecognized arguments"),
    (("frobnicate",), "invalid choice"),
])
def test_mistakes_are_one_sentence(command: Command, words: tuple[str, ...],
                                   sentence: str) -> None:
    status, out, err = command(*words)
    assert (status, out) == (2, "")
    assert sentence in err
    assert len(err.splitlines()) == 1
    assert "\x1b" not in err


def test_two_matches(command: Command, populated: Populated) -> None:
    prefix = populated.run_id[:8]
    status, _, err = command("show", prefix)
    assert status == 2
    assert f"'{prefix}' abbreviates 2 runs (" in err
    assert command("show", "f" * 20) == (
        1, "", f"asmevo-registry: no {'f' * 20} in {populated.registry.path}\n")


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("words", [
    ("list",), ("list", "--blobs", "{blobs}"), ("list", "--bogus={url}"), ("{url}",),
    ("show", "{url}"), ("stats", "--blobs", "nosuch://u:s3cr/et@host/x"),
])
def test_no_output_repeats_a_password(tmp_path: Path, url: str, words: tuple[str, ...]) -> None:
    given = [word.format(url=url, blobs=tmp_path) for word in words]
    status, out, err = run("--registry", url, *given)
    assert status == 2
    assert len(err.splitlines()) == 1
    for text in (out, err):
        assert SECRET not in text
        assert "et@" not in text


def test_options_stand_before_or_behind_the_command(populated: Populated, tmp_path: Path,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    path = populated.registry.path
    monkeypatch.setenv("ASMEVO_REGISTRY", str(tmp_path / "elsewhere"))
    assert run("list")[0] == 2
    assert run("--registry", path, "--json", "list") == run("list", "--json", "--registry", path)
    monkeypatch.setenv("ASMEVO_BLOBS", str(path / "blobs"))
    url = f"sqlite:///{path / 'asmevo.db'}"
    _, out, _ = run("show", "--registry", url, populated.original.sha256)
    assert "content      verified" in out
    monkeypatch.setenv("ASMEVO_BLOBS", str(tmp_path / "none"))
    status, _, err = run("show", populated.original.sha256, "--registry", path)
    assert (status, err) == (
        2, f"asmevo-registry: there is no folder of blobs at {tmp_path / 'none'}\n")


@pytest.mark.parametrize("spelt", ["{}", "file://{}"])
def test_a_folder_of_blobs_is_the_same_for_a_path_and_a_url(
        populated: Populated, tmp_path: Path, spelt: str) -> None:
    path, contents = populated.registry.path, tmp_path / "contents"
    (path / "blobs").rename(contents)
    sha256 = populated.original.sha256
    assert (contents / sha256[:2] / f"{sha256}.zst").is_file()
    shown = [run("show", sha256, "--registry", given, "--blobs", spelt.format(contents))
             for given in (path, f"sqlite:///{path / 'asmevo.db'}")]
    assert shown[0] == shown[1]
    assert "content      verified" in shown[0][1]
