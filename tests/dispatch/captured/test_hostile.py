"""Captures that nobody recorded: each is refused with one sentence, and costs nothing."""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import json
import operator
import os
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.dispatch.captured.capture import Capture, PointerField
from asmevo.dispatch.captured.document import from_document, to_document
from asmevo.dispatch.captured.errors import CaptureError
from asmevo.dispatch.captured.folder import BLOBS, DOCUMENT, read_capture
from tests.dispatch.captured.conftest import OUT, TABLE, Change, X, make_capture

Document = dict[str, Any]
ZERO = hashlib.sha256(bytes(128)).hexdigest()


def segment(document: Document, allocation: int = 0, number: int = 0) -> Document:
    found: Document = document["allocations"][allocation]["segments"][number]
    return found


@pytest.mark.parametrize(("change", "words"), [
    (lambda d: d.update(version=2), "format version 2"),
    (lambda d: d.update(version="1"), "format version 1"),
    (lambda d: d.update(version=True), "format version True"),
    (lambda d: d.update(version=2, allocations="of another kind"), "format version 2"),
    (lambda d: d.update(format="other"), "no capture"),
    (lambda d: d.pop("format"), "no capture"),
    (lambda d: d.update(extra=1), "unknown key 'extra'"),
    (lambda d: segment(d).update(extra=1), "unknown key 'extra'"),
    (lambda d: d.pop("kernel"), "lacks 'kernel'"),
    (lambda d: d.update(kernel=3), "'kernel' of the capture is no text"),
    (lambda d: d.update(name=""), "printable characters"),
    (lambda d: d.update(name="x" * 201), "printable characters"),
    (lambda d: d.update(name="a\x1b[2Jb"), "printable characters"),
    (lambda d: d.update(code_object="../../etc/passwd"), "no.* a SHA-256|not a SHA-256"),
    (lambda d: d.update(kernarg="zz"), "not hexadecimal"),
    (lambda d: d.update(kernarg="00" * ((1 << 20) + 1)), "bytes of kernarg"),
    (lambda d: d.update(grid=[1, 2]), "three whole numbers"),
    (lambda d: d.update(grid=[0, 1, 1]), "three whole numbers"),
    (lambda d: d.update(grid=[1 << 32, 1, 1]), "three whole numbers"),
    (lambda d: d.update(grid=[1.5, 1, 1]), "three whole numbers"),
    (lambda d: d.update(workgroup=None), "no list"),
    (lambda d: d.update(dynamic_lds=-1), "whole number"),
    (lambda d: d.update(relies_on_time=1), "neither true nor false"),
    (lambda d: d.update(allocations={}), "no list"),
    (lambda d: d.update(allocations=[3]), "no JSON object"),
    (lambda d: d["allocations"][1].update(name="x"), "two allocations named 'x'"),
    (lambda d: d["allocations"][1].update(address=X + 8), "'x' and 'table' .* overlap"),
    (lambda d: d["allocations"][1].update(address=(1 << 47) - 8), "47-bit"),
    (lambda d: d["allocations"][1].update(address=1 << 64), "64 bits"),
    (lambda d: d["allocations"][1].update(address=0), "47-bit"),
    (lambda d: d["allocations"][0].update(element="f33"), "'f33' .known: "),
    (lambda d: d["allocations"][0].update(size=1023), "leaves its 1023 bytes"),
    (lambda d: d["allocations"][0].update(size=(1 << 64) - 1), "47-bit"),
    (lambda d: segment(d).update(size=1023), "larger than|decompresses to more"),
    (lambda d: segment(d).update(size=1025), "has 1024 bytes, 1025 are expected"),
    (lambda d: segment(d).update(size=0), "decompresses to more|larger than"),
    (lambda d: segment(d).update(size=-5), "64 bits"),
    (lambda d: segment(d).update(size=1 << 40), "bytes of memory, more than"),
    (lambda d: segment(d).update(size=1 << 31), "has 1024 bytes"),
    (lambda d: segment(d).update(offset=8), "leaves its 1024 bytes"),
    (lambda d: segment(d, 2, 1).update(offset=64), "overlaps another"),
    (lambda d: d["allocations"][2]["segments"].reverse(), "out of order"),
    (lambda d: segment(d).update(pre="a" * 64), "blob"),
    (lambda d: segment(d).update(pre="../" + "a" * 61), "not a SHA-256"),
    (lambda d: segment(d).update(pre="A" * 64), "not a SHA-256"),
    (lambda d: segment(d).update(pre=["a"]), "not a SHA-256"),
    (lambda d: segment(d).update(pre=ZERO, post=ZERO), "has 128 bytes, 1024 are expected"),
    (lambda d: segment(d).update(written=True), "is an input, but the dispatch wrote it"),
    (lambda d: segment(d, 2, 1).update(role="input"), "is an input, but the dispatch wrote it"),
    (lambda d: segment(d).update(role="both"), "'both' .known: "),
    (lambda d: segment(d).pop("post"), "lacks 'post'"),
    (lambda d: d.update(pointers=[{"offset": 9, "target": 0}]), "outside the kernarg"),
    (lambda d: d.update(pointers=[{"offset": 0, "target": 3}]), "3 of them"),
    (lambda d: d.update(pointers=[{"offset": 0, "target": 0, "holder": 9}]), "3 of them"),
    (lambda d: d.update(pointers=[{"offset": 124, "target": 0, "holder": 2}]), "of 'out'"),
    (lambda d: d.update(pointers=[{"offset": 1 << 65, "target": 0}]), "64 bits"),
    (lambda d: d.update(pointers=[7]), "no JSON object"),
    (lambda d: d["pointers"].append({"offset": 0, "target": 1}), "two pointers that overlap"),
    (lambda d: d["pointers"].append({"offset": 8, "target": 2, "holder": 1}), "overlap.*'table'"),
    (lambda d: d["pointers"][0].update(target=2), "holds 0x7f0000200000, which is not in 'out'"),
    (lambda d: d["pointers"][1].update(target=2), "is not in 'out'"),
    (lambda d: d["pointers"].append({"offset": 8, "target": 0}), "holds 0x7, which is not in 'x'"),
])
def test_one_sentence(changed: Callable[[Change], Capture], change: Change, words: str) -> None:
    with pytest.raises(CaptureError, match=words) as refusal:
        changed(change)
    assert "\n" not in str(refusal.value)
    assert str(refusal.value).isprintable()


