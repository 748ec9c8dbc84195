"""Buffers placed so that an address inside each has a lower word of zero."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asmevo.dispatch.dispatch import Dispatch, ElementType, Pointer, Region, Role

HIGH = 0x7000_0000_0000
LINE = 1 << 32
# The least address that a buffer may be moved to, as the emulator maps code and arguments below.
LOWEST = 0x2100_0000_0000


def region(name: str, address: int, size: int, element: ElementType = ElementType.F32) -> Region:
    return Region(name, address, bytes(size), Role.INPUT, element)


def dispatch(*regions: Region, movable: bool = True) -> Dispatch:
    """Of each region there is a pointer in the kernarg."""
    kernarg = b"".join(r.address.to_bytes(8, "little") for r in regions)
    pointers = tuple(Pointer(8 * k, k) for k in range(len(regions)))
    return Dispatch("d", "k", kernarg, (1, 1, 1), (64, 1, 1), regions, pointers, movable=movable)


def inside(r: Region) -> int | None:
    """How far into a region its one line is; ``None`` where there is none."""
    first = -(-(r.address + 1) // LINE) * LINE
    assert first + LINE >= r.address + len(r.data), "two lines in one region"
    return first - r.address if first < r.address + len(r.data) else None


def test_the_middle_of_each_buffer() -> None:
    sizes = {"large": 4096, "medium": 512, "small": 48, "pair": 8}
    given_ = dispatch(*(region(name, HIGH + k * 0x10000, size)
                        for k, (name, size) in enumerate(sizes.items())))
    moved = given_.across_lines(1, middle=True)
    assert {r.name: inside(r) for r in moved.regions} == {
        "large": 2048, "medium": 256, "small": 16, "pair": 4}
    assert [r.data for r in moved.regions] == [r.data for r in given_.regions]
    assert moved.kernarg == b"".join(r.address.to_bytes(8, "little") for r in moved.regions)


@given(sizes=st.lists(st.integers(1, 3000), min_size=1, max_size=6),
       element=st.sampled_from(ElementType), seed=st.integers(0, 1 << 32))
def test_somewhere_in_each_buffer(sizes: list[int], element: ElementType, seed: int) -> None:
    given_ = dispatch(*(region(f"r{k}", HIGH + k * 0x100000, size * element.size, element)
                        for k, size in enumerate(sizes)))
    for middle in (True, False):
        moved = given_.across_lines(seed, middle=middle)
        windows: list[int] = []
        for r, size in zip(moved.regions, sizes, strict=True):
            at = inside(r)
            if at is None:
                assert size * element.size < 8 or size == 1
            else:
                assert 0 < at < len(r.data)
                assert at % element.size == 0
                # As allocators align, a large buffer is no less so than it was.
                assert len(r.data) < 1024 or r.address % 256 == 0
            windows += range(r.base >> 32, (r.base + len(r.mapped) - 1 >> 32) + 1)
        assert len(set(windows)) == len(windows), "two buffers share an upper word"
        assert moved == given_.across_lines(seed, middle=middle)


def test_seeds_put_the_line_elsewhere_but_not_near_the_ends() -> None:
    given_ = dispatch(region("r", HIGH, 1 << 16))
    found = {inside(given_.across_lines(seed, middle=False).regions[0]) for seed in range(64)}
    assert len(found) > 32
    assert all(at is not None and 1 << 13 <= at < 7 << 13 for at in found)


@pytest.mark.parametrize("middle", [True, False])
def test_no_line_in_a_buffer_that_the_original_does_not_bear_it_in(middle: bool) -> None:
    given_ = dispatch(region("kept", HIGH, 4096), region("other", HIGH + 0x10000, 4096))
    kept, other = given_.across_lines(1, middle=middle, whole={"kept"}).regions
    assert inside(kept) is None
    assert kept.address != HIGH
    assert inside(other) is not None
    # Nor does the guard in front of it or behind it reach across one.
    assert kept.base >> 32 == (kept.base + len(kept.mapped)) >> 32


@pytest.mark.parametrize(("size", "element"), [
    (4, ElementType.F32), (1, ElementType.I8), (7, ElementType.U8), (8, ElementType.F64),
    (2, ElementType.BF16), (0, ElementType.F32)])
def test_a_single_element_cannot_have_a_line_inside(size: int, element: ElementType) -> None:
    moved = dispatch(region("r", HIGH, size, element)).across_lines(1, middle=True)
    (only,) = moved.regions
    assert inside(only) is None
    assert only.address != HIGH


def test_memory_with_unknown_pointers_stays() -> None:
    given_ = dispatch(region("r", HIGH, 4096), movable=False)
    assert given_.across_lines(1, middle=True) is given_
    assert given_.moved(1 << 20) is given_


def test_what_would_come_to_lie_too_low_stays_all_together() -> None:
    high, low = region("high", HIGH, 4096), region("low", LOWEST + 2 * LINE, 4096)
    both = dispatch(high, low)
    assert both.across_lines(1, middle=True) is both
    enough = replace(low, address=LOWEST + 64 * LINE)
    assert dispatch(high, enough).across_lines(1, middle=True).regions[1].base >= LOWEST


def test_pointers_in_memory_move_along() -> None:
    """A table of pointers: what a launch leaves of it comes back as it was."""
    data = region("data", HIGH, 4096)
    table = replace(region("table", HIGH + 0x10000, 64, ElementType.U64),
                    data=bytes(16) + (HIGH + 64).to_bytes(8, "little") + bytes(40))
    given_ = Dispatch("d", "k", table.address.to_bytes(8, "little"), (1, 1, 1), (64, 1, 1),
                      (data, table), (Pointer(0, 1), Pointer(16, 0, holder=1)))
    moved = given_.across_lines(3, middle=False)
    assert moved.kernarg == moved.regions[1].address.to_bytes(8, "little")
    held = int.from_bytes(moved.regions[1].data[16:24], "little")
    assert held == moved.regions[0].address + 64
    after = tuple(r.mapped for r in moved.regions)
    assert given_.brought_back(after, moved)[1][4096:4160] == table.data
