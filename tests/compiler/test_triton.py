"""Triton kernels become code objects, in a child process and once."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.errors import SourceError
from asmevo.compiler import triton as module
from asmevo.compiler.errors import CompileError
from asmevo.compiler.triton import LaunchNeeds, TritonKernel

SOURCE = '''
import framework_that_nobody_has
import triton
import triton.language as tl

@triton.jit
def scale(x, out, n, stride, BLOCK: tl.constexpr, dtype: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, (tl.load(x + at * stride, at < n) * 2).to(dtype), at < n)
'''
ARGUMENTS: dict[str, Any] = {
    "x": "*fp32", "out": "*bf16", "n": "i32", "stride": {"constexpr": 1},
    "BLOCK": {"constexpr": 256}, "dtype": {"dtype": "bfloat16"}}


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., TritonKernel]:
    """Makes kernels of `SOURCE`, with an empty cache and no network."""
    monkeypatch.setenv("ASMEVO_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(module, "fetch", lambda wheel: Path("wheel"))
    monkeypatch.setattr(module, "read_member", lambda wheel, name: SOURCE)

    def make(**changes: Any) -> TritonKernel:
        return TritonKernel(**{"distribution": "sglang", "module": "m.py", "function": "scale",
                               "arguments": ARGUMENTS, "divisible_by_16": ["x", "out"],
                               "options": {"num_warps": 2}, **changes})
    return make


def test_compiled_into_the_cache(kernel: Callable[..., TritonKernel]) -> None:
    made = kernel()
    with pytest.raises(SourceError, match="task=compile"):
        made.read()
    assert made.compile() == LaunchNeeds(dynamic_lds=0, workgroup=128)
    code_object = CodeObject.parse(made.read())
    assert code_object.target.isa == "gfx942"
    assert code_object.kernel().symbol == "scale"
    assert "sglang" in made.describe()


def test_the_same_bytes_every_time_and_none_of_the_machine(
        kernel: Callable[..., TritonKernel], tmp_path: Path) -> None:
    made = kernel()
    made.compile()
    first = made.read()
    made.path.unlink()
    made.compile()
    assert made.read() == first
    assert str(tmp_path).encode() not in first
    assert b"/tmp" not in first


def test_what_decides_the_bytes_decides_the_place(kernel: Callable[..., TritonKernel]) -> None:
    changes: list[dict[str, Any]] = [
        {}, {"options": {"num_warps": 4}}, {"target": "gfx90a"}, {"divisible_by_16": []},
        {"arguments": {**ARGUMENTS, "BLOCK": {"constexpr": 512}}}, {"module": "n.py"},
        {"triton": "3.8.0"}]
    assert len({kernel(**change).path for change in changes}) == len(changes)


def test_a_cached_object_needs_no_compiler(kernel: Callable[..., TritonKernel],
                                           monkeypatch: pytest.MonkeyPatch) -> None:
    made = kernel()
    first = made.compile()

    def broken(*arguments: Any, **options: Any) -> Any:
        raise AssertionError("started a process")

    monkeypatch.setattr(subprocess, "run", broken)
    assert made.compile() == first


def damages(path: Path, record: Path) -> dict[str, Callable[[], object]]:
    """What may have happened to an object in the cache."""
    whole, known = path.read_bytes(), json.loads(record.read_text())
    return {
        "empty": lambda: path.write_bytes(b""),
        "truncated": lambda: path.write_bytes(whole[:-1]),
        "a changed bit": lambda: path.write_bytes(bytes([*whole[:400], whole[400] ^ 1,
                                                         *whole[401:]])),
        "no record": record.unlink,
        "a record without a digest": lambda: record.write_text(json.dumps(
            {key: known[key] for key in ("dynamic_lds", "workgroup")})),
        "a record that is no JSON": lambda: record.write_text("{"),
        "a record that is no mapping": lambda: record.write_text("[1]"),
        "a record of other types": lambda: record.write_text(json.dumps({**known, "sha256": 3})),
    }


def test_a_damaged_object_is_refused_and_compiled_again(
        kernel: Callable[..., TritonKernel], monkeypatch: pytest.MonkeyPatch) -> None:
    made = kernel()
    needs = made.compile()
    whole, record = made.read(), made.path.with_suffix(".json")
    monkeypatch.setattr(TritonKernel, "_run", lambda self, request: (whole, needs))
    for what, damage in damages(made.path, record).items():
        damage()
        with pytest.raises(SourceError, match=f"{made.path}.*task=compile"):
            made.read()
        assert made.compile() == needs, what
        assert made.read() == whole, what


def test_an_unusable_cache_names_the_variable(
        kernel: Callable[..., TritonKernel], monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "deeper", "~nobody-of-that-name"):
        monkeypatch.setenv("ASMEVO_CACHE_DIR", str(folder))
        with pytest.raises(CompileError, match="ASMEVO_CACHE_DIR") as caught:
            kernel().compile()
        assert str(folder) in str(caught.value)


def test_the_compiler_is_looked_for_before_anything_is_fetched(
        kernel: Callable[..., TritonKernel], monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    def fetched(wheel: object) -> Path:
        raise AssertionError("fetched")

    monkeypatch.setattr(importlib.metadata, "version", missing)
    monkeypatch.setattr(module, "fetch", fetched)
    with pytest.raises(CompileError, match=r"pip install '\.\[triton\]'"):
        kernel().compile()


@pytest.mark.parametrize(("change", "word"), [
    ({"function": "scales"}, "'scales'"),
    ({"arguments": {"x": "*fp32"}, "divisible_by_16": []}, "in this order"),
    ({"arguments": {**ARGUMENTS, "n": "i33"}}, "cannot compile 'scale'"),
    ({"options": {"num_wraps": 2}}, "'num_wraps'"),
    ({"triton": "0.1"}, r"triton 0\.1"),
    ({"distribution": "vllm"}, "'vllm'"),
])
def test_what_cannot_be_compiled_is_one_sentence(
        kernel: Callable[..., TritonKernel], change: dict[str, Any], word: str) -> None:
    with pytest.raises(CompileError, match=word) as caught:
        kernel(**change).compile()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("change", "word"), [
    ({"arguments": {"x": 3}}, "'x'"),
    ({"arguments": {"x": {"constant": 3}}}, "'x'"),
    ({"divisible_by_16": ["BLOCK"]}, "'BLOCK'"),
    ({"divisible_by_16": ["y"]}, "'y'"),
])
def test_malformed_declarations_are_named(
        kernel: Callable[..., TritonKernel], change: dict[str, Any], word: str) -> None:
    with pytest.raises(CompileError, match=word):
        kernel(**change)
