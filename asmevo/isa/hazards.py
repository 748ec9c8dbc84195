"""Missing wait states between instructions, over all paths.

Distances follow ``s_nop N`` = N + 1 wait states, any other instruction = one; a vector instruction
that VSKIP may skip counts for nothing, since skipped instructions issue several a cycle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from asmevo.isa.cfg import Cfg
from asmevo.isa.effects import VECTOR_UNITS, State, machine_states
from asmevo.isa.hazard_rules import HazardFacts, forwarded_states, hazard_facts, rules
from asmevo.isa.instruction import Instruction, Unit
from asmevo.isa.program import Program
from asmevo.isa.registers import EVERYTHING
from asmevo.isa.targets import model
from asmevo.isa.violation import Violation

_LONGEST = 20
# A plain number: operations of enumerations are slow.
_VSKIP = int(State.VSKIP)
_PLAIN = State(0)


def hazards(program: Program) -> tuple[Violation, ...]:
    """Every pair that breaks a rule of :func:`asmevo.isa.hazard_rules.rules` for the program's isa.

    ``kind`` is the rule's, ``needed`` and ``found`` are wait states. Production objects break
    conservative readings of the table, so compare with the original's own list. Unknown code is
    taken to begin with a consumer and to end with a producer of every rule. Raises ControlFlowError
    and TargetError.
    """
    distances = _Distances(program)
    return distances.all_violations()


@dataclass(frozen=True, slots=True)
class Requirement:
    """Two instructions of a straight line that a rule keeps ``needed`` wait states apart.

    ``found`` are the wait states between them now, as many as are needed unless the rule is broken.
    """

    kind: str
    producer: int
    consumer: int
    registers: int
    needed: int
    found: int


def requirements(program: Program, ranges: Iterable[tuple[int, int]]) -> tuple[Requirement, ...]:
    """The pairs that rules apply to within each half-open range, broken or not.

    A range must be straight-line code. Pairs farther apart than any rule reaches are left out.
    Raises ControlFlowError and TargetError.
    """
    distances = _Distances(program)
    return tuple(requirement for start, stop in ranges
                 for requirement in distances.requirements(start, stop))


def smallest_nop(program: Program, index: int) -> int | None:
    """The smallest operand of the ``s_nop`` at ``index`` that breaks no rule anew.

    ``None`` when the ``s_nop`` can go. Raises ValueError when ``index`` is not an ``s_nop``,
    ControlFlowError and TargetError.
    """
    return smallest_nops(program, (index,))[index]


def smallest_nops(program: Program, indices: Iterable[int]) -> Mapping[int, int | None]:
    """:func:`smallest_nop` for each of several ``s_nop``, the others as they stand."""
    distances = _Distances(program)
    return {index: distances.smallest_nop(index) for index in indices}


def _pair(violation: Violation) -> tuple[str, int, int]:
    return violation.kind, violation.producer, violation.consumer


class _Distances:
    """Wait states an instruction lets pass, and the walk from producers to consumers."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.cfg = Cfg.of(program)
        machine = machine_states(program, self.cfg)
        self.states = [
            1 if state is _PLAIN and instruction.unit is not Unit.NOP
            else _wait_states(instruction, state)
            for instruction, state in zip(program.instructions, machine, strict=True)]
        self.isa = model(program.isa)
        self.rules = rules(self.isa)
        unknown = _unknown_facts(len(self.rules))
        self.facts: list[HazardFacts] = [
            unknown if index in self.cfg.unknown else hazard_facts(i.text, self.isa)
            for index, i in enumerate(program.instructions)]

    def smallest_nop(self, index: int) -> int | None:
        if self.program.instructions[index].unit is not Unit.NOP:
            raise ValueError(f"instruction {index} is not an s_nop")
        producers = self.within_reach_before(index)
        written = self.states[index]
        known = {_pair(v) for v in self.violations(producers)}
        try:
            for states in range(written):
                self.states[index] = states
                if all(_pair(v) in known for v in self.violations(producers)):
                    return states - 1 if states else None
        finally:
            self.states[index] = written
        return written - 1

    def within_reach_before(self, index: int) -> list[int]:
        """Instructions from which a rule can reach past ``index``."""
        reached: dict[int, int] = {}
        pending = [(previous, 0) for previous in self.cfg.previous_indices(index)]
        while pending:
            here, distance = pending.pop()
            if distance > _LONGEST or reached.get(here, distance + 1) <= distance:
                continue
            reached[here] = distance
            distance += self.states[here]
            pending += [(previous, distance) for previous in self.cfg.previous_indices(here)]
        return sorted(reached)

    def all_violations(self) -> tuple[Violation, ...]:
        """What `violations` finds for every instruction, as the program was written.

        Most producers reach no further than straight-line code that has been looked at before, here
        or in another version of the kernel.
        """
        if len(_STRAIGHT) > _MOST_STRAIGHT:
            _STRAIGHT.clear()
        found: dict[tuple[str, int, int], Violation] = {}
        texts = [i.text for i in self.program.instructions]
        for number in self.cfg.order:
            block = self.cfg.blocks[number]
            for producer in range(block.start, block.end):
                produced = self.facts[producer].produced
                if not produced:
                    continue
                stop = producer + 1 + max([states for _, _, states in produced])
                # The last one of a block may be a call, of which the text does not tell all.
                if stop >= block.end or 0 in self.states[producer:stop]:
                    self._follow(producer, found)
                    continue
                key = self.isa, *texts[producer:stop]
                pairs = _STRAIGHT.get(key)
                if pairs is None:
                    here: dict[tuple[str, int, int], Violation] = {}
                    self._follow(producer, here)
                    pairs = _STRAIGHT[key] = tuple(here.values())
                for pair in pairs:
                    consumer = producer + pair.consumer - pair.producer
                    moved = replace(pair, producer=producer, consumer=consumer)
                    found[_pair(moved)] = moved
        return tuple(sorted(found.values(), key=lambda v: (v.consumer, v.producer, v.kind)))

    def violations(self, producers: Iterable[int]) -> tuple[Violation, ...]:
        found: dict[tuple[str, int, int], Violation] = {}
        reachable = set(self.cfg.order)
        for producer in producers:
            if self.facts[producer].produced and self.cfg.block_of[producer] in reachable:
                self._follow(producer, found)
        return tuple(sorted(found.values(), key=lambda v: (v.consumer, v.producer, v.kind)))

    def requirements(self, start: int, stop: int) -> Iterator[Requirement]:
        for producer in range(start, stop):
            produced = self.facts[producer].produced
            if not produced or producer in self.cfg.unknown:
                continue
            distance = 0
            for consumer in range(producer + 1, stop):
                if distance > _LONGEST:
                    break
                if consumer not in self.cfg.unknown:
                    strictest: dict[str, Violation] = {}
                    for pair in self._conflicts(producer, consumer, 0):
                        known = strictest.get(pair.kind)
                        if known is None or pair.needed > known.needed:
                            strictest[pair.kind] = pair
                    for pair in strictest.values():
                        yield Requirement(pair.kind, producer, consumer, pair.registers,
                                          pair.needed, distance)
                distance += self.states[consumer]

    def _follow(self, producer: int, found: dict[tuple[str, int, int], Violation]) -> None:
        produced = self.facts[producer].produced
        longest = max(states for _, _, states in produced)
        interest = 0
        for _, registers, _ in produced:
            interest |= registers
        nearest: dict[int, int] = {}
        pending = [(following, 0) for following in self.cfg.next_indices(producer)]
        while pending:
            here, distance = pending.pop()
            if nearest.get(here, distance + 1) <= distance:
                continue
            nearest[here] = distance
            facts = self.facts[here]
            if facts.interest & interest:
                for violation in self._conflicts(producer, here, distance):
                    known = found.get(_pair(violation))
                    if known is None or violation.found < known.found:
                        found[_pair(violation)] = violation
            distance += self.states[here]
            if distance < longest:
                pending += [(following, distance) for following in self.cfg.next_indices(here)]

    def _conflicts(self, producer: int, consumer: int, distance: int) -> Iterable[Violation]:
        consumed = dict(self.facts[consumer].consumed)
        for number, registers, states in self.facts[producer].produced:
            shared = registers & consumed.get(number, 0)
            if not shared or distance >= states:
                continue
            rule = self.rules[number]
            if rule.behind is not None and not any(
                    rule.behind(self.program.instructions[previous])
                    for previous in self.cfg.previous_indices(consumer)):
                continue
            first, second = self.program.instructions[producer], self.program.instructions[consumer]
            forwarded = forwarded_states(rule, first, second, self.isa)
            needed = states if forwarded is None else forwarded
            if distance < needed:
                yield Violation(rule.kind, producer, consumer, first.text, second.text, shared,
                                needed, distance)


# Violations of a producer by the processor and the texts of all that it can reach.
_STRAIGHT: dict[tuple[object, ...], tuple[Violation, ...]] = {}
_MOST_STRAIGHT = 1 << 16


def _unknown_facts(count: int) -> HazardFacts:
    return HazardFacts(
        tuple((number, EVERYTHING, _LONGEST) for number in range(count)),
        tuple((number, EVERYTHING) for number in range(count)), EVERYTHING)


def _wait_states(instruction: Instruction, state: State) -> int:
    if instruction.unit is Unit.NOP:
        return instruction.operands[0].value + 1
    return 0 if int(state) & _VSKIP and instruction.unit in VECTOR_UNITS else 1
