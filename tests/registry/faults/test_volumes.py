"""A full disk and a power failure, on real file systems of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from asmevo.codeobject.container import CodeObject
from tests.registry.faults.conftest import ENVIRONMENT, Show

VOLUMES = Path(__file__).with_name("volumes.py")


def namespace() -> list[str]:
    """How to start a program that may mount; skips the test where nothing allows that."""
    for options in (["--mount"], ["--map-root-user", "--mount"]):
        command = ["unshare", *options]
        if shutil.which("unshare") and subprocess.run(
                [*command, "mount", "-t", "tmpfs", "none", "/mnt"],
                capture_output=True).returncode == 0:
            return command
    pytest.skip("no small file system can be mounted here: neither root nor user namespaces")


def ext4() -> list[str]:
    """The same for an image of a disk with ext4."""
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None or not list(
            Path("/dev").glob("loop-control")):
        pytest.skip("an ext4 image can be mounted with root, mkfs.ext4 and loop devices only")
    return namespace()


@pytest.fixture
def original_file(tmp_path: Path, original: CodeObject) -> Path:
    path = tmp_path / "original.co"
    path.write_bytes(original.data)
    return path


def run(command: list[str], *arguments: object) -> dict[str, Any]:
    done = subprocess.run([*command, sys.executable, str(VOLUMES), *map(str, arguments)],
                          env=ENVIRONMENT, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(("kind", "levels"), [
    ("tmpfs", 3), pytest.param("tmpfs", 60, marks=pytest.mark.faults),
    pytest.param("ext4", 60, marks=pytest.mark.faults)])
def test_full_disk(original_file: Path, kind: str, levels: int, show: Show) -> None:
    found = run(namespace() if kind == "tmpfs" else ext4(), "full", kind, original_file, levels)
    show("refused writes", sum(found["errors"].values()))
    for error in found["errors"]:
        assert "disk is full" in error
        assert "\n" not in error


@pytest.mark.parametrize(("kind", "step"), [
    ("tmpfs", 6), pytest.param("tmpfs", 1, marks=pytest.mark.faults),
    pytest.param("ext4", 1, marks=pytest.mark.faults)])
def test_created_on_a_full_disk(kind: str, step: int) -> None:
    found = run(namespace() if kind == "tmpfs" else ext4(), "create", kind, step)
    assert sum(found["errors"].values()) > 1, "the disk was never full"
    for error in found["errors"]:
        assert "disk is full" in error
        assert "\n" not in error


@pytest.mark.parametrize("failures", [4, pytest.param(150, marks=pytest.mark.faults)])
def test_power_failure(original_file: Path, failures: int, show: Show) -> None:
    found = run(ext4(), "power", original_file, failures, 8)
    assert found["failures"] == failures
    assert found["writes"] >= failures
    show("found", found)
