"""``task=roundtrip`` over small collections: what it counts, what it reports, what it survives."""

from __future__ import annotations

import importlib.metadata
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import asmevo
from asmevo.bundle.offload_bundle import build
from asmevo.codeobject.errors import SourceError
from asmevo.codeobject.target import Target
from asmevo.codeobject.toolchain import Toolchain, ZigToolchain
from asmevo.report.marked import MarkerError, markers
from asmevo.report.result import Result, Status
from asmevo.report.roundtrip import MARKER, markdown
from asmevo.task.corpus import Entry, Outcome, check_all
from asmevo.task.session import ConfigError
from asmevo.task.source import everything

BEGIN, END = markers(MARKER)
FOLDER = "aiter_meta/hsa/gfx942/"


def aiter_files(prefix: str, suffix: str = ".co") -> list[Path]:
    files = importlib.metadata.distribution("amd-aiter").files
    assert files is not None
    return [Path(str(f.locate())) for f in sorted(files, key=str)
            if str(f).startswith(FOLDER + prefix) and str(f).endswith(suffix)]


@pytest.fixture
def tree(tmp_path: Path, layer_norm_bytes: bytes) -> Path:
    """Three good objects in two folders, a truncated one, one of an unknown processor, and files
    that are none.
    """
    root = tmp_path / "tree"
    (root / "a").mkdir(parents=True)
    (root / "b" / "c").mkdir(parents=True)
    for number, file in enumerate(aiter_files("topksoftmax/")[:2]):
        (root / "a" / f"{number}.co").write_bytes(file.read_bytes())
    (root / "b" / "c" / "good.hsaco").write_bytes(layer_norm_bytes)
    (root / "b" / "short.co").write_bytes(layer_norm_bytes[:4000])
    other = bytearray(layer_norm_bytes)
    other[48] = 0x41  # gfx1100
    (root / "b" / "other.co").write_bytes(other)
    (root / "README.md").write_text("not an object")
    (root / "empty.co").write_bytes(b"")
    (root / "a" / "link").symlink_to(root / "a")
    return root


def details_of(result: Result) -> dict[str, Any]:
    assert result.details is not None
    return result.details


