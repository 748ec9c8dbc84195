"""Captures that are well-formed and nonsense, launched: an error of its own, never a crash."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.__main__ import config_folder
from asmevo.config import register
from asmevo.device.recorder import Recorder
from asmevo.dispatch.captured.capture import Allocation, Capture, Segment
from asmevo.dispatch.captured.errors import CaptureError
from asmevo.dispatch.captured.replay import replay
from asmevo.dispatch.dispatch import ElementType, Role
from asmevo.errors import AsmEvoError
from asmevo.task.session import Session


@pytest.fixture(scope="module")
def recorded() -> tuple[Recorder, Capture]:
    """AITER's topksoftmax with few instructions allowed, and a capture of it."""
    register()
    with initialize_config_dir(config_folder(), version_base="1.3"):
        session = Session(compose("config", overrides=[
            "kernel=aiter_topksoftmax", "kernel.shapes=[{T:5,S:8}]", "oracle.families=[normal]",
            "device.instruction_budget=100000", "registry.path=unused"]), Path("unused"))
    original = session.code_object
    metadata = original.kernel(session.symbol).metadata
    recorder = Recorder(session.device.load(original, session.symbol), metadata, original.sha256,
                        "test")
    dispatch = session.oracle.dispatches(session.kernel, session.symbol, metadata)[0]
    return recorder, recorder.record(dispatch)


@pytest.mark.parametrize("change", [
    {"kernarg": b""}, {"kernarg": bytes(8)}, {"kernarg": bytes(1 << 20)},
    {"kernel": "another"}, {"workgroup": (1025, 1, 1), "grid": (1025, 1, 1)},
    {"workgroup": (7, 3, 2), "grid": (7, 3, 2)}, {"grid": (256 * 1000, 1000, 1000)},
    {"dynamic_lds": 1 << 40}, {"allocations": ()},
])
def test_launches_that_cannot_be(recorded: tuple[Recorder, Capture],
                                 change: dict[str, object]) -> None:
    recorder, capture = recorded
    with pytest.raises(AsmEvoError) as refusal:
        recorder.reduced(replace(capture, pointers=None, **change), 4096)  # type: ignore[arg-type]
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("address", [0x1000, 0x1000_0000_0000, 0x2000_0000_0000, (1 << 47) - 4096])
def test_memory_where_the_device_has_its_own(recorded: tuple[Recorder, Capture],
                                             address: int) -> None:
    """The kernarg segment makes way; a code object that is mapped cannot."""
    recorder, capture = recorded
    more = Allocation("more", address, 4096, (Segment(0, bytes(4096), bytes(4096)),))
    recorder.check(replace(capture, allocations=(*capture.allocations, more)))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_capture_ends(recorded: tuple[Recorder, Capture], data: st.DataObject) -> None:
    recorder, capture = recorded
    kernarg = bytearray(capture.kernarg)
    for _ in range(data.draw(st.integers(0, 6))):
        kernarg[data.draw(st.integers(0, len(kernarg) - 1))] = data.draw(st.integers(0, 255))
    allocations = []
    for allocation in capture.allocations:
        (segment,) = allocation.segments
        start = data.draw(st.integers(0, segment.size - 1))
        end = data.draw(st.integers(start + 1, segment.size))
        role = data.draw(st.sampled_from([None, Role.OUTPUT, Role.INOUT]))
        allocations.append(replace(
            allocation, element=data.draw(st.sampled_from(ElementType)),
            segments=(Segment(start, segment.pre[start:end], segment.post[start:end], role),)))
    changed = replace(capture, kernarg=bytes(kernarg), allocations=tuple(allocations),
                      pointers=None)
    refusals = []
    try:
        smaller = recorder.reduced(changed, data.draw(st.sampled_from([128, 4096])))
    except AsmEvoError as error:
        refusals.append(str(error))
    else:
        replayed = replay(smaller, recorder.metadata)
        assert recorder.loaded.run(replayed).regions == replayed.recorded
    assert not any("\n" in sentence for sentence in refusals)


def test_a_capture_of_everything_in_ones(recorded: tuple[Recorder, Capture]) -> None:
    recorder, capture = recorded
    ones = replace(capture, kernarg=b"\xff" * len(capture.kernarg), pointers=None)
    with pytest.raises(AsmEvoError):
        recorder.reduced(ones, 4096)
    with pytest.raises(CaptureError, match="no multiple"):
        recorder.reduced(replace(capture, grid=(255, 1, 1)), 4096)
