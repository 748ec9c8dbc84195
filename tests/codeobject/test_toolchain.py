"""The assembler and linker as children: their errors, crashes and limits."""

from __future__ import annotations

import importlib.metadata
import os
import sys
import tracemalloc
from pathlib import Path

import pytest

from asmevo.codeobject.errors import AssemblerError, ToolchainError
from asmevo.codeobject.target import Feature, Target
from asmevo.codeobject.toolchain import (
    CommandToolchain,
    RocmToolchain,
    Toolchain,
    ZigToolchain,
)

GFX942 = Target("gfx942")
HEAD = '.amdgcn_target "amdgcn-amd-amdhsa--gfx942"\n'


def python(script: str, timeout_seconds: float = 20.0) -> CommandToolchain:
    """A toolchain whose assembler and linker are a Python script."""
    command = [sys.executable, "-S", "-c", script]
    return CommandToolchain(command, command, origin="test", timeout_seconds=timeout_seconds)


def test_diagnostics_have_line_column_and_text(toolchain: Toolchain) -> None:
    with pytest.raises(AssemblerError) as caught:
        toolchain.assemble(HEAD + "v_mov_b32 v0, v1\nv_foo v1\nv_add_f32 v0, v999, v2\n", GFX942)
    error = caught.value
    assert (error.line, error.column, error.detail) == (3, 1, "invalid instruction")
    assert [(d.line, d.severity) for d in error.diagnostics] == [(3, "error"), (4, "error")]
    assert str(error) == "line 3, column 1: invalid instruction in 'v_foo v1'"


@pytest.mark.parametrize("text", ["s_nop 0\u00e9\n", "\ud800"])
def test_text_that_is_not_ascii(toolchain: Toolchain, text: str) -> None:
    with pytest.raises(AssemblerError, match="not ASCII"):
        toolchain.assemble(text, GFX942)


def test_undefined_symbol_of_the_linker(toolchain: Toolchain) -> None:
    with pytest.raises(AssemblerError, match="undefined hidden symbol: nowhere"):
        toolchain.link(toolchain.assemble(
            f"{HEAD}.hidden nowhere\ns_mov_b32 s0, nowhere@rel32@lo\n", GFX942))


def test_link_of_garbage(toolchain: Toolchain) -> None:
    with pytest.raises((AssemblerError, ToolchainError)):
        toolchain.link(b"garbage")


def test_features_reach_the_assembler(toolchain: Toolchain) -> None:
    target = Target("gfx942", xnack=Feature.OFF, sramecc=Feature.ON)
    assert target.processor == "gfx942:sramecc+:xnack-"
    data = toolchain.assemble(f'.amdgcn_target "{target.triple}"\ns_endpgm\n', target)
    assert Target.from_flags(int.from_bytes(data[48:52], "little"), 2) == (target, 4)


def test_versions(toolchain: Toolchain) -> None:
    versions = toolchain.versions()
    assert versions["assembler"].startswith("clang version ")
    assert versions["linker"].startswith("LLD ")
    assert versions["origin"] == f"ziglang {importlib.metadata.version('ziglang')}"


def test_timeout_kills_the_whole_group(tmp_path: Path) -> None:
    marker = tmp_path / "pid"
    tool = python(f"import os, time; open({str(marker)!r}, 'w').write(str(os.getpid())); "
                  "time.sleep(600)", timeout_seconds=1.0)
    with pytest.raises(ToolchainError, match="did not finish within 1 s"):
        tool.assemble("", GFX942)
    with pytest.raises(ProcessLookupError):
        os.kill(int(marker.read_text()), 0)


@pytest.mark.parametrize(("script", "message"), [
    ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "assembler was killed by SIGSEGV"),
    ("import sys; sys.exit(3)", "assembler failed with status 3 and no message"),
    ("pass", "assembler ended without an output file"),
    # The limits are set on a child that runs already.
    ("import time; time.sleep(0.5); open('kernel.o', 'wb').truncate(1 << 40)",
     "assembler failed with status 1|SIGXFSZ"),
    ("import time; time.sleep(0.5); x = bytearray(1 << 33)",
     "assembler failed with status 1 and no message"),
])
def test_failures_are_typed(script: str, message: str) -> None:
    with pytest.raises(ToolchainError, match=message):
        python(script).assemble("", GFX942)


def test_oversized_output_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a child that has written it before its limits are set."""
    def unlimited(self: CommandToolchain, pid: int) -> None:
        pass

    monkeypatch.setattr(CommandToolchain, "_limit", unlimited)
    with pytest.raises(ToolchainError, match="the assembler wrote more than 64 MiB"):
        python("open('kernel.o', 'wb').truncate(1 << 40)").assemble("", GFX942)


def test_flood_of_messages_is_bounded() -> None:
    with pytest.raises(AssemblerError) as caught:
        python("import sys\nfor i in range(300000): print(f'k.s:{i}:1: error: no')\nsys.exit(1)"
               ).assemble("", GFX942)
    assert len(caught.value.diagnostics) == 100


def test_child_sees_no_inherited_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    tool = python("import json, os; json.dump(dict(os.environ), open('kernel.o', 'w')); "
                  "json.dump(dict(os.environ), open('kernel.co', 'w'))")
    for environment in (tool.assemble("", GFX942), tool.link(b"", version_comment="Linker: x")):
        assert b"secret" not in environment
        assert os.environ["HOME"].encode() + b'"' not in environment
    assert b"Linker: x" in environment


def test_nothing_is_left_behind(toolchain: Toolchain, tmp_path: Path,
                                monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    toolchain.link(toolchain.assemble(HEAD + "s_endpgm\n", GFX942))
    with pytest.raises(AssemblerError):
        toolchain.assemble("v_foo", GFX942)
    assert list(tmp_path.iterdir()) == []


def test_missing_tools_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ToolchainError, match=f"no 'clang' in '{tmp_path}'"):
        RocmToolchain(str(tmp_path))
    with pytest.raises(ToolchainError, match="cannot run '/nonexistent'"):
        CommandToolchain(["/nonexistent"], ["/nonexistent"], origin="test",
                         timeout_seconds=1.0).assemble("", GFX942)
    with pytest.raises(ToolchainError, match="timeout must be positive"):
        ZigToolchain(timeout_seconds=0)

    def missing(name: str) -> importlib.metadata.Distribution:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    with pytest.raises(ToolchainError, match=r"pip install ziglang"):
        ZigToolchain()


def test_rocm_layout_runs(tmp_path: Path) -> None:
    for name in ("clang", "ld.lld"):
        tool = tmp_path / name
        tool.write_text(f"#!{sys.executable} -S\nopen('kernel.o', 'wb').write(b'{name}')\n"
                        f"open('kernel.co', 'wb').write(b'{name}')\n")
        tool.chmod(0o755)
    tools = RocmToolchain(str(tmp_path))
    assert tools.assemble("", GFX942) == b"clang"
    assert tools.link(b"") == b"ld.lld"


def test_large_text_is_not_copied(toolchain: Toolchain) -> None:
    text = "// a comment of some length that the assembler skips\n" * 200_000
    tracemalloc.start()
    try:
        toolchain.assemble(text, GFX942)
        assert tracemalloc.get_traced_memory()[1] < len(text) / 2
    finally:
        tracemalloc.stop()
