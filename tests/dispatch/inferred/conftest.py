"""Compiled kernels, and what inference says about them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.recover import recover
from asmevo.codeobject.source import LocalFile
from asmevo.codeobject.target import Target
from asmevo.codeobject.toolchain import ZigToolchain
from asmevo.device.device import Device
from asmevo.dispatch.comparison import Tolerance
from asmevo.dispatch.inferred.inference import Inferred
from asmevo.dispatch.inferred.oracle import InferredOracle
from asmevo.dispatch.kernel import Kernel
from asmevo.gates.baseline import Baseline
from asmevo.task.probe import probe

_HERE = Path(__file__).parent
_TRITON = Path(__file__).parents[2] / "kernels" / "triton_kernels.py"

Infer = Callable[[CodeObject, str], Inferred]


@pytest.fixture(scope="session")
def device() -> Device:
    with initialize_config_dir(str(_HERE.parents[2] / "conf/device"), version_base="1.3"):
        made = instantiate(compose("emulator"))
    assert isinstance(made, Device)
    return made


@pytest.fixture(scope="session")
def hip(tmp_path_factory: pytest.TempPathFactory) -> CodeObject:
    """The kernels of ``kernels.hip``."""
    assembly = tmp_path_factory.mktemp("inferred") / "kernels.s"
    subprocess.run(
        [sys.executable, "-m", "ziglang", "clang", "-x", "hip", "--offload-arch=gfx942",
         "--offload-device-only", "-nogpuinc", "-nogpulib", "-O3", "-mcode-object-version=5",
         "-Wno-everything", "-S", str(_HERE / "kernels.hip"), "-o", str(assembly)],
        check=True, timeout=120)
    toolchain = ZigToolchain()
    linked = toolchain.link(toolchain.assemble(assembly.read_text(), Target("gfx942")))
    return CodeObject.parse(linked)


@pytest.fixture(scope="session")
def triton(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], CodeObject]:
    """Compiles one of the Triton kernels of the tests."""
    folder = tmp_path_factory.mktemp("triton")
    code = (f"import sys; sys.path.insert(0, {str(_TRITON.parent)!r}); import triton_kernels as k; "
            "open(sys.argv[2], 'wb').write(k.hsaco(k.CASES[sys.argv[1]], 'gfx942'))")

    def compiled(name: str) -> CodeObject:
        path = folder / name
        if not path.exists():
            subprocess.run([sys.executable, "-c", code, name, str(path)], check=True, timeout=300)
        return CodeObject.parse(path.read_bytes())

    return compiled


@pytest.fixture(scope="session")
def infer(device: Device) -> Infer:
    """Infers a kernel once a session, and has the gates' self-check accept its dispatches."""
    known: dict[tuple[str, str], Inferred] = {}

    def inferred(code_object: CodeObject, symbol: str) -> Inferred:
        key = (code_object.sha256, symbol)
        if key not in known:
            oracle = InferredOracle()
            kernel = Kernel("undeclared", LocalFile("unused"), symbol)
            found = oracle.infer(kernel, code_object, probe(device.load(code_object, symbol)))
            dispatches = oracle.dispatches(found.kernel, symbol,
                                           code_object.kernel(symbol).metadata)
            assert any(d.held_out for d in dispatches)
            Baseline(code_object, symbol, recover(code_object), dispatches, device).self_check(
                Tolerance())
            known[key] = found
        return known[key]

    return inferred
