"""Finding, narrowing, trying, exchanging, improving: on plain files."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from asmevo.deploy.deployment import Outcome, Supply, deploy
from asmevo.deploy.errors import DeployError, DeployRefusal
from asmevo.deploy.lock import locked
from asmevo.deploy.manifest import Manifest, load_manifest
from asmevo.deploy.plain_file import PlainFile
from asmevo.deploy.rollback import roll_back
from asmevo.deploy.status import State, tree_status
from asmevo.deploy.substitute import Substitute
from asmevo.deploy.tree import STATE, Tree
from asmevo.errors import AsmEvoError
from tests.deploy.conftest import Originals, snapshot, substitute
from tests.registry.conftest import variant

ONE, TWO = "a/one.co", "b/two.co"


def run(folder: Path, supply: Supply, **options: object) -> Outcome:
    return deploy(Tree.at(folder), PlainFile(), supply, **options)  # type: ignore[arg-type]


def states(folder: Path) -> dict[str, State]:
    tree = Tree.at(folder)
    return {s.entry.path: s.state for s in tree_status(tree, load_manifest(tree))}


def test_every_original_is_exchanged_and_said_so(originals: Originals) -> None:
    folder = originals.make()
    outcome = run(folder, originals.supply(1))
    assert [change.entry.path for change in outcome.changes] == [ONE, TWO]
    for path in originals.files:
        assert (folder / path).read_bytes() == originals.variants[path][1]
    assert states(folder) == {ONE: State.DEPLOYED, TWO: State.DEPLOYED}
    (swap,) = load_manifest(Tree.at(folder)).files[ONE].swaps
    assert (swap.kernel, swap.speedup, swap.timing_source) == (
        "layer_norm_kernel_func", 1.25, "modelled")
    assert swap.original_sha256 == originals.sha256(ONE)
    assert swap.time.endswith("+00:00")


def test_names_do_not_matter(originals: Originals) -> None:
    folder = originals.make()
    (folder / ONE).rename(folder / "a/layer_norm.co.bak")
    (folder / "a/one.co").write_bytes(b"of the same name")
    run(folder, originals.supply(1, ONE))
    assert (folder / "a/layer_norm.co.bak").read_bytes() == originals.variants[ONE][1]
    assert (folder / "a/one.co").read_bytes() == b"of the same name"


def test_a_dry_run_says_it_and_changes_nothing(originals: Originals) -> None:
    folder = originals.make()
    before = snapshot(folder)
    times = {path: path.stat().st_mtime_ns for path in [folder, *folder.rglob("*")]}
    planned = run(folder, originals.supply(1), dry_run=True)
    assert snapshot(folder) == before
    assert {path: path.stat().st_mtime_ns for path in [folder, *folder.rglob("*")]} == times
    done = run(folder, originals.supply(1))
    assert [(c.entry.path, c.before_sha256, c.entry.deployed_sha256, c.data)
            for c in planned.changes] == [
        (c.entry.path, c.before_sha256, c.entry.deployed_sha256, c.data) for c in done.changes]
    deployed = snapshot(folder)
    assert not any(c.needed for c in run(folder, originals.supply(1), dry_run=True).changes)
    assert snapshot(folder) == deployed


def test_nothing_to_deploy_leaves_no_trace(originals: Originals) -> None:
    folder = originals.make()
    assert run(folder, lambda sha256: None).changes == ()
    assert snapshot(folder) == originals.snapshot


def test_narrowed_to_one(originals: Originals) -> None:
    folder = originals.make()
    asked: list[str] = []

    def supply(sha256: str) -> Substitute | None:
        asked.append(sha256)
        return originals.supply(1)(sha256)

    run(folder, supply, originals={originals.sha256(TWO)})
    assert asked == [originals.sha256(TWO)]
    assert (folder / ONE).read_bytes() == originals.files[ONE]


def test_an_original_that_is_not_there(originals: Originals) -> None:
    folder = originals.make()
    (folder / TWO).write_bytes(variant(originals.files[TWO], 7))  # changed since
    with pytest.raises(DeployError, match="is not there, or was changed") as caught:
        run(folder, originals.supply(1), originals={originals.sha256(TWO)})
    assert caught.value.code is DeployRefusal.NOT_FOUND
    assert not (folder / STATE).exists()


def test_a_better_replacement_over_an_earlier_one(originals: Originals) -> None:
    folder = originals.make()
    run(folder, originals.supply(1))
    first = load_manifest(Tree.at(folder)).files[ONE]
    run(folder, originals.supply(2, ONE), originals={originals.sha256(ONE)})
    entry = load_manifest(Tree.at(folder)).files[ONE]
    assert entry.original_sha256 == first.original_sha256 == originals.sha256(ONE)
    assert entry.earlier == (first.deployed_sha256,)
    assert states(folder) == {ONE: State.DEPLOYED, TWO: State.DEPLOYED}
    run(folder, originals.supply(1))  # and back to the first
    assert load_manifest(Tree.at(folder)).files[ONE].deployed_sha256 == first.deployed_sha256
    with locked(Tree.at(folder)):
        roll_back(Tree.at(folder))
    assert snapshot(folder) == originals.snapshot


def test_what_someone_else_changed_is_left_alone(originals: Originals) -> None:
    folder = originals.make()
    run(folder, originals.supply(1))
    foreign = variant(originals.files[ONE], 9)
    (folder / ONE).write_bytes(foreign)
    new = substitute(foreign, 3)
    outcome = run(folder, {new.original_sha256: new}.get)
    (refused,) = outcome.refused
    assert refused.error.code is DeployRefusal.FOREIGN
    outcome = run(folder, originals.supply(2), originals={originals.sha256(ONE)})
    assert [r.error.code for r in outcome.refused] == [DeployRefusal.FOREIGN]
    assert (folder / ONE).read_bytes() == foreign


def test_one_refusal_does_not_stop_the_others(originals: Originals) -> None:
    folder = originals.make()
    wrong = substitute(originals.files[ONE], data=originals.files[TWO])
    right = substitute(originals.files[TWO])
    outcome = run(folder, {s.original_sha256: s for s in (wrong, right)}.get)
    assert [r.error.code for r in outcome.refused] == [DeployRefusal.INTERFACE]
    assert [c.entry.path for c in outcome.changes] == [TWO]
    assert (folder / ONE).read_bytes() == originals.files[ONE]


def test_a_supply_that_fails_changes_nothing(originals: Originals) -> None:
    folder = originals.make()

    def supply(sha256: str) -> Substitute | None:
        raise AsmEvoError("the registry is damaged")

    with pytest.raises(AsmEvoError, match="damaged"):
        run(folder, supply)
    assert snapshot(folder) == originals.snapshot


def test_every_swap_is_logged_by_hash(originals: Originals,
                                      caplog: pytest.LogCaptureFixture) -> None:
    folder = originals.make()
    with caplog.at_level(logging.INFO, "asmevo.deploy"):
        run(folder, originals.supply(1, ONE))
        with locked(Tree.at(folder)):
            roll_back(Tree.at(folder))
    there, back = caplog.messages
    new = substitute(originals.files[ONE]).sha256
    assert new in there
    assert originals.sha256(ONE) in there
    assert "1.2500x, modelled" in there
    assert originals.sha256(ONE) in back


def test_a_read_only_folder(originals: Originals, open_path: Path,
                            as_user: Callable[[], AbstractContextManager[None]]) -> None:
    folder = originals.make().rename(open_path / "tree")
    for path in (folder, folder / "a", folder / "b"):
        path.chmod(0o555)
    for name in originals.files:
        (folder / name).chmod(0o644)
    before = snapshot(folder)
    with as_user():
        with pytest.raises(DeployError) as caught:
            run(folder, originals.supply(1))
        assert caught.value.code is DeployRefusal.READ_ONLY
        outcome = run(folder, originals.supply(1), dry_run=True)
        assert [r.error.code for r in outcome.refused] == [DeployRefusal.READ_ONLY] * 2
    assert snapshot(folder) == before


def test_mode_and_owner_stay(originals: Originals) -> None:
    folder = originals.make()
    (folder / ONE).chmod(0o751)
    if os.geteuid() == 0:
        os.chown(folder / ONE, 1234, 4321)
    before = (folder / ONE).stat()
    run(folder, originals.supply(1))
    for _ in range(2):
        after = (folder / ONE).stat()
        assert (after.st_mode, after.st_uid, after.st_gid) == (
            before.st_mode, before.st_uid, before.st_gid)
        with locked(Tree.at(folder)):
            roll_back(Tree.at(folder))


def test_hard_links_elsewhere_keep_the_original(originals: Originals, tmp_path: Path) -> None:
    """As a package installer's cache has them."""
    folder = originals.make()
    os.link(folder / ONE, tmp_path / "cached.co")
    run(folder, originals.supply(1))
    assert (tmp_path / "cached.co").read_bytes() == originals.files[ONE]


