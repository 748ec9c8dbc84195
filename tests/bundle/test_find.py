"""Walking directories, wheels and nested containers."""

from __future__ import annotations

import io
import os
import pickle
import shutil
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from asmevo.bundle import find, wheel
from asmevo.bundle.container import Container
from asmevo.bundle.errors import BundleError
from asmevo.bundle.find import find_objects
from asmevo.bundle.offload_bundle import build
from asmevo.bundle.open import DEPTH_LIMIT, descend, open_file
from asmevo.codeobject.errors import SourceError

SharedLibrary = Callable[[Path, Sequence[bytes]], Path]
GFX942 = "hipv4-amdgcn-amd-amdhsa--gfx942"


def names(path: Path) -> list[str]:
    return [found.name for found in find_objects(path)]


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture
def tree(tmp_path: Path, shared_library: SharedLibrary, bundle: bytes, gfx942: bytes) -> Path:
    """A directory with every kind of file, some of them useless."""
    work = tmp_path / "work"
    work.mkdir()
    library = shared_library(work, [bundle, bundle])
    root = tmp_path / "root"
    (root / "b" / "c").mkdir(parents=True)
    shutil.copy(library, root / "b" / "libx.so.1")
    (root / "b" / "libx.so").symlink_to("libx.so.1")
    (root / "b" / "c" / "kernel.co").write_bytes(gfx942)
    (root / "b" / "c" / "loop").symlink_to(root)
    (root / "a.whl").write_bytes(zipped({"p/k.co": gfx942, "p/lib.so": library.read_bytes(),
                                         "p/readme.txt": b"text", "p/a!b.co": gfx942}))
    (root / "notes.txt").write_text("text")
    (root / "empty").write_bytes(b"")
    (root / "dangling").symlink_to("nowhere")
    os.mkfifo(root / "fifo")
    return root


IN_LIBRARY = [f"hip_fatbin[{i}]!{target}" for i in (0, 1) for target in ("gfx942", "gfx950")]


def test_directory(tree: Path, gfx942: bytes, gfx950: bytes) -> None:
    found = {f.name: f.read() for f in find_objects(tree)}
    assert list(found) == [
        "a.whl!p/k.co", *(f"a.whl!p/lib.so!{name}" for name in IN_LIBRARY), "a.whl!p/a%21b.co",
        *(f"b/libx.so!{name}" for name in IN_LIBRARY), "b/c/kernel.co"]
    for name, content in found.items():
        assert content == (gfx950 if name.endswith("gfx950") else gfx942)


def test_wheel_names_are_relative_to_it(tree: Path) -> None:
    assert names(tree / "a.whl") == ["p/k.co", *(f"p/lib.so!{name}" for name in IN_LIBRARY),
                                     "p/a%21b.co"]


def test_one_file(tree: Path) -> None:
    assert names(tree / "b" / "c" / "kernel.co") == ["kernel.co"]
    assert names(tree / "b" / "libx.so") == [f"libx.so!{name}" for name in IN_LIBRARY]


def test_what_cannot_be_searched(tree: Path) -> None:
    for name, error, message in (("none", SourceError, "no such file"),
                                 ("notes.txt", BundleError, "not a 64-bit host ELF"),
                                 ("fifo", SourceError, "not a regular file"),
                                 ("empty", BundleError, "not a 64-bit host ELF")):
        with pytest.raises(error, match=message) as caught:
            find_objects(tree / name)
        assert f"'{tree / name}'" in str(caught.value)


def test_damaged_container_is_named(tree: Path, bundle: bytes) -> None:
    library = (tree / "b" / "libx.so").read_bytes()
    for name, data in (("cut.hipfb", bundle[:100]), ("cut.so", library[:4096]),
                       ("cut.whl", zipped({"k.co": b""})[:40]), ("cut.a", b"!<arch>\ntext"),
                       ("rest.hipfb", bundle + b"rest")):
        (tree / name).write_bytes(data)
        with pytest.raises(BundleError) as caught:
            find_objects(tree / name)
        assert str(caught.value).startswith(f"'{tree / name}': ")


def test_objects_are_read_in_any_order_and_after_pickling(tree: Path) -> None:
    found = list(find_objects(tree))
    expected = {f.name: f.read() for f in found}
    for copy in pickle.loads(pickle.dumps(found[::-1])):
        assert copy.read() == expected[copy.name]


