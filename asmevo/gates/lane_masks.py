"""Masks of loops whose lanes leave one by one, compared up to whole turns.

Such a loop tests a counter of each lane against a bound, and keeps the lanes for which there is a
turn left. Unrolled, peeled or pipelined it makes other masks of the same test some turns earlier or
later. What is accepted in place of the original's mask is made of these tests alone, inside of what
else the original's mask depends on, as a whole.

A test of whether there are, say, forty turns left could treat large sizes apart from all that were
tried. So for each test there must be a branch on EXEC that goes one way where lanes are found for
which the original's goes on; `asmevo.gates.reach` demands launches in which both ways are taken.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from asmevo.isa.addresses import Sum, signed, without_turns
from asmevo.isa.loop_masks import TURNS, Carried, complemented
from asmevo.isa.value_numbers import Numbers

_MOST_TURNS = 64
_MOST_STEPS = 5_000

# A condition of lanes, or another value, and whether it keeps lanes or drops them.
Literal = tuple[int, bool]
# The numbers of a mask's two words.
Halves = tuple[int, ...]


class _TooMuchError(Exception):
    """A mask that is made of more than is reasonable."""


@dataclass(frozen=True)
class LaneMask:
    """What a mask is made of, and which of it all its lanes have in common."""

    literals: frozenset[Literal]
    common: frozenset[Literal]


@dataclass(frozen=True)
class Leaving:
    """A mask of the original's whose lanes leave a loop by ``tests`` (numbers of conditions), all
    turns of one another; ``rest`` is what else it is made of, and ``entered`` the tests in
    front of the loop that all its lanes have passed."""

    tests: frozenset[int]
    keeps: frozenset[bool]
    rest: frozenset[Literal]
    entered: frozenset[Literal]


@dataclass
class LaneMasks:
    """Takes masks apart."""

    numbers: Numbers
    _known: dict[tuple[int, int], LaneMask | None] = field(default_factory=dict)
    _sides: dict[int, tuple[Sum, int, int]] = field(default_factory=dict)

    def mask(self, number: int, word: int) -> LaneMask | None:
        """What half of a mask is made of; ``None`` if that is too much."""
        key = number, word
        if key not in self._known:
            try:
                walk = _Walk(self.numbers, word)
                walk.collect(number, True, frozenset())
                common = walk.common(number, True, frozenset())
                self._known[key] = LaneMask(frozenset(walk.found), common or frozenset())
            except _TooMuchError:
                self._known[key] = None
        return self._known[key]

    def leaving(self, number: int, word: int) -> Leaving | None:
        """The original's mask as that of a loop; ``None`` if it is no such mask."""
        mask = self.mask(number, word)
        if mask is None:
            return None
        loops = [c for c, _ in mask.literals if self._moves(c)]
        if not loops or not all(self._is_turn(c, loops[0]) for c in loops):
            return None
        tests = {lit for lit in mask.literals if self._is_turn(lit[0], loops[0])}
        rest = mask.literals - tests
        if not rest <= mask.common:
            return None
        return Leaving(frozenset((loops[0],)), frozenset(keeps for _, keeps in tests),
                       frozenset(rest), frozenset(
                           lit for lit in tests & mask.common if not self._moves(lit[0])))

    def is_turn_of(self, number: int, word: int, known: Leaving,
                   tested: Collection[Literal] | None) -> bool:
        """Whether a mask is made of the tests of another one, some turns earlier or later.

        ``tested`` is what holds where branches on EXEC find lanes; ``None`` for any test.
        """
        mask = self.mask(number, word)
        if mask is None:
            return False
        tests = {lit for lit in mask.literals
                 if any(self._is_turn(lit[0], test) for test in known.tests)}
        rest = mask.literals - tests
        if not tests or not rest <= known.rest or not rest <= mask.common:
            return False
        if tested is None:
            return True
        if known.rest != rest or not known.entered <= mask.common:
            return False
        return all((condition, found) in tested for condition, keeps in tests
                   for found in (known.keeps if len(known.keeps) == 1 else (not keeps,)))

    def _side(self, number: int) -> tuple[Sum, int, int]:
        known = self._sides.get(number)
        if known is None:
            known = self._sides[number] = without_turns(number, self.numbers)
        return known

    def _moves(self, condition: int) -> bool:
        """Whether a loop moves one side of a comparison for less."""
        form = self.numbers.forms[condition]
        if form[0] != "lt":
            return False
        moved = [bool(total.steps or by) for total, _, by in
                 map(self._side, self.numbers.parts(condition))]
        return sum(moved) == 1

    def _is_turn(self, condition: int, known: int) -> bool:
        """Whether a comparison is another one with its counter some turns on."""
        if condition == known:
            return True
        form, other = self.numbers.forms[condition], self.numbers.forms[known]
        if form[:2] != other[:2] or form[0] != "lt":
            return False
        for side, before in zip(self.numbers.parts(condition), self.numbers.parts(known),
                                strict=True):
            if side == before:
                continue
            total, constant, by = self._side(side)
            before_total, before_constant, turn = self._side(before)
            distance = abs(signed((constant - before_constant) & 0xFFFFFFFF))
            if not (turn or before_total.steps) or not total.is_turn_of(before_total, self.numbers):
                return False
            if distance and (not turn or distance % turn or distance > _MOST_TURNS * turn):
                return False
            if by and (not turn or by % turn):
                return False
        return True