def test_two_deployers_at_once(originals: Originals) -> None:
    """Both get through, one after the other, and the original remains the first."""
    folder = originals.make()
    code = (
        "import sys\nfrom pathlib import Path\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from asmevo.deploy.deployment import deploy\n"
        "from asmevo.deploy.plain_file import PlainFile\n"
        "from asmevo.deploy.tree import Tree\n"
        "from tests.deploy.conftest import substitute\n"
        "originals = [Path(p).read_bytes() for p in sys.argv[4:]]\n"
        "for _ in range(int(sys.argv[2])):\n"
        "    found = [substitute(data, int(sys.argv[3])) for data in originals]\n"
        "    deploy(Tree.at('.'), PlainFile(), {s.original_sha256: s for s in found}.get)\n")
    kept = folder.parent / "kept"
    kept.mkdir()
    files = []
    for path, data in originals.files.items():
        files.append(kept / Path(path).name)
        files[-1].write_bytes(data)
    root = str(Path(__file__).parents[2])
    children = [subprocess.Popen([sys.executable, "-c", code, root, "8", str(number),
                                  *map(str, files)], cwd=folder, stderr=subprocess.PIPE)
                for number in (1, 2)]
    for child in children:
        _, said = child.communicate()
        assert child.returncode == 0, said.decode()
    assert states(folder) == {ONE: State.DEPLOYED, TWO: State.DEPLOYED}
    with locked(Tree.at(folder)):
        roll_back(Tree.at(folder))
    assert snapshot(folder) == originals.snapshot


def test_a_tree_without_deployments_has_an_empty_manifest(tmp_path: Path) -> None:
    assert load_manifest(Tree.at(tmp_path)) == Manifest()
