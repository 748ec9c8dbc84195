"""The values of a candidate, of which those that nothing changed reaches are the original's.

A value is made from what instructions read, and that from what others read before them. Where two
programs have the same blocks, and an instruction is kept of which no operand, on any path and
however far back, comes from a changed stretch, what it reads and makes is built from the same
instructions in the same way: so it has the original's number. What a stretch changes is followed
forwards through the registers, over all paths; a register is left alone where what it holds behind
the stretch is in both programs what the same kept instruction made, or has the same numbers.

Which lanes have what depends on the whole program (`asmevo.isa.lane_writers`,
`asmevo.isa.active_lanes`): where a stretch has to do with EXEC or the masks that go there, all is
looked at anew.
"""

from __future__ import annotations

import functools
import operator
from collections import defaultdict
from collections.abc import Mapping

from asmevo.isa.chosen_lanes import is_choice
from asmevo.isa.effects import VECTOR_REGISTERS, State
from asmevo.isa.instruction import Instruction, Unit
from asmevo.isa.kept_code import KeptCode, Stretch
from asmevo.isa.program import Program
from asmevo.isa.recent import Recent
from asmevo.isa.registers import (
    EXEC_MASK,
    MODE_MASK,
    SCC_MASK,
    SGPR_LIMIT,
    VCC_MASK,
    VGPR0,
    members,
)
from asmevo.isa.value_graph import Definition, Merge, Named, Node
from asmevo.isa.value_numbers import Numbers
from asmevo.isa.values import Source, Values

_SCALARS = (1 << SGPR_LIMIT) - 1 | VCC_MASK
_FIRST_LANE = "v_readfirstlane"
# Candidates of one original follow one another.
_known_masks: Recent[int] = Recent(2)


class KeptValues(Values):
    """`Values` of a candidate, with the same answers."""

    def __init__(self, program: Program, entry: Mapping[int, Source], numbers: Numbers,
                 original: Values) -> None:
        super().__init__(program, entry, numbers)
        self._original = original
        code = KeptCode.of(original.program, original.cfg, program, self.cfg)
        self._origin: Mapping[int, int] = {}
        self._changed_blocks = frozenset(code.stretches) if code is not None else frozenset()
        if code is not None and original.is_of(entry, numbers):
            self._origin = _Changes(original, self, code).untouched()

    @property
    def kept(self) -> Mapping[int, int]:
        """The instructions whose values are those of an instruction of the original, and which."""
        return self._origin

    @functools.cached_property
    def kept_blocks(self) -> frozenset[int]:
        cfg, origin = self.cfg, self._origin
        return frozenset(
            number for number in cfg.order if number not in self._changed_blocks
            and all(k in origin for k in range(cfg.blocks[number].start, cfg.blocks[number].end)))

    def _same(self, index: int, registers: int, register: int) -> int | None:
        """The original's instruction, where it is the same with one of these registers."""
        return self._origin.get(index) if registers >> register & 1 else None

    def before(self, index: int, register: int) -> int:
        at = self._same(index, self.program.instructions[index].reads, register)
        return super().before(index, register) if at is None else (
            self._original.before(at, register))

    def exact_before(self, index: int, register: int) -> int:
        at = self._same(index, self.program.instructions[index].reads, register)
        return super().exact_before(index, register) if at is None else (
            self._original.exact_before(at, register))

    def after(self, index: int, register: int) -> int:
        at = self._same(index, self.program.instructions[index].writes, register)
        return super().after(index, register) if at is None else (
            self._original.after(at, register))

    def exact_after(self, index: int, register: int) -> int:
        at = self._same(index, self.program.instructions[index].writes, register)
        return super().exact_after(index, register) if at is None else (
            self._original.exact_after(at, register))

    def from_memory(self, index: int, register: int) -> bool:
        at = self._same(index, self.program.instructions[index].writes, register)
        return super().from_memory(index, register) if at is None else (
            self._original.from_memory(at, register))

    def loaded_before(self, index: int, register: int) -> bool:
        at = self._same(index, self.program.instructions[index].reads, register)
        return super().loaded_before(index, register) if at is None else (
            self._original.loaded_before(at, register))


