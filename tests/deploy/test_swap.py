"""Failures while files are being exchanged."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from asmevo.deploy import swap
from asmevo.deploy.backup import backup_path
from asmevo.deploy.deployment import deploy
from asmevo.deploy.errors import DeployError, DeployRefusal
from asmevo.deploy.manifest import Manifest, load_manifest, store_manifest
from asmevo.deploy.plain_file import PlainFile
from asmevo.deploy.plan import Change
from asmevo.deploy.swap import carry_out, write_in_place
from asmevo.deploy.tree import Tree
from tests.deploy.conftest import Originals

ONE, TWO = "a/one.co", "b/two.co"


def planned(originals: Originals, folder: Path) -> tuple[Change, ...]:
    return deploy(Tree.at(folder), PlainFile(), originals.supply(1), dry_run=True).changes


@pytest.mark.parametrize("when", ["before", "between"])
def test_changed_since_it_was_planned(originals: Originals, when: str,
                                      monkeypatch: pytest.MonkeyPatch) -> None:
    folder = originals.make()
    changes = planned(originals, folder)
    if when == "before":
        (folder / TWO).write_bytes(b"else")
    else:
        def store(tree: Tree, manifest: Manifest) -> None:
            store_manifest(tree, manifest)
            (folder / TWO).write_bytes(b"else")

        monkeypatch.setattr(swap, "store_manifest", store)
    with pytest.raises(DeployError) as caught:
        carry_out(Tree.at(folder), changes)
    assert caught.value.code is DeployRefusal.CHANGED
    assert (folder / TWO).read_bytes() == b"else"
    assert set(load_manifest(Tree.at(folder)).files) == ({ONE} if when == "between" else set())


def test_a_full_disk(originals: Originals, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first file is exchanged and known to be, the second is as it was."""
    folder = originals.make()
    changes = planned(originals, folder)
    real = os.write
    victim = changes[1].data

    def write(descriptor: int, data: memoryview) -> int:
        if data == victim:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(DeployError, match="no space left") as caught:
        carry_out(Tree.at(folder), changes)
    assert caught.value.code is DeployRefusal.UNWRITABLE
    assert (folder / ONE).read_bytes() == originals.variants[ONE][1]
    assert (folder / TWO).read_bytes() == originals.files[TWO]
    assert set(load_manifest(Tree.at(folder)).files) == {ONE}
    assert not list(folder.rglob("*.tmp"))


def test_a_backup_is_read_back(originals: Originals, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that loses what it was given is noticed before anything is exchanged."""
    folder = originals.make()
    changes = planned(originals, folder)
    real = os.replace

    def replace(source: object, target: object) -> None:
        real(str(source), str(target))
        if Path(str(target)).parent.name == "backup":
            Path(str(target)).write_bytes(b"")

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(DeployError) as caught:
        carry_out(Tree.at(folder), changes)
    assert caught.value.code is DeployRefusal.BACKUP
    assert (folder / ONE).read_bytes() == originals.files[ONE]


def test_a_damaged_backup_is_made_anew(originals: Originals) -> None:
    folder = originals.make()
    tree = Tree.at(folder)
    backup = backup_path(tree, originals.sha256(ONE))
    backup.parent.mkdir(parents=True)
    backup.write_bytes(b"damaged")
    carry_out(tree, planned(originals, folder))
    assert backup.read_bytes() == originals.files[ONE]


def test_leftovers_of_others_stay(tmp_path: Path) -> None:
    file = tmp_path / "one.co"
    file.write_bytes(b"old")
    ours = tmp_path / f".one.co.{'0' * 16}.tmp"
    for path in (ours, tmp_path / ".one.co.tmp", tmp_path / ".two.co.0123456789abcdef.tmp"):
        path.write_bytes(b"left")
    write_in_place(file, b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".one.co.tmp", ".two.co.0123456789abcdef.tmp", "one.co"]
