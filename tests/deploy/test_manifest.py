"""The manifest is read as if an enemy had written it."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.deploy.deployment import deploy
from asmevo.deploy.errors import DeployError, DeployRefusal
from asmevo.deploy.manifest import SIZE_LIMIT, DeployedFile, Manifest, Swap, load_manifest
from asmevo.deploy.manifest import store_manifest as store
from asmevo.deploy.plain_file import PlainFile
from asmevo.deploy.tree import STATE, Tree
from tests.deploy.conftest import Originals


@pytest.fixture
def folder(originals: Originals) -> Path:
    folder = originals.make()
    deploy(Tree.at(folder), PlainFile(), originals.supply(1))
    return folder


def manifest_file(folder: Path) -> Path:
    return folder / STATE / "manifest.json"


def code(folder: Path) -> DeployRefusal:
    with pytest.raises(DeployError) as caught:
        load_manifest(Tree.at(folder))
    assert "\n" not in str(caught.value)
    return caught.value.code


@pytest.mark.parametrize("content", [
    b"", b"{", b"null", b"[]", b"{}", b"[" * 1_000_000, b'{"format":' * 100_000, b"\xff",
    b'{"format": 1e999}', b'{"format": NaN}', b'{"format": ' + b"9" * 100_000 + b"}",
    b'{"format": 2, "kind": "file", "base": null, "files": []}'])
def test_content_that_is_no_manifest(folder: Path, content: bytes) -> None:
    manifest_file(folder).write_bytes(content)
    assert code(folder) is DeployRefusal.MANIFEST


def test_one_that_is_too_large(folder: Path) -> None:
    with manifest_file(folder).open("wb") as file:
        file.truncate(SIZE_LIMIT + 1)
    assert code(folder) is DeployRefusal.MANIFEST


@pytest.mark.parametrize("where", ["manifest", "state"])
def test_links(folder: Path, tmp_path: Path, where: str) -> None:
    moved = manifest_file(folder) if where == "manifest" else folder / STATE
    moved.rename(tmp_path / "moved")
    moved.symlink_to(tmp_path / "moved")
    assert code(folder) is DeployRefusal.MANIFEST


def test_one_that_may_not_be_read_is_not_taken_for_none(
        originals: Originals, open_path: Path,
        as_user: Callable[[], AbstractContextManager[None]]) -> None:
    folder = originals.make().rename(open_path / "tree")
    deploy(Tree.at(folder), PlainFile(), originals.supply(1))
    for mode in (0o000, 0o400):
        (folder / STATE).chmod(mode)
        with as_user():
            assert code(folder) is DeployRefusal.UNREADABLE
            with pytest.raises(DeployError):
                deploy(Tree.at(folder), PlainFile(), originals.supply(2))


@pytest.mark.parametrize(("key", "value"), [
    ("path", "../one.co"), ("path", "/etc/passwd"), ("path", "a/../../one.co"), ("path", ""),
    ("path", "a//b"), ("path", "."), ("path", f"{STATE}/manifest.json"),
    ("path", "nul\0"), ("path", 3), ("path", None),
    ("original_sha256", "../../etc/passwd"), ("original_sha256", "0" * 63),
    ("original_sha256", "A" * 64), ("deployed_sha256", 0), ("earlier", "0" * 64),
    ("earlier", [None]), ("link", 3), ("swaps", {}), ("swaps", [None]), ("swaps", None)])
def test_fields_of_a_file(folder: Path, key: str, value: object) -> None:
    edit(folder, lambda document: document["files"][0].update({key: value}))
    assert code(folder) is DeployRefusal.MANIFEST


@pytest.mark.parametrize(("key", "value"), [
    ("speedup", "1"), ("speedup", True), ("speedup", None), ("speedup", 1e400),
    ("timing_source", "guessed"), ("kernel", None), ("member", 3), ("statement_sha256", "x"),
    ("replacement_sha256", None), ("time", 3), ("device", [])])
def test_fields_of_a_swap(folder: Path, key: str, value: object) -> None:
    edit(folder, lambda document: document["files"][0]["swaps"][0].update({key: value}))
    assert code(folder) is DeployRefusal.MANIFEST


def test_a_file_twice(folder: Path) -> None:
    edit(folder, lambda document: document["files"].append(document["files"][0]))
    assert code(folder) is DeployRefusal.MANIFEST


@pytest.mark.parametrize(("base", "link"), [
    (None, "/etc/passwd"), ("/etc", "/etc/passwd"), ("/base", "/base/../a/one.co"),
    ("/base", "/base/b/two.co")])
def test_only_an_overlay_has_links_and_only_to_its_base(folder: Path, base: str | None,
                                                        link: str) -> None:
    edit(folder, lambda document: document.update(base=base))
    edit(folder, lambda document: document["files"][0].update(link=link))
    assert code(folder) is DeployRefusal.MANIFEST


def edit(folder: Path, change: Any) -> None:
    document = json.loads(manifest_file(folder).read_text())
    change(document)
    manifest_file(folder).write_text(json.dumps(document))


TEXT = st.text(max_size=20).filter(lambda text: "\0" not in text)
HASH = st.text("0123456789abcdef", min_size=64, max_size=64)
SWAP = st.builds(
    Swap, st.none() | TEXT, HASH, HASH, TEXT,
    st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["measured", "modelled"]),
    TEXT, st.none() | HASH, TEXT)
PATH = TEXT.filter(lambda t: t not in ("", ".", "..") and "/" not in t)
ENTRY = st.builds(DeployedFile, PATH, HASH, HASH, st.lists(SWAP, max_size=2).map(tuple),
                  st.lists(HASH, max_size=2).map(tuple))


@settings(deadline=None, max_examples=20)
@given(st.lists(ENTRY, min_size=1, max_size=3, unique_by=lambda e: e.path), st.none() | TEXT)
def test_what_is_stored_is_loaded(tmp_path_factory: pytest.TempPathFactory,
                                  entries: list[DeployedFile], base: str | None) -> None:
    tree = Tree.at(tmp_path_factory.mktemp("tree"))
    manifest = Manifest({entry.path: entry for entry in entries}, "file", base)
    store(tree, manifest)
    assert load_manifest(tree) == manifest
    store(tree, Manifest())
    assert load_manifest(tree) == Manifest()
