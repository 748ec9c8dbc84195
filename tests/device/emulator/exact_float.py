"""IEEE 754 arithmetic on bit patterns with exact rationals, in every rounding and denormal mode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

Bits = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Mode:
    """``rounding`` is FP_ROUND: 0 to nearest even, 1 up, 2 down, 3 towards zero."""

    rounding: int = 0
    keep_in: bool = True
    keep_out: bool = True
    saturate: bool = False

    @staticmethod
    def of(field_round: int, field_denorm: int, *, saturate: bool = False) -> Mode:
        return Mode(field_round, bool(field_denorm & 1), bool(field_denorm & 2), saturate)


@dataclass(frozen=True)
class Number:
    """``value`` is None for NaN; an infinity has ``infinite``, a zero its ``negative``."""

    negative: bool
    value: Fraction | None
    infinite: bool = False

    @property
    def is_zero(self) -> bool:
        return self.value == 0 and not self.infinite


@dataclass(frozen=True)
class Format:
    """A binary interchange format."""

    exponent: int
    mantissa: int

    @property
    def width(self) -> int:
        return 1 + self.exponent + self.mantissa

    @property
    def bias(self) -> int:
        return (1 << self.exponent - 1) - 1

    @property
    def infinity(self) -> int:
        return (1 << self.exponent) - 1 << self.mantissa

    @property
    def quiet(self) -> int:
        return 1 << self.mantissa - 1

    @property
    def nan(self) -> int:
        return self.infinity | self.quiet

    @property
    def sign(self) -> int:
        return 1 << self.width - 1

    def is_nan(self, bits: int) -> bool:
        return bits & self.sign - 1 > self.infinity

    def flushed(self, bits: int, keep: bool) -> int:
        return bits & self.sign if not keep and not bits & self.infinity else bits

    def number(self, bits: int, keep_in: bool = True) -> Number:
        bits = self.flushed(bits, keep_in)
        negative, magnitude = bool(bits & self.sign), bits & self.sign - 1
        if magnitude > self.infinity:
            return Number(negative, None)
        if magnitude == self.infinity:
            return Number(negative, Fraction(0), infinite=True)
        field, fraction = magnitude >> self.mantissa, magnitude & (1 << self.mantissa) - 1
        whole = fraction if field == 0 else fraction | 1 << self.mantissa
        value = Fraction(whole) * Fraction(2) ** (max(field, 1) - self.bias - self.mantissa)
        return Number(negative, -value if negative else value)

    def bits(self, x: Number, mode: Mode) -> int:
        if x.value is None:
            return self.nan
        sign = self.sign if x.negative else 0
        if x.infinite or x.value == 0:
            return sign | (self.infinity if x.infinite else 0)
        magnitude = abs(x.value)
        exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
        if magnitude < Fraction(2) ** exponent:
            exponent -= 1
        unit = Fraction(2) ** (max(exponent, 1 - self.bias) - self.mantissa)
        scaled = magnitude / unit
        whole = int(scaled)
        if scaled != whole:
            match mode.rounding:
                case 0:
                    whole = round(scaled)
                case 1:
                    whole += not x.negative
                case 2:
                    whole += x.negative
        if whole * unit >= Fraction(2) ** (self.bias + 1):
            away = mode.rounding == 0 or mode.rounding == (2 if x.negative else 1)
            result = self.infinity if away and not mode.saturate else self.infinity - 1
        elif whole >> self.mantissa == 0:
            result = whole
        else:
            field = max(exponent, 1 - self.bias) + self.bias
            # A carry out of the fraction raises the exponent by itself.
            result = (field << self.mantissa) + whole - (1 << self.mantissa)
        return self.flushed(sign | result, mode.keep_out)


HALF, SINGLE, WIDE = Format(5, 10), Format(8, 23), Format(11, 52)


def fused(a: Number, b: Number, c: Number, rounding: int) -> Number:
    """a * b + c, exact."""
    if a.value is None or b.value is None or c.value is None:
        return Number(False, None)
    sign = a.negative != b.negative
    if a.infinite or b.infinite:
        invalid = a.is_zero or b.is_zero or (c.infinite and c.negative != sign)
        return Number(sign, None if invalid else Fraction(0), infinite=True)
    if c.infinite:
        return c
    total = a.value * b.value + c.value
    if total == 0:
        both_zero = a.value * b.value == 0 and c.value == 0
        same = both_zero and sign == c.negative
        return Number(sign if same else rounding == 2, total)
    return Number(total < 0, total)


ONE = Number(False, Fraction(1))


def add(form: Format, mode: Mode, a: int, b: int) -> int:
    return form.bits(fused(form.number(a, mode.keep_in), ONE, form.number(b, mode.keep_in),
                           mode.rounding), mode)


def multiply(form: Format, mode: Mode, a: int, b: int) -> int:
    x, y = form.number(a, mode.keep_in), form.number(b, mode.keep_in)
    return form.bits(fused(x, y, Number(x.negative != y.negative, Fraction(0)), mode.rounding),
                     mode)


def fma(form: Format, mode: Mode, a: int, b: int, c: int) -> int:
    x, y, z = (form.number(bits, mode.keep_in) for bits in (a, b, c))
    return form.bits(fused(x, y, z, mode.rounding), mode)


def ldexp(form: Format, mode: Mode, a: int, n: int) -> int:
    x = form.number(a, mode.keep_in)
    if x.value is None or x.infinite or x.is_zero:
        return form.bits(x, mode)
    return form.bits(Number(x.negative, x.value * Fraction(2) ** max(min(n, 4000), -4000)), mode)


def convert(to: Format, mode: Mode, source: Format, keep_in: bool, a: int) -> int:
    return to.bits(source.number(a, keep_in), mode)


def rows(function: Callable[..., int], *columns: Bits) -> Bits:
    """Element by element."""
    lists = (column.tolist() for column in columns)
    return np.array([function(*values) for values in zip(*lists, strict=True)], np.uint64)


def specials(form: Format) -> list[int]:
    """Zeros, denormals, the ends of the range, ties, infinities and NaNs, in both signs."""
    one = form.bias << form.mantissa
    least = 1 << form.mantissa
    positive = [0, 1, 2, least - 1, least, least + 1, one - 1, one, one + 1,
                one + (1 << form.mantissa), one - (form.mantissa + 1 << form.mantissa),
                one + (form.mantissa << form.mantissa) + 1, form.infinity - 1, form.infinity,
                form.nan | 5, form.infinity | 3]
    return positive + [x | form.sign for x in positive]


def columns(form: Format, count: int, seed: int, size: int = 1536) -> list[Bits]:
    """Pairs of specials, then numbers of close exponents and any bits; a multiple of 64 long."""
    rng = np.random.default_rng(seed)
    special = np.array(specials(form), np.uint64)
    a, b = (x.ravel() for x in np.meshgrid(special, special))
    random = size - len(a)
    assert random > 0
    found = []
    for column in (a, b, rng.permutation(a)):
        bits = rng.integers(0, 1 << 64, random, dtype=np.uint64) >> np.uint64(64 - form.width)
        near = rng.integers(form.bias - 3, form.bias + 4, random // 2).astype(np.uint64)
        mask = np.uint64(form.sign | (1 << form.mantissa) - 1)
        bits[:random // 2] = bits[:random // 2] & mask | near << np.uint64(form.mantissa)
        found.append(np.concatenate([column, bits]))
    return found[:count]


def words(form: Format, register: int, column: Bits) -> dict[int, npt.NDArray[np.uint32]]:
    """Vector registers that hold a column."""
    low = {register: column.astype(np.uint32)}
    if form.width == 64:
        low[register + 1] = (column >> np.uint64(32)).astype(np.uint32)
    return low


def joined(form: Format, vector: dict[int, npt.NDArray[np.uint32]], register: int) -> Bits:
    low = vector[register].astype(np.uint64)
    if form.width == 64:
        return low | vector[register + 1].astype(np.uint64) << np.uint64(32)
    return low