class LeavingLanes:
    """Compares a candidate's masks with those of the original's loops that lanes leave.

    ``masks`` and ``skips`` are the halves of what the original's EXEC becomes and of what its
    branches on EXEC test, ``branches`` those of the candidate's branches on EXEC.
    """

    def __init__(self, masks: Sequence[Halves], skips: Sequence[Halves],
                 branches: Sequence[Halves], numbers: Numbers) -> None:
        self._masks, self._skips, self._branches = masks, skips, branches
        self._parts = LaneMasks(numbers)

    def is_mask(self, values: Halves) -> bool:
        """Whether the original has such a mask, some turns earlier or later."""
        return self._is_one(values, self._of_masks)

    def is_skip(self, values: Halves) -> bool:
        """Whether the original branches on such a mask."""
        return self._is_one(values, self._of_skips)

    def is_step(self, number: int) -> bool:
        """Whether half of a mask is one from which such masks are made."""
        return any(self._parts.is_turn_of(number, word, known[word], None)
                   for known in self._of_masks for word in range(2))

    def is_kept(self, values: Halves, found: Iterable[Halves]) -> bool:
        """Whether one of the candidate's masks is in the place of one of the original's."""
        known = self._leaving(values)
        return known is not None and any(self._is_one(other, [known]) for other in found)

    def _is_one(self, values: Halves, known: Sequence[tuple[Leaving, ...]]) -> bool:
        return len(values) == 2 and any(
            all(self._parts.is_turn_of(values[word], word, halves[word], self._tested[word])
                for word in range(2))
            for halves in known)

    def _leaving(self, values: Halves) -> tuple[Leaving, ...] | None:
        if len(values) != 2:
            return None
        low, high = (self._parts.leaving(number, word) for word, number in enumerate(values))
        return None if low is None or high is None else (low, high)

    @cached_property
    def _of_masks(self) -> list[tuple[Leaving, ...]]:
        return self._all(self._masks)

    @cached_property
    def _of_skips(self) -> list[tuple[Leaving, ...]]:
        return self._all(self._skips)

    def _all(self, uses: Sequence[Halves]) -> list[tuple[Leaving, ...]]:
        return list(dict.fromkeys(known for known in map(self._leaving, uses) if known))

    @cached_property
    def _tested(self) -> tuple[frozenset[Literal], frozenset[Literal]]:
        """The conditions without which branches on EXEC find no lane."""
        low, high = (
            frozenset(literal for values in self._branches if len(values) == 2
                      for mask in (self._parts.mask(values[word], word),) if mask is not None
                      for literal in mask.common)
            for word in range(2))
        return low, high


