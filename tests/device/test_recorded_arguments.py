"""Hidden arguments and dynamic LDS of a compiled kernel, through a capture and back."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.target import Target
from asmevo.codeobject.toolchain import ZigToolchain
from asmevo.device.emulator.emulator import Emulator
from asmevo.device.recorder import Recorder
from asmevo.dispatch.captured.errors import CaptureError
from asmevo.dispatch.captured.replay import replay
from asmevo.dispatch.dispatch import Dispatch, ElementType, Pointer, Region, Role

IN, OUT = 0x7F00_0000_0000, 0x7F00_0010_0000
GROUPS, SIZE = 5, 128


@pytest.fixture(scope="module")
def code_object(tmp_path_factory: pytest.TempPathFactory) -> CodeObject:
    assembly = tmp_path_factory.mktemp("compiled") / "kernel.s"
    subprocess.run(
        [sys.executable, "-m", "ziglang", "clang", "-x", "hip", "--offload-arch=gfx942",
         "--offload-device-only", "-nogpuinc", "-nogpulib", "-O2", "-mcode-object-version=5",
         "-Wno-everything", "-S", str(Path(__file__).with_name("hidden_arguments.hip")), "-o",
         str(assembly)], check=True, timeout=120)
    toolchain = ZigToolchain()
    return CodeObject.parse(
        toolchain.link(toolchain.assemble(assembly.read_text(), Target("gfx942"))))


def test_a_capture_has_what_the_runtime_appended(code_object: CodeObject) -> None:
    kernel = code_object.kernel("reverse")
    kinds = {a.value_kind: a for a in kernel.arguments}
    assert {"hidden_block_count_x", "hidden_group_size_x"} <= kinds.keys()
    data = np.arange(GROUPS * SIZE, dtype=np.int32)
    explicit = IN.to_bytes(8, "little") + OUT.to_bytes(8, "little")
    dispatch = Dispatch(
        "d", "reverse", explicit, (GROUPS, 1, 1), (SIZE, 1, 1), (
            Region("in", IN, data.tobytes(), Role.INPUT, ElementType.I32),
            Region("out", OUT, bytes(4 * len(data)), Role.OUTPUT, ElementType.I32)),
        (Pointer(0, 0), Pointer(8, 1)), dynamic_lds=4 * SIZE)
    loaded = Emulator("test", None).load(code_object, "reverse")
    recorder = Recorder(loaded, kernel.metadata, code_object.sha256, "test")
    capture = recorder.reduced(recorder.record(dispatch), 4096)
    assert (capture.grid, capture.dynamic_lds) == ((GROUPS * SIZE, 1, 1), 4 * SIZE)

    count, size = kinds["hidden_block_count_x"], kinds["hidden_group_size_x"]
    assert len(capture.kernarg) == kernel.kernarg_segment_size
    assert capture.kernarg[count.offset:count.offset + 4] == GROUPS.to_bytes(4, "little")
    assert capture.kernarg[size.offset:size.offset + 2] == SIZE.to_bytes(2, "little")
    replayed = replay(capture, kernel.metadata)
    (_, out) = loaded.run(replayed).regions
    wanted = data.reshape(GROUPS, SIZE)[:, ::-1] + GROUPS
    np.testing.assert_array_equal(np.frombuffer(out, np.int32), wanted.ravel())

    wrong = bytearray(capture.kernarg)
    wrong[count.offset] = GROUPS + 1
    with pytest.raises(CaptureError, match="'hidden_block_count_x', but its launch means 5"):
        replay(replace(capture, kernarg=bytes(wrong)), kernel.metadata)
