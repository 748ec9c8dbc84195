"""`.hip_fatbin` sections of host files that clang, LLD and llvm-ar made."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import pytest
from elftools.elf.elffile import ELFFile

from asmevo.bundle.archive import Archive
from asmevo.bundle.compressed import Method
from asmevo.bundle.errors import BundleError, ReplacementError
from asmevo.bundle.fat_binary import FatBinary
from asmevo.bundle.find import find_objects
from asmevo.bundle.offload_bundle import build
from asmevo.bundle.open import open_container, read_member, replace_member
from asmevo.codeobject.source import InstalledFile

SECTION_TABLE_OFFSET = 0x28


class Llvm(Protocol):
    def compress(self, content: bytes, version: int, method: int, level: int = 3) -> bytes: ...


SharedLibrary = Callable[[Path, Sequence[bytes]], Path]
HostObject = Callable[[Path, str, bytes], Path]


def of_host(data: bytes) -> FatBinary:
    return FatBinary.of_host(memoryview(data))


def fatbin_extent(path: Path) -> tuple[int, int]:
    """Offset and size of the section, from pyelftools."""
    with path.open("rb") as file:
        section = ELFFile(file).get_section_by_name(".hip_fatbin")
        assert section is not None
        return section["sh_offset"], section["sh_size"]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, shared_library: SharedLibrary, bundle: bytes,
            llvm: Llvm) -> Path:
    """A library with an uncompressed and two compressed fat binaries."""
    return shared_library(tmp_path_factory.mktemp("library"), [
        bundle, llvm.compress(bundle, 2, Method.ZSTD), llvm.compress(bundle, 3, Method.ZLIB)])


def test_bundles_of_a_library(library: Path, bundle: bytes, gfx942: bytes, gfx950: bytes) -> None:
    data = library.read_bytes()
    host = of_host(data)
    assert host.names == ("hip_fatbin[0]", "hip_fatbin[1]", "hip_fatbin[2]")
    offset, size = fatbin_extent(library)
    places = [host.place(name) for name in host.names]
    assert places[0].offset == offset
    assert places[0].size == len(bundle)
    assert all(place.offset % 4096 == 0 for place in places)
    assert sum(place.room for place in places) == size
    for name in host.names:
        assert read_member(host, (name, "gfx942")) == gfx942
        assert read_member(host, (name, "hipv4-amdgcn-amd-amdhsa--gfx950")) == gfx950
    found = {f.name: f.read() for f in find_objects(library)}
    assert found == {f"lib.so!{name}!{target}": content for name in host.names
                     for target, content in (("gfx942", gfx942), ("gfx950", gfx950))}


@pytest.mark.parametrize("index", [0, 1, 2])
def test_replacing_changes_nothing_else(library: Path, gfx942: bytes, gfx950: bytes,
                                        index: int) -> None:
    data = library.read_bytes()
    host = of_host(data)
    name = f"hip_fatbin[{index}]"
    assert replace_member(host, (name, "gfx942"), gfx942) == data
    new = gfx942[:0x1000] + bytes(4) + gfx942[0x1004:]
    replaced = replace_member(host, (name, "gfx942"), new)
    assert len(replaced) == len(data)
    place = host.place(name)
    assert replaced[:place.offset] == data[:place.offset]
    assert replaced[place.offset + place.room:] == data[place.offset + place.room:]
    again = of_host(replaced)
    assert [p.offset for p in again.places.values()] == [p.offset for p in host.places.values()]
    for other in host.names:
        assert read_member(again, (other, "gfx942")) == (new if other == name else gfx942)
        assert read_member(again, (other, "gfx950")) == gfx950


def test_uncompressed_replacement_of_the_same_size_changes_only_its_bytes(
        library: Path, gfx942: bytes) -> None:
    data = library.read_bytes()
    new = gfx942[:0x1000] + bytes(4) + gfx942[0x1004:]
    replaced = replace_member(of_host(data), ("hip_fatbin[0]", "gfx942"), new)
    start = fatbin_extent(library)[0] + 4096
    assert replaced == data[:start] + new + data[start + len(new):]


def test_replacement_that_does_not_fit(library: Path, gfx942: bytes, gfx950: bytes) -> None:
    host = of_host(library.read_bytes())
    with pytest.raises(ReplacementError, match="its place 12288"):
        replace_member(host, ("hip_fatbin[0]", "gfx942"), gfx942 + bytes(4000))
    with pytest.raises(ReplacementError, match="CCOB v2 zstd"):
        replace_member(host, ("hip_fatbin[1]", "gfx942"), gfx942 + Path(__file__).read_bytes() * 9)
    place = host.place("hip_fatbin[0]")
    with pytest.raises(ReplacementError, match="has room for"):
        host.replaced("hip_fatbin[0]", bytes(place.room + 1), None)
    assert read_member(host, ("hip_fatbin[0]", "gfx950")) == gfx950


def test_missing_members(library: Path) -> None:
    host = open_container(memoryview(library.read_bytes()))
    for parts, message in (
            (("hip_fatbin[3]",), "no 'hip_fatbin\\[3\\]' among the file's 3 bundles"),
            (("hip_fatbin[0]", "gfx90a"), "no entries 'gfx90a'; its entries: 'host-x86_64"),
            (("hip_fatbin[0]", "gfx942", "x"), "a code object has no members"),
            ((), "1 to 8 parts")):
        with pytest.raises(BundleError, match=message):
            read_member(host, parts)


def test_entries_of_one_processor(gfx942: bytes, gfx950: bytes) -> None:
    ids = [f"hipv4-amdgcn-amd-amdhsa--gfx90a:xnack{sign}" for sign in "+-"]
    same = [f"{kind}-amdgcn-amd-amdhsa--gfx942" for kind in ("hip", "openmp")]
    data = build([(ids[0], gfx942), (ids[1], gfx950), (same[0], gfx942), (same[1], gfx950)])
    bundle = open_container(memoryview(data))
    assert bundle.names == ("gfx90a:xnack+", "gfx90a:xnack-", *same)
    assert bundle.read("gfx90a:xnack-") == gfx950
    assert bundle.read(same[1]) == gfx950
    for name in ("gfx90a", "gfx942"):
        with pytest.raises(BundleError, match=f"2 entries '{name}'"):
            bundle.read(name)


def test_bare_bundles(tmp_path: Path, bundle: bytes, gfx942: bytes, llvm: Llvm) -> None:
    (tmp_path / "one.hipfb").write_bytes(bundle)
    row = llvm.compress(bundle, 3, Method.ZSTD) + bytes(17) + bundle + bytes(3)
    (tmp_path / "row.hipfb").write_bytes(row)
    assert [f.name for f in find_objects(tmp_path)] == [
        "one.hipfb!gfx942", "one.hipfb!gfx950", "row.hipfb!bundle[0]!gfx942",
        "row.hipfb!bundle[0]!gfx950", "row.hipfb!bundle[1]!gfx942", "row.hipfb!bundle[1]!gfx950"]
    # A bundle that is a file by itself may grow.
    longer = gfx942 + bytes(5000)
    one = open_container(memoryview(bundle))
    assert read_member(open_container(memoryview(replace_member(one, ("gfx942",), longer))),
                       ("gfx942",)) == longer


@pytest.mark.parametrize("style", ["gnu", "bsd"])
def test_archive(tmp_path: Path, zig: Callable[..., None], host_object: HostObject, bundle: bytes,
                 gfx942: bytes, style: str) -> None:
    names = [host_object(tmp_path, name, bundle).name
             for name in ("brief", "a_name_of_more_than_sixteen_characters")]
    zig("ar", "rcs", f"--format={style}", "lib.a", *names, names[0], directory=tmp_path)
    data = (tmp_path / "lib.a").read_bytes()
    archive = open_container(memoryview(data))
    assert isinstance(archive, Archive)
    assert archive.names == (*names, f"{names[0]}[1]")
    for name, file in zip(archive.names, (*names, names[0]), strict=True):
        assert archive.read(name) == (tmp_path / file).read_bytes()
    assert read_member(archive, (names[1], "hip_fatbin[0]", "gfx942")) == gfx942
    new = gfx942[:-4] + b"abcd"
    replaced = replace_member(archive, (names[1], "hip_fatbin[0]", "gfx942"), new)
    position = data.index(gfx942, data.index(gfx942) + 1)
    assert replaced == data[:position] + new + data[position + len(new):]
    with pytest.raises(ReplacementError, match="instead of"):
        archive.replaced(names[0], b"x", None)


def test_thin_archive(tmp_path: Path, zig: Callable[..., None], host_object: HostObject,
                      bundle: bytes) -> None:
    host_object(tmp_path, "kernel", bundle)
    zig("ar", "rc", "--thin", "lib.a", "kernel.o", directory=tmp_path)
    with pytest.raises(BundleError, match="thin archive"):
        open_container(memoryview((tmp_path / "lib.a").read_bytes()))
    found = {f.name: f for f in find_objects(tmp_path)}
    assert list(found)[:2] == ["kernel.hipfb!gfx942", "kernel.hipfb!gfx950"]
    with pytest.raises(BundleError, match="thin archive"):
        found["lib.a"].read()


def test_file_of_another_machine_without_bundles(zig: Callable[..., None], tmp_path: Path) -> None:
    (tmp_path / "a.s").write_text("nop\n")
    zig("clang", "-target", "aarch64-linux-gnu", "-c", "a.s", "-o", "a.o", directory=tmp_path)
    assert list(find_objects(tmp_path / "a.o")) == []


def sections_of(data: bytes) -> int:
    return int(struct.unpack_from("<Q", data, SECTION_TABLE_OFFSET)[0])


def fatbin_header(data: bytes, size: int) -> int:
    """The file offset of the section header of ``.hip_fatbin``, found by its size."""
    table = sections_of(data)
    return next(p for p in range(table, len(data) - 63, 64)
                if struct.unpack_from("<Q", data, p + 32)[0] == size)


def test_hostile_host_files(library: Path) -> None:
    data = library.read_bytes()
    start, size = fatbin_extent(library)
    header = fatbin_header(data, size)

    def packed(layout: str, position: int, *values: int) -> bytes:
        changed = bytearray(data)
        struct.pack_into(layout, changed, position, *values)
        return bytes(changed)

    for changed, message in (
            (data[:40], "not a 64-bit host ELF"),
            (data[:sections_of(data) + 10], "section header table"),
            (packed("<Q", SECTION_TABLE_OFFSET, 1 << 63), "section header table"),
            (packed("<H", 0x3A, 63), "section header table"),
            (packed("<H", 0x3E, 0xFFFE), "section header table"),
            (packed("<HH", 0x3C, 0, 0), "section header table"),
            (packed("<Q", header + 24, 1 << 63), "truncated: section '.hip_fatbin'"),
            (packed("<Q", header + 32, (1 << 64) - 1), "truncated: section '.hip_fatbin'"),
            (packed("<Q", header + 8, 1 << 11), "compressed as an ELF section"),
            (packed("<Q", header + 32, size + 4096), "neither an offload bundle nor padding"),
            (packed("<B", start + 5, 0), "neither an offload bundle nor padding")):
        with pytest.raises(BundleError, match=message):
            open_container(memoryview(changed))


def test_section_without_bundles(library: Path) -> None:
    data = bytearray(library.read_bytes())
    start, size = fatbin_extent(library)
    header = fatbin_header(bytes(data), size)
    data[start:start + size] = bytes(size)
    assert of_host(bytes(data)).names == ()
    struct.pack_into("<Q", data, header + 32, 0)
    assert of_host(bytes(data)).names == ()


def test_device_code_of_the_new_driver(library: Path) -> None:
    data = library.read_bytes()
    assert data.count(b"\0.hip_fatbin\0") == 1
    changed = data.replace(b"\0.hip_fatbin\0", b"\0.llvm.offlo\0")
    assert of_host(changed).names == ()
    position = data.index(b"\0.hip_fatbin\0") + 1
    text = b".llvm.offloading\0"
    changed = data[:position] + text + data[position + len(text):]
    with pytest.raises(BundleError, match=r"'\.llvm\.offloading', which AsmEvo does not read"):
        of_host(changed)


MEMBER = b"a.o/            0           0     0     644     4         `\nabcd"
ARCHIVES = {
    "truncated header": (MEMBER[:30], "no member header at byte 8"),
    "no end mark": (MEMBER.replace(b"`", b"'"), "no member header"),
    "size not a number": (MEMBER.replace(b"4         `", b"-4        `"), "no member header"),
    "size beyond": (MEMBER.replace(b"4         `", b"9999999999`"), "truncated: a member"),
    "name table": (MEMBER.replace(b"a.o/", b"/12 "), "outside the name table"),
    "name not a number": (MEMBER.replace(b"a.o/", b"/1x "), "outside the name table"),
    "BSD name": (MEMBER.replace(b"a.o/ ", b"#1/99"), "malformed BSD name"),
    "name not UTF-8": (MEMBER.replace(b"a.o/", b"\xff\xfeo/"), "not valid UTF-8"),
    "no name": (MEMBER.replace(b"a.o/", b"    "), "malformed name"),
}


@pytest.mark.parametrize("case", ARCHIVES)
def test_hostile_archive(case: str) -> None:
    data, message = ARCHIVES[case]
    with pytest.raises(BundleError, match=message):
        Archive.parse(memoryview(b"!<arch>\n" + data))


def test_archive_names_can_hold_the_separator() -> None:
    archive = Archive.parse(memoryview(b"!<arch>\n" + MEMBER.replace(b"a.o/ ", b"a!%b/")))
    assert archive.names == ("a%21%25b",)
    assert bytes(archive.read("a%21%25b")) == b"abcd"


def test_archive_members_of_one_name() -> None:
    second, literal = MEMBER.replace(b"abcd", b"efgh"), MEMBER.replace(b"a.o/   ", b"a.o[1]/")
    data = memoryview(b"!<arch>\n" + MEMBER + second + literal + second)
    archive = Archive.parse(data)
    assert archive.names == ("a.o", "a.o[2]", "a.o[1]", "a.o[3]")
    assert bytes(archive.read("a.o[2]")) == b"efgh"


def test_code_object_is_no_container() -> None:
    data = InstalledFile("amd-aiter", "aiter_meta/hsa/gfx942/layer_norm.co").read()
    with pytest.raises(BundleError, match="has no members"):
        open_container(memoryview(data))
