"""What profiles are read against: a program's control flow, liveness, waits and block graphs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from asmevo.isa import ordering
from asmevo.isa.cfg import Cfg
from asmevo.isa.dataflow import liveness
from asmevo.isa.effects import Effects, effects, machine_states
from asmevo.isa.hazards import smallest_nops
from asmevo.isa.instruction import Unit
from asmevo.isa.program import Program
from asmevo.isa.waits import awaited
from asmevo.profile.block_graph import BlockGraph

Range = tuple[int, int]


def basic_blocks(program: Program) -> tuple[Range, ...]:
    """Half-open index ranges that control enters only at their start and leaves only at their end.

    Every label starts a block: an edit may not move an instruction across one.
    """
    leaders = {0, *(t for t in program.targets if t is not None), *program.labels}
    for index, instruction in enumerate(program.instructions):
        if instruction.is_branch or instruction.ends_program:
            leaders.add(index + 1)
    starts = sorted(leader for leader in leaders if 0 <= leader < len(program))
    return tuple(zip(starts, [*starts[1:], len(program)], strict=True)) if len(program) else ()


class Analysis:
    """Analyses of one program, each made at most once. Raises ControlFlowError when first used."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._graphs: dict[Range, BlockGraph] = {}

    @cached_property
    def blocks(self) -> tuple[Range, ...]:
        """The program's blocks; calls and returns that only the graph knows start some as well."""
        starts = {start for start, _ in basic_blocks(self.program)}
        starts |= {block.start for block in self.cfg.blocks}
        ordered = sorted(starts)
        return tuple(zip(ordered, [*ordered[1:], len(self.program)], strict=True))

    @cached_property
    def cfg(self) -> Cfg:
        return Cfg.of(self.program)

    @cached_property
    def effects(self) -> tuple[Effects, ...]:
        return effects(self.program, self.cfg)

    @cached_property
    def live(self) -> tuple[int, ...]:
        """Per instruction, the registers that are live behind it."""
        return liveness(self.program)

    @cached_property
    def awaited(self) -> Mapping[int, tuple[int, ...]]:
        """Per ``s_waitcnt``, the memory operations that it may wait for."""
        return awaited(self.program)

    @cached_property
    def fences(self) -> frozenset[int]:
        return ordering.fences(self.program, machine_states(self.program, self.cfg))

    @cached_property
    def guards(self) -> frozenset[int]:
        return ordering.guards(self.program)

    @cached_property
    def nops(self) -> Mapping[int, int]:
        """Per ``s_nop``, the wait states that rules need of it, its own share of them aside 0."""
        nops = [k for k, i in enumerate(self.program.instructions) if i.unit is Unit.NOP]
        least = smallest_nops(self.program, nops)
        return {index: 0 if operand is None else operand + 1 for index, operand in least.items()}

    @cached_property
    def loop_depth(self) -> tuple[int, ...]:
        """Per instruction, the natural loops it lies in."""
        depth = [0] * len(self.cfg.blocks)
        for loop in self.cfg.loops():
            for number in loop.blocks:
                depth[number] += 1
        return tuple(depth[number] for number in self.cfg.block_of)

    def graph(self, block: Range) -> BlockGraph:
        """The dependences of one of `blocks`."""
        if block not in self._graphs:
            self._graphs[block] = self._graph(*block)
        return self._graphs[block]

    def _graph(self, start: int, stop: int) -> BlockGraph:
        block = self.cfg.blocks[self.cfg.block_of[start]]
        loops = (block.start, block.end) == (start, stop) and (
            self.cfg.block_of[start] in block.successors)
        own = self.program.instructions[start:stop]
        return BlockGraph(
            self.program, start, stop, fences=self.fences, guards=self.guards,
            awaited=self.awaited, effects=self.effects, loops_to_itself=loops,
            nops=self.nops if any(i.unit is Unit.NOP for i in own) else {})
