"""Paths of a tree stay in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from asmevo.deploy import tree as module
from asmevo.deploy.errors import DeployError, DeployRefusal
from asmevo.deploy.tree import STATE, Tree


@pytest.mark.parametrize("name", ["", "/etc/passwd", "..", "a/../../b", "nul\0", f"{STATE}/lock",
                                  "link", "folder/file", "loop/loop/file"])
def test_paths_that_lead_out(tmp_path: Path, name: str) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "link").symlink_to("/etc/passwd")
    (root / "folder").symlink_to(tmp_path)
    (root / "loop").symlink_to(root)
    with pytest.raises(DeployError) as caught:
        Tree.at(root).path(name)
    assert caught.value.code is DeployRefusal.OUTSIDE


def test_files_are_found_once_and_loops_are_not_entered(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/file").write_bytes(b"")
    (tmp_path / "a/loop").symlink_to(tmp_path)
    (tmp_path / "self").symlink_to("self")
    (tmp_path / "dead").symlink_to("nowhere")
    (tmp_path / STATE).mkdir()
    (tmp_path / STATE / "manifest.json").write_bytes(b"")
    os.mkfifo(tmp_path / "pipe")
    assert list(Tree.at(tmp_path).files()) == ["a/file"]


def test_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FILE_LIMIT", 3)
    for name in "abc":
        (tmp_path / name).write_bytes(b"")
    assert len(list(Tree.at(tmp_path).files())) == 3
    (tmp_path / "d").write_bytes(b"")
    with pytest.raises(DeployError, match="more than 3 files"):
        list(Tree.at(tmp_path).files())


@pytest.mark.parametrize("place", ["missing", "missing/deeper", "self", "nul\0", "~nobody-of-that"])
def test_no_tree(tmp_path: Path, place: str) -> None:
    (tmp_path / "self").symlink_to("self")
    with pytest.raises(DeployError) as caught:
        Tree.at(place if place.startswith("~") else tmp_path / place)
    assert caught.value.code is DeployRefusal.UNREADABLE


def test_a_file_stands_for_its_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path)
    assert Tree.at(tmp_path / "file") == Tree.at(tmp_path / "link") == Tree(tmp_path)