class _Walk:
    """One way through the parts of a mask.

    ``given`` are masks that lanes are known to be in, and, as -1 - n, those they are known not to
    be in: what else is made of these need not be looked at again.
    """

    def __init__(self, numbers: Numbers, word: int) -> None:
        self.numbers = numbers
        self.word = word
        self.found: set[Literal] = set()
        self._seen: set[tuple[int, bool, frozenset[int]]] = set()
        self._holes: dict[int, tuple[int, Carried, tuple[Carried, ...]]] = {}
        self._steps = 0
        self._common: dict[tuple[int, bool, frozenset[int]], frozenset[Literal] | None] = {}

    def _count(self) -> None:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise _TooMuchError

    def collect(self, number: int, keeps: bool, given: frozenset[int]) -> None:
        """Find all conditions, each with whether it keeps lanes or drops them."""
        if number in given or ~number in given or number in (
                self.numbers.zero, self.numbers.ones):
            return
        key = number, keeps, given
        if key in self._seen:
            return
        self._seen.add(key)
        self._count()
        inner = complemented(number, self.numbers)
        if inner is not None:
            self.collect(inner, not keeps, given)
            return
        carried = self._carried(number)
        if carried is not None:
            for part, under in self._inside(number, carried, given):
                self.collect(part, keeps, under)
            return
        form = self.numbers.forms[number]
        if form[0] == "and":
            parts = self.numbers.parts(number)
            for part, under in self._under(parts, given):
                self.collect(part, keeps, under)
        elif form[0] in ("or", "merge"):
            for part in self.numbers.parts(number):
                self.collect(part, keeps, given)
        else:
            self.found.add(self._literal(number, keeps))

    def common(self, number: int, keeps: bool, given: frozenset[int]
               ) -> frozenset[Literal] | None:
        """What holds for every lane of a mask (of its complement); ``None`` if it has no lanes."""
        if number in given or number == self.numbers.ones:
            return frozenset() if keeps else None
        if number == self.numbers.zero or ~number in given:
            return None if keeps else frozenset()
        key = number, keeps, given
        if key in self._common:
            return self._common[key]
        self._common[key] = None  # what a turn leaves as it is adds nothing
        self._count()
        self._common[key] = self._find_common(number, keeps, given)
        return self._common[key]

    def _find_common(self, number: int, keeps: bool, given: frozenset[int]
                     ) -> frozenset[Literal] | None:
        inner = complemented(number, self.numbers)
        if inner is not None:
            return self.common(inner, not keeps, given)
        carried = self._carried(number)
        if carried is not None:
            parts = [(part, under) for part, under in self._inside(number, carried, given)]
            if keeps and carried[1].kind == "and":
                parts = [(entry, under) for entry, under in parts if entry in carried[1].entries]
            return self._shared(self.common(part, keeps, under) for part, under in parts)
        form = self.numbers.forms[number]
        if form[0] == "and":
            each = [self.common(part, keeps, under)
                    for part, under in self._under(self.numbers.parts(number), given)]
            return self._joined(each) if keeps else self._shared(each)
        if form[0] == "or":
            each = [self.common(part, keeps, given) for part in self.numbers.parts(number)]
            return self._shared(each) if keeps else self._joined(each)
        if form[0] == "merge":
            return self._shared(
                self.common(part, keeps, given) for part in self.numbers.parts(number))
        return frozenset((self._literal(number, keeps),))

    @staticmethod
    def _joined(each: Iterable[frozenset[Literal] | None]) -> frozenset[Literal] | None:
        found: frozenset[Literal] = frozenset()
        for one in each:
            if one is None:
                return None
            found |= one
        return found

    @staticmethod
    def _shared(each: Iterable[frozenset[Literal] | None]) -> frozenset[Literal] | None:
        found: frozenset[Literal] | None = None
        for one in each:
            if one is not None:
                found = one if found is None else found & one
        return found

    def _under(self, parts: Sequence[int], given: frozenset[int]
               ) -> list[tuple[int, frozenset[int]]]:
        """The parts of a conjunction, younger ones under older ones: of two masks only the younger
        can be made of the other."""
        found = []
        for part in sorted(parts):
            if part in given:
                continue
            found.append((part, given))
            more = {part}
            inner = complemented(part, self.numbers)
            if inner is not None:
                more.add(~inner)
                if self.numbers.forms[inner][0] == "or":
                    more.update(~p for p in self.numbers.parts(inner))
            given |= more
        return found

    def _literal(self, number: int, keeps: bool) -> Literal:
        form = self.numbers.forms[number]
        if form[0] == "lanes" and form[2] == self.word:
            return self.numbers.parts(number)[0], keeps
        return number, keeps

    def _carried(self, number: int) -> tuple[int, Carried, tuple[Carried, ...]] | None:
        """The carried mask that a number is or that a hole stands for, with its whole loop."""
        form = self.numbers.forms[number]
        if form[0] == "mask hole":
            return self._holes.get(number)
        if form[0] != TURNS:
            return None
        at, loop = form[1], form[2]
        assert isinstance(at, int)
        assert isinstance(loop, tuple)
        for k, carried in enumerate(loop):
            # The holes of another loop go by the same names.
            if self._holes.setdefault(carried.hole, (k, carried, loop))[2] != loop:
                raise _TooMuchError
        return at, loop[at], loop

    def _inside(self, number: int, carried: tuple[int, Carried, tuple[Carried, ...]],
                given: frozenset[int]) -> list[tuple[int, frozenset[int]]]:
        """What a carried mask is made of: its start and what its turns do, each with what is known
        there.

        What is on now, in a mask that only loses lanes, was on in every turn before and at the
        start: so what gained lanes under it can be looked at as if all its lanes had been on.
        """
        _, mask, loop = carried
        entry: frozenset[int] = frozenset()
        turn: frozenset[int] = frozenset()
        held = {carried[1].hole for n in given if n >= 0
                for carried in (self._carried(n),) if carried is not None}
        for other in loop:
            if other.kind == "and" and other.hole != mask.hole and other.hole in held:
                entry |= self._members(other.entries)
                turn |= self._members(other.updates) | {other.hole}
        found = [(part, entry) for part in mask.entries]
        for update in mask.updates:
            parts = self.numbers.parts(update)
            if mask.kind == "and":
                found += [(p, under | {mask.hole})
                          for p, under in self._under(parts, frozenset()) if p != mask.hole]
            else:
                found += [(p, turn) for p in parts if p != mask.hole]
        return found

    def _members(self, masks: tuple[int, ...]) -> frozenset[int]:
        """What all of several masks are conjunctions with."""
        found: frozenset[int] | None = None
        for number in masks:
            parts = frozenset(self.numbers.parts(number)
                              if self.numbers.forms[number][0] == "and" else (number,))
            found = parts if found is None else found & parts
        return found or frozenset()
