"""``task=inspect`` against what other tools say of the same objects."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from asmevo.bundle.offload_bundle import build
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import rows
from asmevo.codeobject.errors import CodeObjectError
from asmevo.report.result import Result, Status
from asmevo.task.source import one

FOLDER = "amd-aiter:aiter_meta/hsa"


def kernel_of(result: Result) -> dict[str, Any]:
    assert result.details is not None
    (kernel,) = result.details["kernels"]
    return dict(kernel)


def test_layer_norm(run: Callable[..., Result], layer_norm_bytes: bytes) -> None:
    result = run("task=inspect")
    assert result.status is Status.INSPECTED
    assert result.exit_status == 0
    assert result.details is not None
    assert (result.details["target"], result.details["version"]) == ("gfx942", 5)
    kernel = kernel_of(result)
    assert kernel["symbol"] == "layer_norm_kernel_func"
    # AITER's host code: a 16-byte slot for each of 11 arguments.
    assert kernel["launch"]["kernarg_bytes"] == 11 * 16
    named = [a for a in kernel["arguments"] if a["name"] != "pad"]
    assert [a["offset"] for a in named] == [16 * n for n in range(11)]
    assert (named[0]["name"], named[0]["value_kind"]) == ("OutBuffer", "global_buffer")
    assert kernel["resources"]["lds_bytes"] == 65536
    assert kernel["occupancy"]["waves_per_simd"] == 1
    code_object = CodeObject.parse(layer_norm_bytes)
    listing = rows(code_object.code(code_object.kernel()), code_object.target)
    assert kernel["instructions"] == len(listing) == sum(kernel["mnemonics"].values())
    assert sum(kernel["units"].values()) == len(listing)
    assert "unknown" not in kernel["units"]
    (loop,) = kernel["loops"]
    assert (loop["label"], loop["depth"]) == ("label_01B3", 1)
    # label_01B3 names the dword at which the loop starts.
    assert loop["offset"] == 0x1B3 * 4
    assert 0 < loop["instructions"] < len(listing)
    assert sum(loop["units"].values()) == loop["instructions"]


def test_gfx950_and_a_larger_kernel(run: Callable[..., Result]) -> None:
    path = "gfx950/f4gemm/f4gemm_bf16_per1x32Fp4_BpreShuffle_128x128.co"
    result = run("task=inspect", f"source={FOLDER}/{path}")
    kernel = kernel_of(result)
    assert result.details is not None
    assert result.details["target"].startswith("gfx950")
    assert any("mfma" in mnemonic for mnemonic in kernel["mnemonics"])
    assert kernel["occupancy"]["unknown"] is None


def test_the_command_line_shows_it(
    command_line: Callable[..., subprocess.CompletedProcess[str]],
    read_result: Callable[[], dict[str, Any]],
) -> None:
    done = command_line("task=inspect", f"source={FOLDER}/gfx942/layer_norm.co")
    assert done.returncode == 0, done.stderr
    for words in ("layer_norm_kernel_func", "OutBuffer", "global_buffer", "label_01B3",
                  "1 waves per SIMD", "v_pk_fma_f32", "gfx942"):
        assert words in done.stdout
    assert read_result()["status"] == "inspected"


def test_control_flow_that_is_not_known_is_said(
    run: Callable[..., Result], tmp_path: Path, layer_norm_bytes: bytes
) -> None:
    """The kernel's last instruction is not s_endpgm: execution runs out of it."""
    code_object = CodeObject.parse(layer_norm_bytes)
    text = code_object.section(".text")
    data = bytearray(layer_norm_bytes)
    end = text.offset + text.size
    assert data[end - 4:end] == (0xBF810000).to_bytes(4, "little")
    data[end - 4:end] = (0xBF800000).to_bytes(4, "little")
    (tmp_path / "open.co").write_bytes(data)
    kernel = kernel_of(run("task=inspect", f"source={tmp_path}/open.co"))
    assert kernel["loops"] is None
    assert "past the last instruction" in kernel["loops_unknown"]


def test_damage_is_an_error(run: Callable[..., Result], tmp_path: Path,
                            layer_norm_bytes: bytes) -> None:
    (tmp_path / "short.co").write_bytes(layer_norm_bytes[:3000])
    with pytest.raises(CodeObjectError, match="truncated"):
        run("task=inspect", f"source={tmp_path}/short.co")


def test_a_container_is_listed_by_names_that_source_takes(
    run: Callable[..., Result], tmp_path: Path,
) -> None:
    content = one(f"{FOLDER}/gfx942/layer_norm.co").read()
    path = tmp_path / "fat.hipfb"
    path.write_bytes(build([("host-x86_64-unknown-linux-gnu-", b""),
                            ("hipv4-amdgcn-amd-amdhsa--gfx942", content)]))
    listed = run("task=inspect", f"source={path}")
    assert listed.details is not None
    (member,) = listed.details["members"]
    assert (member["target"], member["bytes"]) == ("gfx942", len(content))
    assert member["kernels"] == ["layer_norm_kernel_func"]
    inside = run("task=inspect", f"source='{member['name']}'")
    assert inside.symbol == "layer_norm_kernel_func"
    run("task=inspect", f"source='{member['name']}'", f"output={tmp_path}/out.co")
    assert (tmp_path / "out.co").read_bytes() == content


def test_a_file_that_contains_none_is_refused(run: Callable[..., Result]) -> None:
    with pytest.raises(CodeObjectError, match="neither a code object nor contains one"):
        run("task=inspect", f"source={Path(sys.executable).resolve()}")
