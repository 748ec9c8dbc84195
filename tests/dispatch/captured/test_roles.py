"""Which regions are pure outputs, by launching kernels that are plain Python here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from asmevo.dispatch.captured.roles import pure_outputs
from asmevo.dispatch.dispatch import Dispatch, ElementType, Region, Role

Kernel = Callable[[list[bytearray]], None]
SIZE = 256


def fill_all(memory: list[bytearray]) -> None:
    memory[1][:] = bytes(SIZE)


def fill_most(memory: list[bytearray]) -> None:
    memory[1][16:] = memory[0][16:]


def fill_little(memory: list[bytearray]) -> None:
    memory[1][:16] = memory[0][:16]


def accumulate(memory: list[bytearray]) -> None:
    memory[1][:] = bytes((a + b) & 0xFF for a, b in zip(memory[0], memory[1], strict=True))


def read_into_another(memory: list[bytearray]) -> None:
    memory[2][0] = memory[1][0]
    memory[1][:] = memory[0]


def keep_if_zero(memory: list[bytearray]) -> None:
    """Reads one byte, and only decides by it."""
    if memory[1][7] == 0:
        memory[1][:] = memory[0]


def fault_on_noise(memory: list[bytearray]) -> None:
    if any(memory[1]):
        raise ZeroDivisionError
    memory[1][:] = memory[0]


def both(memory: list[bytearray]) -> None:
    memory[1][:] = memory[0]
    memory[2][:] = bytes(SIZE)


def one_of_two(memory: list[bytearray]) -> None:
    memory[1][:] = memory[0]
    memory[2][:] = bytes(b ^ 1 for b in memory[2])


@pytest.mark.parametrize(("kernel", "expected"), [
    (fill_all, {1}), (fill_most, {1}), (fill_little, set()), (accumulate, set()),
    (read_into_another, {2} - {2}), (keep_if_zero, set()), (fault_on_noise, set()),
    (both, {1, 2}), (one_of_two, {1}),
])
def test_pure_outputs(kernel: Kernel, expected: set[int]) -> None:
    data = np.random.default_rng(1).bytes(SIZE)
    regions = (Region("x", 0x1000, data, Role.INPUT, ElementType.OPAQUE, 0),
               Region("y", 0x2000, bytes(SIZE), Role.INOUT, ElementType.OPAQUE, 0),
               Region("z", 0x3000, bytes(SIZE), Role.INOUT, ElementType.OPAQUE, 0))
    dispatch = Dispatch("d", "k", b"", (1, 1, 1), (64, 1, 1), regions, ())

    def launch(launched: Dispatch) -> Sequence[bytes] | None:
        memory = [bytearray(region.data) for region in launched.regions]
        try:
            kernel(memory)
        except ZeroDivisionError:
            return None
        return [bytes(data) for data in memory]

    after = launch(dispatch)
    assert after is not None
    assert pure_outputs(dispatch, after, launch, (1, 2)) == expected
