"""Missing wait states between instructions, over all paths.

Distances follow ``s_nop N`` = N + 1 wait states, any other instruction = one; a vector instruction
that VSKIP may skip counts for nothing, since skipped instructions issue several a cycle.
"""

from __future__ import annotations

from collections.abc import Iterable

from asmevo.isa.cfg import Cfg
from asmevo.isa.effects import VECTOR_UNITS, State, machine_states
from asmevo.isa.hazard_rules import HazardFacts, forwarded_states, hazard_facts, rules
from asmevo.isa.instruction import Instruction, Unit
from asmevo.isa.program import Program
from asmevo.isa.registers import EVERYTHING
from asmevo.isa.targets import model
from asmevo.isa.violation import Violation

_LONGEST = 20


def hazards(program: Program) -> tuple[Violation, ...]:
    """Every pair that breaks a rule of :func:`asmevo.isa.hazard_rules.rules` for the program's isa.

    ``kind`` is the rule's, ``needed`` and ``found`` are wait states. Production objects break
    conservative readings of the table, so compare with the original's own list. Unknown code is
    taken to begin with a consumer and to end with a producer of every rule. Raises ControlFlowError
    and TargetError.
    """
    distances = _Distances(program)
    return distances.violations(range(len(program)))


def smallest_nop(program: Program, index: int) -> int | None:
    """The smallest operand of the ``s_nop`` at ``index`` that breaks no rule anew.

    ``None`` when the ``s_nop`` can go. Raises ValueError when ``index`` is not an ``s_nop``,
    ControlFlowError and TargetError.
    """
    instruction = program.instructions[index]
    if instruction.unit is not Unit.NOP:
        raise ValueError(f"instruction {index} is not an s_nop")
    distances = _Distances(program)
    producers = distances.within_reach_before(index)
    written = distances.states[index]
    known = {_pair(v) for v in distances.violations(producers)}
    for states in range(written):
        distances.states[index] = states
        if all(_pair(v) in known for v in distances.violations(producers)):
            return states - 1 if states else None
    return written - 1


def _pair(violation: Violation) -> tuple[str, int, int]:
    return violation.kind, violation.producer, violation.consumer


class _Distances:
    """Wait states an instruction lets pass, and the walk from producers to consumers."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.cfg = Cfg.of(program)
        machine = machine_states(program, self.cfg)
        self.states = [
            _wait_states(instruction, state)
            for instruction, state in zip(program.instructions, machine, strict=True)]
        self.isa = model(program.isa)
        self.rules = rules(self.isa)
        unknown = _unknown_facts(len(self.rules))
        self.facts: list[HazardFacts] = [
            unknown if index in self.cfg.unknown else hazard_facts(i.text, self.isa)
            for index, i in enumerate(program.instructions)]

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

    def violations(self, producers: Iterable[int]) -> tuple[Violation, ...]:
        found: dict[tuple[str, int, int], Violation] = {}
        reachable = set(self.cfg.order)
        for producer in producers:
            if self.facts[producer].produced and self.cfg.block_of[producer] in reachable:
                self._follow(producer, found)
        return tuple(sorted(found.values(), key=lambda v: (v.consumer, v.producer, v.kind)))

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


def _unknown_facts(count: int) -> HazardFacts:
    return HazardFacts(
        tuple((number, EVERYTHING, _LONGEST) for number in range(count)),
        tuple((number, EVERYTHING) for number in range(count)), EVERYTHING)


def _wait_states(instruction: Instruction, state: State) -> int:
    if instruction.unit is Unit.NOP:
        return instruction.operands[0].value + 1
    return 0 if state & State.VSKIP and instruction.unit in VECTOR_UNITS else 1