def test_a_file_is_opened_once_for_all_its_members(tree: Path,
                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []

    def counted(path: Path) -> Container:
        opened.append(path)
        return open_file(path)

    monkeypatch.setattr(find, "open_file", counted)
    for found in find_objects(tree):
        found.read()
    assert [path.name for path in opened] == ["a.whl", "libx.so"]


def test_one_bundle_is_held_at_a_time(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bundle read last is let go of before the next one is decompressed."""
    held: list[int] = []

    def counted(root: Container, parts: Sequence[str],
                known: Sequence[Container] = ()) -> list[Container]:
        held.append(len(find._recent.containers))
        return descend(root, parts, known)

    monkeypatch.setattr(find, "descend", counted)
    library = tree / "b" / "libx.so"
    for bundle in ("hip_fatbin[0]", "hip_fatbin[1]", "hip_fatbin[0]"):
        find.opened(library, (bundle,))
    assert held == [1, 1, 1]


def test_a_file_that_changes_is_read_again(tmp_path: Path, bundle: bytes, gfx942: bytes,
                                           gfx950: bytes) -> None:
    path = tmp_path / "k.hipfb"
    path.write_bytes(bundle)
    first, *_ = find_objects(path)
    assert first.read() == gfx942
    path.write_bytes(build([(GFX942, gfx950)]))
    assert first.read() == gfx950
    path.unlink()
    with pytest.raises(SourceError, match="no such file"):
        first.read()


def test_damage_is_found_and_named(tree: Path, bundle: bytes) -> None:
    shutil.rmtree(tree / "b")
    (tree / "a.whl").write_bytes((tree / "a.whl").read_bytes()[:-30])
    (tree / "cut.hipfb").write_bytes(bundle[:-10])
    (tree / "bitcode.hipfb").write_bytes(build([
        ("host-x86_64-unknown-linux-gnu-", b"host code"), (GFX942, b"BC\xc0\xde and more"),
        ("hip-spirv64-amd-amdhsa--amdgcnspirv", b"\x03\x02\x23\x07"), ("hip-a-b-c--gfx900", b"?")]))
    reasons = {}
    for found in find_objects(tree):
        with pytest.raises(BundleError) as caught:
            found.read()
        reasons[found.name] = str(caught.value)
    refused = "the bundle entry is not a linked code object but "
    assert reasons == {
        "a.whl": "the zip file is truncated: it has no directory",
        "bitcode.hipfb!gfx942": f"{refused}LLVM bitcode",
        "bitcode.hipfb!amdgcnspirv": f"{refused}SPIR-V",
        "bitcode.hipfb!gfx900": f"{refused}unknown data",
        "cut.hipfb": "truncated: 'hipv4-amdgcn-amd-amdhsa--gfx950' ends at byte "
                     f"{len(bundle)} of an offload bundle of at most {len(bundle) - 10} bytes",
    }


def test_nesting_has_a_limit(tmp_path: Path, gfx942: bytes) -> None:
    path = tmp_path / "outer.zip"
    data = gfx942
    for depth in range(DEPTH_LIMIT + 1):
        data = zipped({f"{depth}": data})
        path.write_bytes(data)
        found, = find_objects(path)
        if depth < DEPTH_LIMIT:
            assert found.read() == gfx942
    with pytest.raises(BundleError, match="nest deeper than 8 levels"):
        found.read()


def test_hostile_zip_files(tmp_path: Path, gfx942: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    good = zipped({"k.co": gfx942})

    def reason(data: bytes) -> str:
        (tmp_path / "a.zip").write_bytes(data)
        with pytest.raises(BundleError) as caught:
            next(find_objects(tmp_path / "a.zip")).read()
        return str(caught.value)

    directory = good.index(b"PK\1\2")
    assert "compressed by method 14" in reason(zipped({"k.co": gfx942}, zipfile.ZIP_LZMA))
    assert "damaged" in reason(good[:100] + bytes(50) + good[150:])
    encrypted = bytearray(good)
    encrypted[directory + 8] |= 1
    encrypted[6] |= 1
    assert "damaged" in reason(bytes(encrypted))
    assert "damaged" in reason(good[:directory] + bytes(4) + good[directory + 4:])
    monkeypatch.setattr(wheel, "DIRECTORY_LIMIT", 10)
    assert "directory has" in reason(good)
    monkeypatch.undo()
    monkeypatch.setattr(wheel, "FILE_LIMIT", 1000)
    assert "larger than" in reason(good)
    monkeypatch.undo()
    end = good.index(b"PK\5\6")
    unnamed = bytearray(good[:directory + 46] + good[directory + 50:])
    unnamed[directory + 28] = 0
    unnamed[end - 4 + 12] -= 4
    assert "malformed name ''" in reason(bytes(unnamed))
    assert "malformed name" in reason(good.replace(b"k.co", b"k\nco"))
    huge = bytearray(good)
    huge[directory + 24:directory + 28] = (1 << 30).to_bytes(4, "little")
    assert "more than 1032 times" in reason(bytes(huge))
    assert "ZIP64" in reason(good[:end] + b"PK\6\7" + bytes(16) + good[end:])


def test_a_zip_file_that_lies_about_a_size(tmp_path: Path) -> None:
    """A member that inflates to more than its entry states is never inflated further."""
    data = bytearray(zipped({"k.co": bytes(10 << 20)}))
    directory = data.index(b"PK\1\2")
    data[directory + 24:directory + 28] = (100).to_bytes(4, "little")
    (tmp_path / "a.zip").write_bytes(data)
    with pytest.raises(BundleError, match="damaged"):
        find.opened(tmp_path / "a.zip", ()).read("k.co")
