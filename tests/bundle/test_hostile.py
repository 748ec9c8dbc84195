"""Damaged containers give one clear error, whatever is damaged."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from asmevo.bundle.compressed import Method, compress
from asmevo.bundle.errors import BundleError
from asmevo.bundle.find import find_objects
from asmevo.bundle.listing import list_objects
from asmevo.bundle.open import open_container, replace_member
from asmevo.codeobject.source import InstalledFile

SharedLibrary = Callable[[Path, Sequence[bytes]], Path]

KINDS = ("bundle", "row", "host", "archive", "wheel",
         *(f"CCOB v{version} {method.name}" for version in (1, 2, 3) for method in Method))


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory, shared_library: SharedLibrary,
            bundle: bytes) -> dict[str, bytes]:
    directory = tmp_path_factory.mktemp("samples")
    small = compress(bundle, 3, Method.ZSTD, 3)
    library = shared_library(directory, [bundle, small]).read_bytes()
    member = b"%-16s0           0     0     644     %-10d`\n"
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("lib.so", library)
        file.writestr("k.hipfb", small)
    result = {"bundle": bundle, "row": bundle + bytes(9) + small, "host": library,
              "archive": b"!<arch>\n" + member % (b"#1/8", len(library) + 8) + b"lib.so\0\0"
              + library + member % (b"b.o/", len(small)) + small,
              "wheel": archive.getvalue()}
    for version in (1, 2, 3):
        for method in Method:
            result[f"CCOB v{version} {method.name}"] = compress(bundle, version, method, 6)
    return result


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile") / "sample"


def explore(path: Path, data: bytes) -> None:
    """Read all that is inside; only the package's own errors may come out, each a short line."""
    path.write_bytes(data)
    reasons: list[str | None] = []
    try:
        reasons = [listed.refused for listed in list_objects(path)]
    except BundleError as error:
        reasons = [str(error)]
    for reason in reasons:
        assert reason is None or (len(reason) < 1500 and "\n" not in reason)


fuzzed = settings(max_examples=150, deadline=None)


@pytest.mark.parametrize("kind", KINDS)
def test_the_samples_themselves_are_whole(samples: dict[str, bytes], path: Path,
                                          kind: str) -> None:
    path.write_bytes(samples[kind])
    listed = list(list_objects(path))
    assert len(listed) in (2, 4, 6)
    assert not any(x.refused for x in listed)


@fuzzed
@given(kind=st.sampled_from(KINDS), part=st.floats(0, 1))
def test_truncated(samples: dict[str, bytes], path: Path, kind: str, part: float) -> None:
    data = samples[kind]
    explore(path, data[:int(part * (len(data) - 1))])


@fuzzed
@given(kind=st.sampled_from(KINDS), data=st.data())
def test_flipped(samples: dict[str, bytes], path: Path, kind: str, data: st.DataObject) -> None:
    changed = bytearray(samples[kind])
    # Where the headers are: most flips elsewhere only change a kernel.
    near = st.one_of(st.integers(0, 300), st.integers(len(changed) - 3000, len(changed) - 1),
                     st.integers(0, len(changed) - 1))
    for position in data.draw(st.lists(near, min_size=1, max_size=4)):
        changed[position % len(changed)] = data.draw(st.integers(0, 255))
    explore(path, bytes(changed))


@fuzzed
@given(kind=st.sampled_from(KINDS), data=st.data())
def test_hostile_integers(samples: dict[str, bytes], path: Path, kind: str,
                          data: st.DataObject) -> None:
    changed = bytearray(samples[kind])
    position = data.draw(st.integers(0, min(400, len(changed) - 8)))
    value = data.draw(st.sampled_from([0, 1, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 62, 1 << 63,
                                       (1 << 64) - 1, (1 << 64) - 4096]))
    struct.pack_into("<Q", changed, position, value)
    explore(path, bytes(changed))


@fuzzed
@given(head=st.sampled_from([b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB", b"!<arch>\n", b"PK\x03\x04",
                             b"\x7fELF\x02\x01\x01" + bytes(9), b""]),
       tail=st.binary(max_size=600))
@example(head=b"", tail=b"")
def test_anything(path: Path, head: bytes, tail: bytes) -> None:
    explore(path, head + tail)


@settings(fuzzed, max_examples=30)
@given(kind=st.sampled_from(["bundle", "row", "host", "archive"]), data=st.data())
def test_replacing_in_a_damaged_file(samples: dict[str, bytes], path: Path, kind: str,
                                     data: st.DataObject) -> None:
    changed = bytearray(samples[kind])
    position = data.draw(st.integers(0, min(400, len(changed) - 8)))
    changed[position:position + 8] = data.draw(st.binary(min_size=8, max_size=8))
    path.write_bytes(changed)
    new = InstalledFile("amd-aiter", "aiter_meta/hsa/gfx942/layer_norm.co").read()[::-1]
    try:
        for found in find_objects(path):
            if parts := found.name.split("!")[1:]:
                result = replace_member(open_container(memoryview(bytes(changed))), parts, new)
                assert kind == "bundle" or len(result) == len(changed)
                break
    except BundleError:
        return


def test_many_overlapping_entries_cost_nothing() -> None:
    """A small file that claims the same megabytes thousands of times is refused."""
    count, size = 4000, 4 << 20
    entry = b"".join(struct.pack("<QQQ", 1 << 20, size, 5) + b"%05d" % i for i in range(count))
    data = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", count) + entry
    with pytest.raises(BundleError, match="overlap"):
        open_container(memoryview(data.ljust((1 << 20) + size, b"\0")))
