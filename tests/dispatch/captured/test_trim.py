"""Trimming: what was touched stays, byte for byte, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asmevo.dispatch.captured.capture import MAX_SEGMENTS, Allocation, PointerField, Segment
from asmevo.dispatch.captured.errors import CaptureError
from asmevo.dispatch.captured.replay import role_of
from asmevo.dispatch.captured.trim import Addresses, check_granule, trimmed
from asmevo.dispatch.dispatch import Role
from tests.dispatch.captured.conftest import X, make_capture

PAGE = 4096


def lines(*addresses: int) -> Addresses:
    return np.array(sorted(a - a % 128 for a in addresses), np.uint64)


def segments(size: int, touched: Addresses, *, granule: int = PAGE, address: int = X,
             role: Role | None = None, changed: tuple[int, ...] = (),
             stored: tuple[int, ...] = ()) -> list[tuple[int, int, Role]]:
    """(offset, size, role) of what is left of one allocation."""
    pre = np.arange(size, dtype=np.uint8)
    post = pre.copy()
    post[list(changed)] += 1
    whole = Segment(0, pre.tobytes(), post.tobytes(), role)
    capture = make_capture(allocations=(Allocation("a", address, size, (whole,)),), pointers=None)
    (allocation,) = trimmed(capture, touched, granule=granule, stored=stored).allocations
    for segment in allocation.segments:
        assert segment.pre == pre[segment.offset:segment.end].tobytes()
        assert segment.post == post[segment.offset:segment.end].tobytes()
    return [(s.offset, s.size, role_of(s)) for s in allocation.segments]


def test_untouched_pages_go() -> None:
    assert segments(10 * PAGE, lines(X + 5000, X + 9000, X + 9 * PAGE)) == [
        (PAGE, 2 * PAGE, Role.INPUT), (9 * PAGE, PAGE, Role.INPUT)]


def test_nothing_touched_nothing_left() -> None:
    assert segments(10 * PAGE, lines()) == []
    assert segments(PAGE, lines(X - 1, X + PAGE)) == []


def test_lines_are_finer() -> None:
    assert segments(1024, lines(X + 200, X + 1000), granule=128) == [
        (128, 128, Role.INPUT), (896, 128, Role.INPUT)]


def test_what_begins_and_ends_within_a_page() -> None:
    """Pages are those of the address space: an allocation's first and last may be parts."""
    touched = lines(X + 100, X + 100 + 2 * PAGE)
    assert segments(2 * PAGE + 10, touched, address=X + 100) == [
        (0, PAGE - 100, Role.INPUT), (2 * PAGE - 100, 110, Role.INPUT)]


def test_a_line_that_begins_before_the_allocation_counts() -> None:
    assert segments(64, lines(X + 100), address=X + 100) == [(0, 64, Role.INPUT)]


def test_pages_that_are_only_read_are_split_off() -> None:
    touched = lines(*range(X, X + 5 * PAGE, 128))
    assert segments(5 * PAGE, touched, changed=(2 * PAGE + 7,)) == [
        (0, 2 * PAGE, Role.INPUT), (2 * PAGE, PAGE, Role.INOUT), (3 * PAGE, 2 * PAGE, Role.INPUT)]
    assert segments(5 * PAGE, touched, stored=(X + PAGE + 3,)) == [
        (0, PAGE, Role.INPUT), (PAGE, PAGE, Role.INOUT), (2 * PAGE, 3 * PAGE, Role.INPUT)]


def test_a_known_role_is_not_split() -> None:
    touched = lines(*range(X, X + 5 * PAGE, 128))
    assert segments(5 * PAGE, touched, changed=(2 * PAGE + 7,), role=Role.OUTPUT) == [
        (0, 5 * PAGE, Role.OUTPUT)]


def test_scattered_accesses_get_larger_granules() -> None:
    count = MAX_SEGMENTS // 4
    touched = np.arange(X, X + 256 * count, 256, dtype=np.uint64)
    found = segments(256 * count, touched, granule=128)
    assert found == [(0, 256 * count, Role.INPUT)]


def test_pointers_in_what_is_gone_go() -> None:
    data = X.to_bytes(8, "little") * (4 * PAGE // 8)
    capture = make_capture(
        kernarg=X.to_bytes(8, "little"),
        allocations=(Allocation("a", X, 4 * PAGE, (Segment(0, data, data),)),),
        pointers=(PointerField(0, 0), PointerField(8, 0, 0), PointerField(2 * PAGE, 0, 0)))
    assert trimmed(capture, lines(X), granule=PAGE).pointers == (
        PointerField(0, 0), PointerField(8, 0, 0))


@pytest.mark.parametrize("granule", [0, -4096, 64, 100, 4097, 1 << 31])
def test_impossible_granularities(granule: int) -> None:
    with pytest.raises(CaptureError, match="power of two from 128"):
        check_granule(granule)


@given(size=st.integers(1, 20_000), start=st.integers(0, 300),
       touched=st.sets(st.integers(0, 200), max_size=40),
       changed=st.sets(st.integers(0, 19_999), max_size=5),
       granule=st.sampled_from([128, 512, PAGE]))
def test_every_touched_byte_is_left(size: int, start: int, touched: set[int], changed: set[int],
                                    granule: int) -> None:
    address = X + start
    kept = np.zeros(size, np.bool_)
    written = tuple(c for c in changed if c < size)
    found = segments(size, lines(*(X + 128 * t for t in touched)), granule=granule,
                     address=address, changed=written)
    for offset, length, role in found:
        assert not kept[offset:offset + length].any()
        kept[offset:offset + length] = True
        assert role is (Role.INOUT if any(offset <= w < offset + length for w in written)
                        else Role.INPUT)
    want = np.zeros(size, np.bool_)
    inside = [X + 128 * t for t in touched if address - 128 < X + 128 * t < address + size]
    granules = {line // granule for line in inside} | {
        (address + w) // granule for w in written}
    for g in granules:
        low, high = max(g * granule - address, 0), min((g + 1) * granule - address, size)
        if low < high:
            want[low:high] = True
    np.testing.assert_array_equal(kept, want)
