"""Missing waits: memory operations of one wave still in flight, over all paths.

The hardware counts issued and returned operations (CDNA3 ISA, "S_WAITCNT"). An operation with ``p``
younger ones of its own in-order kind behind it is done once its counter is at most ``p``:

- ``vmcnt``: vector memory operations return in issue order;
- ``lgkmcnt``, LDS operations: in issue order among themselves. While one is out, so are the younger
  ones, which alone hold the counter above ``p`` whatever else is outstanding;
- scalar memory, messages and FLAT accesses: in no order, so that only a wait for zero is enough.

Where paths join, an operation keeps its *smallest* position. A vector operation that VSKIP may skip
does not move older ones back, except those of the same VSKIP region, which are skipped with it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property

from asmevo.isa.cfg import Cfg
from asmevo.isa.effects import VECTOR_UNITS, State, effects, machine_states
from asmevo.isa.in_flight import KINDS, UNKNOWN_KINDS, Access, InFlight, form_of, nearest
from asmevo.isa.instruction import Unit, WaitCount
from asmevo.isa.program import Program
from asmevo.isa.recent import Recent
from asmevo.isa.registers import (
    EVERYTHING,
    EXEC_MASK,
    M0_MASK,
    MODE_MASK,
    SCC_MASK,
    members,
)
from asmevo.isa.violation import Violation

# What a load can write (LLVM gives loads no EXEC and no M0).
# A plain number: operations of enumerations are slow.
_VSKIP = int(State.VSKIP)
_RETURNED = EVERYTHING & ~(EXEC_MASK | M0_MASK | SCC_MASK | MODE_MASK)


def missing_waits(program: Program) -> tuple[Violation, ...]:
    """Registers used while a load to them is in flight, and barriers passed with stores in flight.

    Kinds: ``missing-vmcnt`` and ``missing-lgkmcnt`` (a register is read or overwritten before the
    load that writes it has returned), ``missing-vmcnt-barrier`` and ``missing-lgkmcnt-barrier`` (a
    store, atomic or load to LDS is in flight at an ``s_barrier``, behind which another wave may
    look at the data). ``needed`` is the loosest counter bound that would do; ``found`` is the
    counter's maximum, as no wait bounds the operation on some path. A store at a barrier may be
    meant for another kernel only, so compare with the original's own list. EXPCNT is not checked:
    on gfx90a and later only GDS raises it. Unknown code is taken to wait for nothing, to contain a
    barrier, to use every register and to leave loads of every register in flight. Raises
    ControlFlowError.
    """
    return _analysis(program).violations


def loosest_wait(program: Program, index: int) -> WaitCount:
    """The loosest bounds the ``s_waitcnt`` at ``index`` may have without a new violation.

    A counter is ``None`` where no wait is needed. The other waits are taken as they stand, so after
    relaxing one, ask again for the next. EXPCNT stays as written. Raises ValueError when ``index``
    is not an ``s_waitcnt``, and ControlFlowError.
    """
    wait = program.instructions[index].wait
    if wait is None:
        raise ValueError(f"instruction {index} is not an s_waitcnt")
    analysis = _analysis(program)
    return WaitCount(analysis.loosest(index, "vmcnt", wait.vmcnt), wait.expcnt,
                     analysis.loosest(index, "lgkmcnt", wait.lgkmcnt))


def loosest_waits(program: Program, indices: Iterable[int]) -> dict[int, WaitCount]:
    """:func:`loosest_wait` for each of several, each after those before it were relaxed.

    Raises ValueError and ControlFlowError as it does.
    """
    found: dict[int, WaitCount] = {}
    analysis: _Analysis | None = None
    for index in indices:
        wait = program.instructions[index].wait
        if wait is None:
            raise ValueError(f"instruction {index} is not an s_waitcnt")
        analysis = analysis or _analysis(program).separate()
        loosest = found[index] = WaitCount(
            analysis.loosest(index, "vmcnt", wait.vmcnt), wait.expcnt,
            analysis.loosest(index, "lgkmcnt", wait.lgkmcnt))
        if loosest != wait and analysis.cfg.block_of[index] in analysis.entry:
            analysis.loosen(index, loosest)
    return found


def awaited(program: Program) -> Mapping[int, tuple[int, ...]]:
    """Per reachable ``s_waitcnt``, the memory operations that it may wait for, ascending.

    Those are the ones that may be in flight in front of it and not behind it; an operation that
    unknown code may have left there is not among them. Raises ControlFlowError.
    """
    return _analysis(program).awaited()


@dataclass(frozen=True, slots=True)
class Outstanding:
    """A memory operation that may be in flight: at least ``position`` younger ones of its kind are
    issued behind it. ``ordered`` ones are done once ``counter`` is at most that, others at zero.
    """

    index: int
    counter: str
    ordered: bool
    position: int
    registers: int
    publishes: bool


def outstanding(program: Program, indices: Iterable[int]) -> dict[int, tuple[Outstanding, ...]]:
    """What may be in flight in front of each of some instructions.

    Those that cannot be reached have nothing. Raises ControlFlowError.
    """
    analysis = _analysis(program)
    return {index: tuple(analysis.outstanding(index)) for index in indices}


def _analysis(program: Program) -> _Analysis:
    """The analysis of a program: one that was asked about just now is not analysed again."""
    return _recent.get(lambda: _Analysis(program), program)


_MISSING = tuple(f"missing-{kind.counter}" for kind in KINDS)


class _Analysis:
    """What may be in flight at the start of every block, and the checks that follow from it."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.cfg = Cfg.of(program)
        states = machine_states(program, self.cfg)
        self.facts = effects(program, self.cfg)
        self.accesses: list[Access] = []
        self.access_at: dict[int, Access] = {}
        self.events: set[int] = set()
        self.used = [fact.reads | fact.writes for fact in self.facts]
        # Where more than registers may count.
        self.publishing = {index for index, instruction in enumerate(program.instructions)
                           if instruction.unit is Unit.BARRIER} | self.cfg.unknown
        self.waits: dict[int, WaitCount] = {}
        for index, instruction in enumerate(program.instructions):
            kinds, publishes, is_event = form_of(instruction)
            unknown = index in self.cfg.unknown
            if unknown:
                kinds, publishes = UNKNOWN_KINDS, True
            elif not is_event:
                continue
            if kinds:
                access = Access(
                    index, 1 << len(self.accesses), kinds,
                    self.facts[index].writes & (_RETURNED if unknown else EVERYTHING), publishes,
                    bool(int(states[index]) & _VSKIP) and instruction.unit in VECTOR_UNITS)
                self.accesses.append(access)
                self.access_at[index] = access
            if instruction.wait is not None:
                self.waits[index] = instruction.wait
            self.events.add(index)
        # For each register the accesses that return into it, a mask: few of many in flight matter.
        self._returning: dict[int, int] = {}
        self._returning_any: dict[int, int] = {}
        for access in self.accesses:
            for register in members(access.registers):
                self._returning[register] = self._returning.get(register, 0) | access.bit
        self._block_events: list[list[int]] = []
        self._rank: dict[int, int] = {}
        self.entry = {self.cfg.entry: InFlight()}
        self._solve(self.cfg.entry)

    def _solve(self, changed: int) -> None:
        """Carry on from ``entry`` where the effect of one block has grown."""
        if not self._block_events:
            self._block_events = [
                [i for i in range(block.start, block.end) if i in self.events]
                for block in self.cfg.blocks]
            self._rank = {number: position for position, number in enumerate(self.cfg.order)}
        events, rank, entry = self._block_events, self._rank, self.entry
        queue = [rank[changed]]
        while queue:
            number = self.cfg.order[heapq.heappop(queue)]
            state = entry[number].copy()
            for index in events[number]:
                self._step(index, state)
            for successor in self.cfg.blocks[number].successors:
                if successor not in entry:
                    entry[successor] = state.copy()
                elif not entry[successor].merge(state):
                    continue
                if rank[successor] not in queue:
                    heapq.heappush(queue, rank[successor])

    def separate(self) -> _Analysis:
        """One of its own, for `loosen`."""
        other = copy(self)
        other.known = self.known  # worked out once, for both
        other.waits = dict(self.waits)
        other.entry = {number: state.copy() for number, state in self.entry.items()}
        return other

    def loosen(self, index: int, bounds: WaitCount) -> None:
        """Go on as if the wait at ``index`` had these bounds, which `loosest` allows.

        Looser waits leave more in flight, so that what is known at the blocks' starts only grows;
        and as no violation is new, those that are known stay.
        """
        self.waits[index] = bounds
        self._solve(self.cfg.block_of[index])

    def _step(self, index: int, state: InFlight) -> None:
        access = self.access_at.get(index)
        if access is not None:
            if index in self.cfg.unknown:
                state.end_region()
            state.issue(access)
            return
        bounds = self.waits.get(index)
        if bounds is not None:
            state.wait(bounds)
        else:
            state.end_region()

    def state_before(self, index: int) -> InFlight:
        number = self.cfg.block_of[index]
        state = self.entry[number].copy()
        for earlier in range(self.cfg.blocks[number].start, index):
            if earlier in self.events:
                self._step(earlier, state)
        return state

    @cached_property
    def violations(self) -> tuple[Violation, ...]:
        instructions = self.program.instructions
        # What two instructions have at several positions needs the smallest.
        found: dict[tuple[int, int, str], Violation] = {}
        for number in sorted(self.entry):
            state = self.entry[number].copy()
            pending = self._pending(state)
            # Behind a wait fewer registers may be pending, which matters only where one is used.
            waited = False
            # A list of what is in flight: made again at the first use behind each change.
            flying: list[tuple[int, int, int]] | None = None
            for index in range(self.cfg.blocks[number].start, self.cfg.blocks[number].end):
                barrier = index in self.publishing
                touched = pending & self.used[index]
                if touched and waited:
                    waited = False
                    pending = self._pending(state)
                    touched = pending & self.used[index]
                if touched or barrier:
                    if flying is None:
                        flying = list(nearest(state.slots()))
                    concerned = -1 if barrier else self._returning_into(touched)
                    consumer = self.access_at.get(index)
                    for kind, position, accesses in flying:
                        shared = accesses & concerned
                        if not shared:
                            continue
                        # As in `_conflict`, which is asked where more than registers count.
                        in_order = consumer and KINDS[kind].ordered and kind in consumer.kinds
                        relevant = self.facts[index].reads if in_order else self.used[index]
                        while shared:
                            bit = shared & -shared
                            shared ^= bit
                            access = self.accesses[bit.bit_length() - 1]
                            name = _MISSING[kind]
                            if barrier:
                                suffix, registers = self._conflict(access, kind, index)
                                if suffix is None:
                                    continue
                                name += suffix
                            elif not (registers := access.registers & relevant):
                                continue
                            known = found.get((index, access.index, name))
                            if known is None or position < known.needed:
                                found[index, access.index, name] = Violation(
                                    name, access.index, index, instructions[access.index].text,
                                    instructions[index].text, registers,
                                    needed=position, found=KINDS[kind].maximum)
                if index in self.events:
                    self._step(index, state)
                    flying = None
                    issued = self.access_at.get(index)
                    if issued:
                        pending |= issued.registers
                    else:
                        waited = True
        return tuple(found[key] for key in sorted(found))

    @cached_property
    def known(self) -> frozenset[tuple[str, int, int]]:
        """The violations by what makes them the same after a wait was loosened."""
        return frozenset((v.kind, v.producer, v.consumer) for v in self.violations)

    def _returning_into(self, registers: int) -> int:
        """The accesses that return into any of some registers, a mask."""
        known = self._returning_any.get(registers)
        if known is None:
            known = 0
            for register in members(registers):
                known |= self._returning.get(register, 0)
            self._returning_any[registers] = known
        return known

    def awaited(self) -> dict[int, tuple[int, ...]]:
        found: dict[int, tuple[int, ...]] = {}
        for number in sorted(self.entry):
            state = self.entry[number].copy()
            for index in range(self.cfg.blocks[number].start, self.cfg.blocks[number].end):
                if index not in self.events:
                    continue
                is_wait = self.program.instructions[index].wait is not None
                before = self._outstanding(state) if is_wait else set()
                self._step(index, state)
                if is_wait:
                    done = before - self._outstanding(state)
                    found[index] = tuple(sorted(
                        self.accesses[n].index for n in done
                        if self.accesses[n].index not in self.cfg.unknown))
        return found

    def outstanding(self, index: int) -> Iterator[Outstanding]:
        if self.cfg.block_of[index] not in self.entry:
            return
        state = self.state_before(index)
        for kind, properties in enumerate(KINDS):
            for number, position in sorted(state.positions(kind).items()):
                access = self.accesses[number]
                yield Outstanding(access.index, properties.counter, properties.ordered, position,
                                  access.registers, access.publishes)

    @staticmethod
    def _outstanding(state: InFlight) -> set[int]:
        accesses = 0
        for _, _, slot in state.slots():
            accesses |= slot
        return set(members(accesses))

    def _pending(self, state: InFlight) -> int:
        accesses = 0
        for _, _, slot in state.slots():
            accesses |= slot
        registers = 0
        while accesses:
            low = accesses & -accesses
            registers |= self.accesses[low.bit_length() - 1].registers
            accesses ^= low
        return registers

    def _conflict(self, access: Access, kind: int, index: int) -> tuple[str | None, int]:
        """Why ``index`` must not run while ``access`` is in flight: kind suffix and registers."""
        if self.program.instructions[index].unit is Unit.BARRIER:
            return ("-barrier", 0) if access.publishes else (None, 0)
        fact = self.facts[index]
        registers = access.registers & (fact.reads | fact.writes)
        consumer = self.access_at.get(index)
        if consumer is not None and KINDS[kind].ordered and kind in consumer.kinds:
            # Two loads of one in-order kind write their common destination in order.
            registers = access.registers & fact.reads
        if not registers and access.publishes and index in self.cfg.unknown:
            return "-barrier", 0
        return ("", registers) if registers else (None, 0)

    def loosest(self, wait: int, counter: str, written: int | None) -> int | None:
        """Follow every operation that this wait holds back to a use that no other wait guards.

        An operation at position ``p`` gets past a bound of ``p + 1`` and more only.
        """
        if written is None or self.cfg.block_of[wait] not in self.entry:
            return None
        known = self.known
        state = self.state_before(wait)
        needed = [
            position
            for kind, properties in enumerate(KINDS) if properties.counter == counter
            for number, position in state.positions(kind).items()
            if position >= written
            and self._reaches_use(wait, kind, self.accesses[number], position, known)]
        return min(needed, default=None)

    def _reaches_use(self, wait: int, kind: int, access: Access, position: int,
                     known: frozenset[tuple[str, int, int]]) -> bool:
        """Whether ``access``, at ``position`` behind ``wait``, meets a new use while in flight."""
        counter, maximum, ordered = (
            KINDS[kind].counter, KINDS[kind].maximum, KINDS[kind].ordered)
        used, publishing = self.used, self.publishing
        seen: dict[int, int] = {}
        pending = [(self.cfg.block_of[wait], wait + 1, position)]
        while pending:
            number, start, place = pending.pop()
            for index in range(start, self.cfg.blocks[number].end):
                if access.registers & used[index] or index in publishing:
                    suffix, _ = self._conflict(access, kind, index)
                    if suffix is not None and (
                            f"missing-{counter}{suffix}", access.index, index) not in known:
                        return True
                if index not in self.events:
                    continue
                if index == wait:
                    # What follows has been seen from a smaller position already.
                    place = maximum
                bounds = self.waits.get(index)
                if bounds is not None:
                    bound = bounds.vmcnt if counter == "vmcnt" else bounds.lgkmcnt
                    if bound is not None and place >= bound:
                        place = maximum
                later = self.access_at.get(index)
                if later is not None and not later.may_skip and ordered and kind in later.kinds:
                    place += 1
                if place >= maximum:
                    break
            else:
                for successor in self.cfg.blocks[number].successors:
                    if place < seen.get(successor, maximum):
                        seen[successor] = place
                        pending.append((successor, self.cfg.blocks[successor].start, place))
        return False


_recent: Recent[_Analysis] = Recent(3)
