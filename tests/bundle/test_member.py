"""Members as kernel sources, listing and selecting them, and putting replacements back."""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import hydra.utils
import pytest

from asmevo.bundle.compressed import Method
from asmevo.bundle.errors import BundleError, ReplacementError
from asmevo.bundle.kernels import kernel_symbols
from asmevo.bundle.listing import list_objects, select_objects
from asmevo.bundle.member import InstalledMember, Member
from asmevo.bundle.offload_bundle import build
from asmevo.codeobject.assembly import Edit
from asmevo.codeobject.build import build as build_object
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.errors import SourceError
from asmevo.codeobject.recover import recover
from asmevo.codeobject.source import Source
from asmevo.codeobject.toolchain import ZigToolchain


class Llvm(Protocol):
    def compress(self, content: bytes, version: int, method: int, level: int = 3) -> bytes: ...


SharedLibrary = Callable[[Path, Sequence[bytes]], Path]


@pytest.fixture
def library(tmp_path: Path, shared_library: SharedLibrary, bundle: bytes, llvm: Llvm) -> Path:
    return shared_library(tmp_path, [bundle, llvm.compress(bundle, 3, Method.ZSTD)])


def test_member_is_a_source(library: Path, gfx942: bytes) -> None:
    source: Source = hydra.utils.instantiate({
        "_target_": "asmevo.bundle.member.Member", "path": str(library),
        "member": "hip_fatbin[1]!gfx942"})
    assert source.read() == gfx942
    assert source.describe() == f"{library}!hip_fatbin[1]!gfx942"
    assert Member.parse(source.describe()) == source


def test_parse_takes_the_part_that_is_a_file(tmp_path: Path, bundle: bytes) -> None:
    (tmp_path / "a!b.hipfb").write_bytes(bundle)
    text = f"{tmp_path}/a!b.hipfb!gfx942"
    assert Member.parse(text) == Member(f"{tmp_path}/a!b.hipfb", "gfx942")
    for missing in (f"{tmp_path}/none!gfx942", str(tmp_path / "a!b.hipfb")):
        with pytest.raises(SourceError, match="is a file"):
            Member.parse(missing)


@pytest.mark.parametrize(("member", "message"), [
    ("hip_fatbin[9]!gfx942", r"lib\.so!hip_fatbin\[9\]!gfx942': there is no"),
    ("hip_fatbin[0]!gfx90a", "no entries 'gfx90a'; its entries: 'host-.*', 'gfx942', 'gfx950'"),
    ("gfx942", r"among the file's 2 bundles: 'hip_fatbin\[0\]', 'hip_fatbin\[1\]'; in the first "
               r"it would be 'hip_fatbin\[0\]!gfx942'"),
    ("hip_fatbin[0]", "is not a code object"),
    ("hip_fatbin[0]!host-x86_64-unknown-linux-gnu-", "is not a code object"),
    ("", "no '' among"),
    ("!!!!!!!!!", "1 to 8 parts"),
])
def test_no_such_member(library: Path, member: str, message: str) -> None:
    with pytest.raises(BundleError, match=message):
        Member(str(library), member).read()
    with pytest.raises(SourceError, match="no such file"):
        Member(str(library) + "x", member).read()


def test_only_bundle_may_be_left_out(tmp_path: Path, bundle: bytes, gfx942: bytes) -> None:
    path = tmp_path / "k.hipfb"
    path.write_bytes(bundle + bytes(64))  # padded, as a dump of a section is
    short, full = Member(str(path), "gfx942"), Member(str(path), "bundle[0]!gfx942")
    assert short.read() == full.read() == gfx942
    new = gfx942.replace(b"Linker: ", b"Linked: ")
    assert short.replaced(new) == full.replaced(new)
    with pytest.raises(BundleError, match=r"no entries 'gfx90a'; its entries: .*'gfx942'"):
        Member(str(path), "gfx90a").read()


def test_names_in_errors_are_few(tmp_path: Path) -> None:
    path = tmp_path / "a.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for i in range(20):
            archive.writestr(f"{i}.txt", "")
    with pytest.raises(BundleError, match=r"'0\.txt', .*, '7\.txt' and 12 more$"):
        Member(str(path), "k.co").read()


def test_installed_member() -> None:
    wanted = InstalledMember("amd-aiter", "aiter_meta/hsa/gfx942/layer_norm.co", "gfx942")
    assert wanted.describe() == "amd-aiter:aiter_meta/hsa/gfx942/layer_norm.co!gfx942"
    with pytest.raises(BundleError, match="a code object has no members"):
        wanted.read()


