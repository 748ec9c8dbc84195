"""AITER's kernels captured: their replay gives the same memory, from less of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hydra import compose, initialize_config_dir

from asmevo.__main__ import config_folder
from asmevo.compiler.errors import CompileError
from asmevo.compiler.wheel import PINNED, fetch
from asmevo.config import register
from asmevo.device.device import DeviceFault, LaunchState, LoadedKernel
from asmevo.device.recorder import Recorder
from asmevo.dispatch.captured.capture import Allocation, Capture, Segment
from asmevo.dispatch.captured.errors import CaptureError
from asmevo.dispatch.captured.folder import read_capture, write_capture
from asmevo.dispatch.captured.replay import replay
from asmevo.dispatch.dispatch import Dispatch, ElementType, Role
from asmevo.task.run import run_task
from asmevo.task.session import Session

PAGE = 4096


@dataclass(frozen=True)
class Subject:
    """A kernel on the emulator with its declared dispatches."""

    session: Session
    loaded: LoadedKernel
    dispatches: dict[str, Dispatch]
    recorder: Recorder


Subjects = Callable[..., Subject]


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Subjects:
    made: dict[tuple[str, ...], Subject] = {}

    def subject(*overrides: str) -> Subject:
        if overrides not in made:
            register()
            with initialize_config_dir(config_folder(), version_base="1.3"):
                config = compose("config", overrides=[*overrides, "registry.path=unused"])
            session = Session(config, tmp_path_factory.mktemp("run"))
            original = session.code_object
            metadata = original.kernel(session.symbol).metadata
            dispatches = session.oracle.dispatches(session.kernel, session.symbol, metadata)
            loaded = session.device.load(original, session.symbol)
            made[overrides] = Subject(
                session, loaded, {d.name: d for d in dispatches},
                Recorder(loaded, metadata, original.sha256, "test"))
        return made[overrides]

    return subject


TOPK, NORM = ("kernel=aiter_topksoftmax",), ("kernel=aiter_layer_norm",)
FMOE = ("kernel=aiter_fmoe", "kernel.held_out_shapes=[]", "oracle.families=[normal,boundary]")
MLA = ("kernel=aiter_mla_decode",)


@pytest.mark.parametrize(("kernel", "name", "below"), [
    (TOPK, "T16_S9-normal", 1.0), (TOPK, "T13_S8-wide", 1.0), (NORM, "M6-normal", 1.0),
    (FMOE, "T33_D1024_I256_E3_K1-normal", 0.7), (FMOE, "T45_D1536_I512_E5_K3-boundary", 0.95),
    (MLA, "B3_L77-normal", 0.95),
])
def test_the_replay_is_the_launch(subject: Subjects, tmp_path: Path, kernel: tuple[str, ...],
                                  name: str, below: float) -> None:
    """Through the files and back: the bytes after the launch are those of the dispatch itself."""
    made = subject(*kernel)
    dispatch = made.dispatches[name]
    whole = made.recorder.record(dispatch)
    capture = made.recorder.reduced(whole, PAGE)
    assert capture.size <= whole.size * below
    write_capture(capture, tmp_path / "capture")
    replayed = replay(read_capture(tmp_path / "capture"), made.recorder.metadata)
    after = made.loaded.run(replayed).regions
    assert after == replayed.recorded

    # Against the launch itself, wherever the capture has bytes; and it has all that changed.
    result = made.loaded.run(dispatch)
    seen = 0
    for region, mapped in zip(dispatch.regions, result.regions, strict=True):
        data = np.frombuffer(mapped, np.uint8)[region.guard:region.guard + len(region.data)]
        left = data != np.frombuffer(region.data, np.uint8)
        for part, found in zip(replayed.regions, after, strict=True):
            offset = part.address - region.address
            if 0 <= offset < len(data):
                seen += 1
                assert found == data[offset:offset + len(part.data)].tobytes()
                left[offset:offset + len(part.data)] = False
        assert not left.any()
    assert seen >= len(dispatch.regions)
    assert made.loaded.run(replayed).instructions == result.instructions


def pooled(capture: Capture) -> Capture:
    """What a recorder in an application sees of it: one pool, no roles, no pointers.

    An allocator has everything in one piece; in between lies what belongs to others.
    """
    first = min(a.address for a in capture.allocations) - 3 * PAGE
    last = max(a.end for a in capture.allocations) + 5 * PAGE
    rng = np.random.default_rng(5)
    pre = bytearray(rng.bytes(last - first))
    post = bytearray(pre)
    for allocation, segment in capture.segments():
        start = allocation.address + segment.offset - first
        pre[start:start + segment.size] = segment.pre
        post[start:start + segment.size] = segment.post
    whole = Segment(0, bytes(pre), bytes(post))
    return replace(capture, pointers=None, allocations=(
        Allocation("pool", first, last - first, (whole,)),))


def test_a_pool_is_taken_apart(subject: Subjects) -> None:
    """Roles, extents and pointers come back from memory in which nothing is marked."""
    made = subject("kernel=aiter_topksoftmax", "kernel.shapes=[{T:1024,S:8}]",
                   "oracle.families=[normal]", "oracle.extreme_families=[]",
                   "kernel.held_out_shapes=[]")
    (dispatch,) = made.dispatches.values()
    declared = made.recorder.record(dispatch)
    capture = made.recorder.reduced(pooled(declared), PAGE)
    assert capture.pointers is not None
    replayed = replay(capture, made.recorder.metadata)
    assert replayed.movable
    found = {(r.address, len(r.data)): r.role for r in replayed.regions}
    assert found == {(r.address, len(r.data)): r.role for r in dispatch.regions}
    assert Role.OUTPUT in found.values()
    # Poisoned and moved it still gives what the declared dispatch does.
    moved = replayed.moved(-0x2345_0000_0000).with_poisoned_outputs(77)
    result = made.loaded.run(moved, LaunchState(poison=9)).regions
    assert result == replayed.recorded


@pytest.fixture
def compiled_lora(tmp_path: Path) -> None:
    """SGLang's Triton kernel in the cache of compiled objects."""
    try:
        fetch(PINNED["sglang"])
    except CompileError as error:
        pytest.skip(f"needs the wheel that the kernel comes from: {error}")
    register()
    with initialize_config_dir(config_folder(), version_base="1.3"):
        run_task(compose("config", overrides=["task=compile", "kernel=triton_fused_moe_lora"]),
                 tmp_path)


