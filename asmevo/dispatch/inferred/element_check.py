"""Whether stored bytes look like numbers of a type, under ordinary inputs."""

from __future__ import annotations

import numpy as np

from asmevo.dispatch.dispatch import ElementType
from asmevo.dispatch.generator import to_floats

_LEAST = 8
_MOST_SPREAD = 6.0  # binades, standard deviation
_MOST_STRANGE = 4  # infinities and the NaN of arithmetic, with either sign
_MOST_MAGNITUDE = 40.0  # binades around 1
_INTEGERS = {1: ElementType.U8, 2: ElementType.U16, 4: ElementType.U32, 8: ElementType.U64}


def plausible(data: bytes, kind: ElementType) -> bool:
    """Ordinary results lie within 2^-40 and 2^40, mostly within some binades of one another, and
    what is not finite has few patterns. Integers and halves of wider numbers are not like that.
    """
    data = data[:len(data) // kind.size * kind.size]
    values = to_floats(data, kind)
    if len(values) < _LEAST:
        return False
    finite = values[np.isfinite(values)]
    nonzero = np.abs(finite[finite != 0])
    strange = np.frombuffer(data, f"<u{kind.size}")[~np.isfinite(values)]
    if len(nonzero) < max(_LEAST, 0.1 * len(values)) or len(np.unique(strange)) > _MOST_STRANGE:
        return False
    binades = np.log2(nonzero)
    return bool(abs(np.median(binades)) < _MOST_MAGNITUDE and binades.std() < _MOST_SPREAD)


def settled(candidates: tuple[ElementType, ...], data: bytes) -> tuple[ElementType, bool]:
    """The type to compare ``data`` as, and whether its values confirm it.

    The first floating-point candidate that the values look like; without one, bytes are compared
    bit for bit, which is never too lenient. Two candidates of one size cannot be told apart.
    """
    floats = [kind for kind in candidates if kind.is_float]
    for kind in floats:
        if plausible(data, kind):
            rivals = [k for k in floats if k.size == kind.size and k is not kind
                      and plausible(data, k)]
            return (ElementType.OPAQUE, False) if rivals else (kind, True)
    integers = [kind for kind in candidates if not kind.is_float]
    if integers:
        return integers[0], True
    width = max((kind.size for kind in candidates), default=1)
    return _INTEGERS.get(width, ElementType.OPAQUE), False
