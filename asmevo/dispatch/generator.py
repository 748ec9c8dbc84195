"""Deterministic contents of input buffers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from asmevo.dispatch.dispatch import ElementType
from asmevo.errors import AsmEvoError

Floats = NDArray[np.float32]


class GeneratorError(AsmEvoError):
    """A kernel YAML names a generator or family that does not exist or does not fit the element."""


FAMILIES = ("normal", "tiny", "wide", "boundary", "small", "zeros", "peaks", "masked")
SMALL = 16  # integers of the family ``small`` are below it


def to_bytes(values: Floats, element: ElementType) -> bytes:
    """Round f32 values to an element type (nearest even) and give their bytes."""
    if not element.is_float:
        raise GeneratorError(f"no floating-point generator makes elements of type {element.value}")
    # Values beyond a type's range become infinities or NaNs on purpose: boundary inputs contain
    # them.
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(element.dtype).tobytes()


def to_floats(data: bytes, element: ElementType) -> NDArray[np.float64]:
    """Exact float64 values of a buffer of floating-point elements."""
    if not element.is_float:
        raise GeneratorError(f"{element.value} is not a floating-point element type")
    # A signalling NaN is quieted by the conversion, which NumPy reports as invalid.
    with np.errstate(invalid="ignore"):
        if element is ElementType.BF16:  # several times faster than ml_dtypes
            widened = np.frombuffer(data, "<u2").astype(np.uint32) << np.uint32(16)
            return widened.view(np.float32).astype(np.float64)
        return np.frombuffer(data, element.dtype).astype(np.float64)


def _normal(rng: np.random.Generator, count: int, scale: float) -> Floats:
    return (rng.standard_normal(count, dtype=np.float32) * np.float32(scale)).astype(np.float32)


def _wide(rng: np.random.Generator, count: int, scale: float) -> Floats:
    """Magnitudes spread over 24 binades, so that a dropped or reordered term shows."""
    exponent = rng.uniform(-16, 8, count)
    return (rng.standard_normal(count) * np.exp2(exponent) * scale).astype(np.float32)


def _tiny(rng: np.random.Generator, count: int, scale: float) -> Floats:
    """Values so small that constants added to keep a division safe decide the result.

    With ordinary inputs a layer norm without its epsilon differs from one with it by less than a
    bf16 ulp, and passes.
    """
    return _normal(rng, count, scale * 2.0**-10)


_PEAK_EVERY = 192  # elements
_PEAKS = (4.0, 9.0)  # binades
_MASKED = -8192.0
_BELOW_ZERO = 64.0  # the exponential of twice as much is zero in f32
_RUN = 64  # lanes of a wave
_MOST_8_BIT = 128.0  # e4m3fnuz ends at 240
_BELOW_ZERO_8_BIT = 16.0  # what comes of softmax in 8 bits is zero below the exponential of -7


def _peaks(rng: np.random.Generator, count: int, scale: float) -> Floats:
    """Ordinary values and, here and there, one so large that it alone decides what its row becomes.

    A softmax whose maximum leaves some elements out is right until one of them is the largest by
    far. Short rows have a peak each, so that any of a row's elements is the largest in some row.
    """
    values = _normal(rng, count, scale)
    where = rng.choice(count, size=max(1, count // _PEAK_EVERY), replace=False)
    values[where] = np.exp2(rng.uniform(*_PEAKS, len(where))) * scale
    return values


def _masked(rng: np.random.Generator, count: int, scale: float,
            below_zero: float = _BELOW_ZERO) -> Floats:
    """Runs of very negative values as masks make them, with others among them, below zero.

    Then a maximum that starts at zero, or knows masked elements alone, leaves nothing but zeros.
    """
    values = -(2 + np.abs(_normal(rng, count, 1.0))) * np.float32(below_zero * scale)
    runs = np.repeat(rng.random(-(-count // _RUN)) < 7 / 8, _RUN)[:count]
    values[runs] += np.float32(_MASKED * scale)
    return values


def _masked_8_bits(rng: np.random.Generator, count: int, scale: float) -> Floats:
    """The same with all that 8 bits can tell apart."""
    return _masked(rng, count, scale, _BELOW_ZERO_8_BIT)


_FINITE_BOUNDARIES = np.array(
    [0.0, -0.0, 1.0, -1.0, 1.0 + 2**-7, 1.0 + 2**-8,  # a bf16 ulp and a tie between two bf16
     1.17549435e-38, -1.17549435e-38, 1e-40, -1e-40, 6.1035156e-05],  # smallest normals, denormals
    dtype=np.float32,
)
_RUINOUS_BOUNDARIES = np.array(
    [np.inf, -np.inf, np.nan, 3.3895314e38, -3.3895314e38, 65504.0], dtype=np.float32
)
# Arithmetic passes payloads on, and integer operations on the bits of a NaN see them: rounding by
# an addition turns the second one, quiet with all bits set, into -0. Below the quiet bit; sign.
_NAN_PAYLOADS = ((0, False), (-1, False), (-1, True), (1, True))


_MANTISSA = {ElementType.F64: 52, ElementType.F32: 23, ElementType.F16: 10, ElementType.BF16: 7}

_FEW = 3
_BOTH = 16  # elements from which on it also has something else that ruins a sum
_SURE_OF_NAN = 4  # elements from which on a boundary buffer has a NaN


def _boundary(rng: np.random.Generator, count: int, scale: float) -> Floats:
    """Ordinary values with ties, zeros, denormals and, sparsely, infinities and NaNs among them.

    What makes a whole reduction infinite or NaN is sparse on purpose (one in about 16,000 elements,
    but at least one NaN and one other): a comparison of NaNs with NaNs proves nothing. Of the
    others a short buffer, a scale for each row for example, still has a few. A single value stays
    ordinary.
    """
    if count == 1:
        return _normal(rng, count, scale)
    values = _normal(rng, count, scale)
    ties = rng.choice(count, size=count // 64, replace=False)
    values[ties] = values[(ties + 1 + rng.integers(0, 32, size=len(ties))) % count]
    where = rng.choice(count, size=min(max(count // 256, min(_FEW, count // 4)), count),
                       replace=False)
    values[where] = rng.choice(_FINITE_BOUNDARIES, size=len(where))
    hits = 1 + (count >= _BOTH) + count // 16384
    where = rng.choice(count, size=hits, replace=False)
    values[where] = rng.choice(_RUINOUS_BOUNDARIES, size=len(where))
    if count >= _SURE_OF_NAN:
        values[where[0]] = np.nan
    return values


def _with_nan_payloads(data: bytes, element: ElementType, rng: np.random.Generator) -> bytes:
    """The same values; NaNs of 16 bits and more have different payloads and signs, in turn."""
    values = np.frombuffer(data, element.dtype)
    at = np.flatnonzero(np.isnan(values))
    if element.size < 2 or not len(at):
        return data
    word = np.dtype(f"<u{element.size}")
    sign = 1 << (8 * element.size - 1)
    quiet = int(np.array(np.nan, element.dtype).view(word)) & (sign - 1)
    below_quiet = (1 << (_MANTISSA[element] - 1)) - 1
    bits = values.view(word).copy()
    first = int(rng.integers(len(_NAN_PAYLOADS)))
    for turn, index in enumerate(at):
        payload, negative = _NAN_PAYLOADS[(first + turn) % len(_NAN_PAYLOADS)]
        bits[index] = quiet | payload & below_quiet | (sign if negative else 0)
    return bits.tobytes()


def _integer_boundary(rng: np.random.Generator, count: int, element: ElementType) -> bytes:
    """Any integers; a quarter of the buffer is the least one there is, another the greatest.

    So whole rows of two factors are extremes, and a sum of their products is as large as its depth
    allows: an accumulator of 24 bits overflows from a depth of 512 on. Half of it stays ordinary.
    """
    values = np.frombuffer(rng.bytes(count * element.size), element.dtype).copy()
    limits = np.iinfo(element.dtype)
    extremes = np.array([limits.min, limits.max, 0, -1 if limits.min else 1], element.dtype)
    scattered = rng.choice(count, size=count // 16, replace=False)
    values[scattered] = rng.choice(extremes, size=len(scattered))
    length = count // 4
    for extreme, quarter in zip(extremes[:2], rng.permutation(4), strict=False):
        values[quarter * length:(quarter + 1) * length] = extreme
    return values.tobytes()


_FULL = ("peaks", "masked")

_FLOAT_FAMILIES: dict[str, Callable[[np.random.Generator, int, float], Floats]] = {
    "normal": _normal,
    "tiny": _tiny,
    "wide": _wide,
    "boundary": _boundary,
    "small": _normal,
    "peaks": _peaks,
    "masked": _masked,
}


def generate(
    element: ElementType, count: int, rng: np.random.Generator, *, family: str, scale: float
) -> bytes:
    """Bytes of ``count`` elements of an input family.

    Integer and opaque elements are uniform over their whole range in every family but ``zeros``,
    ``boundary``, where integers are often the least and the greatest there are, ``small``,
    whose integers are below 16: indices and counts that lead nowhere far, and ``peaks`` and
    ``masked``: all integers of 8 bits are the least there is, or the greatest.
    """
    if family not in FAMILIES:
        known = ", ".join(FAMILIES)
        raise GeneratorError(f"unknown input family '{family}' (known: {known})")
    size = count * element.size
    if family == "zeros":
        return bytes(size)  # untouched by anybody: memory that does not yet exist
    if element.is_float:
        narrow = element is ElementType.FP8 and family in _FULL
        make = _masked_8_bits if narrow and family == "masked" else _FLOAT_FAMILIES[family]
        values = make(rng, count, scale)
        if narrow:
            values = np.clip(values, -_MOST_8_BIT, _MOST_8_BIT)
        data = to_bytes(values, element)
        return _with_nan_payloads(data, element, rng) if family == "boundary" else data
    if family == "small":
        return rng.integers(0, SMALL, count).astype(element.dtype).tobytes()
    if family == "boundary" and element is not ElementType.OPAQUE:
        return _integer_boundary(rng, count, element)
    if family in _FULL and element in (ElementType.I8, ElementType.U8):
        # Every sum of products is as far from zero as its depth allows.
        limits = np.iinfo(element.dtype)
        full = limits.max if family == "peaks" else limits.min or limits.max
        return np.full(count, full, element.dtype).tobytes()
    return rng.bytes(size)
