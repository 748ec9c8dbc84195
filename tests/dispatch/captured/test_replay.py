"""From a capture to a dispatch: addresses, roles, pointers, launch, hidden arguments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from asmevo.dispatch.captured.capture import Allocation, PointerField, Segment
from asmevo.dispatch.captured.errors import CaptureError
from asmevo.dispatch.captured.pointers import find_pointers
from asmevo.dispatch.captured.replay import replay
from asmevo.dispatch.dispatch import ElementType, Pointer, Region, Role
from tests.dispatch.captured.conftest import OUT, TABLE, X, make_capture

NO_ARGUMENTS: dict[str, Any] = {".args": []}


def test_memory_lies_where_it_was() -> None:
    dispatch = replay(make_capture(), NO_ARGUMENTS, held_out=True)
    assert [(r.name, r.address, len(r.data), r.role, r.element, r.guard, r.order_dependent)
            for r in dispatch.regions] == [
        ("x", X, 1024, Role.INPUT, ElementType.F32, 0, False),
        ("table", TABLE, 64, Role.INPUT, ElementType.OPAQUE, 0, False),
        ("out+0x0", OUT, 128, Role.OUTPUT, ElementType.BF16, 0, True),
        ("out+0x2000", OUT + 0x2000, 256, Role.INOUT, ElementType.BF16, 0, True),
    ]
    assert [r.mapped for r in dispatch.regions] == [r.data for r in dispatch.regions]
    assert dispatch.recorded is not None
    assert dispatch.recorded[2:] == (b"\1" * 128, b"\3" * 256)
    assert (dispatch.grid, dispatch.workgroup, dispatch.dynamic_lds) == ((4, 2, 1), (64, 1, 1), 512)
    assert (dispatch.name, dispatch.kernel, dispatch.held_out) == ("m4", "k", True)


def test_roles_without_a_recorder_that_knows_them() -> None:
    """What differs is written, and may have been read; what is stored to may look unchanged."""
    same, other = bytes(64), b"\1" * 64
    allocation = Allocation("a", X, 4096, (
        Segment(0, same, same), Segment(128, same, other), Segment(256, same, same, written=True)))
    regions = replay(make_capture(allocations=(allocation,), pointers=None),
                     NO_ARGUMENTS).regions
    assert [r.role for r in regions] == [Role.INPUT, Role.INOUT, Role.INOUT]


def test_segments_that_meet_are_one_region() -> None:
    """A recorder stores large allocations in parts; the kernel may read across them."""
    part = bytes(range(64))
    other = bytes(64)
    last = part[:8] + X.to_bytes(8, "little") + part[16:]
    allocation = Allocation("a", X, 4096, (
        Segment(0, part, part), Segment(64, other, other), Segment(128, part, other),
        Segment(192, part, other, Role.INOUT), Segment(256, part, other, Role.OUTPUT),
        Segment(384, last, last)))
    capture = make_capture(allocations=(allocation,), pointers=(PointerField(392, 0, 0),))
    dispatch = replay(capture, NO_ARGUMENTS)
    assert [(r.address - X, r.data, r.role) for r in dispatch.regions] == [
        (0, part + other, Role.INPUT), (128, part + part, Role.INOUT), (256, part, Role.OUTPUT),
        (384, last, Role.INPUT)]
    assert dispatch.recorded == (part + other, other + other, other, last)
    assert dispatch.pointers == (Pointer(8, 0, 3),)


def test_pointers_move_with_what_they_point_to() -> None:
    dispatch = replay(make_capture(), NO_ARGUMENTS)
    assert dispatch.pointers == (Pointer(0, 1), Pointer(0, 0, 1), Pointer(8, 2, 1))
    moved = dispatch.moved(-0x10_0000)
    assert moved.kernarg[:8] == (TABLE - 0x10_0000).to_bytes(8, "little")
    assert moved.kernarg[8:] == dispatch.kernarg[8:]
    table = moved.regions[1].data
    assert table[:16] == ((X - 0x10_0000).to_bytes(8, "little")
                          + (OUT + 64 - 0x10_0000).to_bytes(8, "little"))
    assert [r.address for r in moved.regions] == [
        r.address - 0x10_0000 for r in dispatch.regions]


def test_nothing_moves_where_pointers_are_unknown() -> None:
    """A pointer that nobody knows of would be left behind."""
    dispatch = replay(make_capture(pointers=None), NO_ARGUMENTS)
    assert not dispatch.movable
    assert dispatch.moved(-0x10_0000) is dispatch


def test_nothing_moves_to_where_the_device_has_its_own() -> None:
    dispatch = replay(make_capture(), NO_ARGUMENTS)
    assert dispatch.movable
    assert dispatch.moved(0x3000_0000_0000 - X) is not dispatch
    assert dispatch.moved(0x1000_0000_0000 - X) is dispatch
    assert dispatch.moved(-2 * X) is dispatch


def test_pointers_are_found() -> None:
    capture = make_capture()
    assert find_pointers(replace(capture, pointers=None)) == capture.pointers
    # One past the end is none, and neither is one at an odd place in memory.
    past = (X + 1024).to_bytes(8, "little")
    odd = b"\0\0\0\0" + X.to_bytes(8, "little") + b"\0\0\0\0"
    table = Allocation("table", TABLE, 64, (Segment(0, past + odd, past + odd),))
    found = find_pointers(replace(capture, kernarg=past, pointers=None, allocations=(
        capture.allocations[0], table)))
    assert found == ()
    # A segment that does not begin at a multiple of eight has its pointers at them all the same.
    table = Allocation("table", TABLE, 64, (Segment(4, odd[:12], odd[:12]),))
    found = find_pointers(replace(capture, kernarg=b"", pointers=None, allocations=(
        capture.allocations[0], table)))
    assert found == (PointerField(8, 0, 1),)


def test_a_pointer_to_what_is_not_recorded_is_none() -> None:
    capture = make_capture(allocations=(
        *make_capture().allocations[:2], Allocation("out", OUT, 4096, ())))
    assert replay(capture, NO_ARGUMENTS).pointers == (Pointer(0, 1), Pointer(0, 0, 1))


def test_partial_workgroups_are_refused() -> None:
    with pytest.raises(CaptureError, match="no multiple of its workgroups"):
        replay(make_capture(grid=(250, 2, 1)), NO_ARGUMENTS)


def test_names_of_segments_may_not_meet() -> None:
    one = Segment(0, b"\0", b"\0")
    capture = make_capture(pointers=None, allocations=(
        Allocation("a", X, 64, (one,)), Allocation("a+0x0", TABLE, 1, (one,))))
    with pytest.raises(CaptureError, match=r"two segments the name 'a\+0x0'"):
        replay(capture, NO_ARGUMENTS)


def with_hidden(kind: str, value: int, size: int = 8) -> Region | bytes:
    """The replayed kernarg of a capture with one hidden argument."""
    kernarg = bytes(16) + value.to_bytes(size, "little")
    metadata = {".args": [
        {".offset": 0, ".size": 8, ".value_kind": "global_buffer"},
        {".offset": 16, ".size": size, ".value_kind": kind}]}
    return replay(make_capture(kernarg=kernarg, pointers=None), metadata).kernarg[16:]


@pytest.mark.parametrize("kind", [
    "hidden_printf_buffer", "hidden_hostcall_buffer", "hidden_default_queue",
    "hidden_completion_action", "hidden_multigrid_sync_arg", "hidden_heap_v1", "hidden_queue_ptr"])
def test_pointers_into_a_dead_process_are_refused_by_name(kind: str) -> None:
    with pytest.raises(CaptureError, match=f"'{kind}'") as refusal:
        with_hidden(kind, 0x7F12_3456_0000)
    assert "no replay can provide" in str(refusal.value)
    assert with_hidden(kind, 0) == bytes(8)


def test_an_unknown_hidden_argument_is_refused_by_name() -> None:
    with pytest.raises(CaptureError, match="'hidden_novelty'"):
        with_hidden("hidden_novelty", 1)


@pytest.mark.parametrize("kind", ["hidden_private_base", "hidden_shared_base"])
def test_apertures_are_those_of_the_device(kind: str) -> None:
    assert with_hidden(kind, 0x20000, 4) == bytes(4)


@pytest.mark.parametrize(("kind", "size", "value"), [
    ("hidden_block_count_x", 4, 4), ("hidden_block_count_y", 4, 2), ("hidden_block_count_z", 4, 1),
    ("hidden_group_size_x", 2, 64), ("hidden_grid_dims", 2, 2), ("hidden_dynamic_lds_size", 4, 512),
])
def test_what_the_launch_says_anyway(kind: str, size: int, value: int) -> None:
    assert with_hidden(kind, value, size) == value.to_bytes(size, "little")
    with pytest.raises(CaptureError, match=f"'{kind}', but its launch means {value}"):
        with_hidden(kind, value + 1, size)


@pytest.mark.parametrize("kind", ["hidden_global_offset_x", "hidden_remainder_z"])
def test_launches_that_no_dispatch_can_be(kind: str) -> None:
    with pytest.raises(CaptureError, match="its launch means 0"):
        with_hidden(kind, 3)


def test_hostile_metadata_is_none() -> None:
    for arguments in (None, 3, [3], [{".value_kind": "hidden_heap_v1"}],
                      [{".value_kind": "hidden_heap_v1", ".offset": -8, ".size": 8}],
                      [{".value_kind": "hidden_heap_v1", ".offset": 1 << 70, ".size": 8}]):
        assert replay(make_capture(), {".args": arguments}).kernarg == make_capture().kernarg