@pytest.mark.parametrize(("text", "words"), [
    (b"", "no valid JSON"),
    (b"\xff\xfe", "no valid JSON"),
    (b"[" * 100_000, "no valid JSON"),
    (b'{"version": ' + b"9" * 5000 + b"}", "no valid JSON"),
    (b'{"version": 1, "version": 1}', "key twice"),
    (b'{"version": NaN}', "no number"),
    (b"[]", "no JSON object"),
    (b"null", "no JSON object"),
])
def test_documents_that_are_none(folder: Path, text: bytes, words: str) -> None:
    (folder / DOCUMENT).write_bytes(text)
    with pytest.raises(CaptureError, match=words):
        read_capture(folder)


def blob(folder: Path, data: bytes) -> Path:
    sha256 = hashlib.sha256(data).hexdigest()
    return folder / BLOBS / sha256[:2] / f"{sha256}.zst"


X_DATA = bytes(range(256)) * 4


@pytest.mark.parametrize(("content", "words"), [
    (zstandard.compress(X_DATA)[:-9], "no valid zstd|does not match"),
    (b"", "does not match|no valid zstd"),
    (b"no zstd at all", "no valid zstd"),
    (zstandard.compress(X_DATA[:-1] + b"!"), "does not match its name"),
    (zstandard.compress(bytes(64 << 20)), "decompresses to more|larger than"),
])
def test_damaged_blobs(folder: Path, content: bytes, words: str) -> None:
    blob(folder, X_DATA).write_bytes(content)
    with pytest.raises(CaptureError, match=words):
        read_capture(folder)


