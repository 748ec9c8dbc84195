"""Plain files, and files that carry code objects inside."""

from __future__ import annotations

import hashlib
import shutil
import zipfile
from pathlib import Path

import pytest

from asmevo.bundle.member import Member
from asmevo.bundle.offload_bundle import build
from asmevo.deploy.deployment import Outcome, deploy
from asmevo.deploy.errors import DeployError, DeployRefusal
from asmevo.deploy.lock import locked
from asmevo.deploy.manifest import load_manifest
from asmevo.deploy.plain_file import PlainFile, named_file
from asmevo.deploy.rollback import roll_back
from asmevo.deploy.status import State, tree_status
from asmevo.deploy.substitute import Substitute
from asmevo.deploy.tree import Tree
from tests.deploy.conftest import snapshot, substitute


def run(place: Path, *substitutes: Substitute, dry_run: bool = False) -> Outcome:
    tree = Tree.at(place)
    return deploy(tree, PlainFile(named_file(tree, place)),
                  {s.original_sha256: s for s in substitutes}.get, dry_run=dry_run)


def test_one_file_among_equals(shipped: dict[str, bytes], tmp_path: Path) -> None:
    data = shipped["a/one.co"]
    for name in ("this.co", "that.co"):
        (tmp_path / name).write_bytes(data)
    new = substitute(data)
    run(tmp_path / "this.co", new)
    assert (tmp_path / "this.co").read_bytes() == new.data
    assert (tmp_path / "that.co").read_bytes() == data


def test_a_link_is_not_followed(shipped: dict[str, bytes], tmp_path: Path) -> None:
    (tmp_path / "real.co").write_bytes(shipped["a/one.co"])
    (tmp_path / "link.co").symlink_to("real.co")
    with pytest.raises(DeployError, match="is a symbolic link to") as caught:
        run(tmp_path / "link.co", substitute(shipped["a/one.co"]))
    assert caught.value.code is DeployRefusal.OUTSIDE
    run(tmp_path, substitute(shipped["a/one.co"]))  # of the folder: the file itself, once
    assert (tmp_path / "link.co").is_symlink()


@pytest.fixture
def bundle(shipped: dict[str, bytes], tmp_path: Path) -> Path:
    """An offload bundle, as ``hipcc --genco`` writes, with both objects and a copy of the first."""
    one, two = shipped.values()
    path = tmp_path / "tree" / "kernels.hipfb"
    path.parent.mkdir()
    path.write_bytes(build([
        ("host-x86_64-unknown-linux-gnu-", b""), ("hipv4-amdgcn-amd-amdhsa--gfx942", one),
        ("hipv4-amdgcn-amd-amdhsa--gfx942:xnack-", two),
        ("hipv4-amdgcn-amd-amdhsa--gfx942:xnack+", one)]))
    path.chmod(0o755)
    return path


def members(path: Path) -> dict[str, bytes]:
    return {name: Member(str(path), name).read()
            for name in ("gfx942", "gfx942:xnack-", "gfx942:xnack+")}


def test_members_of_a_bundle(bundle: Path, shipped: dict[str, bytes]) -> None:
    """Every member that holds the original; the rest of the file stays."""
    one, two = shipped.values()
    before = snapshot(bundle.parent)
    new = substitute(one)
    (change,) = run(bundle, new).changes
    assert {swap.member for swap in change.entry.swaps} == {"gfx942", "gfx942:xnack+"}
    assert members(bundle) == {"gfx942": new.data, "gfx942:xnack-": two, "gfx942:xnack+": new.data}
    other, better = substitute(two), substitute(one, 2)
    run(bundle, other)
    run(bundle, better)
    assert members(bundle) == {"gfx942": better.data, "gfx942:xnack-": other.data,
                               "gfx942:xnack+": better.data}
    tree = Tree.at(bundle)
    (status,) = tree_status(tree, load_manifest(tree))
    assert (status.state, len(status.entry.swaps)) == (State.DEPLOYED, 3)
    with locked(tree):
        roll_back(tree)
    assert snapshot(bundle.parent) == before


def test_a_member_that_is_refused_keeps_the_file(bundle: Path, shipped: dict[str, bytes]) -> None:
    one, two = shipped.values()
    before = snapshot(bundle.parent)
    outcome = run(bundle, substitute(two), substitute(one, data=two))
    assert not outcome.changes
    assert {r.error.code for r in outcome.refused} == {DeployRefusal.INTERFACE}
    assert snapshot(bundle.parent) == before


def test_files_in_a_wheel_are_refused_by_name(shipped: dict[str, bytes], tmp_path: Path) -> None:
    data = shipped["a/one.co"]
    with zipfile.ZipFile(tmp_path / "package.whl", "w") as archive:
        archive.writestr("kernels/one.co", data)
    before = (tmp_path / "package.whl").read_bytes()
    (refused,) = run(tmp_path / "package.whl", substitute(data)).refused
    assert refused.error.code is DeployRefusal.CONTAINER
    assert "package.whl!kernels/one.co" in str(refused.error)
    assert (tmp_path / "package.whl").read_bytes() == before


def test_a_container_that_someone_else_changed(bundle: Path, shipped: dict[str, bytes]) -> None:
    one, _ = shipped.values()
    run(bundle, substitute(one))
    with bundle.open("ab") as file:
        file.write(bytes(4096))
    outcome = run(bundle, substitute(one))
    assert not outcome.changes
    assert [r.error.code for r in outcome.refused] == [DeployRefusal.FOREIGN] * 2


def test_damaged_containers_are_passed_over(bundle: Path, shipped: dict[str, bytes]) -> None:
    whole = bundle.read_bytes()
    (bundle.parent / "cut.hipfb").write_bytes(whole[:len(whole) // 2])
    (bundle.parent / "zip.whl").write_bytes(b"PK\3\4" + bytes(100))
    (bundle.parent / "library.so").write_bytes(b"\x7fELF\2\1\1" + bytes(100))
    new = substitute(shipped["b/two.co"])
    assert [c.entry.path for c in run(bundle.parent, new).changes] == ["kernels.hipfb"]


def test_through_a_link_to_its_folder(shipped: dict[str, bytes], tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/one.co").write_bytes(shipped["a/one.co"])
    (tmp_path / "alias").symlink_to("real")
    outcome = run(tmp_path / "alias/one.co", substitute(shipped["a/one.co"]))
    assert outcome.root == tmp_path / "real"
    shutil.rmtree(tmp_path / "alias", ignore_errors=True)
    assert hashlib.sha256((tmp_path / "real/one.co").read_bytes()).hexdigest() == (
        outcome.changes[0].entry.deployed_sha256)
