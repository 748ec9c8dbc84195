"""Real code objects and the toolchain, shared by these tests."""

from __future__ import annotations

import importlib.util
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.source import InstalledFile
from asmevo.codeobject.toolchain import Toolchain, ZigToolchain

KERNELS = Path(__file__).parents[1] / "kernels"

Compile = Callable[..., CodeObject]


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    return ZigToolchain()


@pytest.fixture(scope="session")
def layer_norm_bytes() -> bytes:
    return InstalledFile("amd-aiter", "aiter_meta/hsa/gfx942/layer_norm.co").read()


@pytest.fixture(scope="session")
def layer_norm(layer_norm_bytes: bytes) -> CodeObject:
    return CodeObject.parse(layer_norm_bytes)


@pytest.fixture(scope="session")
def compile_hip(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """``compile_hip(file, processor, version, *options)``: a source of tests/kernels, linked."""
    made: dict[tuple[object, ...], CodeObject] = {}
    folder = tmp_path_factory.mktemp("hip")

    def compiled(file: str, processor: str = "gfx942", version: int = 5,
                 *options: str) -> CodeObject:
        key = (file, processor, version, *options)
        if key not in made:
            clang = [sys.executable, "-m", "ziglang", "clang"]
            text = KERNELS / file
            if text.suffix == ".hip":
                text = folder / f"{len(made)}.s"
                subprocess.run(
                    [*clang, "-x", "hip", f"--offload-arch={processor}", "--offload-device-only",
                     "-nogpuinc", "-nogpulib", "-O3", f"-mcode-object-version={version}", *options,
                     "-S", str(KERNELS / file), "-o", str(text)], check=True, timeout=120)
            relocatable, linked = folder / f"{len(made)}.o", folder / f"{len(made)}.co"
            subprocess.run([*clang, "-target", "amdgcn-amd-amdhsa", f"-mcpu={processor}", "-c",
                            str(text), "-o", str(relocatable)], check=True, timeout=120)
            subprocess.run([sys.executable, "-m", "ziglang", "ld.lld", "-shared", str(relocatable),
                            "-o", str(linked)], check=True, timeout=120)
            made[key] = CodeObject.parse(linked.read_bytes())
        return made[key]

    return compiled


@pytest.fixture(scope="session")
def triton_objects(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, CodeObject]:
    """Triton's HSACO of every kernel and processor, by ``processor/name``."""
    if importlib.util.find_spec("triton") is None:
        if sys.platform == "linux" and platform.machine() == "x86_64":
            pytest.fail("these tests need the Python package 'triton' (pip install '.[test]')")
        pytest.skip("there is no triton wheel for this platform")
    folder = tmp_path_factory.mktemp("triton")
    environment = {**os.environ, "TRITON_CACHE_DIR": str(folder / "cache"),
                   "TRITON_DEFAULT_FP_FUSION": "1"}
    subprocess.run([sys.executable, str(KERNELS / "triton_kernels.py"), str(folder / "hsaco"),
                    "gfx90a", "gfx942", "gfx950"], check=True, timeout=300, env=environment)
    return {f"{path.parent.name}/{path.stem}": CodeObject.parse(path.read_bytes())
            for path in sorted((folder / "hsaco").glob("*/*.hsaco"))}
