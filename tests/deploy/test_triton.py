"""Triton's own lookup, in fresh processes, is what decides whether a swap took place."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from asmevo.codeobject.assembly import Edit
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import program
from asmevo.codeobject.rebuild import rebuild
from asmevo.codeobject.recover import recover
from asmevo.codeobject.toolchain import Toolchain, ZigToolchain
from asmevo.deploy.deployment import Supply, deploy
from asmevo.deploy.errors import DeployError, DeployRefusal
from asmevo.deploy.lock import locked
from asmevo.deploy.manifest import load_manifest
from asmevo.deploy.rollback import roll_back
from asmevo.deploy.status import State, tree_status
from asmevo.deploy.substitute import Substitute
from asmevo.deploy.tree import Tree
from asmevo.deploy.triton import TritonCache
from tests.deploy.conftest import look_up, snapshot, substitute


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    return ZigToolchain()


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


def test_a_rebuilt_kernel(cache: Path, toolchain: Toolchain) -> None:
    """One more instruction than the original, through AsmEvo's own rebuild."""
    before = CodeObject.parse(hsaco(cache, "softmax").read_bytes())
    edited = recover(before).apply([Edit("softmax", 3, 3, ("s_nop 5",), "test")])
    after = rebuild(before, edited, toolchain)
    assert [i.text for i in program(after).instructions].count("s_nop 5") == 1
    assert after.code(after.kernel()) != before.code(before.kernel())
    wanted = {"softmax": substitute(before.data, data=after.data)}
    assert len(deploy(Tree.at(cache), TritonCache(), supply(wanted)).changes) == 1
    found = look_up(cache, "softmax")["softmax"]
    assert found["asm"] == found["kernel"] == found["group"] == after.sha256
    assert found["hit"] is True


def test_triton_does_not_compare_metadata_with_the_object(cache: Path) -> None:
    """Which is why deployers have to: Triton takes all of it without a word."""
    rewrite(cache, "add.json", name="another", shared=65536 * 4, num_warps=8,
            target={"backend": "hip", "arch": "gfx90a", "warp_size": 64})
    found = look_up(cache, "add")["add"]
    assert (found["hit"], found["shared"], found["name"]) == (True, 65536 * 4, "another")


def rewrite(cache: Path, file: str, /, **changes: object) -> None:
    (path,) = cache.glob(f"*/{file}")
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def refusal(cache: Path, name: str = "add", number: int = 1) -> DeployError:
    before = snapshot(cache)
    outcome = deploy(Tree.at(cache), TritonCache(), supply(replacements(cache, name,
                                                                        number=number)))
    assert not outcome.changes
    assert snapshot(cache) == before
    (refused,) = outcome.refused
    assert "\n" not in str(refused.error)
    return refused.error


@pytest.mark.parametrize(("change", "code", "words"), [
    ({"name": "another"}, DeployRefusal.METADATA, "launches kernel 'another'"),
    ({"name": 3}, DeployRefusal.METADATA, "lacks the kernel's name"),
    ({"target": {"arch": "gfx90a"}}, DeployRefusal.METADATA,
     "is for 'gfx90a', the object for gfx942"),
    ({"target": None}, DeployRefusal.METADATA, "lacks the kernel's name"),
    ({"shared": 65537}, DeployRefusal.LDS, "launched with 65537 bytes of LDS"),
    ({"shared": -1}, DeployRefusal.METADATA, "lacks the kernel's name"),
    ({"shared": True}, DeployRefusal.METADATA, "lacks the kernel's name"),
])
def test_metadata_that_is_not_the_objects(cache: Path, change: dict[str, object],
                                          code: DeployRefusal, words: str) -> None:
    rewrite(cache, "add.json", **change)
    error = refusal(cache)
    assert error.code is code
    assert words in str(error)


def test_lds_beyond_what_the_metadata_provides(cache: Path, toolchain: Toolchain) -> None:
    """Dynamic LDS comes out of the JSON, which is not changed: 16 bytes for this kernel."""
    before = CodeObject.parse(hsaco(cache, "softmax").read_bytes())
    body = recover(before).body("softmax")
    at, line = next((i, line) for i, line in enumerate(body.lines)
                    if line.text.startswith("ds_write_b32"))
    edited = recover(before).apply([Edit("softmax", at, at + 1, (
        f"{line.text.partition(' offset')[0]} offset:4096",), "test")])
    after = rebuild(before, edited, toolchain)
    wanted = {"softmax": substitute(before.data, data=after.data)}
    outcome = deploy(Tree.at(cache), TritonCache(), supply(wanted))
    (refused,) = outcome.refused
    assert refused.error.code is DeployRefusal.LDS
    assert "reaches byte 4100 of LDS" in str(refused.error)
    rewrite(cache, "softmax.json", shared=8192)
    assert deploy(Tree.at(cache), TritonCache(), supply(wanted)).changes


def test_an_entry_that_triton_would_compile_anew(cache: Path) -> None:
    """A swap there would last until the kernel's next use."""
    (group,) = cache.glob("*/__grp__add.json")
    text = group.read_text()
    group.unlink()
    assert refusal(cache).code is DeployRefusal.INCOMPLETE
    group.write_text(text)
    next(cache.glob("*/add.ttir")).unlink()
    assert "would compile the kernel anew" in str(refusal(cache))
    assert look_up(cache, "add")["add"]["hit"] is False


