"""Captures in the registry: by content, and verified."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from asmevo.codeobject.container import CodeObject
from asmevo.dispatch.captured.capture import Capture
from asmevo.dispatch.captured.document import identity
from asmevo.dispatch.captured.folder import read_capture
from asmevo.dispatch.captured.source import CapturedObject
from asmevo.registry.command.line import main
from asmevo.registry.errors import RegistryError
from asmevo.registry.records import CaptureReason
from asmevo.registry.registry import Registry
from tests.dispatch.captured.conftest import make_capture
from tests.registry.tampering import execute

BACKENDS = ("sqlite", "postgresql")


@pytest.fixture
def capture(registry: Registry, original: CodeObject) -> Capture:
    registry.record_original(original, "amd-aiter")
    return make_capture(code_object=original.sha256)


def test_a_capture_comes_back(registry: Registry, capture: Capture) -> None:
    sha256 = registry.record_capture(capture, held_out=True)
    assert sha256 == identity(capture)
    assert registry.load_capture(sha256) == capture
    (record,) = registry.captures(capture.code_object, "k")
    assert (record.sha256, record.name, record.reason, record.held_out, record.size) == (
        sha256, "m4", CaptureReason.CAPTURED, True, capture.size)
    assert registry.captures(capture.code_object, "other") == ()
    assert registry.captures("0" * 64, "k") == ()


def test_the_same_capture_is_stored_once(registry: Registry, capture: Capture) -> None:
    first = registry.record_capture(capture)
    assert registry.record_capture(replace(capture, name="again", origin="elsewhere")) == first
    assert [r.name for r in registry.captures(capture.code_object, "k")] == ["m4"]
    other = registry.record_capture(replace(capture, dynamic_lds=0))
    assert [r.sha256 for r in registry.captures(capture.code_object, "k")] == [first, other]


def test_a_capture_becomes_a_counterexample_and_stays_one(registry: Registry,
                                                          capture: Capture) -> None:
    sha256 = registry.record_capture(capture)
    assert registry.record_counterexample(capture, "d" * 64) == sha256
    assert registry.record_capture(capture) == sha256
    (record,) = registry.captures(capture.code_object, "k")
    assert (record.reason, record.dispatch_sha256, record.held_out) == (
        CaptureReason.COUNTEREXAMPLE, "d" * 64, True)


def test_the_object_must_be_known(registry: Registry) -> None:
    with pytest.raises(RegistryError, match="no code object"):
        registry.record_capture(make_capture())


@pytest.mark.sqlite
def test_unknown_captures(registry: Registry, tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match="no registry at"):
        registry.load_capture("0" * 64)
    assert registry.captures("0" * 64, "k") == ()
    assert not registry.path.exists()
    registry.check_writable()
    with pytest.raises(RegistryError, match="has no capture"):
        registry.load_capture("0" * 64)


def test_a_tampered_row_is_noticed(registry: Registry, capture: Capture) -> None:
    sha256 = registry.record_capture(capture)
    execute(registry, "UPDATE capture SET kernel = 'other'")
    with pytest.raises(RegistryError, match="does not match its content"):
        registry.load_capture(sha256)
    other = registry.record_capture(replace(capture, dynamic_lds=0))
    execute(registry, "UPDATE capture SET content_sha256 = (SELECT content_sha256 FROM capture "
                     f"WHERE sha256 = '{sha256}'), kernel = 'k'")
    with pytest.raises(RegistryError, match="does not match its content"):
        registry.load_capture(other)


def test_a_missing_blob_is_noticed(registry: Registry, capture: Capture) -> None:
    sha256 = registry.record_capture(capture)
    for path in (registry.path / "blobs").rglob("*.zst"):
        path.unlink()
    with pytest.raises(RegistryError, match="missing"):
        registry.load_capture(sha256)



@pytest.mark.sqlite
def test_the_command_line(registry: Registry, capture: Capture, tmp_path: Path,
                          capsys: pytest.CaptureFixture[str]) -> None:
    """Listed for people and machines, and written out as a folder that can be replayed."""
    where = ["--registry", str(registry.path)]
    assert main(["captures", *where]) == 1
    assert "no captures in" in capsys.readouterr().out
    sha256 = registry.record_capture(capture)
    other = registry.record_capture(replace(capture, dynamic_lds=0))
    assert main(["captures", "--json", *where]) == 0
    listed = json.loads(capsys.readouterr().out)["captures"]
    assert [(c["sha256"], c["reason"], c["size"]) for c in listed] == [
        (sha256, "captured", capture.size), (other, "captured", capture.size)]
    assert main(["captures", sha256[:8], "-o", str(tmp_path / "out"), *where]) == 0
    assert sha256[:8] in capsys.readouterr().out
    assert read_capture(tmp_path / "out") == capture
    assert CapturedObject(str(tmp_path / "out")).read() == registry.load_object(
        capture.code_object)
    for wrong in (["-o", "x"], ["captures"], [sha256[:8], "-o", str(tmp_path / "out")],
                  ["0123456789", "-o", "x"]):
        assert main(["captures", *wrong, *where]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1
