"""One wave through an order of instructions: what it waits for, and how long it takes.

The waits and wait states that the order needs are found on the way, as late and as loose as they
can be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from asmevo.isa.hazard_rules import forwarded_states, rules
from asmevo.isa.program import Program
from asmevo.isa.targets import model
from asmevo.isa.waits import Outstanding
from asmevo.propose.scheduler.machine import TURN, MachineTimes
from asmevo.propose.scheduler.step import Step

_VM_LIMIT = 63
_LGKM_LIMIT = 15
_MOST_RECENT = 24
_APART = 16  # steps between two marks of a trail
_QUEUE = 22
_LINE = 7  # bits of an address within a line of 128 bytes


@dataclass(slots=True)
class InFlight:
    """An operation in flight: its number among those of its kind, and when it is done."""

    number: int
    done: int
    registers: int
    publishes: bool
    index: int
    load: bool = True
    memory: bool = True


@dataclass
class Flight:
    """Everything in flight, by kind, and how many of each kind have been issued."""

    vm: list[InFlight] = field(default_factory=list)
    lds: list[InFlight] = field(default_factory=list)
    other: list[InFlight] = field(default_factory=list)
    vm_count: int = 0
    lds_count: int = 0

    @staticmethod
    def of(entry: Sequence[Outstanding], done: Mapping[int, int]) -> Flight:
        """What may be in flight at a place, with the clk at which each will be done."""
        flight = Flight()
        for o in entry:
            queue = flight.other
            if o.ordered:
                queue = flight.vm if o.counter == "vmcnt" else flight.lds
            queue.append(InFlight(-1 - o.position, done.get(o.index, 0), o.registers, o.publishes,
                                  o.index))
        for queue in (flight.vm, flight.lds):
            queue.sort(key=lambda f: f.number)
        return flight

    def later(self, clk: int, also: Flight) -> Flight:
        """The same counted anew from ``clk``, with what ``also`` may be in flight."""
        out = Flight()
        for name, count in (("vm", self.vm_count), ("lds", self.lds_count), ("other", 0)):
            queue = [InFlight(f.number - count, f.done - clk, f.registers, f.publishes, f.index,
                              f.load, f.memory)
                     for f in getattr(self, name)]
            mine = {f.index for f in queue}
            queue += [InFlight(f.number, 0, f.registers, f.publishes, f.index, f.load, f.memory)
                      for f in getattr(also, name) if f.index not in mine]
            queue.sort(key=lambda f: f.number)
            setattr(out, name, queue)
        return out


@dataclass(frozen=True, slots=True)
class Placed:
    """A wait or wait states in front of the ``position``-th instruction of an order."""

    position: int
    text: str


@dataclass(frozen=True, slots=True)
class Trail:
    """What a walk knew on its way, for walks that begin with the same steps.

    ``marks`` are a position each and the state in front of that step.
    """

    steps: Sequence[Step]
    entry: Flight
    placed: Sequence[Placed]
    marks: Sequence[tuple[int, _Mark]]

    def shared(self, steps: Sequence[Step]) -> int:
        """With how many of the same steps another walk begins."""
        low, high = 0, min(len(steps), len(self.steps))
        while low < high:
            middle = (low + high + 1) // 2
            if self.steps[low:middle] == steps[low:middle]:
                low = middle
            else:
                high = middle - 1
        return low


@dataclass(frozen=True, slots=True)
class Walked:
    """``clk`` until the end, ``left`` how much longer the slowest load then takes."""

    clk: int
    left: int
    placed: tuple[Placed, ...]
    flight: Flight
    trail: Trail | None = None


class _Mark(NamedTuple):
    """The local variables of `Walker.walk` at the start of a step."""

    vm: list[InFlight]
    lds: list[InFlight]
    other: list[InFlight]
    starts: list[int]
    recent: list[tuple[int, int, int, Step]]
    fetched: dict[int, int]
    placed: int
    numbers: tuple[int, ...]


class Walker:
    """Walks orders of a program's instructions.

    ``unpublished`` are pairs of an operation and a barrier that the original does not keep apart.
    """

    def __init__(self, program: Program, machine: MachineTimes,
                 unpublished: frozenset[tuple[int, int]]) -> None:
        self._program = program
        self._isa = model(program.isa)
        self._rules = rules(self._isa)
        self._machine = machine
        self._unpublished = unpublished
        self._pairs: dict[tuple[int, int], int] = {}

    def walk(self, steps: Sequence[Step], entry: Flight, address: int, *, cold: bool,
             mark: bool = False, like: Trail | None = None) -> Walked:
        """The order's cost from an address on, whose code is fetched first if it is ``cold``.

        With ``mark`` the way is kept. ``like`` is that of another order from the same address: what
        both begin with is not walked again, which changes nothing but the time it takes.
        """
        machine = self._machine
        vm, lds, other = list(entry.vm), list(entry.lds), list(entry.other)
        vm_count, lds_count = entry.vm_count, entry.lds_count
        pending = 0
        for f in vm + lds + other:
            pending |= f.registers
        placed: list[Placed] = []
        now = alu_free = matrix_free = matrix_result = vmem_free = lds_free = lds_last = 0
        matrix_writes = 0
        debt = 0
        states = 0
        line = address >> _LINE
        # Those around a trace's start are on their way with the code in front of it.
        fetched = dict.fromkeys(range(line, line + machine.code_lines_ahead + 1), 0)
        last_vm = max((f.done for f in vm), default=0)
        starts = [0] * _QUEUE
        # States at issue, states up to which it counts, registers, producer.
        recent: list[tuple[int, int, int, Step]] = []
        active = 0
        unpublished = self._unpublished
        turn, ahead = TURN, machine.code_lines_ahead
        marks: list[tuple[int, _Mark]] = []
        first = 0
        if like is not None and like.entry == entry:
            shared = like.shared(steps)
            marks = [m for m in like.marks if m[0] <= shared]
            if marks:
                first, known = marks.pop()
                vm, lds, other = list(known.vm), list(known.lds), list(known.other)
                starts, recent = list(known.starts), list(known.recent)
                fetched = dict(known.fetched)
                placed = list(like.placed[:known.placed])
                (vm_count, lds_count, pending, now, alu_free, matrix_free, matrix_result, vmem_free,
                 lds_free, lds_last, matrix_writes, debt, states, line, last_vm, active,
                 address) = known.numbers
        for position in range(first, len(steps)):
            step = steps[position]
            if mark and not position % _APART:
                marks.append((position, _Mark(
                    list(vm), list(lds), list(other), list(starts), list(recent), dict(fetched),
                    len(placed),
                    (vm_count, lds_count, pending, now, alu_free, matrix_free, matrix_result,
                     vmem_free, lds_free, lds_last, matrix_writes, debt, states, line, last_vm,
                     active, address))))
            touched = step.touched
            if step.region:
                # Its own waits stand inside, where the values are used.
                needed = pending & touched
                if needed:
                    inside = max(f.done for q in (vm, lds, other) for f in q
                                 if f.registers & needed)
                    now = max(now, inside - step.extra)
                touched = 0
            touched |= step.unseen
            if pending & touched or (step.barrier and not step.region):
                vm_need = lgkm_need = -1
                done = now
                if vm:
                    needed = step.reads if step.vm else touched
                    for f in reversed(vm):
                        if f.registers & needed or (step.barrier and f.publishes and (
                                f.index, step.index) not in unpublished):
                            vm_need = max(min(vm_count - 1 - f.number, _VM_LIMIT), 0)
                            break
                if lds:
                    needed = step.reads if step.lds else touched
                    for f in reversed(lds):
                        if f.registers & needed or (step.barrier and f.memory and (
                                f.index, step.index) not in unpublished):
                            lgkm_need = max(min(lds_count - 1 - f.number, _LGKM_LIMIT), 0)
                            break
                for f in other:
                    if f.registers & touched or (step.barrier and f.publishes and (
                            f.index, step.index) not in unpublished):
                        lgkm_need = 0
                if vm_need >= 0 or lgkm_need >= 0:
                    if vm_need >= 0:
                        bound = vm_count - 1 - vm_need
                        for f in vm:
                            if f.number <= bound and f.done > done:
                                done = f.done
                    if lgkm_need >= 0:
                        bound = lds_count - 1 - lgkm_need
                        for f in lds:
                            if (f.number <= bound or other) and f.done > done:
                                done = f.done
                        for f in other:
                            if f.done > done:
                                done = f.done
                    # What is done by then can be waited for as well; when operations from
                    # before are done is a guess.
                    if vm_need >= 0:
                        cut = 0
                        while cut < len(vm) and (
                                vm[cut].number <= vm_count - 1 - vm_need
                                or (vm[cut].number >= 0 and vm[cut].done <= done)):
                            vm_need = min(vm_need, vm_count - 1 - vm[cut].number)
                            cut += 1
                        del vm[:cut]
                    if lgkm_need >= 0:
                        cut = 0
                        while cut < len(lds) and (
                                lds[cut].number <= lds_count - 1 - lgkm_need
                                or (lds[cut].number >= 0 and lds[cut].done <= done)):
                            lgkm_need = min(lgkm_need, lds_count - 1 - lds[cut].number)
                            cut += 1
                        del lds[:cut]
                        if lgkm_need <= 0:
                            lgkm_need = 0
                            other.clear()
                            lds.clear()
                    placed.append(Placed(position, _wait(vm_need, lgkm_need)))
                    address += 4
                    states += 1
                    if done > now:
                        debt = 0
                        now = done
                    now += TURN
                    pending = 0
                    for f in vm:
                        pending |= f.registers
                    for f in lds:
                        pending |= f.registers
                    for f in other:
                        pending |= f.registers
            interest = step.facts.interest
            if active & interest:
                short = 0
                for at, until, registers, producer in recent:
                    if until > states and registers & interest:
                        key = (producer.index, step.index)
                        apart = self._pairs.get(key)
                        if apart is None:
                            apart = self._pairs[key] = self._states(producer, step)
                        short = max(short, apart - (states - at))
                while short > 0:
                    count = min(short, 16)
                    placed.append(Placed(position, f"s_nop {count - 1}"))
                    address += 4
                    states += count
                    now += turn * count
                    debt = 0
                    short -= count
            start = now
            if step.size == 8 and address & 4:
                debt += machine.misaligned
                if debt >= turn:
                    debt -= turn
                    start += turn
            if cold and address >> _LINE != line:
                line = address >> _LINE
                for one in range(line, line + ahead + 1):
                    if one not in fetched:
                        fetched[one] = now + machine.code_miss
                start = max(start, fetched[line])
            address += step.size
            if step.region:
                # What its code costs to fetch is part of what was observed.
                line = address >> _LINE
                fetched.update(dict.fromkeys(range(line, line + ahead + 1), 0))
            if step.alu:
                if alu_free > start:
                    start = alu_free
                if step.whole:
                    if matrix_free > start:
                        start = matrix_free
                    if not step.matrix and matrix_result > start:
                        start = matrix_result
                if matrix_writes & step.reads and matrix_result > start:
                    start = matrix_result
            elif matrix_writes & step.reads and matrix_result > start:
                start = matrix_result
            if step.vm:
                head = starts[vm_count % _QUEUE]
                if head > start:
                    start = head
            if start > now and (not debt or start > now + turn):
                debt = 0
            start += -start % turn
            now = start + turn + step.extra
            states += 1
            if step.extra:
                debt = 0
            if step.alu:
                alu_free = start + step.alu
                if step.matrix:
                    matrix_free = start + step.matrix
                    matrix_result = start + max(step.matrix, machine.matrix)
                    matrix_writes = step.writes
            if step.vm:
                begin = start if start > vmem_free else vmem_free
                vmem_free = begin + step.pipe
                starts[vm_count % _QUEUE] = begin
                if vmem_free + step.latency > last_vm:
                    last_vm = vmem_free + step.latency
                vm.append(InFlight(vm_count, last_vm, step.registers, step.publishes, step.index,
                                   step.load))
                vm_count += 1
                pending |= step.registers
                if len(vm) > _VM_LIMIT:
                    del vm[0]
                if step.scalar:
                    other.append(InFlight(0, last_vm, step.registers, step.publishes, step.index))
            elif step.lds:
                begin = max(start, lds_free)
                lds_free = begin + step.pipe
                lds_last = max(lds_last, lds_free + step.latency)
                lds.append(InFlight(lds_count, lds_last, step.registers, step.publishes,
                                    step.index, memory=step.memory))
                lds_count += 1
                pending |= step.registers
                if len(lds) > _LGKM_LIMIT:
                    # The counter holds no more: it waits for the oldest.
                    now = max(now, lds[0].done)
                    del lds[0]
            elif step.scalar:
                other.append(InFlight(0, start + step.latency, step.registers, step.publishes,
                                      step.index))
                pending |= step.registers
            for op in step.inner:
                # It may not have been issued: what follows does not count it.
                queue = vm if op.vm else lds if op.lds else other
                count = vm_count if op.vm else lds_count
                queue.append(InFlight(count - 1, now + op.pipe + op.latency, op.registers,
                                      op.publishes, op.index, op.load))
                pending |= op.registers
            if step.produced:
                # What is too long ago does no harm, but looking through it takes time.
                if len(recent) > _MOST_RECENT:
                    recent = [r for r in recent if r[1] > states]
                    active = 0
                    for _, _, registers, _ in recent:
                        active |= registers
                recent.append((states, states + step.reach, step.produced, step))
                active |= step.produced
        left = max((f.done for f in vm if f.load), default=now) - now
        return Walked(now, max(left, 0), tuple(placed),
                      Flight(vm, lds, other, vm_count, lds_count),
                      Trail(steps, entry, placed, marks) if mark else None)

    def _states(self, producer: Step, consumer: Step) -> int:
        """Wait states that rules keep two instructions apart."""
        most = 0
        consumed = dict(consumer.facts.consumed)
        first = self._program.instructions[producer.index]
        second = self._program.instructions[consumer.index]
        for number, registers, needed in producer.facts.produced:
            if registers & consumed.get(number, 0):
                rule = self._rules[number]
                forwarded = forwarded_states(rule, first, second, self._isa)
                most = max(most, needed if forwarded is None else forwarded)
        return most


def _wait(vm: int, lgkm: int) -> str:
    parts = [f"vmcnt({vm})"] if vm >= 0 else []
    parts += [f"lgkmcnt({lgkm})"] if lgkm >= 0 else []
    return "s_waitcnt " + " ".join(parts)