@pytest.mark.usefixtures("compiled_lora")
def test_tables_of_pointers(subject: Subjects) -> None:
    """SGLang's fused_moe_lora takes tables of pointers: found in memory, and moved with it."""
    made = subject("kernel=triton_fused_moe_lora")
    declared = made.recorder.record(made.dispatches["T19_R16_K128_P256-normal"])
    assert declared.pointers is not None
    nested = {p for p in declared.pointers if p.holder is not None}
    assert nested
    capture = made.recorder.reduced(replace(declared, pointers=None), PAGE)
    assert capture.pointers is not None
    assert {p for p in capture.pointers if p.holder is not None} == nested
    replayed = replay(capture, made.recorder.metadata)
    moved = replayed.moved(-0x3456_7890_0000)
    after = made.loaded.run(moved, LaunchState(poison=4)).regions
    assert after == tuple(r.data if r.role is Role.INPUT else post for r, post in zip(
        moved.regions, replayed.recorded or (), strict=True))
    # One pointer of the table left behind, and the kernel is lost.
    one = min(nested, key=lambda p: p.offset)
    forgotten = replace(capture, pointers=tuple(p for p in capture.pointers if p != one))
    with pytest.raises(DeviceFault, match="outside every mapped region"):
        made.loaded.run(replay(forgotten, made.recorder.metadata).moved(-0x3456_7890_0000))


def test_an_allocation_recorded_in_parts(subject: Subjects) -> None:
    """Wherever the parts meet: loads of 16 bytes go across."""
    made = subject(*TOPK)
    declared = made.recorder.record(made.dispatches["T16_S9-normal"])
    parts = replace(declared, allocations=tuple(
        replace(a, segments=tuple(
            Segment(at, s.pre[at:at + 52], s.post[at:at + 52], s.role, s.written)
            for s in a.segments for at in range(0, s.size, 52)))
        for a in declared.allocations))
    assert made.recorder.reduced(parts, PAGE).allocations == declared.allocations