def test_a_moved_cache(cache: Path, tmp_path: Path) -> None:
    cache.rename(tmp_path / "moved")
    error = refusal(tmp_path / "moved")
    assert error.code is DeployRefusal.INCOMPLETE
    assert "was the cache moved?" in str(error)


@pytest.mark.parametrize("content", [
    b"", b"{", b"[]", b'{"child_paths": 3}', b'{"child_paths": {"add.hsaco": 3}}',
    b'{"child_paths": {"add.hsaco": "\\u0000"}}', b"[" * 100_000, b'{"a":' * 100_000,
    b'{"child_paths": {}, "n": ' + b"9" * 10_000 + b"}", b"\xff\xfe", b" " * (5 << 20),
    b'{"child_paths": {"add.hsaco": "/etc/passwd"}}',
    b'{"child_paths": {"add.hsaco": "/dev/zero", "add.json": "/dev/zero"}}'])
def test_hostile_group_files(cache: Path, content: bytes) -> None:
    (group,) = cache.glob("*/__grp__add.json")
    group.write_bytes(content)
    assert refusal(cache).code is DeployRefusal.INCOMPLETE


@pytest.mark.parametrize("content", [b"{", b"[" * 100_000, b'{"shared": NaN}', b" " * (5 << 20)])
def test_hostile_metadata(cache: Path, content: bytes) -> None:
    next(cache.glob("*/add.json")).write_bytes(content)
    assert refusal(cache).code in (DeployRefusal.INCOMPLETE, DeployRefusal.METADATA)


def test_metadata_outside_of_the_cache(cache: Path, tmp_path: Path) -> None:
    """Triton would read it, and it says how much LDS a launch gets; it is read as hostile."""
    (group,) = cache.glob("*/__grp__add.json")
    paths = json.loads(group.read_text())["child_paths"]
    os.mkfifo(tmp_path / "fifo")
    for outside in ("/dev/zero", str(tmp_path / "fifo"), str(tmp_path)):
        group.write_text(json.dumps({"child_paths": {**paths, "add.json": outside}}))
        assert refusal(cache).code is DeployRefusal.INCOMPLETE


def test_while_triton_is_writing(cache: Path) -> None:
    folder = hsaco(cache, "add").parent / "tmp.pid_1_abc"
    folder.mkdir()
    assert refusal(cache).code is DeployRefusal.BUSY
    os.utime(folder, (0, 0))  # of a process that was killed long ago
    wanted = replacements(cache, "add")
    assert deploy(Tree.at(cache), TritonCache(), supply(wanted)).changes


def test_an_entry_that_is_a_link(cache: Path, tmp_path: Path) -> None:
    file = hsaco(cache, "add")
    outside = tmp_path / "add.hsaco"
    file.rename(outside)
    file.symlink_to(outside)
    before = outside.read_bytes()
    assert refusal(cache).code is DeployRefusal.OUTSIDE
    assert outside.read_bytes() == before


def test_odd_files_do_not_disturb(cache: Path) -> None:
    """Loops, pipes, unreadable names, objects that are none."""
    (cache / "loop").symlink_to(cache)
    (cache / "self.hsaco").symlink_to(cache / "self.hsaco")
    os.mkfifo(cache / "pipe.hsaco")
    (cache / "new\nline.hsaco").write_bytes(b"\x7fELF")
    (cache / "folder.hsaco").mkdir()
    Path(os.fsdecode(os.fsencode(cache) + b"/\xff.hsaco")).write_bytes(b"")
    wanted = replacements(cache, "add")
    assert deploy(Tree.at(cache), TritonCache(), supply(wanted)).changes
    assert look_up(cache, "add")["add"]["asm"] == wanted["add"].sha256


def test_names_with_line_feeds_stay_in_one_sentence(cache: Path) -> None:
    file = hsaco(cache, "add")
    file.rename(file.with_name("new\nline.hsaco"))
    outcome = deploy(Tree.at(cache), TritonCache(), lambda sha256: substitute(
        file.with_name("new\nline.hsaco").read_bytes()) if sha256 == hashlib.sha256(
            file.with_name("new\nline.hsaco").read_bytes()).hexdigest() else None)
    (refused,) = outcome.refused
    assert "\n" not in str(refused.error)
    assert "new\\nline" in str(refused.error)


def test_compiled_anew_after_a_deployment(cache: Path) -> None:
    """What Triton itself undoes is seen, and a rollback has nothing to do."""
    original = hsaco(cache, "add").read_bytes()
    deploy(Tree.at(cache), TritonCache(), supply(replacements(cache, "add")))
    next(cache.glob("*/add.ttir")).unlink()
    assert look_up(cache, "add")["add"]["hit"] is False
    assert hsaco(cache, "add").read_bytes() == original
    tree = Tree.at(cache)
    (status,) = tree_status(tree, load_manifest(tree))
    assert status.state is State.ORIGINAL
