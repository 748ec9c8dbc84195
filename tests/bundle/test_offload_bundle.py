"""The uncompressed bundle: header, limits and replacing an entry."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asmevo.bundle.errors import BundleError, ReplacementError
from asmevo.bundle.offload_bundle import ENTRY_LIMIT, BundleEntry, OffloadBundle, build

GFX942 = "hipv4-amdgcn-amd-amdhsa--gfx942"
GFX90A = "hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-"
HOST = "host-x86_64-unknown-linux-gnu-"
# Two entries of 3 and 2 bytes, written out by hand after Clang's documentation.
BY_HAND = (
    b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", 2)
    + struct.pack("<QQQ", 0x90, 3, len(GFX942)) + GFX942.encode()
    + struct.pack("<QQQ", 0x98, 2, 3) + b"x-y"
).ljust(0x90, b"\0") + b"abc\0\0\0\0\0de"


def parse(data: bytes) -> OffloadBundle:
    return OffloadBundle.parse(memoryview(data))


def contents(data: bytes) -> list[tuple[str, bytes]]:
    bundle = parse(data)
    return [(e.id, bytes(bundle.content(e))) for e in bundle.entries]


def test_documented_layout() -> None:
    bundle = parse(BY_HAND + b"behind")
    assert contents(BY_HAND) == [(GFX942, b"abc"), ("x-y", b"de")]
    assert [(e.offset, e.size) for e in bundle.entries] == [(0x90, 3), (0x98, 2)]
    assert bundle.size == len(BY_HAND)


@pytest.mark.parametrize(("name", "kind", "triple", "target"), [
    (GFX942, "hipv4", "amdgcn-amd-amdhsa-", "gfx942"),
    (GFX90A, "hipv4", "amdgcn-amd-amdhsa-", "gfx90a:sramecc+:xnack-"),
    ("hip-amdgcn-amd-amdhsa-gfx906:xnack-", "hip", "amdgcn-amd-amdhsa", "gfx906:xnack-"),
    (HOST, "host", "x86_64-unknown-linux-gnu", ""),
    ("hip-spirv64-amd-amdhsa--amdgcnspirv", "hip", "spirv64-amd-amdhsa-", "amdgcnspirv"),
    ("odd", "odd", "", ""),
])
def test_entry_id(name: str, kind: str, triple: str, target: str) -> None:
    entry = BundleEntry(name, 0, 0, 0)
    assert (entry.kind, entry.triple, entry.target) == (kind, triple, target)


@given(st.lists(st.binary(max_size=200), max_size=6), st.sampled_from([1, 8, 64, 4096]))
def test_build_and_parse(blobs: list[bytes], alignment: int) -> None:
    entries = [(f"hip-amdgcn-amd-amdhsa--gfx{i}", blob) for i, blob in enumerate(blobs)]
    data = build(entries, alignment)
    assert contents(data) == entries
    assert all(e.offset % alignment == 0 for e in parse(data).entries)
    assert parse(data + b"next").size == len(data)


def test_replace_in_place_keeps_everything_else() -> None:
    data = build([(HOST, b""), (GFX942, b"a" * 100), (GFX90A, b"b" * 50)])
    first = parse(data).entries[1]
    shorter = parse(data).replaced(first, b"c" * 60, len(data))
    assert contents(shorter) == [(HOST, b""), (GFX942, b"c" * 60), (GFX90A, b"b" * 50)]
    changed = [i for i, (x, y) in enumerate(zip(data, shorter, strict=True)) if x != y]
    assert set(changed) <= {first.header + 8, *range(first.offset, first.offset + 100)}
    assert shorter[first.offset + 60:first.offset + 100] == bytes(40)
    # There is room up to the next page.
    longer = parse(data).replaced(first, b"c" * 4096, len(data))
    assert parse(longer).entries[2] == parse(data).entries[2]
    assert contents(longer)[1:] == [(GFX942, b"c" * 4096), (GFX90A, b"b" * 50)]


def test_replace_lays_the_bundle_out_anew_when_there_is_room() -> None:
    data = build([(GFX942, b"a" * 100), (GFX90A, b"b" * 50)])
    bundle = parse(data)
    laid = bundle.replaced(bundle.entries[0], b"c" * 5000, len(data) + 4096)
    assert laid == build([(GFX942, b"c" * 5000), (GFX90A, b"b" * 50)])
    assert bundle.replaced(bundle.entries[0], b"c" * 5000, None) == laid
    with pytest.raises(ReplacementError, match="has 5000 bytes, its place 4096"):
        bundle.replaced(bundle.entries[0], b"c" * 5000, len(data) + 4095)


def test_replace_last_entry() -> None:
    data = build([(GFX942, b"a" * 100)])
    bundle = parse(data)
    entry = bundle.entries[0]
    assert contents(bundle.replaced(entry, b"d" * 300, len(data) + 200)) == [(GFX942, b"d" * 300)]
    with pytest.raises(ReplacementError, match="place 300"):
        bundle.replaced(entry, b"d" * 301, len(data) + 200)


def test_alignment_of_the_original_is_kept() -> None:
    data = build([(GFX942, b"a" * 100), (GFX90A, b"b" * 50)], 64)
    bundle = parse(data)
    assert bundle.replaced(bundle.entries[0], b"c" * 500, None) == build(
        [(GFX942, b"c" * 500), (GFX90A, b"b" * 50)], 64)


def test_empty_entry_is_not_replaced() -> None:
    bundle = parse(build([(HOST, b"")]))
    with pytest.raises(ReplacementError, match="is empty"):
        bundle.replaced(bundle.entries[0], b"x", None)


def header(*entries: tuple[int, int, int, bytes], count: int | None = None) -> bytes:
    data = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(entries) if count is None else count)
    for offset, size, length, name in entries:
        data += struct.pack("<QQQ", offset, size, length) + name
    return data.ljust(256, b"\0")


HOSTILE = {
    "magic": (b"__CLANG_OFFLOAD_BUNDLE_-" + bytes(100), "magic string"),
    "no count": (b"__CLANG_OFFLOAD_BUNDLE__\x01", "truncated"),
    "no entry": (b"__CLANG_OFFLOAD_BUNDLE__\x01" + bytes(10), "truncated"),
    "count": (header(count=1 << 63), "claims 9223372036854775808 entries"),
    "count in limits": (header(count=ENTRY_LIMIT), "malformed ID"),
    "ID length": (header((64, 1, 1 << 63, b"a")), "claims an ID"),
    "ID beyond": (header((64, 1, 300, b"a")), "claims an ID"),
    "ID not UTF-8": (header((128, 1, 2, b"\xff\xfe")), "UTF-8"),
    "ID control": (header((128, 1, 2, b"a\n")), "malformed ID"),
    "ID separator": (header((128, 1, 2, b"a!")), "malformed ID"),
    "end": (header((128, 129, 1, b"a")), "truncated: 'a' ends"),
    "offset overflow": (header(((1 << 64) - 1, 1, 1, b"a")), "truncated: 'a'"),
    "in header": (header((40, 4, 1, b"a")), "the header and 'a' overlap"),
    "overlap": (header((128, 8, 1, b"a"), (135, 8, 1, b"b")), "'a' and 'b' overlap"),
    "twice": (header((128, 8, 1, b"a"), (136, 8, 1, b"a")), "'a' twice"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_header(case: str) -> None:
    data, message = HOSTILE[case]
    with pytest.raises(BundleError, match=message):
        parse(data)
