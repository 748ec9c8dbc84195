"""What people and machines are told where something is refused, or where there is one of it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.registry.command.test_cli import document, run
from tests.registry.tampering import execute

if TYPE_CHECKING:
    from tests.registry.conftest import Scene


def test_one_of_each(scene: Scene, tmp_path: Path) -> None:
    scene.commit("c1", number=1)
    folder = scene.registry.path
    assert ": 1 replacement, " in run("export", "-o", tmp_path / "b", folder=folder).stdout
    assert run("import", tmp_path / "b", folder=tmp_path / "there").stdout.startswith(
        "1 replacement came, 1 new: ")
    scene.registry.blobs.put(b"nobody's")
    assert "1 blob that nothing names" in run("verify", folder=folder).stderr
    execute(scene.registry, "UPDATE code_object SET source = 'other' WHERE source = 'amd-aiter'")
    assert run("verify", "--quick", folder=folder).stdout.endswith(": 1 finding\n")


def test_sizes_have_one_unit(scene: Scene) -> None:
    scene.commit("c1", number=1)
    for command in ("gc", "stats", "verify"):
        assert "kB" in run(command, folder=scene.registry.path).stdout


def test_pull_refuses_to_overwrite_for_machines_too(scene: Scene, tmp_path: Path) -> None:
    scene.commit("c1", number=1)
    (tmp_path / "mine").write_bytes(b"mine")
    refused = document("pull", "--original", scene.original.sha256, "-o", tmp_path / "mine",
                       folder=scene.registry.path, status=2)
    assert (refused["status"], refused["code"]) == ("refused", "destination-exists")
    missing = document("pull", "--original", scene.original.sha256, "-o", tmp_path / "new",
                       folder=tmp_path / "none", status=2)
    assert (missing["status"], missing["code"]) == ("refused", "failed")


def test_push_to_a_database_names_its_own_option(scene: Scene) -> None:
    done = run("push", "postgresql+psycopg://somebody:secret@nowhere/x",
               folder=scene.registry.path)
    assert done.returncode == 2
    assert "--to-blobs" in done.stderr
    assert "secret" not in done.stderr


def test_deploy_shows_machines_no_password(scene: Scene, tmp_path: Path) -> None:
    scene.commit("c1", number=1)
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "a.co").write_bytes(scene.original.data)
    done = run("deploy", "file", tmp_path / "app", "--json", "--blobs",
               tmp_path / "none?password=swordfish", folder=scene.registry.path)
    assert done.returncode != 0
    assert "swordfish" not in done.stdout + done.stderr


@pytest.mark.parametrize("json", [[], ["--json"]])
def test_stats_of_an_infinite_speedup(scene: Scene, json: list[str]) -> None:
    scene.commit("c1", number=1)
    execute(scene.registry, "UPDATE replacement SET speedup = 9e999")
    done = run("stats", *json, folder=scene.registry.path)
    assert done.returncode == 2
    assert "is no number" in done.stderr


def test_a_path_that_is_no_text(scene: Scene, tmp_path: Path) -> None:
    scene.commit("c1", number=1)
    scene.registry.close()
    odd = tmp_path / "odd\udcff"
    shutil.copytree(scene.registry.path, odd)
    done = run("list", folder=odd)
    assert (done.returncode, done.stdout) == (2, "")
    assert "UTF-8 only" in done.stderr
    written = run("pull", "--original", scene.original.sha256, "-o", tmp_path / "new\udcff",
                  folder=scene.registry.path)
    assert written.returncode == 0
    assert written.stdout.isascii()


@pytest.mark.parametrize("command", ["pull", "export"])
def test_no_device_is_replaced(scene: Scene, tmp_path: Path, command: str) -> None:
    """As root it would be for everybody: never name /dev/null in a test of this."""
    scene.commit("c1", number=1)
    os.mkfifo(tmp_path / "pipe")
    which = ["--original", scene.original.sha256]
    done = run(command, *which, "-o", tmp_path / "pipe", "--force", folder=scene.registry.path)
    assert done.returncode == 2
    assert "is a device, pipe or socket" in done.stderr
    assert (tmp_path / "pipe").is_fifo()
