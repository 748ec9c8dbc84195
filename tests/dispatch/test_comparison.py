from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asmevo.dispatch.comparison import RegionComparison, Tolerance, compare
from asmevo.dispatch.dispatch import Dispatch, ElementType, Region, Role
from asmevo.dispatch.generator import to_bytes

GUARD = 256


def _compare(
    want: bytes, have: bytes, element: ElementType, role: Role = Role.OUTPUT,
    guard_byte: int | None = None,
) -> RegionComparison:
    region = Region("r", 0x10000, want, role, element, GUARD)
    dispatch = Dispatch("d", "k", b"", (1, 1, 1), (64, 1, 1), (region,), ())
    expected, actual = bytearray(region.mapped), bytearray(region.mapped)
    actual[GUARD:GUARD + len(have)] = have
    if guard_byte is not None:
        actual[guard_byte] ^= 1
    return compare(dispatch, (bytes(expected),), (bytes(actual),), Tolerance())[0]


def _floats(values: list[float], element: ElementType = ElementType.F32) -> bytes:
    return to_bytes(np.array(values, np.float32), element)


def test_equal_bytes_are_equal() -> None:
    assert _compare(b"\0" * 64, b"\0" * 64, ElementType.OPAQUE).equal


@pytest.mark.parametrize("element", [ElementType.F32, ElementType.BF16, ElementType.F16])
def test_small_float_difference_is_tolerated(element: ElementType) -> None:
    want = _floats([0.125, 0.0625, -0.0625], element)
    have = _floats([0.125, 0.0625 + 2**-11, -0.0625], element)
    assert want != have
    outcome = _compare(want, have, element)
    assert outcome.equal
    assert outcome.differing == 1
    assert outcome.max_abs == 2**-11


def test_absolute_difference_is_bounded() -> None:
    outcome = _compare(_floats([1.0, 2.0]), _floats([1.0, 2.002]), ElementType.F32)
    assert (outcome.code, outcome.first) == ("max-abs", 1)


def test_direction_is_bounded_where_values_are_small() -> None:
    """Tiny outputs pass any absolute bound; the cosine is what sees that they are wrong."""
    outcome = _compare(_floats([1e-5, 1e-5]), _floats([1e-5, -1e-5]), ElementType.F32)
    assert outcome.code == "cosine"


def test_zeroed_output_fails_even_when_tiny() -> None:
    assert not _compare(_floats([1e-6] * 8), _floats([0.0] * 8), ElementType.F32).equal


def test_signed_zeros_are_equal_numbers() -> None:
    assert _compare(_floats([0.0, 1.0]), _floats([-0.0, 1.0]), ElementType.F32).equal


def test_nan_is_no_wildcard() -> None:
    nan = float("nan")
    assert _compare(_floats([nan, 1.0]), _floats([nan, 1.0]), ElementType.F32).equal
    assert _compare(_floats([0.0, 1.0]), _floats([nan, 1.0]), ElementType.F32).code == "nan-class"
    assert _compare(_floats([nan, 1.0]), _floats([0.0, 1.0]), ElementType.F32).code == "nan-class"


def test_nans_of_different_payload_are_one_class() -> None:
    quiet = np.array([0x7FC00001, 0x3F800000], "<u4").tobytes()
    other = np.array([0xFFC00000, 0x3F800000], "<u4").tobytes()
    assert _compare(quiet, other, ElementType.F32).equal


def test_infinities_must_agree_in_sign() -> None:
    inf = float("inf")
    assert _compare(_floats([inf, 1.0]), _floats([-inf, 1.0]), ElementType.F32).code == "infinity"
    assert _compare(_floats([inf, 1.0]), _floats([3e38, 1.0]), ElementType.F32).code == "infinity"


def test_integers_are_compared_bit_for_bit() -> None:
    want = np.array([1, 2, 3], "<i4").tobytes()
    have = np.array([1, 2, 4], "<i4").tobytes()
    outcome = _compare(want, have, ElementType.I32)
    assert (outcome.code, outcome.differing, outcome.first) == ("bits", 1, 2)


@pytest.mark.parametrize("where", [0, GUARD - 1, GUARD + 64, 2 * GUARD + 63])
def test_guards_must_be_intact(where: int) -> None:
    outcome = _compare(b"\0" * 64, b"\0" * 64, ElementType.OPAQUE, guard_byte=where)
    assert outcome.code == "guard-overwritten"


def test_inputs_must_not_change() -> None:
    outcome = _compare(_floats([1.0, 2.0]), _floats([1.0, 2.0001]), ElementType.F32, Role.INPUT)
    assert (outcome.code, outcome.first) == ("input-modified", 1)


@given(st.binary(min_size=16, max_size=16), st.integers(0, 127))
def test_any_flipped_bit_of_an_integer_buffer_is_seen(data: bytes, bit: int) -> None:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    assert not _compare(data, bytes(changed), ElementType.U32).equal
