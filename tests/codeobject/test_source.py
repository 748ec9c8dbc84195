"""Where objects come from, and the one sentence when they do not."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

from asmevo.codeobject import source
from asmevo.codeobject.errors import SourceError
from asmevo.codeobject.source import FirstOf, InstalledFile, LocalFile

LAYER_NORM = "aiter_meta/hsa/gfx942/layer_norm.co"


def test_installed_file_is_read_without_importing_the_package() -> None:
    file = InstalledFile("amd-aiter", LAYER_NORM)
    assert file.read()[:4] == b"\x7fELF"
    assert file.describe() == f"amd-aiter:{LAYER_NORM}"
    assert not {"aiter", "aiter_meta"} & set(sys.modules)


def test_missing_distribution_names_the_extra() -> None:
    with pytest.raises(SourceError) as error:
        InstalledFile("no-such-wheel", "a/b.co").read()
    assert str(error.value) == ("kernel 'a/b.co' needs the Python package 'no-such-wheel' "
                                "(pip install 'asmevo[kernels]')")


@pytest.mark.parametrize("path", ["aiter_meta/hsa/gfx942/nope.co", "", "../../../etc/passwd",
                                  "/etc/passwd", "aiter_meta/hsa/gfx942"])
def test_file_that_is_not_of_the_distribution(path: str) -> None:
    with pytest.raises(SourceError, match=r"'amd-aiter' \S+ has no file"):
        InstalledFile("amd-aiter", path).read()


def test_a_missing_local_file_says_where_it_comes_from(tmp_path: Path) -> None:
    file = LocalFile(str(tmp_path / "a.co"), hint="clone the repository")
    with pytest.raises(SourceError, match=r"no file '.*/a\.co': clone the repository"):
        file.read()
    (tmp_path / "a.co").write_bytes(b"object")
    assert file.read() == b"object"


def test_local_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "k.co").write_bytes(b"abc")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert LocalFile(str(tmp_path / "k.co")).read() == b"abc"
    assert LocalFile("~/k.co").read() == b"abc"


def test_the_first_source_that_has_the_object(tmp_path: Path) -> None:
    missing, there = (LocalFile(str(tmp_path / name)) for name in ("a.co", "b.co"))
    (tmp_path / "b.co").write_bytes(b"object")
    assert FirstOf([missing, there]).read() == b"object"
    assert FirstOf([missing, there]).describe() == there.path
    (tmp_path / "a.co").write_bytes(b"another")
    assert FirstOf([missing, there]).read() == b"another"


def test_no_source_has_the_object(tmp_path: Path) -> None:
    both = FirstOf([LocalFile(str(tmp_path / "a.co"), hint="clone it"),
                    InstalledFile("no-such-wheel", "b.co")])
    with pytest.raises(SourceError, match=r"a\.co': clone it; .*'no-such-wheel'"):
        both.read()
    assert both.describe() == f"{tmp_path}/a.co or no-such-wheel:b.co"
    with pytest.raises(SourceError, match="no source to read from"):
        FirstOf([]).read()


def test_what_is_not_a_readable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "big").write_bytes(bytes(11))
    monkeypatch.setattr(source, "SIZE_LIMIT", 10)
    for name, message in (("none", "cannot read .*no such file"), (".", "is a directory"),
                          ("fifo", "is not a regular file"), ("big", "is larger than"),
                          ("a\0b", "is not a file name"), ("x" * 300, "cannot read")):
        with pytest.raises(SourceError, match=message):
            LocalFile(str(tmp_path / name)).read()


def test_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: object, flags: int) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(SourceError, match="permission denied"):
        LocalFile(str(tmp_path / "k.co")).read()
