"""Value numbers: equal numbers stand for equal 32-bit values, whatever instructions made them.

A number is an index into a table of forms. Additions, subtractions, complements, products with and
shifts by constants are kept as one linear form modulo 2^32, contiguous fields of bits as one form,
comparisons as ``eq`` or ``lt`` with constants on the right, and conjunctions as sets. So renaming,
reordering, strength reduction and other ways to write the same keep a value's number. Different
numbers do not prove different values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from asmevo.isa.taint import Taint as Taint

_ALL = 0xFFFFFFFF
_SIGN = 0x80000000
# Products of longer sums are not multiplied out.
_MOST_PRODUCTS = 32
# Longer products, and carries of longer sums, are not taken apart: squares of squares explode.
_MOST_PARTS = 32

Form = tuple[object, ...]
# A constant and terms (number, coefficient) in ascending order.
Linear = tuple[int, tuple[tuple[int, int], ...]]


class Numbers:
    """The table of forms; share one between programs whose values are to be compared."""

    def __init__(self) -> None:
        self._known: dict[tuple[Form, int], int] = {}
        self._parts: dict[Form, tuple[int, ...]] = {}
        self._linears: dict[int, Linear] = {}
        self._ones: dict[int, int] = {}
        self._sums: dict[tuple[int, int, int, bool], int] = {}
        self._leaves: dict[int, tuple[Form, ...]] = {}
        # Lower words of addresses that the launch gives.
        self.pointers: set[int] = set()
        self.forms: list[Form] = []
        self.taints: list[int] = []
        self.zero = self.constant(0)
        self.ones = self.constant(_ALL)

    def atom(self, form: Form, arguments: Iterable[int] = (), taint: int = 0) -> int:
        """The number of a form that is nothing but itself; it depends on what its parts do."""
        parts = tuple(arguments)
        for part in parts:
            taint |= self.taints[part]
        key = (form, taint)
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = len(self.forms)
            self.forms.append(form)
            self.taints.append(taint)
            self._parts[form] = parts
        return number

    def constant(self, value: int) -> int:
        return self._of_linear(value, {})

    def value_of(self, number: int) -> int | None:
        """The value of a constant."""
        constant, terms = self.linear(number)
        return None if terms else constant

    def linear(self, number: int) -> Linear:
        """A value as a sum; one that is none is a sum of itself."""
        return self._linears.get(number) or (0, ((number, 1),))

    def _of_linear(self, constant: int, terms: Mapping[int, int]) -> int:
        kept = tuple(sorted((n, c & _ALL) for n, c in terms.items() if c & _ALL))
        constant &= _ALL
        if not constant and len(kept) == 1 and kept[0][1] == 1:
            return kept[0][0]
        number = self.atom(("linear", constant, kept), (n for n, _ in kept))
        self._linears[number] = constant, kept
        return number

    def sum_of(self, terms: Mapping[int, int]) -> int:
        """Numbers times coefficients."""
        total = self.zero
        for number, coefficient in terms.items():
            total = self.add(total, number, coefficient)
        return total

    def trip(self, step: int) -> int:
        """``step`` as often as a loop was run, which loop and how often left open."""
        constant, terms = self.linear(step)
        made = {self.atom(("trip", number), (number,), Taint.PATH): coefficient
                for number, coefficient in terms}
        if constant:
            made[self.atom(("trip",), taint=Taint.PATH)] = constant
        return self._of_linear(0, made)

    def possible_ones(self, number: int) -> int:
        """The bits that may be set."""
        known = self._ones.get(number)
        if known is None:
            known = self._ones[number] = self._find_ones(number)
        return known

    def _find_ones(self, number: int) -> int:
        form = self.forms[number]
        match form[0]:
            case "linear":
                constant, terms = self.linear(number)
                total, bits, disjoint = constant, constant, True
                for term, coefficient in terms:
                    ones = self.possible_ones(term) * coefficient
                    if coefficient & (coefficient - 1):
                        disjoint = False  # the bits of a product are not a shift of these
                    disjoint = disjoint and not bits & ones
                    bits |= ones
                    total += ones
                if total > _ALL:
                    return _ALL
                return bits if disjoint else (1 << total.bit_length()) - 1
            case "field":
                width = form[3]
                return (1 << width) - 1 if isinstance(width, int) else _ALL
            case "eq" | "lt" | "not":
                return 1
            case "and":
                ones = _ALL
                for part in self.parts(number):
                    ones &= self.possible_ones(part)
                return ones
            case "or":
                ones = 0
                for part in self.parts(number):
                    ones |= self.possible_ones(part)
                return ones
        return _ALL

    def parts(self, number: int) -> tuple[int, ...]:
        """The numbers that a form is made of."""
        return self._parts[self.forms[number]]

    def add(self, a: int, b: int, factor: int = 1, *, here: bool = False) -> int:
        """``a + factor * b``; ``here`` if both are of one turn of one loop."""
        # A number's form never changes, and candidates add up what the original does.
        key = a, b, factor, here
        known = self._sums.get(key)
        if known is None:
            known = self._sums[key] = self._add(a, b, factor, here)
        return known

    def _add(self, a: int, b: int, factor: int, here: bool) -> int:
        constant, terms = self.linear(a)
        more, others = self.linear(b)
        total = dict(terms)
        for number, coefficient in others:
            made = total.get(number, 0) + factor * coefficient
            if (not made & _ALL and self.taints[number] & Taint.PATH and number in total
                    and not here):
                # The same way to be made on two paths, or in two loops, is not the same value.
                total[self.atom(("paths", number), (number,))] = 1
            total[number] = made
        return self._of_linear(constant + factor * more, total)

    def without_term(self, number: int, term: int) -> int:
        """A sum without one of its terms."""
        constant, terms = self.linear(number)
        return self._of_linear(constant, dict(terms) | {term: 0})

    def subtract(self, a: int, b: int) -> int:
        return self.add(a, b, -1)

    def complement(self, a: int) -> int:
        """``~a`` = -a - 1."""
        return self.add(self.ones, a, -1)

    def multiply(self, a: int, b: int) -> int:
        """Products of sums are sums of products."""
        constant, terms = self.linear(a)
        more, others = self.linear(b)
        if len(terms) * len(others) > _MOST_PRODUCTS:
            return self.atom(("mul", *sorted((a, b))), (a, b))
        total = self.add(self.constant(constant * more), self._of_linear(0, dict(terms)), more)
        total = self.add(total, self._of_linear(0, dict(others)), constant)
        for number, coefficient in terms:
            for other, factor in others:
                total = self.add(total, self._product(number, other), coefficient * factor)
        return total

    def _product(self, a: int, b: int) -> int:
        for turns, other in ((a, b), (b, a)):
            form = self.forms[turns]
            if form[0] == "trip":
                parts = self.parts(turns)
                return self.trip(self.multiply(parts[0], other) if parts else other)
        factors = sorted(n for one in (a, b) for n in (
            self.parts(one) if self.forms[one][0] == "mul" else (one,)))
        if len(factors) > _MOST_PARTS:
            factors = sorted((a, b))
        return self.atom(("mul", *factors), factors)

    def shift_left(self, a: int, distance: int) -> int:
        known = self.value_of(distance)
        if known is not None:
            return self.add(self.zero, a, 1 << (known & 31))
        return self.atom(("shl", a, distance), (a, distance))

    def shift_right(self, a: int, distance: int) -> int:
        known = self.value_of(distance)
        if known is not None:
            return self.field(a, known & 31, 32 - (known & 31))
        return self.atom(("shr", a, distance), (a, distance))

    def field(self, a: int, first: int, width: int) -> int:
        """``width`` bits of ``a`` from bit ``first`` on, unsigned."""
        width = min(width, 32 - first)
        if width <= 0:
            return self.zero
        value = self.value_of(a)
        if value is not None:
            return self.constant(value >> first & (1 << width) - 1)
        if not first and width == 32:
            return a
        ones = self.possible_ones(a)
        if not ones >> first & (1 << width) - 1:
            return self.zero
        if not first and not ones >> width:
            return a
        form = self.forms[a]
        if form[0] == "field":
            _, inner, start, size = form
            assert isinstance(inner, int)
            assert isinstance(start, int)
            assert isinstance(size, int)
            return self.field(inner, start + first, min(width, size - first))
        constant, terms = self.linear(a)
        if not constant and len(terms) == 1 and form[0] == "linear":
            number, coefficient = terms[0]
            shift = coefficient.bit_length() - 1
            if coefficient == 1 << shift and shift <= first:
                # The bits above are lost by the shift to the left.
                return self.field(number, first - shift, min(width, 32 - first))
        return self.atom(("field", a, first, width), (a,))

    def conjunction(self, a: int, b: int) -> int:
        """``a & b``."""
        if a == b or b == self.ones:
            return a
        if a == self.ones:
            return b
        if self.zero in (a, b):
            return self.zero
        for one, other in ((a, b), (b, a)):
            mask = self.value_of(one)
            if mask is None:
                continue
            value = self.value_of(other)
            if value is not None:
                return self.constant(mask & value)
            first = (mask & -mask).bit_length() - 1
            ones = mask >> first
            if not ones & (ones + 1):
                field = self.field(other, first, ones.bit_length())
                return self.shift_left(field, self.constant(first))
        return self._set("and", a, b)

    def disjunction(self, a: int, b: int) -> int:
        """``a | b``."""
        if a == b or b == self.zero:
            return a
        if a == self.zero:
            return b
        if self.ones in (a, b):
            return self.ones
        one, other = self.value_of(a), self.value_of(b)
        if one is not None and other is not None:
            return self.constant(one | other)
        for whole, part in ((a, b), (b, a)):
            if self.forms[part][0] == "and" and whole in self.forms[part][1:]:
                return whole
        if not self.possible_ones(a) & self.possible_ones(b):
            return self.add(a, b)
        return self._set("or", a, b)

    def exclusive(self, a: int, b: int) -> int:
        """``a ^ b``."""
        if a == b and not self.taints[a] & Taint.PATH:
            return self.zero
        for one, other in ((a, b), (b, a)):
            if one == self.zero:
                return other
            if one == self.ones:
                return self.complement(other)
        return self.atom(("xor", *sorted((a, b))), (a, b))

    def _set(self, kind: str, a: int, b: int) -> int:
        members: set[int] = set()
        for number in (a, b):
            form = self.forms[number]
            members.update(self.parts(number) if form[0] == kind else (number,))
        return self.atom((kind, *sorted(members)), members)

    def negation(self, condition: int) -> int:
        """The opposite of a condition (0 or 1)."""
        value = self.value_of(condition)
        if value is not None:
            return self.constant(not value)
        if self.forms[condition][0] == "not":
            return self.parts(condition)[0]
        return self.atom(("not", condition), (condition,))

    def without_negation(self, condition: int) -> int:
        return self.parts(condition)[0] if self.forms[condition][0] == "not" else condition

    def equal(self, a: int, b: int) -> int:
        """Whether ``a == b``: 0 or 1."""
        one, other = self.subtract(a, b), self.subtract(b, a)
        value = self.value_of(one)
        if value is not None:
            return self.constant(value == 0)
        difference = min(one, other)
        if self.forms[difference][0] in ("eq", "lt", "not"):
            return self.negation(difference)
        return self.atom(("eq", difference), (difference,))

    def less(self, a: int, b: int, *, signed: bool) -> int:
        """Whether ``a < b``: 0 or 1."""
        if a == b and not self.taints[a] & Taint.PATH:
            return self.zero
        one, other = self.value_of(a), self.value_of(b)
        flip = _SIGN if signed else 0
        if one is not None and other is not None:
            return self.constant((one ^ flip) < (other ^ flip))
        if one is not None:
            # c < b is not b < c + 1.
            if one ^ flip == _ALL:
                return self.zero
            return self.negation(self.less(b, self.constant(one + 1), signed=signed))
        if other is not None:
            if other ^ flip == 0:
                return self.zero
            if other == 1 and not signed:
                return self.equal(a, self.zero)
        return self.atom(("lt", signed, a, b), (a, b))

    def compare(self, relation: str, a: int, b: int, *, signed: bool) -> int:
        """One of ``eq lg ne lt le gt ge``."""
        match relation:
            case "eq":
                return self.equal(a, b)
            case "lg" | "ne":
                return self.negation(self.equal(a, b))
            case "lt":
                return self.less(a, b, signed=signed)
            case "ge":
                return self.negation(self.less(a, b, signed=signed))
            case "gt":
                return self.less(b, a, signed=signed)
            case "le":
                return self.negation(self.less(b, a, signed=signed))
        raise ValueError(f"'{relation}' is no relation")

    def carries(self, summands: Iterable[int]) -> int:
        """What a sum of 32-bit words, as whole numbers, has above its 32nd bit."""
        constant, words = 0, []
        for word in summands:
            value = self.value_of(word)
            if value is None:
                words.append(word)
            else:
                constant += value
        if not words:
            return self.constant(constant >> 32)
        if constant & _ALL:
            words.append(self.constant(constant))
        words.sort()
        above = self.constant(constant >> 32)
        if len(words) == 1:
            return above
        return self.add(self.atom(("carries", *words), words), above)

    def add_carry(self, high: int, low: int, other: int) -> int:
        """``high`` plus the carry of ``low + other``, however the two were summed up before."""
        words: list[int] = []
        for word in (low, other):
            for number, coefficient in self.linear(high)[1]:
                parts = self.parts(number)
                if (coefficient == 1 and self.forms[number][0] == "carries"
                        and len(words) + len(parts) < _MOST_PARTS
                        and self.sum_of(Counter(parts)) == word):
                    constant, terms = self.linear(high)
                    high = self._of_linear(constant, dict(terms) | {number: 0})
                    words += parts
                    break
            else:
                words.append(word)
        return self.add(high, self.carries(words))

    def choice(self, condition: int, a: int, b: int) -> int:
        """``a`` where ``condition`` holds, ``b`` elsewhere."""
        if a == b:
            return a
        value = self.value_of(condition)
        if value is not None:
            return a if value else b
        if self.forms[condition][0] == "not":
            condition, a, b = self.parts(condition)[0], b, a
        return self.atom(("choice", condition, a, b), (condition, a, b))

    def merged(self, numbers: Iterable[int]) -> int:
        """A value that is one of several, by the path taken."""
        given = set(numbers)
        # What nobody wrote is not what is meant.
        members = sorted(n for n in given if self.forms[n][0] != "undefined") or sorted(given)
        if len(members) == 1:
            return members[0]
        return self.atom(("merge", *members), members, Taint.PATH)

    def kernarg(self, offset: int) -> int:
        """The 4-byte word of the kernarg at an offset."""
        return self.atom(("kernarg", offset), taint=Taint.KERNARG)

    def mentions(self, number: int, term: int) -> bool:
        """Whether a sum has ``term`` among its terms."""
        return any(n == term for n, _ in self.linear(number)[1])

    def depends(self, number: int, part: int) -> bool:
        """Whether ``part`` is somewhere in what a number is made of."""
        seen = {number}
        pending = [number]
        while pending:
            here = pending.pop()
            if here == part:
                return True
            for inner in self.parts(here):
                # A number is younger than its parts.
                if inner not in seen and inner >= part:
                    seen.add(inner)
                    pending.append(inner)
        return False

    def closure(self, numbers: Iterable[int]) -> set[int]:
        """Numbers and all that they are made of."""
        found = set(numbers)
        pending = list(found)
        while pending:
            for part in self.parts(pending.pop()):
                if part not in found:
                    found.add(part)
                    pending.append(part)
        return found

    def leaves(self, number: int) -> tuple[Form, ...]:
        """What a value is made of in the end: the forms without parts, each once."""
        known = self._leaves.get(number)
        if known is None:
            known = self._leaves[number] = tuple(self._find_leaves(number))
        return known

    def _find_leaves(self, number: int) -> Iterator[Form]:
        seen = {number}
        pending = [number]
        while pending:
            form = self.forms[pending.pop()]
            parts = self._parts[form]
            if not parts:
                yield form
            for part in parts:
                if part not in seen:
                    seen.add(part)
                    pending.append(part)
