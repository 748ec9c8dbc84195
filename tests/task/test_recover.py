"""``task=recover``: the text, the report and where they are."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from asmevo.codeobject.errors import CodeObjectError, SourceError
from asmevo.report.result import Result, Status

LAYER_NORM = "amd-aiter:aiter_meta/hsa/gfx942/layer_norm.co"


def zig() -> str:
    files = importlib.metadata.distribution("ziglang").files
    assert files is not None
    return str(next(f for f in files if str(f) == "ziglang/zig").locate())


def test_text_and_report_are_written(run: Callable[..., Result], tmp_path: Path) -> None:
    output = tmp_path / "mine.s"
    result = run("task=recover", f"source={LAYER_NORM}", f"output={output}")
    assert result.status is Status.IDENTICAL
    assert result.exit_status == 0
    details = result.details
    assert details is not None
    assert details["kernels"] == ["layer_norm_kernel_func"]
    assert Path(details["assembly"]) == tmp_path / "run" / "layer_norm.s"
    assert Path(details["assembly"]).read_bytes() == output.read_bytes()
    report = json.loads(Path(details["report"]).read_text())
    assert report == details["round_trip"]
    assert report["identical"] is True
    assert report["sha256"] == result.original_sha256


def test_clang_and_lld_make_the_file_of_the_text_alone(
    run: Callable[..., Result], tmp_path: Path, layer_norm_bytes: bytes
) -> None:
    """What a person does who has the text and LLVM, and nothing of AsmEvo."""
    text = tmp_path / "ln.s"
    run("task=recover", f"source={LAYER_NORM}", f"output={text}")
    linker = next(line for line in layer_norm_bytes.split(b"\0") if line.startswith(b"Linker: "))
    for command in (
        [zig(), "clang", "-c", "-target", "amdgcn-amd-amdhsa", "-mcpu=gfx942", "ln.s",
         "-o", "ln.o"],
        [zig(), "ld.lld", "-shared", "ln.o", "-o", "ln.co"],
    ):
        subprocess.run(command, cwd=tmp_path, check=True, timeout=60,
                       env={"HOME": str(tmp_path), "LLD_VERSION": linker.decode()})
    assert (tmp_path / "ln.co").read_bytes() == layer_norm_bytes


def test_without_source_it_is_the_configured_kernel(run: Callable[..., Result]) -> None:
    details = run("task=recover", "kernel=aiter_topksoftmax").details
    assert details is not None
    assert details["source"].endswith("topksoftmax_4x128x8.co")


def test_a_path_and_the_command_line(
    command_line: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path,
    layer_norm_bytes: bytes, read_result: Callable[[], dict[str, Any]],
) -> None:
    # Characters that mean something to Hydra and to a member path.
    name = "a=b, (c)!.co"
    (tmp_path / name).write_bytes(layer_norm_bytes)
    done = command_line("task=recover", f"source={name}", "output=out file.s")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "byte for byte" in done.stdout
    assert "out file.s" in done.stdout
    assert (tmp_path / "out file.s").is_file()
    assert read_result()["details"]["source"] == name


@pytest.mark.parametrize(("source", "words"), [
    ("", ["no name"]),
    ("nowhere.co", ["nowhere.co"]),
    ("amd-aiter:nothing.co", ["amd-aiter", "nothing.co"]),
    ("no-such-wheel:x.co", ["no-such-wheel"]),
    ("nowhere.so!gfx942", ["nowhere.so"]),
    ("[a.co,b.co]", ["source"]),
])
def test_what_cannot_be_read_is_named(
    run: Callable[..., Result], source: str, words: list[str]
) -> None:
    quoted = source if source.startswith("[") else f"'{source}'"
    with pytest.raises(Exception) as caught:  # noqa: PT011
        run("task=recover", f"source={quoted}")
    assert all(word in str(caught.value) for word in words)


def test_an_unwritable_output_is_named(
    command_line: Callable[..., subprocess.CompletedProcess[str]],
    read_result: Callable[[], dict[str, Any]],
) -> None:
    done = command_line("task=recover", f"source={LAYER_NORM}", "output=no/such/folder/x.s")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("asmevo: ")
    assert "no/such/folder" in line
    assert read_result()["status"] == "error"


def test_not_a_code_object(run: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "x.co").write_text("hello")
    with pytest.raises(CodeObjectError, match="ELF"):
        run("task=recover", f"source={tmp_path}/x.co")
    with pytest.raises(SourceError, match="directory"):
        run("task=recover", f"source={tmp_path}")
