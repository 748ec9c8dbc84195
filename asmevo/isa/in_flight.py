"""Memory operations of one wave on their way: what may be in flight, and how far back.

The hardware counts issued and returned operations (CDNA3 ISA, "S_WAITCNT"), each kind by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from asmevo.isa.instruction import Instruction, Unit, WaitCount
from asmevo.isa.registers import members


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of operation: its counter, that counter's maximum, completion in issue order."""

    counter: str
    maximum: int
    ordered: bool


KINDS = (
    Kind("vmcnt", 63, True), Kind("lgkmcnt", 15, True),
    Kind("vmcnt", 63, False), Kind("lgkmcnt", 15, False),
)
_VMEM, _LDS, _UNORDERED_VMEM, _UNORDERED_LGKM = range(4)
UNKNOWN_KINDS = (_UNORDERED_VMEM, _UNORDERED_LGKM)


@dataclass(frozen=True, slots=True)
class Access:
    """One memory operation; ``registers`` are those it will write when it returns."""

    index: int
    bit: int
    kinds: tuple[int, ...]
    registers: int
    publishes: bool
    may_skip: bool


def kinds_of(instruction: Instruction) -> tuple[int, ...]:
    """Which of `KINDS` an instruction is; a FLAT access may be of either memory."""
    if instruction.unit is Unit.FLAT:
        return (_UNORDERED_VMEM, _UNORDERED_LGKM)
    if instruction.vmcnt:
        return (_VMEM,)
    if not instruction.lgkmcnt:
        return ()
    return (_LDS,) if instruction.unit is Unit.LDS else (_UNORDERED_LGKM,)


_Form = tuple[tuple[int, ...], bool, bool]
# By text: programs that follow one another have most of it in common.
_FORMS: dict[str, _Form] = {}
_MOST_FORMS = 1 << 17


def form_of(instruction: Instruction) -> _Form:
    """The kinds of an operation, whether other waves of the workgroup may see what it wrote, and
    whether it changes what is in flight at all."""
    form = _FORMS.get(instruction.text)
    if form is None:
        if len(_FORMS) > _MOST_FORMS:
            _FORMS.clear()
        kinds = kinds_of(instruction)
        form = _FORMS[instruction.text] = (
            kinds, bool(kinds) and _publishes(instruction),
            bool(kinds) or instruction.wait is not None or instruction.op == "s_setvskip")
    return form


def _publishes(instruction: Instruction) -> bool:
    return (instruction.is_store or instruction.is_atomic or "_load_lds_" in instruction.op
            or instruction.modifier("lds") is not None)


class InFlight:
    """Operations in flight: per kind, slot ``p`` is the bit set of accesses that may be at ``p``.

    ``region`` holds those issued in the current VSKIP region, ``definite`` all others.
    """

    __slots__ = ("definite", "region")

    def __init__(self) -> None:
        self.definite: list[list[int]] = [[] for _ in KINDS]
        self.region: list[list[int]] = [[] for _ in KINDS]

    def copy(self) -> InFlight:
        other = InFlight.__new__(InFlight)  # without lists that are replaced at once
        other.definite = [slots.copy() for slots in self.definite]
        other.region = [slots.copy() for slots in self.region]
        return other

    def merge(self, other: InFlight) -> bool:
        """Take over what may be in flight on another path; whether anything was new."""
        changed = False
        for mine, theirs in ((self.definite, other.definite), (self.region, other.region)):
            for slots, more in zip(mine, theirs, strict=True):
                changed |= _merge_slots(slots, more)
        return changed

    def issue(self, access: Access) -> None:
        for kind in access.kinds:
            target = self.region if access.may_skip else self.definite
            if not KINDS[kind].ordered:
                slots = target[kind]
                slots[:] = [(slots[0] if slots else 0) | access.bit]
                continue
            maximum = KINDS[kind].maximum
            target[kind].insert(0, access.bit)
            if not access.may_skip and self.region[kind]:
                self.region[kind].insert(0, 0)
            for queues in (self.definite, self.region):
                # The counter cannot exceed its maximum: an older operation has completed.
                del queues[kind][maximum:]

    def wait(self, bounds: WaitCount) -> None:
        for kind, properties in enumerate(KINDS):
            bound = bounds.vmcnt if properties.counter == "vmcnt" else bounds.lgkmcnt
            if bound is not None:
                del self.definite[kind][bound:]
                del self.region[kind][bound:]

    def end_region(self) -> None:
        for kind, slots in enumerate(self.region):
            _merge_slots(self.definite[kind], slots)
            self.region[kind] = []

    def slots(self) -> Iterator[tuple[int, int, int]]:
        """(kind, position, accesses) of everything in flight."""
        for queues in (self.definite, self.region):
            for kind, slots in enumerate(queues):
                for position, accesses in enumerate(slots):
                    if accesses:
                        yield kind, position, accesses

    def positions(self, kind: int) -> dict[int, int]:
        """The smallest position of each access of a kind, by access number."""
        found: dict[int, int] = {}
        for queues in (self.definite, self.region):
            for position, accesses in enumerate(queues[kind]):
                for number in members(accesses):
                    found[number] = min(position, found.get(number, position))
        return found


def _merge_slots(slots: list[int], more: list[int]) -> bool:
    changed = False
    for position, accesses in enumerate(more):
        if position == len(slots):
            slots.append(0)
        if accesses & ~slots[position]:
            slots[position] |= accesses
            changed = True
    return changed


def nearest(slots: Iterable[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    """Slots, ascending within each queue, without what is at a smaller position of it as well."""
    queue, last, seen = -1, -1, 0
    for kind, position, accesses in slots:
        if kind != queue or position <= last:
            queue, seen = kind, 0
        last = position
        if accesses & ~seen:
            yield kind, position, accesses & ~seen
            seen |= accesses
