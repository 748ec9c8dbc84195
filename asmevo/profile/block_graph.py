"""One basic block as a graph whose nodes are positions from its start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set

from asmevo.isa.dependence import Dependences, Edge, EdgeKind
from asmevo.isa.effects import Effects
from asmevo.isa.hazards import Requirement, requirements
from asmevo.isa.instruction import Instruction, Unit
from asmevo.isa.program import Program
from asmevo.profile.pipes import Pipe, pipe_times

# No work that could fill a stall.
_PLACED = frozenset({Unit.WAIT, Unit.NOP})


class BlockGraph:
    """Dependences, waits and wait states of a block; sets of positions are bit masks.

    ``awaited`` maps (operation, user) to the wait between them; ``external`` maps waits for
    operations from before the block to the users of their results, and ``carried``, in a block that
    loops to itself, waits to (operation further down, user). ``states`` are wait states that a pair
    must have between it. ``nops`` maps each ``s_nop`` to the wait states that code outside needs of
    it, ``nops_needed`` to all that anything needs.
    """

    def __init__(self, program: Program, start: int, stop: int, *, fences: Set[int],
                 guards: Set[int], awaited: Mapping[int, Sequence[int]],
                 effects: Sequence[Effects], nops: Mapping[int, int],
                 loops_to_itself: bool) -> None:
        self.start, self.stop = start, stop
        self._instructions = program.instructions
        self._effects = effects
        self.dependences = Dependences(program, start, stop, fences=fences, guards=guards)
        self.predecessors = [
            sorted(p - start for p in self.dependences.predecessors[k]) for k in range(start, stop)]
        self.edges: tuple[Edge, ...] = self.dependences.edges()
        self._ahead = self._closure(range(len(self)), self.predecessors)
        self._behind = self._closure(range(len(self) - 1, -1, -1), self._successors())
        self._pipes = [pipe_times(i, program.isa) for i in self._instructions[start:stop]]
        self.pipe_totals: Counter[Pipe] = Counter()
        self._on_pipe = dict.fromkeys(Pipe, 0)
        for k, times in enumerate(self._pipes):
            self.pipe_totals.update(times)
            for pipe in times:
                self._on_pipe[pipe] |= 1 << k
        self._work = sum(1 << k for k, i in enumerate(self._instructions[start:stop])
                         if i.unit not in _PLACED)
        self._last_writer: dict[int, int] = {}
        for edge in self.edges:
            if edge.kind is EdgeKind.RAW:
                known = self._last_writer.get(edge.consumer - start, 0)
                self._last_writer[edge.consumer - start] = max(known, edge.producer - start)
        self.requirements: tuple[Requirement, ...] = ()
        self.states: dict[tuple[int, int], int] = {}
        self.nops: dict[int, int] = {}
        self.nops_needed: dict[int, int] = {}
        if nops:
            self._add_nops(program, nops)
        self.waits: dict[int, list[int]] = {}
        self.awaited: dict[tuple[int, int], int] = {}
        self.external: dict[int, list[int]] = {}
        self.carried: dict[int, list[tuple[int, int]]] = {}
        for wait in range(start, stop):
            if awaited.get(wait):
                self._add_wait(wait - start, awaited[wait], loops_to_itself)

    def __len__(self) -> int:
        return self.stop - self.start

    def instruction(self, position: int) -> Instruction:
        return self._instructions[self.start + position]

    def unit(self, position: int) -> Unit:
        return self.instruction(position).unit

    def is_placed(self, position: int) -> bool:
        """Whether it is a wait or wait states: a scheduler places them as the rest needs."""
        return self.unit(position) in _PLACED

    def last_writer(self, position: int) -> int | None:
        """The latest instruction of the block whose result ``position`` reads."""
        return self._last_writer.get(position)

    def holds(self, wait: int) -> bool:
        """Whether any memory operation is known that ``wait`` may wait for."""
        return wait in self.waits

    def behind(self, position: int) -> int:
        """``position`` and everything that must stay behind it."""
        return self._behind[position]

    def movable(self, producer: int, consumer: int, behind: int) -> int:
        """Work that may come between ``producer`` and ``consumer`` and is not there yet."""
        between = (1 << consumer + 1) - (1 << producer)
        return self._work & ~(self._ahead[producer] | behind | between)

    def movable_for_wait(self, wait: int) -> int:
        """Work that may come between the operations ``wait`` is for and their users.

        Another wait is part of it when the operations that it is for are: both then wait at once.
        """
        work = self._movable_for_wait(wait)
        stop = 1 << wait
        since = 1 << max(self.waits.get(wait, ()), default=0)
        between = stop - since if since < stop else 0
        for other, operations in self.waits.items():
            if operations and other != wait and not between >> other & 1 and all(
                    work >> p & 1 for p in operations):
                work |= 1 << other
        return work

    def _movable_for_wait(self, wait: int) -> int:
        behind = 0
        for (_, user), known in self.awaited.items():
            if known == wait:
                behind |= self._behind[user]
        for user in (*self.external.get(wait, ()), *(u for _, u in self.carried.get(wait, ()))):
            behind |= self._behind[user]
        if self.waits.get(wait):
            return self.movable(max(self.waits[wait]), wait, behind)
        carried = [p for p, _ in self.carried.get(wait, ())]
        if carried:
            first = max(carried)
            since = (1 << len(self)) - (1 << first) | (1 << wait + 1) - 1
            return self._work & ~(self._ahead[first] | behind | since)
        return self._work & ~(behind | (1 << wait + 1) - 1)

    def other_pipes(self, position: int) -> int:
        """Work that neither depends on ``position``, nor the other way, nor needs its pipes."""
        same = 0
        for pipe in self._pipes[position]:
            same |= self._on_pipe[pipe]
        return self._work & ~(self._ahead[position] | self._behind[position] | same)

    def spanning(self, nop: int) -> Iterator[tuple[int, int]]:
        """Pairs of the block that have too few wait states between them without ``nop``."""
        own = self.instruction(nop).operands[0].value + 1
        for r in self.requirements:
            if r.producer < self.start + nop < r.consumer and r.found - own < r.needed:
                yield r.producer - self.start, r.consumer - self.start

    def _closure(self, order: Sequence[int], edges: Sequence[Sequence[int]]) -> list[int]:
        reached = [0] * len(self)
        for k in order:
            reached[k] = 1 << k
            for other in edges[k]:
                reached[k] |= reached[other]
        return reached

    def _successors(self) -> list[list[int]]:
        after: list[list[int]] = [[] for _ in range(len(self))]
        for k, before in enumerate(self.predecessors):
            for p in before:
                after[p].append(k)
        return after

    def _add_nops(self, program: Program, needed: Mapping[int, int]) -> None:
        self.requirements = requirements(program, [(self.start, self.stop)])
        for r in self.requirements:
            self.states[r.producer - self.start, r.consumer - self.start] = r.needed
        for k in range(len(self)):
            if self.unit(k) is Unit.NOP:
                self.nops_needed[k] = needed[self.start + k]
                within = any(True for _ in self.spanning(k))
                self.nops[k] = 0 if within else self.nops_needed[k]

    def _add_wait(self, wait: int, operations: Sequence[int], loops_to_itself: bool) -> None:
        inside = [p - self.start for p in operations if self.start <= p < self.start + wait]
        self.waits[wait] = inside
        for operation in operations:
            position = operation - self.start
            users = self._users(operation, wait)
            if position in inside:
                for user in users:
                    self.awaited.setdefault((position, user), wait)
            elif loops_to_itself and wait < position < len(self):
                self.carried.setdefault(wait, []).extend((position, user) for user in users)
            else:
                self.external.setdefault(wait, []).extend(users)

    def _users(self, operation: int, wait: int) -> list[int]:
        """Positions behind ``wait`` that need ``operation`` done: uses, barriers, waits for it."""
        instruction = self._instructions[operation]
        written = self._effects[operation].writes
        publishes = (instruction.is_store or instruction.is_atomic
                     or instruction.modifier("lds") is not None or "_lds_" in instruction.op)
        users = []
        for k in range(wait + 1, len(self)):
            fact = self._effects[self.start + k]
            if (fact.reads | fact.writes) & written or (
                    publishes and (self.unit(k) is Unit.BARRIER)):
                users.append(k)
            if written and not written & ~fact.kills:
                break
        return users
