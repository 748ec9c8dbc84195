"""Captures on disk: what is written is read, and half a capture is none."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.codeobject.errors import SourceError
from asmevo.dispatch.captured.capture import Allocation, Segment
from asmevo.dispatch.captured.document import identity
from asmevo.dispatch.captured.errors import CaptureError
from asmevo.dispatch.captured.folder import (
    BLOBS,
    DOCUMENT,
    capture_folders,
    read_capture,
    read_code_object,
    write_capture,
)
from asmevo.dispatch.captured.source import CapturedObject
from tests.dispatch.captured.conftest import OBJECT, make_capture


def test_what_is_written_is_read(folder: Path) -> None:
    assert read_capture(folder) == make_capture()
    assert read_code_object(folder, 1 << 20) == OBJECT
    assert CapturedObject(str(folder)).read() == OBJECT
    assert CapturedObject(str(folder.parent)).read() == OBJECT


def test_the_files_are_as_specified(folder: Path) -> None:
    """A document, and zstd blobs whose content hashes to their names, each content once."""
    document = json.loads((folder / DOCUMENT).read_text())
    assert (document["format"], document["version"]) == ("asmevo.capture", 1)
    blobs = {path.stem: path for path in (folder / BLOBS).rglob("*.zst")}
    for sha256, path in blobs.items():
        assert path.parent.name == sha256[:2]
        content = zstandard.ZstdDecompressor().decompress(path.read_bytes())
        assert hashlib.sha256(content).hexdigest() == sha256
    named = {segment[key] for allocation in document["allocations"]
             for segment in allocation["segments"] for key in ("pre", "post")}
    assert set(blobs) == named | {document["code_object"]}
    files = {path for path in folder.rglob("*") if path.is_file()}
    assert files == {folder / DOCUMENT, *blobs.values()}


def test_raw_blobs_are_read(folder: Path) -> None:
    for path in (folder / BLOBS).rglob("*.zst"):
        path.with_suffix("").write_bytes(zstandard.ZstdDecompressor().decompress(path.read_bytes()))
        path.unlink()
    assert read_capture(folder) == make_capture()


def test_the_document_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recorder that dies leaves blobs, and no capture."""
    def die(*arguments: object, **keywords: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("asmevo.dispatch.captured.folder.write_atomically", die)
    with pytest.raises(CaptureError, match="No space left"):
        write_capture(make_capture(), tmp_path / "c")
    assert any((tmp_path / "c" / BLOBS).rglob("*.zst"))
    with pytest.raises(CaptureError, match="incomplete"):
        read_capture(tmp_path / "c")
    monkeypatch.undo()
    write_capture(make_capture(), tmp_path / "c")
    assert read_capture(tmp_path / "c") == make_capture()


def test_a_capture_is_not_overwritten(folder: Path) -> None:
    with pytest.raises(CaptureError, match="holds a capture already"):
        write_capture(make_capture("other"), folder)
    assert read_capture(folder).name == "m4"


def test_the_code_object_must_be_the_captured_one(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="not of that code object"):
        write_capture(make_capture(), tmp_path / "c", code_object=OBJECT + b"!")


def test_a_capture_without_its_object_says_so(tmp_path: Path) -> None:
    write_capture(make_capture(), tmp_path / "c")
    with pytest.raises(SourceError, match="blob"):
        CapturedObject(str(tmp_path / "c")).read()


def test_identity_is_of_everything_but_the_labels() -> None:
    capture = make_capture()
    assert identity(replace(capture, name="other", origin="elsewhere")) == identity(capture)
    first, *rest = capture.allocations
    data = bytes(1024)
    for other in (
        replace(capture, kernarg=capture.kernarg[:-1] + b"\1"),
        replace(capture, grid=(512, 2, 1)),
        replace(capture, dynamic_lds=0),
        replace(capture, pointers=None),
        replace(capture, allocations=(replace(first, segments=(Segment(0, data, data),)), *rest)),
    ):
        assert identity(other) != identity(capture)


def test_folders_of_captures(tmp_path: Path) -> None:
    for name in ("b", "a"):
        write_capture(make_capture(name), tmp_path / "all" / name)
    (tmp_path / "all" / "unfinished" / BLOBS).mkdir(parents=True)
    every = [tmp_path / "all" / "a", tmp_path / "all" / "b"]
    assert capture_folders(str(tmp_path / "all")) == every
    assert capture_folders([str(every[1]), str(tmp_path / "all")]) == [every[1], *every]
    assert capture_folders([]) == []
    for wrong in (None, 3, "", [None]):
        with pytest.raises(CaptureError, match="must name a folder"):
            capture_folders(wrong)
    with pytest.raises(CaptureError, match="there is no capture"):
        read_capture(tmp_path / "nowhere")


@st.composite
def allocations(draw: st.DrawFn) -> tuple[Allocation, ...]:
    found = []
    address = 0x1000
    for index in range(draw(st.integers(0, 3))):
        segments, offset = [], 0
        for _ in range(draw(st.integers(0, 3))):
            offset += draw(st.integers(0, 200))
            pre = draw(st.binary(min_size=1, max_size=100))
            post = draw(st.binary(min_size=len(pre), max_size=len(pre)))
            segments.append(Segment(offset, pre, post, None, draw(st.booleans())))
            offset += len(pre)
        size = offset + draw(st.integers(1, 100))
        address += draw(st.integers(0, 1 << 40))
        found.append(Allocation(f"a{index}", address, size, tuple(segments)))
        address += size
    return tuple(found)


@settings(max_examples=40, deadline=None)
@given(allocations=allocations(), name=st.text(min_size=1, max_size=20).filter(str.isprintable),
       kernarg=st.binary(max_size=64))
def test_any_capture_comes_back(tmp_path_factory: pytest.TempPathFactory,
                                allocations: tuple[Allocation, ...], name: str,
                                kernarg: bytes) -> None:
    capture = make_capture(name, allocations=allocations, pointers=None, kernarg=kernarg)
    folder = tmp_path_factory.mktemp("capture")
    write_capture(capture, folder)
    assert read_capture(folder) == capture