class _Changes:
    """Follows what changed from block to block, as masks of registers that may hold other values.

    What is taken for unchanged is checked once more when all is known that is not: both only grow.
    """

    def __init__(self, original: Values, candidate: Values, code: KeptCode) -> None:
        self._original, self._candidate, self._code = original, candidate, code
        self._states, self._old_states = candidate.states, original.states
        self._effects = candidate.graph.effects
        self._touched: set[int] = set()
        # What is not kept whatever it reads, and the blocks with such.
        self._asking: frozenset[int] = frozenset()
        self._asking_blocks: frozenset[int] = frozenset()
        self._arriving: defaultdict[int, int] = defaultdict(int)
        # Registers in front of and behind a stretch that may hold other values, as far as is known,
        # those that either program writes in it, and its block.
        self._before: defaultdict[Stretch, int] = defaultdict(int)
        self._behind: defaultdict[Stretch, int] = defaultdict(int)
        self._written: dict[Stretch, int] = {}
        self._block: dict[Stretch, int] = {}
        self._equal: dict[tuple[Node, Node], bool] = {}

    def untouched(self) -> dict[int, int]:
        if not self._keeps_lanes():
            return {}
        if not self._code.stretches:
            return self._code.origin
        self._asking = frozenset(self._selections())
        self._asking_blocks = frozenset(self._candidate.cfg.block_of[k] for k in self._asking)
        for number, stretches in self._code.stretches.items():
            for stretch in stretches:
                self._block[stretch] = number
                self._written[stretch] = functools.reduce(operator.or_, (
                    *(self._original.graph.effects[k].writes
                      for k in range(stretch.first, stretch.last)),
                    *(self._effects[k].writes for k in range(stretch.start, stretch.stop))))
        pending = list({*self._code.stretches, *self._asking_blocks})
        while pending:
            number = pending.pop()
            left = self._through(number, self._arriving[number])
            for successor in self._candidate.cfg.blocks[number].successors:
                if left & ~self._arriving[successor]:
                    self._arriving[successor] |= left
                    pending.append(successor)
            if not pending:
                # A kept instruction that was found to read other values since makes other ones.
                pending = [n for n, stretches in self._code.stretches.items()
                           if any(self._changed(s) & ~self._behind[s] for s in stretches)]
        return {index: at for index, at in self._code.origin.items() if index not in self._touched}

    def _keeps_lanes(self) -> bool:
        """Whether what lanes are on, and where, is told by kept instructions alone."""
        old, new = self._original, self._candidate
        origin = self._code.origin
        old_effects = old.graph.effects
        if any(self._states[k] != self._old_states[at]
               or (self._effects[k] is not old_effects[at] and self._effects[k] != old_effects[at])
               for k, at in origin.items()):
            return False
        if any(state & State.INDEXING for state in {*self._states, *self._old_states}):
            return False  # operands are not what they seem
        if old.graph.skips != new.graph.skips:
            return False
        masks = _known_masks.get(lambda: _masks(old.program), old.program)
        written = 0
        for program, changed in self._changed_code():
            for i in program.instructions[changed.start:changed.stop]:
                written |= i.writes
                masks |= _mask_registers(i)
                if i.is_branch or i.ends_program or i.unit is Unit.OPAQUE:
                    return False
        if written & masks:
            return False
        readers = [k for k in origin
                   if new.program.instructions[k].op.startswith(_FIRST_LANE)]
        if written & _SCALARS and readers:
            here, there = new.graph.active, old.graph.active
            return all((k in here) == (origin[k] in there) for k in readers)
        return True

    def _changed_code(self) -> list[tuple[Program, range]]:
        every = [s for stretches in self._code.stretches.values() for s in stretches]
        return [*((self._original.program, range(s.first, s.last)) for s in every),
                *((self._candidate.program, range(s.start, s.stop)) for s in every)]

    def _selections(self) -> set[int]:
        """Selections by a mask ask what others than their own operands' writers did."""
        written = 0
        for program, changed in self._changed_code():
            for k in changed:
                written |= program.instructions[k].writes
        instructions = self._candidate.program.instructions
        return {k for k in self._code.origin if is_choice(instructions[k])
                and (instructions[k].reads & ~EXEC_MASK) & written}

    def _through(self, number: int, other: int) -> int:
        """The registers that may hold other values at a block's end."""
        block = self._candidate.cfg.blocks[number]
        stretches = self._code.stretches.get(number, ())
        asking = number in self._asking_blocks
        if not other and not stretches and not asking:
            return 0
        instructions, index = self._candidate.program.instructions, block.start
        for stretch in (*stretches, None):
            stop = block.end if stretch is None else stretch.start
            for k in range(index, stop):
                if not other and not asking:
                    break
                fact = self._effects[k]
                if (fact.reads | instructions[k].reads) & other or k in self._asking:
                    self._touched.add(k)
                    other |= fact.writes
                elif fact.writes & other:
                    other &= ~self._replaced(k)
            if stretch is not None:
                self._before[stretch] |= other
                self._behind[stretch] |= self._changed(stretch)
                other = other & ~self._written[stretch] | self._behind[stretch]
                index = stretch.stop
        return other

    def _replaced(self, index: int) -> int:
        """What an instruction certainly overwrites, whichever lanes are looked at."""
        kills = self._effects[index].kills
        return kills & ~VECTOR_REGISTERS if self._states[index] else kills

    def _changed(self, stretch: Stretch) -> int:
        """The registers that a stretch of either program writes and that are not alike behind."""
        changed = 0
        for register in members(self._written[stretch]):
            if not self._is_alike(stretch, register):
                changed |= 1 << register
        return changed

    def _is_alike(self, stretch: Stretch, register: int) -> bool:
        """Whether one and the same value is in a register behind a stretch, on all paths to it."""
        old, new = self._original, self._candidate
        ends = []
        for values, first, last, keeper in (
                (old, stretch.first, stretch.last, stretch.last),
                (new, stretch.start, stretch.stop, stretch.stop)):
            effects = values.graph.effects
            writer = next((k for k in range(last - 1, first - 1, -1)
                           if effects[k].writes >> register & 1), None)
            if writer is None:
                if self._before[stretch] >> register & 1:
                    return False
                end = values.graph.only_arriving(self._block[stretch], keeper, register)
            elif effects[writer].kills >> register & 1 and (
                    register < VGPR0 or not self._state_at(values, writer)):
                end = values.graph.resolve(Definition(writer, register))
            else:
                return False
            if end is None:
                return False
            ends.append(end)
        return self._are_alike(*ends, by_number=register >= VGPR0 or not self._compares_masks)

    def _state_at(self, values: Values, index: int) -> State:
        states = self._states if values is self._candidate else self._old_states
        return states[index]

    @functools.cached_property
    def _compares_masks(self) -> bool:
        """Whether something asks if two masks are one, which no number tells."""
        return any(is_choice(i) for values in (self._original, self._candidate)
                   for i in values.program.instructions)

    def _are_alike(self, old: Node, new: Node, *, by_number: bool) -> bool:
        if isinstance(old, Definition) and isinstance(new, Definition) and (
                old.register == new.register and self._code.origin.get(new.at) == old.at):
            return new.at not in self._touched
        if not by_number:
            return old == new and not isinstance(old, Definition | Merge | Named)
        if (old, new) not in self._equal:
            self._equal[old, new] = self._original.traits(old) == self._candidate.traits(new) != ()
        return self._equal[old, new]


def _masks(program: Program) -> int:
    """EXEC, MODE and the scalar registers of instructions that have to do with EXEC."""
    return functools.reduce(operator.or_, map(_mask_registers, program.instructions),
                            EXEC_MASK | MODE_MASK)


def _mask_registers(i: Instruction) -> int:
    touched = i.reads | i.writes
    return touched & ~SCC_MASK if i.unit is Unit.SALU and touched & EXEC_MASK else 0
