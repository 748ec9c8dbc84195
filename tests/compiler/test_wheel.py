"""Wheels are the pinned ones or none."""

from __future__ import annotations

import hashlib
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from asmevo.compiler.errors import CompileError
from asmevo.compiler.wheel import PINNED, Wheel, cache_folder, fetch, pinned, read_member


@pytest.fixture
def wheel_bytes(tmp_path: Path) -> bytes:
    path = tmp_path / "made.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("pkg/kernels.py", "x = 1\n")
        archive.writestr("pkg/data.py", b"\xff\xfe")
    return path.read_bytes()


@pytest.fixture
def downloads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wheel_bytes: bytes) -> list[Any]:
    """A package index whose only file is ``wheel_bytes``; lists pip's command lines."""
    monkeypatch.setenv("ASMEVO_CACHE_DIR", str(tmp_path / "cache"))
    commands: list[Any] = []

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        folder = Path(command[command.index("--dest") + 1])
        (folder / "pkg-1-py3-none-any.whl").write_bytes(wheel_bytes)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    return commands


def wheel(data: bytes) -> Wheel:
    return Wheel("pkg", "1", hashlib.sha256(data).hexdigest(), "3.11", "any")


def test_fetched_once(downloads: list[Any], wheel_bytes: bytes) -> None:
    first = fetch(wheel(wheel_bytes))
    assert fetch(wheel(wheel_bytes)) == first
    assert first.is_relative_to(cache_folder())
    assert read_member(first, "pkg/kernels.py") == "x = 1\n"
    (command,) = downloads
    assert "--no-deps" in command
    assert command[-1] == "pkg==1"


def test_another_file_is_refused(downloads: list[Any], wheel_bytes: bytes) -> None:
    with pytest.raises(CompileError, match="not the pinned"):
        fetch(replace(wheel(wheel_bytes), sha256="0" * 64))
    assert list((cache_folder() / "wheels").iterdir()) == []


def test_a_changed_file_in_the_cache_is_fetched_again(downloads: list[Any],
                                                      wheel_bytes: bytes) -> None:
    fetch(wheel(wheel_bytes)).write_bytes(b"something else")
    assert fetch(wheel(wheel_bytes)).read_bytes() == wheel_bytes
    assert len(downloads) == 2


def test_members_that_cannot_be_had_are_named(downloads: list[Any], wheel_bytes: bytes,
                                              tmp_path: Path) -> None:
    path = fetch(wheel(wheel_bytes))
    with pytest.raises(CompileError, match=r"'pkg/other\.py'"):
        read_member(path, "pkg/other.py")
    with pytest.raises(CompileError, match="not text"):
        read_member(path, "pkg/data.py")
    (tmp_path / "bad.whl").write_bytes(b"no archive")
    with pytest.raises(CompileError, match="cannot read"):
        read_member(tmp_path / "bad.whl", "x")


def test_pip_that_fails_gives_its_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ASMEVO_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(subprocess, "run", lambda command, **options: subprocess.CompletedProcess(
        command, 1, "", "noise\nERROR: No matching distribution found\n"))
    with pytest.raises(CompileError, match="No matching distribution found"):
        fetch(PINNED["sglang"])


def test_only_pinned_distributions() -> None:
    with pytest.raises(CompileError, match="'torch'"):
        pinned("torch")


def test_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ASMEVO_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "asmevo"