def check_tree(details: Mapping[str, Any]) -> None:
    assert (details["total"], details["identical"]) == (5, 3)
    assert [(f["folder"], f["total"], f["identical"]) for f in details["folders"]
            if f["architecture"] == "gfx942"] == [("a", 2, 2), ("b", 1, 0), ("b/c", 1, 1)]
    reasons = {e["name"]: e["reason"] for e in details["exceptions"]}
    assert set(reasons) == {"b/short.co", "b/other.co"}
    assert "truncated" in reasons["b/short.co"]
    assert "0x41" in reasons["b/other.co"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_tree(run: Callable[..., Result], tree: Path, tmp_path: Path, jobs: int) -> None:
    result = run("task=roundtrip", f"source={tree}", f"jobs={jobs}")
    assert result.status is Status.DIFFERENT
    assert result.exit_status == 1
    details = details_of(result)
    check_tree(details)
    lines = [json.loads(line) for line in (tmp_path / "run" / "objects.jsonl").open()]
    assert len(lines) == 5
    assert sum(line["instructions"] for line in lines) == details["instructions"] > 1000
    table = Path(details["table"]).read_text()
    assert "| tree | gfx942 | b/c | 1 | 1 | 0 |" in table
    assert "| all |  |  | 5 | 3 | 2 |" in table
    assert "`b/short.co`" in table


def test_a_wheel_and_a_list_of_places(
    run: Callable[..., Result], tree: Path, tmp_path: Path
) -> None:
    wheel = tmp_path / "some-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(tree.rglob("*")):
            if file.is_file() and not file.is_symlink():
                archive.write(file, file.relative_to(tree))
    check_tree(details_of(run("task=roundtrip", f"source={wheel}")))
    both = details_of(run("task=roundtrip", f"source=[{tree}/a,{wheel}]"))
    assert both["total"] == 7
    assert {f["corpus"] for f in both["folders"]} == {"a", wheel.name}


def test_one_file_and_one_member(
    run: Callable[..., Result], tree: Path, tmp_path: Path
) -> None:
    single = run("task=roundtrip", f"source={tree}/b/c/good.hsaco")
    assert single.status is Status.IDENTICAL
    assert single.exit_status == 0
    assert details_of(single)["total"] == 1
    named = run("task=roundtrip", f"source='amd-aiter:{FOLDER}layer_norm.co'")
    assert details_of(named)["identical"] == 1


def test_a_fat_binary(run: Callable[..., Result], tmp_path: Path, layer_norm_bytes: bytes) -> None:
    (tmp_path / "fat").mkdir()
    (tmp_path / "fat" / "k.hipfb").write_bytes(
        build([("host-x86_64-unknown-linux-gnu-", b""),
               ("hipv4-amdgcn-amd-amdhsa--gfx90a", b"BC\xc0\xde bitcode"),
               ("hipv4-amdgcn-amd-amdhsa--gfx942", layer_norm_bytes)]))
    details = details_of(run("task=roundtrip", f"source={tmp_path}/fat"))
    assert (details["total"], details["identical"]) == (2, 1)
    (exception,) = details["exceptions"]
    assert exception["name"] == "k.hipfb!gfx90a"
    assert "bitcode" in exception["reason"]
    alone = details_of(run("task=roundtrip", f"source='{tmp_path}/fat/k.hipfb!gfx942'"))
    assert (alone["total"], alone["identical"]) == (1, 1)


def test_an_installed_distribution_is_all_its_objects() -> None:
    names = [found.name for found in everything("amd-aiter")]
    files = importlib.metadata.distribution("amd-aiter").files
    assert files is not None
    listed = [str(f) for f in files if str(f).endswith(".co")]
    assert len(listed) == 2501
    assert set(listed) <= set(names)
    assert len(set(names)) == len(names)


def test_a_document_gets_the_table_between_its_markers(
    run: Callable[..., Result], tree: Path, tmp_path: Path
) -> None:
    document = tmp_path / "DOC.md"
    document.write_text(f"# before\n\n{BEGIN}\nstale\n{END}\n\nafter\n")
    run("task=roundtrip", f"source={tree}/a", f"readme={document}")
    text = document.read_text()
    assert text.startswith(f"# before\n\n{BEGIN}\n| corpus |")
    assert text.endswith(f"{END}\n\nafter\n")
    assert "stale" not in text
    assert "| a | gfx942 | . | 2 | 2 | 0 |" in text
    run("task=roundtrip", f"source={tree}/a", f"readme={document}")
    assert document.read_text() == text


@pytest.mark.parametrize("text", ["", BEGIN, f"{END}\n{BEGIN}\n", f"{BEGIN}{BEGIN}{END}"])
def test_a_document_without_markers_is_refused_before_the_work(
    run: Callable[..., Result], tree: Path, tmp_path: Path, text: str
) -> None:
    document = tmp_path / "DOC.md"
    document.write_text(text)
    with pytest.raises(MarkerError, match=r"DOC\.md"):
        run("task=roundtrip", f"source={tree}", f"readme={document}")
    assert document.read_text() == text
    assert not (tmp_path / "run" / "objects.jsonl").exists()


def test_many_folders_of_one_object_are_one_row() -> None:
    """As in Triton's cache. A folder with several objects and one beside it keep their rows."""
    def row(folder: str, total: int, identical: int) -> dict[str, object]:
        return {"corpus": "c", "architecture": "gfx942", "folder": folder, "total": total,
                "identical": identical}

    folders = [row(f"cache/{n}", 1, n != 2) for n in range(5)] + [row("cache/x", 2, 2),
                                                                 row("other/y", 1, 1)]
    table = markdown(folders, [], {})
    assert "| c | gfx942 | cache/* | 5 | 4 | 1 |" in table
    assert "| c | gfx942 | cache/x | 2 | 2 | 0 |" in table
    assert "| c | gfx942 | other/y | 1 | 1 | 0 |" in table
    assert "| all |  |  | 8 | 7 | 1 |" in table
    assert table.count("gfx942") == 3


def test_hostile_names_stay_in_their_cell() -> None:
    name = f"x|y\n{END}<script>"
    table = markdown([], [{"corpus": "c", "name": name, "architecture": None, "reason": name}], {})
    assert END not in table
    assert "<" not in table
    assert len([line for line in table.splitlines() if "script" in line]) == 1


@pytest.mark.parametrize(("overrides", "error", "words"), [
    ((), ConfigError, "source="),
    (("source=[]",), ConfigError, "source="),
    (("source=[a,3]",), ConfigError, "names"),
    (("source=/nowhere/at/all",), SourceError, "/nowhere/at/all"),
    (("source=no_such_package",), SourceError, "no_such_package"),
    (("source=omegaconf",), SourceError, "no AMDGPU code objects in 'omegaconf'"),
    (("source=amd-aiter", "jobs=0"), ConfigError, "jobs=0"),
])
def test_bad_input_is_one_sentence(
    run: Callable[..., Result], overrides: tuple[str, ...], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        run("task=roundtrip", *overrides)


class Faulty:
    """A toolchain that links one object wrongly, kills its process over another and has a defect
    with a third. Module level, so that it reaches the worker processes.
    """

    def __init__(self) -> None:
        self._inner: Toolchain = ZigToolchain()

    def assemble(self, text: str, target: Target) -> bytes:
        if "topksoftmax_12x128x8" in text:
            os.kill(os.getpid(), signal.SIGKILL)
        if "topksoftmax_12x256x6" in text:
            raise KeyError("defect")
        return self._inner.assemble(text, target)

    def link(self, relocatable: bytes, *, version_comment: str | None = None) -> bytes:
        data = self._inner.link(relocatable, version_comment=version_comment)
        return data.replace(b"layer_norm_kernel_func", b"layer_norm_kernel_fund")

    def versions(self) -> Mapping[str, str]:
        return self._inner.versions()


def entries() -> Iterator[Entry]:
    for name in ("layer_norm.co", "topksoftmax/topksoftmax_12x128x8.co",
                 "topksoftmax/topksoftmax_12x256x6.co", "topksoftmax/topksoftmax_4x256x8.co"):
        (file,) = aiter_files(name)
        yield Entry("aiter", name, file.read_bytes())
    yield Entry("aiter", "x/gone.co", None, "cannot read it")


def test_whatever_happens_to_one_object_the_others_are_checked() -> None:
    module = sys.modules[__name__]
    assert module.Faulty is Faulty
    outcomes = {o.name: o for o in check_all(entries(), Faulty, 2)}
    assert len(outcomes) == 5
    good = outcomes.pop("topksoftmax/topksoftmax_4x256x8.co")
    assert good.identical
    assert good.reason is None
    assert not any(o.identical for o in outcomes.values())
    assert "differs at byte" in str(outcomes["layer_norm.co"].reason)
    assert "died" in str(outcomes["topksoftmax/topksoftmax_12x128x8.co"].reason)
    assert "KeyError" in str(outcomes["topksoftmax/topksoftmax_12x256x6.co"].reason)
    assert outcomes["x/gone.co"].reason == "cannot read it"
    assert (outcomes["x/gone.co"].folder, outcomes["layer_norm.co"].folder) == ("x", "")


def test_folder_of_a_member_is_that_of_its_file() -> None:
    assert Outcome("c", "lib/x.so!hip_fatbin[0]!gfx942", None, True, None).folder == "lib"


def test_ctrl_c_ends_cleanly(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(asmevo.__file__).parent.parent)}
    process = subprocess.Popen(
        [sys.executable, "-m", "asmevo", "task=roundtrip", "source=amd-aiter", "jobs=1"],
        cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        logs = list(tmp_path.glob("runs/**/objects.jsonl"))
        if logs and logs[0].stat().st_size:
            break
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    (result,) = tmp_path.glob("runs/**/result.json")
    assert json.loads(result.read_text())["status"] == "interrupted"


def test_one_damaged_container_is_an_exception_not_the_end(
    run: Callable[..., Result], tmp_path: Path,
) -> None:
    """Named directly or found in a folder, it is a row with its reason."""
    (good,) = aiter_files("layer_norm.co")
    damaged = tmp_path / "damaged.hipfb"
    damaged.write_bytes(b"__CLANG_OFFLOAD_BUNDLE__" + b"\xff" * 40)
    result = run("task=roundtrip", f"source=[{damaged},{good}]", "jobs=1")
    assert result.details is not None
    assert (result.details["total"], result.details["identical"]) == (2, 1)
    (exception,) = result.details["exceptions"]
    assert "damaged.hipfb" in json.dumps(exception)
