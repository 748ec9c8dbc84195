"""Kernels in a child process: same results, and what becomes of a child that dies."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from asmevo.device.device import DeviceFault, LaunchState, TimingSource, UnsupportedError
from asmevo.device.isolated.child import IsolationError, Limits
from asmevo.device.isolated.device import IsolatedDevice
from asmevo.device.isolated.messages import MessageError, from_dispatch, to_dispatch, unpacked
from asmevo.dispatch.dispatch import Dispatch, ElementType, Pointer, Region, Role

# A device whose kernels do what their name says, as hostile ones might.
SCRIPTED = '''
import os, signal, time
from asmevo.device.device import DeviceFault, RunResult, Timing, TimingSource, UnsupportedError

class Kernel:
    def __init__(self, act):
        self.act = act
    def run(self, dispatch, state, *, limit=None):
        if self.act == "kill": os.kill(os.getpid(), signal.SIGSEGV)
        if self.act == "exit": os._exit(3)
        if self.act == "sleep": time.sleep(600)
        if self.act == "memory": return bytearray(64 << 30)
        if self.act == "fault": raise DeviceFault("no such address", kind="memory", pc=16,
                                                  text="s_nop 0", lane=5, address=1 << 63)
        print("noise on standard output")
        regions = [bytearray(r.mapped) for r in dispatch.regions]
        for region, data in zip(dispatch.regions, regions):
            data[region.guard] = (limit or 0) + state.poison & 255
            if self.act == "input": data[region.guard] = 77
        if self.act == "short": regions = [r[1:] for r in regions]
        return RunResult(tuple(map(bytes, regions)), 42, 0.5)
    def time(self, dispatch, state, *, samples, warmup):
        return Timing(dispatch.name, (1.0,) * samples, TimingSource.MEASURED, "scripted", warmup)

class Scripted:
    name, source, deterministic = "scripted", TimingSource.MEASURED, False
    def __init__(self, broken=False):
        if broken: raise ValueError("no such device")
    def load(self, code_object, kernel):
        if kernel == "unknown": raise UnsupportedError("there is no 'unknown'")
        return Kernel(kernel)
'''

REGIONS = (
    Region("in", 0x10000, bytes(64), Role.INPUT, ElementType.F32, guard=16),
    Region("out", 0x20000, bytes(64), Role.OUTPUT, ElementType.F32, guard=16, guard_seed=3,
           order_dependent=True),
)
DISPATCH = Dispatch("d", "k", bytes(16), (2, 1, 1), (64, 1, 1), REGIONS,
                    (Pointer(0, 0), Pointer(8, 1)), dynamic_lds=512, relies_on_time=True)


@pytest.fixture(scope="module")
def code(layer_norm: Any) -> Any:
    return layer_norm


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[IsolatedDevice]:
    (tmp_path / "scripted_device.py").write_text(SCRIPTED)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    inner: Any = SimpleNamespace(name="scripted", source=TimingSource.MEASURED,
                                 deterministic=False)
    made = IsolatedDevice(inner, {"_target_": "scripted_device.Scripted"},
                          Limits(seconds=3.0, memory_bytes=1 << 30))
    yield made
    made.close()


def test_a_dispatch_survives_the_way() -> None:
    assert to_dispatch(from_dispatch(DISPATCH)) == DISPATCH


@pytest.mark.parametrize("body", [b"", b"\xc1", b"\x93\x01\x02\x03", b"\x81\x01\x02",
                                  b"\xdf\xff\xff\xff\xff"])
def test_nonsense_is_no_message(body: bytes) -> None:
    with pytest.raises(MessageError):
        unpacked(body)


def test_results_and_times_come_back(device: IsolatedDevice, code: Any) -> None:
    kernel = device.load(code, "works")
    result = kernel.run(DISPATCH, LaunchState(poison=3), limit=4)
    assert (result.instructions, result.seconds) == (42, 0.5)
    assert result.regions[1][16] == 7
    assert result.regions[1][:16] == REGIONS[1].mapped[:16]
    timing = kernel.time(DISPATCH, samples=3, warmup=1)
    assert (timing.samples_us, timing.warmup) == ((1.0, 1.0, 1.0), 1)
    assert timing.source is TimingSource.MEASURED
    with pytest.raises(UnsupportedError, match="sanitize"):
        kernel.sanitize(DISPATCH)


def test_inputs_are_not_even_read_back(device: IsolatedDevice, code: Any) -> None:
    """The emulator does not let a kernel write them; a GPU's driver would."""
    assert device.load(code, "input").run(DISPATCH).regions[0] == REGIONS[0].mapped


@pytest.mark.parametrize(("act", "kind", "text"), [
    ("kill", "crash", "SIGSEGV"), ("exit", "crash", "status 3"), ("sleep", "timeout", "3 s"),
    ("memory", "out-of-memory", "memory"), ("short", "crash", "95 bytes"),
])
def test_what_a_hostile_launch_does_is_a_fault_and_no_more(
    device: IsolatedDevice, code: Any, act: str, kind: str, text: str
) -> None:
    good = device.load(code, "works")
    assert good.run(DISPATCH).instructions == 42
    with pytest.raises(DeviceFault, match=text) as fault:
        device.load(code, act).run(DISPATCH)
    assert fault.value.kind == kind
    # The next launch gets a new child if it needs one, and is none the worse.
    assert good.run(DISPATCH).instructions == 42


def test_a_fault_keeps_its_facts(device: IsolatedDevice, code: Any) -> None:
    with pytest.raises(DeviceFault) as caught:
        device.load(code, "fault").run(DISPATCH)
    fault = caught.value
    assert (fault.kind, fault.pc, fault.text, fault.lane, fault.address) == (
        "memory", 16, "s_nop 0", 5, 1 << 63)


def test_what_cannot_be_loaded_is_unsupported(device: IsolatedDevice, code: Any) -> None:
    with pytest.raises(UnsupportedError, match="unknown"):
        device.load(code, "unknown")


def test_a_killed_child_is_replaced(device: IsolatedDevice, code: Any) -> None:
    kernel = device.load(code, "works")
    first = device.child.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    with pytest.raises(DeviceFault, match="SIGKILL"):
        kernel.run(DISPATCH)
    assert kernel.run(DISPATCH).instructions == 42
    assert device.child.pid not in (None, first)


def test_a_device_that_cannot_be_made_is_no_verdict(tmp_path: Path, code: Any,
                                                    device: IsolatedDevice) -> None:
    broken = IsolatedDevice(device, {"_target_": "scripted_device.Scripted", "broken": True})
    with pytest.raises(IsolationError, match="no such device"):
        broken.load(code, "works")


def test_closing_ends_the_process(device: IsolatedDevice, code: Any) -> None:
    device.load(code, "works")
    pid = device.child.pid
    assert pid is not None
    device.close()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and Path(f"/proc/{pid}").exists():
        time.sleep(0.01)
    assert not Path(f"/proc/{pid}").exists()