def test_only_what_is_read_stays_as_it_was(subject: Subjects) -> None:
    """fmoe adds to its output: nothing of that may be taken for written only."""
    made = subject(*FMOE)
    declared = made.recorder.record(made.dispatches["T33_D1024_I256_E3_K1-normal"])
    unmarked = replace(declared, pointers=None, allocations=tuple(
        replace(a, order_dependent=False,
                segments=tuple(replace(s, role=None, written=False) for s in a.segments))
        for a in declared.allocations))
    capture = made.recorder.reduced(unmarked, PAGE)
    roles = {a.name: {s.role for s in a.segments} for a in capture.allocations if a.segments}
    assert roles.pop("out") == {Role.INOUT}
    assert set().union(*roles.values()) == {Role.INPUT}
    assert capture.pointers == declared.pointers


def test_a_store_that_changes_nothing_is_found(subject: Subjects) -> None:
    """The output held the result already, as in an application that computes it twice."""
    made = subject(*TOPK)
    declared = made.recorder.record(made.dispatches["T16_S9-normal"])
    again = replace(declared, pointers=None, allocations=tuple(
        replace(a, segments=tuple(Segment(0, s.post, s.post) for s in a.segments))
        for a in declared.allocations))
    capture = made.recorder.reduced(again, PAGE)
    roles = {a.name: [s.role for s in a.segments] for a in capture.allocations}
    assert roles == {"indices": [Role.OUTPUT], "weights": [Role.OUTPUT], "gating": [Role.INPUT]}


def test_a_pointer_that_is_none_is_not_moved(subject: Subjects) -> None:
    """Data that looks like a pointer: a replay elsewhere shows it, and nothing moves."""
    made = subject(*TOPK)
    dispatch = made.dispatches["T16_S9-normal"]
    # An address whose lower half is 10.0 to a kernel of floats: the largest logit of its token.
    address = 0x7E00_4120_0000
    kernarg = dispatch.kernarg[:32] + address.to_bytes(8, "little") + dispatch.kernarg[40:]
    gating = dispatch.regions[2]
    gating = replace(gating, address=address,
                     data=gating.data[:128] + address.to_bytes(8, "little") + gating.data[136:])
    changed = replace(dispatch, kernarg=kernarg, regions=(*dispatch.regions[:2], gating))
    whole = replace(made.recorder.record(changed), pointers=None)
    capture = made.recorder.reduced(whole, PAGE)
    # The pretended pointer would move with the buffer, and no longer be 10.0.
    assert capture.pointers is None
    assert not replay(capture, made.recorder.metadata).movable


def test_a_wrong_post_state_is_no_capture(subject: Subjects) -> None:
    made = subject(*TOPK)
    capture = made.recorder.record(made.dispatches["T16_S9-normal"])
    first, *rest = capture.allocations
    (segment,) = first.segments
    wrong = replace(segment, post=bytes([segment.post[0] ^ 1]) + segment.post[1:])
    broken = replace(capture, allocations=(replace(first, segments=(wrong,)), *rest))
    with pytest.raises(CaptureError, match="differs from what was recorded, first at byte 0"):
        made.recorder.reduced(broken, PAGE)


def test_missing_memory_faults(subject: Subjects) -> None:
    """What a recorder left out is unmapped; no replay makes it up."""
    made = subject(*TOPK)
    capture = made.recorder.record(made.dispatches["T16_S9-normal"])
    smaller = replace(capture, allocations=(
        *capture.allocations[:2], replace(capture.allocations[2], segments=())))
    with pytest.raises(DeviceFault, match="outside every mapped region"):
        made.recorder.reduced(smaller, PAGE)


def test_element_types_of_a_declaration_are_kept(subject: Subjects) -> None:
    made = subject(*MLA)
    capture = made.recorder.record(made.dispatches["B1_L128-normal"])
    assert {a.name: a.element for a in capture.allocations} == {
        "out": ElementType.F32, "lse": ElementType.F32, "q": ElementType.BF16,
        "kv": ElementType.BF16, "kv_indptr": ElementType.I32,
        "kv_page_indices": ElementType.I32, "kv_last_page_lens": ElementType.I32}
