"""A profile from the code alone, for when there is nothing to run: a guess, labelled static.

A block counts ten times per loop around it, as compilers guess. One wave walks each block by
itself: a turn an instruction, pipes busy for as long as `asmevo.profile.pipes` says, waits until
the latency of what they wait for has passed since its issue. Operations from before the block are
taken to have been issued just before it, except that in a loop of one block an operation of the
round before has had the rest of the round. Other waves, caches and contention play no part.
"""

from __future__ import annotations

from collections import Counter

from asmevo.isa.access_width import access_bytes
from asmevo.isa.instruction import Instruction, Unit
from asmevo.isa.program import Program
from asmevo.profile.analysis import Analysis, Range
from asmevo.profile.machine import Machine
from asmevo.profile.pipes import TURN, WAVE, Pipe, pipe_times
from asmevo.profile.profile import InstructionProfile, MemoryLevel, Profile, StallCause

LOOP_WEIGHT = 10
# Deeper nests count no more: the guess is worthless long before.
_DEEPEST = 6


def static_estimate(program: Program, machine: Machine, *,
                    level: MemoryLevel = MemoryLevel.L2) -> Profile:
    """The guess, with every vector memory access found at ``level`` of ``machine``.

    ``issued`` are the weights of blocks, stalls are weighted alike, and ``cycles`` is their sum
    with the issue turns: good for comparing places of one program, not for durations. Unreachable
    code has weight 0. Raises ControlFlowError.
    """
    analysis = Analysis(program)
    instructions = [InstructionProfile(0)] * len(program)
    for block in analysis.blocks:
        if not analysis.cfg.reachable(block[0]):
            continue
        weight = LOOP_WEIGHT ** min(analysis.loop_depth[block[0]], _DEEPEST)
        for index, stalls in enumerate(_Walk(analysis, machine, level).block(block), block[0]):
            instructions[index] = InstructionProfile(
                weight, {cause: clk * weight for cause, clk in stalls.items() if clk})
    cycles = sum(i.issued * TURN + i.stalled for i in instructions)
    return Profile(
        "static estimate", "static", machine.name, cycles, tuple(instructions),
        clock_mhz=machine.clock_mhz,
        scope=f"nothing was run: one wave, a weight of {LOOP_WEIGHT} a loop level, "
              f"vector memory found in {level.value}")


class _Walk:
    """One wave through one block."""

    def __init__(self, analysis: Analysis, machine: Machine, level: MemoryLevel) -> None:
        self._analysis = analysis
        self._program = analysis.program
        self._machine = machine
        self._level = level
        self._free: Counter[Pipe] = Counter()
        self._done: dict[int, int] = {}

    def block(self, block: Range) -> list[dict[StallCause, int]]:
        start, stop = block
        first = self._round(start, stop)
        graph_block = self._analysis.cfg.blocks[self._analysis.cfg.block_of[start]]
        if (graph_block.start, graph_block.end) != block or (
                self._analysis.cfg.block_of[start] not in graph_block.successors):
            return first
        # The second round finds what the first has left in flight.
        return self._round(start, stop)

    def _round(self, start: int, stop: int) -> list[dict[StallCause, int]]:
        stalls = []
        now = 0
        for index in range(start, stop):
            instruction = self._program.instructions[index]
            pipes = pipe_times(instruction, self._program.isa)
            found = self._before(index, instruction, now)
            now += sum(found.values())
            for pipe, clk in pipes.items():
                self._free[pipe] = now + clk
            if instruction.vmcnt or instruction.lgkmcnt:
                self._done[index] = now + self._latency(instruction)
            after = self._after(index, instruction)
            now += TURN + sum(after.values())
            stalls.append(dict(found + after))
        # The next round starts where this one ends.
        self._done = {operation: clk - now for operation, clk in self._done.items()}
        self._free = Counter({pipe: clk - now for pipe, clk in self._free.items()})
        return stalls

    def _before(self, index: int, instruction: Instruction, now: int) -> Counter[StallCause]:
        """What holds an instruction back: a busy pipe, or what an ``s_waitcnt`` waits for."""
        found: Counter[StallCause] = Counter()
        pipes = pipe_times(instruction, self._program.isa)
        busy = max((self._free[pipe] for pipe in pipes), default=0) - now
        if busy > 0:
            found[StallCause.UNIT_BUSY] = busy
        for operation in self._analysis.awaited.get(index, ()):
            awaited = self._program.instructions[operation]
            left = self._done.get(operation, self._latency(awaited)) - now
            if left > found.total():
                cause = StallCause.VMCNT if awaited.vmcnt else StallCause.LGKMCNT
                found = Counter({cause: left})
        end, offset = self._program.offsets[index + 1], self._program.offsets[index]
        if end - offset == 8 and offset % 8 == 4:
            found[StallCause.FETCH] += self._machine.misaligned_fetch
        return found

    def _after(self, index: int, instruction: Instruction) -> Counter[StallCause]:
        """What an instruction costs behind its turn."""
        machine = self._machine
        found: Counter[StallCause] = Counter()
        if instruction.unit is Unit.NOP:
            found[StallCause.NOP] = TURN * (instruction.operands[0].value & 15)
        elif instruction.unit is Unit.BARRIER:
            found[StallCause.BARRIER] = machine.barrier_release
        elif instruction.is_branch:
            # Backward branches are taken to loop, forward ones not to be taken.
            target = self._program.targets[index]
            taken = not instruction.is_conditional or (target is not None and target <= index)
            clk = machine.branch_taken if taken else machine.branch_not_taken
            found[StallCause.FETCH] = max(clk - TURN, 0)
        return found

    def _latency(self, instruction: Instruction) -> int:
        machine = self._machine
        if instruction.unit is Unit.LDS:
            width = access_bytes(instruction) or TURN
            return machine.lds_latency + WAVE * width // (machine.lds_bytes_per_clk // 2)
        if instruction.unit in (Unit.VMEM, Unit.FLAT):
            # Stores and atomics are done in L2.
            level = self._level if instruction.is_load else MemoryLevel.L2
            return machine.latency[level]
        return machine.scalar_latency
