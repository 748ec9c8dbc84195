"""Triton's own lookup, in fresh processes, is what decides whether a swap took place."""

from __future__ import annotations

import hashlib
from pathlib import Path

from asmevo.deploy.deployment import Supply, deploy
from asmevo.deploy.lock import locked
from asmevo.deploy.manifest import load_manifest
from asmevo.deploy.rollback import roll_back
from asmevo.deploy.status import State, tree_status
from asmevo.deploy.substitute import Substitute
from asmevo.deploy.tree import Tree
from asmevo.deploy.triton import TritonCache
from asmevo.deploy.triton_copy import deploy_to_copy
from tests.deploy.conftest import look_up, snapshot, substitute


def hsaco(cache: Path, name: str) -> Path:
    (found,) = cache.glob(f"*/{name}.hsaco")
    return found


def replacements(cache: Path, *names: str, number: int = 1) -> dict[str, Substitute]:
    """A replacement for each kernel, by the kernel's name."""
    return {name: substitute(hsaco(cache, name).read_bytes(), number) for name in names}


def supply(wanted: dict[str, Substitute]) -> Supply:
    return {s.original_sha256: s for s in wanted.values()}.get


def test_triton_loads_the_replacement_and_after_rollback_the_original(cache: Path) -> None:
    before = snapshot(cache)
    originals = {name: hashlib.sha256(hsaco(cache, name).read_bytes()).hexdigest()
                 for name in ("add", "softmax")}
    wanted = replacements(cache, "add", "softmax")
    deployed = {name: s.sha256 for name, s in wanted.items()}
    outcome = deploy(Tree.at(cache), TritonCache(), supply(wanted))
    assert len(outcome.changes) == 2
    assert not outcome.refused
    found = look_up(cache, "add", "softmax")
    for name, sha256 in deployed.items():
        assert sha256 != originals[name]
        assert found[name]["asm"] == found[name]["kernel"] == found[name]["group"] == sha256
        assert found[name]["hit"] is True
    tree = Tree.at(cache)
    assert [s.state for s in tree_status(tree, load_manifest(tree))] == [State.DEPLOYED] * 2
    with locked(tree):
        done = roll_back(tree)
    assert len(done.restored) == 2
    assert snapshot(cache) == before
    found = look_up(cache, "add", "softmax")
    for name, sha256 in originals.items():
        assert found[name]["asm"] == found[name]["group"] == sha256
        assert found[name]["hit"] is True


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