def test_a_bomb_is_not_unpacked(folder: Path) -> None:
    """4 GiB of zeros in 400 kB: no more is unpacked than the segment has."""
    compressor = zstandard.ZstdCompressor(level=19).compressobj()
    parts = [compressor.compress(bytes(1 << 24)) for _ in range(64)]
    bomb = b"".join(parts) + compressor.flush()
    blob(folder, X_DATA).write_bytes(bomb)
    tracemalloc.start()
    try:
        # Even a document that asks for gigabytes does not have them reserved.
        document = json.loads((folder / DOCUMENT).read_text())
        segment(document)["size"] = 1 << 20
        (folder / DOCUMENT).write_text(json.dumps(document))
        with pytest.raises(CaptureError, match=r"more than|larger than"):
            read_capture(folder)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_a_size_field_reserves_no_memory(folder: Path) -> None:
    document = json.loads((folder / DOCUMENT).read_text())
    segment(document)["size"] = 1 << 31
    (folder / DOCUMENT).write_text(json.dumps(document))
    tracemalloc.start()
    try:
        with pytest.raises(CaptureError, match="has 1024 bytes"):
            read_capture(folder)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_a_pipe_for_a_blob_does_not_hang(folder: Path) -> None:
    path = blob(folder, X_DATA)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(CaptureError, match="not a regular file"):
        read_capture(folder)
    path.unlink()
    path.mkdir()
    with pytest.raises(CaptureError, match="is a directory"):
        read_capture(folder)


def test_a_pipe_for_a_document_does_not_hang(folder: Path) -> None:
    (folder / DOCUMENT).unlink()
    os.mkfifo(folder / DOCUMENT)
    with pytest.raises(CaptureError, match="not a regular file"):
        read_capture(folder)


class Memory:
    """Blobs in memory."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}

    def put(self, data: bytes) -> str:
        sha256 = hashlib.sha256(data).hexdigest()
        self.held[sha256] = data
        return sha256

    def get(self, sha256: str, size: int) -> bytes:
        data = self.held.get(sha256)
        if data is None or len(data) != size:
            raise CaptureError(f"blob {sha256} is missing")
        return data


BLOBS_OF_IT = Memory()
GOOD: Document = json.loads(to_document(make_capture(), BLOBS_OF_IT))
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 1 << 66), st.floats(), st.text(max_size=5),
    st.sampled_from([X, TABLE, OUT, 64, 1024, "input", "output", ZERO]),
    st.lists(st.integers(-1, 5), max_size=3), st.dictionaries(st.text(max_size=3), st.none()))


def read_or_refused(text: bytes) -> Capture | None:
    """``None`` for what was refused with one sentence; anything else than that is raised."""
    refusals = []
    capture = None
    try:
        capture = from_document(text, BLOBS_OF_IT)
    except CaptureError as error:
        refusals.append(str(error))
    assert not any("\n" in sentence for sentence in refusals)
    return capture


def places(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    below = (value.items() if isinstance(value, dict) else
             enumerate(value) if isinstance(value, list) else ())
    return [path, *(place for key, item in below for place in places(item, (*path, key)))][
        0 if path else 1:]


@settings(max_examples=400, deadline=None)
@given(changes=st.lists(st.tuples(st.sampled_from(places(GOOD)), VALUES), min_size=1, max_size=4))
def test_any_document_is_read_or_refused(changes: list[tuple[tuple[Any, ...], object]]) -> None:
    """Whatever stands anywhere: a capture that contradicts nothing, or one `CaptureError`."""
    document = copy.deepcopy(GOOD)
    for path, value in changes:
        with contextlib.suppress(TypeError, KeyError, IndexError):  # changed away before
            holder: Any = functools.reduce(operator.getitem, path[:-1], document)
            holder[path[-1]] = value
    capture = read_or_refused(json.dumps(document).encode())
    if capture is not None:
        assert from_document(to_document(capture, BLOBS_OF_IT), BLOBS_OF_IT) == capture


@settings(max_examples=200, deadline=None)
@given(position=st.integers(0, 4000), flipped=st.integers(1, 255), cut=st.booleans())
def test_flipped_and_cut_bytes(position: int, flipped: int, cut: bool) -> None:
    text = bytearray(to_document(make_capture(), BLOBS_OF_IT))
    at = position % len(text)
    if cut:
        del text[at:]
    else:
        text[at] ^= flipped
    read_or_refused(bytes(text))


def test_pointers_that_overlap_by_half() -> None:
    """Both hold addresses of the allocation, so that only their places contradict each other."""
    low = 0x10_0000_0010
    document = make_capture()
    x = replace(document.allocations[0], address=low, size=1 << 40)
    kernarg = low.to_bytes(8, "little") + bytes([0x10, 0, 0, 0]) + bytes(4)
    assert low <= int.from_bytes(kernarg[4:12], "little") <= x.end
    with pytest.raises(CaptureError, match="overlap, at offsets 0 and 4 of the kernarg"):
        make_capture(allocations=(x,), kernarg=kernarg,
                     pointers=(PointerField(4, 0), PointerField(0, 0)))
