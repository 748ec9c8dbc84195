"""Triton's own lookup, in fresh processes, is what decides whether a swap took place."""

from __future__ import annotations

import hashlib
from pathlib import Path

from asmevo.deploy import triton
from asmevo.deploy.lock import locked
from asmevo.deploy.manifest import load_manifest
from asmevo.deploy.places import find_places
from asmevo.deploy.plan import make_plan
from asmevo.deploy.rollback import roll_back
from asmevo.deploy.status import State, tree_status
from asmevo.deploy.swap import carry_out
from asmevo.deploy.tree import Tree
from tests.deploy.conftest import look_up, snapshot, substitute


def hsaco(cache: Path, name: str) -> Path:
    (found,) = cache.glob(f"*/{name}.hsaco")
    return found


def deploy(cache: Path, *names: str, number: int = 1) -> dict[str, str]:
    """Deploy a replacement for each; their hashes by name."""
    tree = Tree.at(cache)
    wanted = {}
    for name in names:
        data = hsaco(cache, name).read_bytes()
        wanted[name] = substitute(data, number)
    with locked(tree):
        manifest = load_manifest(tree)
        places = list(find_places(tree, manifest, only=triton.is_hsaco))
        plan = make_plan(tree, manifest, places, {s.original_sha256: s for s in wanted.values()},
                         lambda *given: triton.check_entry(tree, *given))
        assert not plan.refused
        carry_out(tree, plan.changes)
    return {name: s.sha256 for name, s in wanted.items()}


def test_triton_loads_the_replacement_and_after_rollback_the_original(cache: Path) -> None:
    before = snapshot(cache)
    originals = {name: hashlib.sha256(hsaco(cache, name).read_bytes()).hexdigest()
                 for name in ("add", "softmax")}
    deployed = deploy(cache, "add", "softmax")
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
