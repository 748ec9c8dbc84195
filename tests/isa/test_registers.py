"""Register masks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from asmevo.isa import registers
from asmevo.isa.operands import parse_source

_REGISTERS = st.integers(0, registers.REGISTER_COUNT - 1)


@given(st.sets(_REGISTERS))
def test_members_are_the_set_that_made_the_mask(numbers: set[int]) -> None:
    union = 0
    for number in numbers:
        union |= registers.mask(number)
    assert list(registers.members(union)) == sorted(numbers)
    assert union.bit_count() == len(numbers)


@given(st.integers(0, 700), st.integers(1, 32))
def test_a_range_is_its_registers(first: int, count: int) -> None:
    found = registers.members(registers.mask(first, count))
    assert list(found) == list(range(first, first + count))


@given(st.one_of(st.integers(0, 123), st.sampled_from([124, 126, 127]), st.integers(256, 767)))
def test_a_name_parses_to_its_register(number: int) -> None:
    operand = parse_source(registers.name(number))
    assert (operand.first, operand.count) == (number, 1)
