"""What is known of a register's value: where it comes from and what it stands for."""

from __future__ import annotations

from dataclasses import dataclass

from asmevo.dispatch.dispatch import ElementType

# Layout of the bit sets: kernarg dwords first, then the same dwords again in other capacities.
KERNARG_DWORDS = 1024  # larger kernargs are not analysed
_SCALED = KERNARG_DWORDS
_CONTENTS = 2 * KERNARG_DWORDS
_IDS = 3 * KERNARG_DWORDS
_DWORDS = (1 << KERNARG_DWORDS) - 1

WORKGROUP_ID = tuple(1 << _IDS + axis for axis in range(3))
WORK_ITEM_ID = 1 << _IDS + 3
KERNARG_ADDRESS = 1 << _IDS + 4

TYPES = tuple(ElementType)
_TYPE_BIT = {kind: 1 << index for index, kind in enumerate(TYPES)}
# The bits of an f32 on its way through integer operations to a bf16.
ROUNDING = 1 << len(TYPES)


def type_bit(kind: ElementType) -> int:
    return _TYPE_BIT[kind]


def dword(number: int) -> int:
    """The set with one kernarg dword."""
    return 1 << number


def scaled(sources: int) -> int:
    """``sources`` after a multiplication: dwords that are multiplied with something."""
    plain = sources & _DWORDS
    return sources & ~_DWORDS | plain << _SCALED


def contents(number: int) -> int:
    """The set with one memory: what the pointer whose low half is kernarg dword ``number`` points
    to."""
    return 1 << _CONTENTS + number


def plain_dwords(sources: int) -> int:
    return sources & _DWORDS


def scaled_dwords(sources: int) -> int:
    return sources >> _SCALED & _DWORDS


def contents_dwords(sources: int) -> int:
    return sources >> _CONTENTS & _DWORDS


@dataclass(frozen=True, slots=True)
class Value:
    """One dword.

    ``sources`` is everything it was computed from; ``raw`` the dwords and memories of which it may
    be an unchanged copy, ``shifted`` those of whose upper or lower halves it is a widened copy, as
    bf16 become f32; ``kinds`` the types of the operations whose results it may be. ``offset`` is
    the distance from the kernarg's start of an address into it, ``constant`` the value where the
    code states it.
    """

    sources: int = 0
    raw: int = 0
    shifted: int = 0
    kinds: int = 0
    offset: int | None = None
    constant: int | None = None

    def merged(self, other: Value) -> Value:
        if self == other:
            return self
        return Value(self.sources | other.sources, self.raw | other.raw,
                     self.shifted | other.shifted, self.kinds | other.kinds,
                     self.offset if self.offset == other.offset else None,
                     self.constant if self.constant == other.constant else None)


NOTHING = Value()
