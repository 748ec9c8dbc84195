"""HIP sources become code objects without ROCm."""

from __future__ import annotations

from pathlib import Path

import pytest

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.errors import SourceError
from asmevo.codeobject.toolchain import ZigToolchain
from asmevo.compiler.hip import HipSource

KERNEL = """
#include "ids.hpp"
extern "C" __attribute__((global)) void twice(float *x) { x[lane()] *= 2.0f; }
"""
HEADER = """
static inline __attribute__((device)) int lane() { return __builtin_amdgcn_workitem_id_x(); }
"""


def written(folder: Path, text: str = KERNEL) -> str:
    (folder / "ids.hpp").write_text(HEADER)
    (folder / "twice.hip").write_text(text)
    return str(folder / "twice.hip")


def test_a_file_and_the_header_beside_it(tmp_path: Path) -> None:
    source = HipSource(written(tmp_path), ZigToolchain())
    found = CodeObject.parse(source.read())
    assert found.kernel(None).symbol == "twice"
    assert found.target.processor == "gfx942"
    assert source.describe() == str(tmp_path / "twice.hip")


def test_another_compilation_gives_the_same_bytes(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert HipSource(path, ZigToolchain()).read() == HipSource(path, ZigToolchain()).read()


def test_another_processor(tmp_path: Path) -> None:
    source = HipSource(written(tmp_path), ZigToolchain(), processor="gfx90a")
    assert CodeObject.parse(source.read()).target.processor == "gfx90a"


@pytest.mark.parametrize(("text", "reason"), [
    (KERNEL.replace("x[lane()]", "y[lane()]"), "cannot be compiled.*undeclared identifier 'y'"),
    (KERNEL.replace("ids.hpp", "hip/hip_runtime.h"), "cannot be compiled.*file not found"),
    (KERNEL + "// \u00fc", "is not ASCII text"),
])
def test_what_cannot_be_compiled_says_why(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(SourceError, match=reason):
        HipSource(written(tmp_path, text), ZigToolchain()).read()


@pytest.mark.parametrize(("path", "package", "reason"), [
    ("none.hip", None, "none.hip"),
    ("level1/none.hip", "asmevo.kernelbench", "none.hip"),
    ("level1/gelu.hip", "asmevo.nothing", "no package 'asmevo.nothing'"),
])
def test_what_is_not_there(path: str, package: str | None, reason: str) -> None:
    with pytest.raises(SourceError, match=reason):
        HipSource(path, ZigToolchain(), package).read()