def test_listing(library: Path, gfx942: bytes, gfx950: bytes) -> None:
    listed = list(list_objects(library))
    assert [(x.name, x.target, x.size, x.compression) for x in listed] == [
        (f"lib.so!hip_fatbin[{i}]!{target}", target, len(content), compression)
        for i, compression in ((0, None), (1, "CCOB v3 zstd"))
        for target, content in (("gfx942", gfx942), ("gfx950", gfx950))]
    assert {x.triple for x in listed} == {"amdgcn-amd-amdhsa-"}
    assert listed[0].entry_id == "hipv4-amdgcn-amd-amdhsa--gfx942"
    assert listed[0].kernels == ("layer_norm_kernel_func",)
    assert [x.offset for x in listed] == [0x1000, 0x4000, 0x1000, 0x4000]
    assert not any(x.refused for x in listed)


def test_listing_of_a_bare_object(tmp_path: Path, gfx942: bytes) -> None:
    (tmp_path / "k.co").write_bytes(gfx942)
    (tmp_path / "l.co").write_bytes(gfx942[:300])
    first, second = list_objects(tmp_path)
    assert (first.target, first.entry_id, first.kernels) == (
        "gfx942", None, ("layer_norm_kernel_func",))
    assert second.refused is not None
    assert "section header table" in second.refused


def test_selecting(library: Path, gfx942: bytes) -> None:
    chosen = list(select_objects(library, "gfx942", "layer_norm_kernel_func"))
    assert [x.found.read() for x in chosen] == [gfx942, gfx942]
    assert not list(select_objects(library, "gfx950", "layer_norm_kernel_func"))
    assert not list(select_objects(library, "gfx942:xnack+"))
    assert len(list(select_objects(library))) == 4


def test_selecting_by_feature(tmp_path: Path, gfx942: bytes) -> None:
    data = build([(f"hipv4-amdgcn-amd-amdhsa--gfx942:sramecc+:xnack{sign}", gfx942)
                  for sign in "+-"])
    (tmp_path / "k.hipfb").write_bytes(data)
    assert [x.target for x in select_objects(tmp_path, "gfx942:xnack-")] == [
        "gfx942:sramecc+:xnack-"]
    assert len(list(select_objects(tmp_path, "gfx942"))) == 2


@pytest.mark.parametrize("member", ["hip_fatbin[0]!gfx942", "hip_fatbin[1]!gfx942"])
def test_edited_kernel_goes_back_in(library: Path, gfx942: bytes, gfx950: bytes,
                                    member: str) -> None:
    original = CodeObject.parse(gfx942)
    edit = Edit(original.kernel().symbol, 4, 4, ("s_nop 0",) * 40, "longer code")
    new = build_object(original, recover(original).apply([edit]), ZigToolchain())
    assert len(new) > len(gfx942)
    before = library.read_bytes()
    library.chmod(0o751)
    Member(str(library), member).replace(new)
    assert stat.S_IMODE(library.stat().st_mode) == 0o751
    assert len(library.read_bytes()) == len(before)
    assert Member(str(library), member).read() == new
    assert Member(str(library), member.replace("942", "950")).read() == gfx950


def test_replace_writes_elsewhere_and_through_links(library: Path, gfx942: bytes) -> None:
    before = library.read_bytes()
    new = gfx942.replace(b"Linker: ", b"Linked: ")
    assert new != gfx942
    output = library.with_name("new.so")
    Member(str(library), "hip_fatbin[0]!gfx942").replace(new, output)
    assert library.read_bytes() == before
    assert Member(str(output), "hip_fatbin[0]!gfx942").read() == new
    link = library.with_name("link.so")
    link.symlink_to(library.name)
    Member(str(link), "hip_fatbin[0]!gfx942").replace(new)
    assert link.is_symlink()
    assert library.read_bytes() == output.read_bytes()


def test_replacements_that_are_refused(library: Path, gfx942: bytes, gfx950: bytes) -> None:
    before = library.read_bytes()
    position = gfx942.index(b"layer_norm_kernel_func.kd")
    renamed = gfx942[:position] + b"K" + gfx942[position + 1:]
    member = Member(str(library), "hip_fatbin[0]!gfx942")
    for content, message in ((gfx950, "for another processor"), (b"text", "not a code object"),
                             (gfx942[:64], "section header table"), (renamed, "lacks 1 kernels"),
                             (gfx942 + bytes(4096), "laid out anew")):
        with pytest.raises(ReplacementError, match=message):
            member.replace(content)
    assert library.read_bytes() == before
    with pytest.raises(SourceError, match="cannot write"):
        member.replace(gfx942, library / "below a file")


def test_files_in_a_wheel_are_not_replaced(tmp_path: Path, gfx942: bytes) -> None:
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        archive.writestr("k.co", gfx942)
    member = Member(str(tmp_path / "a.whl"), "k.co")
    assert member.read() == gfx942
    with pytest.raises(ReplacementError, match="RECORD"):
        member.replace(gfx942)


def test_kernels_of_processors_that_cannot_be_recovered(gfx942: bytes) -> None:
    expected = [k.symbol for k in CodeObject.parse(gfx942).kernels]
    other = bytearray(gfx942)
    other[48] = 0x41  # gfx1100
    assert list(kernel_symbols(memoryview(other))) == expected
