"""Giving originals back, and what must not be overwritten."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from asmevo.deploy.backup import backup_path
from asmevo.deploy.deployment import deploy
from asmevo.deploy.errors import DeployRefusal
from asmevo.deploy.lock import locked
from asmevo.deploy.manifest import load_manifest
from asmevo.deploy.plain_file import PlainFile
from asmevo.deploy.rollback import Foreign, Rollback, roll_back
from asmevo.deploy.status import State, tree_status
from asmevo.deploy.tree import Tree
from tests.deploy.conftest import Originals, snapshot

ONE, TWO = "a/one.co", "b/two.co"


@pytest.fixture
def folder(originals: Originals) -> Path:
    """A tree with two replacements in it."""
    folder = originals.make()
    deploy(Tree.at(folder), PlainFile(), originals.supply(1))
    return folder


def back(folder: Path, foreign: Foreign = Foreign.REFUSE) -> Rollback:
    tree = Tree.at(folder)
    with locked(tree):
        return roll_back(tree, foreign)


def states(folder: Path) -> dict[str, State]:
    tree = Tree.at(folder)
    return {s.entry.path: s.state for s in tree_status(tree, load_manifest(tree))}


def test_twice_is_as_good_as_once(folder: Path, originals: Originals) -> None:
    assert back(folder).restored == (ONE, TWO)
    assert snapshot(folder) == originals.snapshot
    assert back(folder) == Rollback((), (), ())
    assert snapshot(folder) == originals.snapshot


def test_a_dry_run_changes_nothing(folder: Path) -> None:
    before = snapshot(folder)
    tried = roll_back(Tree.at(folder), dry_run=True)
    assert snapshot(folder) == before
    assert tried == back(folder)


def test_foreign_changes_are_kept_until_told_otherwise(folder: Path, originals: Originals) -> None:
    (folder / ONE).write_bytes(b"foreign")
    assert states(folder)[ONE] is State.FOREIGN
    done = back(folder)
    assert done.restored == (TWO,)
    assert [(path, error.code) for path, error in done.refused] == [(ONE, DeployRefusal.FOREIGN)]
    assert (folder / ONE).read_bytes() == b"foreign"
    assert states(folder) == {ONE: State.FOREIGN}
    assert back(folder, Foreign.OVERWRITE).restored == (ONE,)
    assert snapshot(folder) == originals.snapshot


def test_foreign_changes_can_be_let_go_of(folder: Path, originals: Originals) -> None:
    (folder / ONE).write_bytes(b"foreign")
    done = back(folder, Foreign.FORGET)
    assert (done.restored, done.untouched, done.refused) == ((TWO,), (ONE,), ())
    assert (folder / ONE).read_bytes() == b"foreign"
    assert states(folder) == {}


def test_a_removed_file(folder: Path, originals: Originals) -> None:
    (folder / ONE).unlink()
    assert states(folder)[ONE] is State.MISSING
    assert [error.code for _, error in back(folder).refused] == [DeployRefusal.FOREIGN]
    back(folder, Foreign.OVERWRITE)
    assert snapshot(folder) == originals.snapshot


def test_an_emptied_cache_has_nothing_to_give_back(folder: Path) -> None:
    shutil.rmtree(folder / "a")
    assert back(folder) == Rollback((TWO,), (ONE,), ())
    assert not (folder / "a").exists()


def test_somebody_else_put_the_original_back(folder: Path, originals: Originals) -> None:
    (folder / ONE).write_bytes(originals.files[ONE])
    assert states(folder)[ONE] is State.ORIGINAL
    assert back(folder) == Rollback((TWO,), (ONE,), ())


@pytest.mark.parametrize("damage", ["missing", "altered", "link"])
@pytest.mark.parametrize("foreign", list(Foreign))
def test_without_its_backup_nothing_is_overwritten(
        folder: Path, originals: Originals, damage: str, foreign: Foreign) -> None:
    tree = Tree.at(folder)
    backup = backup_path(tree, originals.sha256(ONE))
    content = backup.read_bytes()
    backup.unlink()
    if damage == "altered":
        backup.write_bytes(content[:-1] + b"\1")
    elif damage == "link":
        (folder / "elsewhere").write_bytes(content)
        backup.symlink_to(folder / "elsewhere")
    found = {s.entry.path: s.backup for s in tree_status(tree, load_manifest(tree))}
    assert found == {ONE: False, TWO: True}
    done = back(folder, foreign)
    assert done.restored == (TWO,)
    assert [(path, error.code) for path, error in done.refused] == [(ONE, DeployRefusal.BACKUP)]
    assert (folder / ONE).read_bytes() == originals.variants[ONE][1]


def test_a_link_in_the_place_of_a_file(folder: Path, tmp_path: Path) -> None:
    """Neither its target nor the link is written to."""
    outside = tmp_path / "outside"
    outside.write_bytes((folder / ONE).read_bytes())
    (folder / ONE).unlink()
    (folder / ONE).symlink_to(outside)
    before = outside.read_bytes()
    assert states(folder)[ONE] is State.FOREIGN
    for foreign in (Foreign.REFUSE, Foreign.OVERWRITE):
        assert back(folder, foreign).refused[0][0] == ONE
        assert (folder / ONE).is_symlink()
        assert outside.read_bytes() == before


def test_a_linked_folder(folder: Path, tmp_path: Path) -> None:
    (folder / "a").rename(tmp_path / "moved")
    (folder / "a").symlink_to(tmp_path / "moved")
    before = snapshot(tmp_path / "moved")
    done = back(folder, Foreign.OVERWRITE)
    assert [error.code for _, error in done.refused] == [DeployRefusal.OUTSIDE]
    assert snapshot(tmp_path / "moved") == before
