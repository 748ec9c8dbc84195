"""Copies of a Triton cache, which stays as it is."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from asmevo.deploy.deployment import deploy
from asmevo.deploy.errors import DeployError, DeployRefusal
from asmevo.deploy.lock import locked
from asmevo.deploy.manifest import load_manifest
from asmevo.deploy.rollback import roll_back
from asmevo.deploy.tree import Tree
from asmevo.deploy.triton import TritonCache
from asmevo.deploy.triton_copy import deploy_to_copy
from tests.deploy.conftest import look_up, snapshot, substitute
from tests.deploy.test_triton import hsaco, replacements, supply


def test_triton_loads_it_from_a_copy_too(cache: Path, tmp_path: Path) -> None:
    before = snapshot(cache)
    wanted = replacements(cache, "softmax")
    copy = tmp_path / "copy"
    outcome = deploy_to_copy(Tree.at(cache), copy, supply(wanted))
    assert outcome.root == copy
    assert snapshot(cache) == before
    found = look_up(copy, "add", "softmax")
    assert found["softmax"]["asm"] == found["softmax"]["group"] == wanted["softmax"].sha256
    assert str(found["softmax"]["path"]).startswith(f"{copy}/")
    assert found["add"]["asm"] == hashlib.sha256(hsaco(cache, "add").read_bytes()).hexdigest()
    assert all(entry["hit"] for entry in found.values())
    tree = Tree.at(copy)
    with locked(tree):
        roll_back(tree)
    found = look_up(copy, "softmax")
    assert found["softmax"]["asm"] == wanted["softmax"].original_sha256
    assert found["softmax"]["hit"] is True


def test_of_a_cache_with_deployments(cache: Path, tmp_path: Path) -> None:
    """The copy knows the original, not what took its place for a while."""
    original = hsaco(cache, "add").read_bytes()
    deploy(Tree.at(cache), TritonCache(), supply(replacements(cache, "add")))
    better = {"add": substitute(original, 2)}
    copy = tmp_path / "copy"
    deploy_to_copy(Tree.at(cache), copy, supply(better))
    assert hsaco(copy, "add").read_bytes() == better["add"].data
    (entry,) = load_manifest(Tree.at(copy)).files.values()
    assert entry.original_sha256 == better["add"].original_sha256
    with locked(Tree.at(copy)):
        roll_back(Tree.at(copy))
    assert hsaco(copy, "add").read_bytes() == original


def test_a_dry_run_makes_no_copy(cache: Path, tmp_path: Path) -> None:
    before = snapshot(tmp_path)
    outcome = deploy_to_copy(Tree.at(cache), tmp_path / "copy", supply(replacements(cache, "add")),
                             dry_run=True)
    assert [Path(change.entry.path).name for change in outcome.changes] == ["add.hsaco"]
    assert snapshot(tmp_path) == before


def test_without_a_replacement_there_is_no_copy(cache: Path, tmp_path: Path) -> None:
    before = snapshot(tmp_path)
    assert not deploy_to_copy(Tree.at(cache), tmp_path / "copy", lambda sha256: None).changes
    assert snapshot(tmp_path) == before


def test_of_a_read_only_cache(cache: Path, open_path: Path,
                              as_user: Callable[[], AbstractContextManager[None]]) -> None:
    wanted = replacements(cache, "add")
    deploy_to_copy(Tree.at(cache), open_path / "cache", supply(wanted))
    with locked(Tree.at(open_path / "cache")):
        roll_back(Tree.at(open_path / "cache"))
    cache = open_path / "cache"
    for path in [cache, *cache.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o444)
    (open_path / "out").mkdir()
    (open_path / "out").chmod(0o777)
    with as_user():
        outcome = deploy_to_copy(Tree.at(cache), open_path / "out/copy", supply(wanted))
    assert outcome.changes
    assert hsaco(open_path / "out/copy", "add").read_bytes() == wanted["add"].data


@pytest.mark.parametrize("place", ["copy", "cache/inside", "missing/copy", "cache"])
def test_destinations_that_are_refused(cache: Path, tmp_path: Path, place: str) -> None:
    (tmp_path / "copy").mkdir()
    before = snapshot(tmp_path)
    with pytest.raises(DeployError) as caught:
        deploy_to_copy(Tree.at(cache), tmp_path / place, supply(replacements(cache, "add")))
    assert caught.value.code is DeployRefusal.DESTINATION
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("outside", ["/etc/passwd", "../../../etc/passwd", "", "nul\0"])
def test_group_files_with_paths_outside(cache: Path, tmp_path: Path, outside: str) -> None:
    (group,) = cache.glob("*/__grp__add.json")
    paths = json.loads(group.read_text())["child_paths"]
    group.write_text(json.dumps({"child_paths": {**paths, "add.ttir": outside}}))
    before = snapshot(tmp_path)
    with pytest.raises(DeployError) as caught:
        deploy_to_copy(Tree.at(cache), tmp_path / "copy", supply(replacements(cache, "softmax")))
    assert caught.value.code in (DeployRefusal.OUTSIDE, DeployRefusal.INCOMPLETE)
    assert snapshot(tmp_path) == before


def test_links_in_a_cache(cache: Path, tmp_path: Path) -> None:
    (cache / "link").symlink_to("/etc/passwd")
    with pytest.raises(DeployError) as caught:
        deploy_to_copy(Tree.at(cache), tmp_path / "copy", supply(replacements(cache, "add")))
    assert caught.value.code is DeployRefusal.OUTSIDE
    (cache / "link").unlink()
    (cache / "loop").symlink_to(cache)
    deploy_to_copy(Tree.at(cache), tmp_path / "copy", supply(replacements(cache, "add")))
    assert not os.path.lexists(tmp_path / "copy/loop")


def test_a_cache_that_is_reached_through_a_link(cache: Path, tmp_path: Path) -> None:
    """As when ~/.triton lies on another disk: group files have the path that Triton was given."""
    (tmp_path / "alias").symlink_to(cache.parent)
    alias = tmp_path / "alias" / cache.name
    for group in cache.glob("*/__grp__*.json"):
        group.write_text(group.read_text().replace(str(cache), str(alias)))
    wanted = replacements(cache, "add")
    deploy_to_copy(Tree.at(alias), tmp_path / "copy", supply(wanted))
    assert look_up(tmp_path / "copy", "add")["add"]["asm"] == wanted["add"].sha256
    deploy(Tree.at(alias), TritonCache(), supply(wanted))
    found = look_up(alias, "add")["add"]
    assert (found["asm"], found["hit"]) == (wanted["add"].sha256, True)
