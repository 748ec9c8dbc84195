"""Objects of several kernels and functions: one is not refused for what it does not call."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.target import Target
from asmevo.codeobject.toolchain import ZigToolchain
from asmevo.device.device import DeviceFault, LaunchState, UnsupportedError
from asmevo.device.emulator.emulator import EmulatedKernel, Emulator
from asmevo.dispatch.dispatch import Dispatch, ElementType, Pointer, Region, Role

_SOURCE = Path(__file__).with_name("device_functions.hip")
_FIRST = 0x7A00_0000_0000
IN: npt.NDArray[np.uint32] = np.random.default_rng(3).integers(0, 1 << 32, 64 * 60, dtype=np.uint32)


@pytest.fixture(scope="module")
def device() -> Emulator:
    with initialize_config_dir(str(Path(__file__).parents[3] / "conf/device"), version_base="1.3"):
        emulator = instantiate(compose("emulator"))
    assert isinstance(emulator, Emulator)
    return emulator


@pytest.fixture(scope="module")
def code_object(tmp_path_factory: pytest.TempPathFactory) -> CodeObject:
    assembly = tmp_path_factory.mktemp("functions") / "functions.s"
    subprocess.run(
        [sys.executable, "-m", "ziglang", "clang", "-x", "hip", "--offload-arch=gfx942",
         "--offload-device-only", "-nogpuinc", "-nogpulib", "-O3", "-mcode-object-version=5",
         "-Wno-everything", "-S", str(_SOURCE), "-o", str(assembly)], check=True, timeout=120)
    toolchain = ZigToolchain()
    linked = toolchain.link(toolchain.assemble(assembly.read_text(), Target("gfx942")))
    return CodeObject.parse(linked)


def dispatch(code_object: CodeObject, kernel: str) -> Dispatch:
    regions = tuple(
        Region(name, _FIRST + 0x100_0000 * i, data, role, ElementType.U32)
        for i, (name, data, role) in enumerate([("in", IN.tobytes(), Role.INPUT),
                                                ("out", bytes(256), Role.OUTPUT)]))
    kernarg = struct.pack("<QQ", *(r.address for r in regions))
    return Dispatch(kernel, kernel, kernarg, (1, 1, 1), (64, 1, 1), regions,
                    (Pointer(0, 0), Pointer(8, 1)), 0)


def output(kernel: EmulatedKernel, launched: Dispatch) -> npt.NDArray[np.uint32]:
    result = kernel.run(launched, LaunchState(1))
    guard = launched.regions[1].guard
    return np.frombuffer(result.regions[1][guard:guard + 256], np.uint32)


def expected(kernel: str) -> npt.NDArray[np.uint32]:
    if kernel == "calls_small":
        items: npt.NDArray[np.uint32] = np.arange(64, dtype=np.uint32)
        return IN[:64] * items + np.uint32(17)
    values = IN.reshape(60, 64)
    total: npt.NDArray[np.uint32] = np.zeros(64, np.uint32)
    for i in range(60):
        total = total * values[59 - i] + values[i]
    return total


@pytest.mark.parametrize("kernel", ["calls_small", "calls_large"])
def test_functions_of_other_kernels_do_not_matter(device: Emulator, code_object: CodeObject,
                                                  kernel: str) -> None:
    loaded, launched = device.load(code_object, kernel), dispatch(code_object, kernel)
    np.testing.assert_array_equal(output(loaded, launched), expected(kernel))


@pytest.mark.parametrize("kernel", ["calls_small", "calls_large"])
def test_sanitizer_of_a_kernel_among_others(device: Emulator, code_object: CodeObject,
                                            kernel: str) -> None:
    loaded, launched = device.load(code_object, kernel), dispatch(code_object, kernel)
    found = loaded.sanitize(launched, LaunchState(1))
    assert (found.reports, found.fault) == ((), None)
    guard = launched.regions[1].guard
    np.testing.assert_array_equal(
        np.frombuffer(found.regions[1][guard:guard + 256], np.uint32), expected(kernel))


@pytest.mark.parametrize(("kernel", "text", "reason"), [
    ("jumps_to_large", "v", "VGPR beyond those the descriptor allocates"),
    ("jumps_to_kernel", "s_", "it is another kernel's code"),
    ("calls_unmodelled", "s_getreg_b32", "only HW_REG_MODE is"),
])
def test_arriving_at_what_cannot_run_is_a_fault(device: Emulator, code_object: CodeObject,
                                                kernel: str, text: str, reason: str) -> None:
    loaded, launched = device.load(code_object, kernel), dispatch(code_object, kernel)
    with pytest.raises(DeviceFault, match=reason) as caught:
        loaded.run(launched, LaunchState(1))
    assert caught.value.kind == "illegal"
    assert caught.value.text.startswith(text)
    assert not 0 <= caught.value.pc < code_object.kernel(kernel).size
    found = loaded.sanitize(launched, LaunchState(1))
    assert str(found.fault) == str(caught.value)


def test_sanitizer_refuses_jumps_to_addresses_known_only_at_run_time(
        device: Emulator, code_object: CodeObject) -> None:
    kernel = "returns_elsewhere"
    loaded, launched = device.load(code_object, kernel), dispatch(code_object, kernel)
    assert loaded.run(launched, LaunchState(1)).instructions > 0
    with pytest.raises(UnsupportedError, match=r"sanitizer.*s_setpc_b64.*only at run time"):
        loaded.sanitize(launched, LaunchState(1))


def test_what_a_kernel_itself_cannot_run_is_refused_at_load(device: Emulator,
                                                            code_object: CodeObject) -> None:
    with pytest.raises(UnsupportedError, match=r"s_getreg_b32.*only HW_REG_MODE is"):
        device.load(code_object, "is_unmodelled")
