"""Which of the stalled cycles a better schedule could hide.

A block is a graph: instructions, and what must stay behind what (`asmevo.isa.dependence`, registers
as allocated). Per execution, the wave needed ``observed`` clk for it: one issue turn and the stalls
of every instruction. No schedule of the same instructions is faster than the longest of

- the critical path: an issue turn a dependence, but behind a memory operation (or an operation
  whose result was waited for) its latency, which is the time from its issue to the end of the wait
  for it. Where the wait did not stall, the latency is unknown, at most that time and taken to be at
  most the longest one seen of its unit;
- data from before the block (a load issued earlier), which arrives no earlier than it did. In a
  loop of one block an operation of the round before may move within its body, too;
- all issue turns, together with what no order changes: instruction fetch, wait states that only
  code outside the block needs, and barriers as far as waves of a workgroup wait there alike. What a
  wave waits at barriers more than the least-waiting one of its workgroup over the whole run is
  imbalance, and could go;
- the busy time of every pipe over all waves that share it: a stall at a saturated unit, or one that
  other waves fill, is not lost.

The difference is what the block can recover. It is shared out over its instructions by what each
could hide at most: a memory or dependency stall as much as the rest of the block that may move
between producer and use takes now; a busy unit as much issue work as other units could do
meanwhile; an ``s_nop`` as much issue work as may stand in for it, and what no rule needs of it; a
barrier the imbalance among its waits.

Besides, instructions of eight bytes that straddle two fetch units lose what alignment would save,
at most a turn each. Waiting for a slot on the compute unit is no matter of order, nor is a stall
whose cause the profiler does not know. Limits of memory bandwidth are not looked at here: see the
roofline.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from asmevo.isa.instruction import Unit
from asmevo.isa.program import Program
from asmevo.isa.registers import members
from asmevo.profile.analysis import Analysis
from asmevo.profile.block_graph import BlockGraph
from asmevo.profile.pipes import SHARED_BY, TURN, Pipe
from asmevo.profile.profile import InstructionProfile, Profile, StallCause

MEMORY_CAUSES = (StallCause.VMCNT, StallCause.LGKMCNT)
_SCHEDULABLE = (*MEMORY_CAUSES, StallCause.DEPENDENCY, StallCause.UNIT_BUSY, StallCause.NOP)
_NO_LATENCY = float("inf")


def recoverable(analysis: Analysis, profile: Profile) -> list[float]:
    """Per instruction, the cycles of its stalls that could be hidden, over all executions.

    ``profile`` must belong to the analysed program. Where it does not say how often instructions
    issued, nothing is claimed.
    """
    found = [0.0] * len(analysis.program)
    residency = _Residency.of(profile)
    slowest: dict[Unit, float] = {}
    blocks = [b for b in map(analysis.graph, analysis.blocks) if _is_stalled(b, profile)]
    imbalance = _imbalance(profile)
    observed = [_Observed(block, profile, imbalance) for block in blocks]
    for block in observed:
        for unit, clk in block.stalled_latencies():
            slowest[unit] = max(slowest.get(unit, 0.0), clk)
    for block in observed:
        for index, clk in block.recoverable(residency, slowest).items():
            found[index] += clk
    _add_fetch(analysis.program, profile, found)
    return found


def _is_stalled(block: BlockGraph, profile: Profile) -> bool:
    own = profile.instructions[block.start:block.stop]
    return any(i.issued for i in own) and any(i.stalls for i in own)


@dataclass(frozen=True, slots=True)
class _Residency:
    """Waves that a SIMD had on average while it had any, and SIMDs that had some."""

    waves: float
    simds: float

    @staticmethod
    def of(profile: Profile) -> _Residency:
        """One wave on one SIMD where the profile does not tell."""
        places: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        for wave in profile.waves:
            places[wave.unit, wave.simd].append((wave.start, wave.end))
        busy = sum(max(e for _, e in p) - min(s for s, _ in p) for p in places.values())
        lived = sum(e - s for p in places.values() for s, e in p)
        if not busy:
            return _Residency(1.0, 1.0)
        return _Residency(max(lived / busy, 1.0), len(places) / len({unit for unit, _ in places}))

    def sharing(self, pipe: Pipe) -> float:
        """Waves that share a pipe."""
        return self.waves * min(float(SHARED_BY[pipe]), self.simds)


class _Observed:
    """One block as it was executed, in clk per execution; positions count from its start."""

    def __init__(self, graph: BlockGraph, profile: Profile, imbalance: float) -> None:
        self.graph = graph
        self.imbalance = imbalance
        own: Sequence[InstructionProfile] = profile.instructions[graph.start:graph.stop]
        self.executions = _executions(graph, own)
        self.stalls = [
            {cause: clk / self.executions for cause, clk in i.stalls.items()} for i in own]
        self.issue: list[float] = []  # the time at which each instruction issues
        now = 0.0
        for stalls in self.stalls:
            now += sum(stalls.values())
            self.issue.append(now)
            now += TURN
        self.total = now

    def stalled_latencies(self) -> Iterator[tuple[Unit, float]]:
        """Latencies that a stalled wait reveals, by the unit of the operation."""
        for wait, operations in self.graph.waits.items():
            if self._waited(wait) > 0 and operations:
                last = max(operations)
                yield self.graph.unit(last), self.issue[wait] - self.issue[last]

    def recoverable(self, residency: _Residency, slowest: Mapping[Unit, float]) -> dict[int, float]:
        graph = self.graph
        most = self._shares()
        claimed = sum(most)
        hideable = sum(s.get(cause, 0.0) for s in self.stalls for cause in _SCHEDULABLE)
        hideable += sum(map(self._uneven, range(len(graph))))
        possible = min(max(self.total - self._bound(residency, slowest), 0.0), hideable)
        if claimed <= 0.0 or possible <= 0.0:
            return {}
        scale = min(1.0, possible / claimed) * self.executions
        return {graph.start + k: clk * scale for k, clk in enumerate(most) if clk > 0.0}

    def _uneven(self, position: int) -> float:
        """What waves wait at a barrier because they do not come alike."""
        return self.stalls[position].get(StallCause.BARRIER, 0.0) * self.imbalance

    def _waited(self, position: int) -> float:
        return sum(self.stalls[position].get(cause, 0.0) for cause in MEMORY_CAUSES)

    def _bound(self, residency: _Residency, slowest: Mapping[Unit, float]) -> float:
        """What no schedule of the block's instructions beats."""
        graph = self.graph
        fixed = [self._fixed(k) for k in range(len(graph))]
        released = [0.0] * len(graph)
        for wait, users in graph.external.items():
            for user in users:
                released[user] = max(released[user], self.issue[wait])
        latency = dict(self._latencies(slowest))
        latency.update({pair: TURN * states for pair, states in graph.states.items()
                        if TURN * states > latency.get(pair, 0.0)})
        ready: list[float] = []
        for k in range(len(graph)):
            start = released[k]
            for p in graph.predecessors[k]:
                start = max(start, ready[p] + latency.get((p, k), fixed[p]))
            ready.append(start)
        tail = [0.0] * len(graph)
        for k in range(len(graph) - 1, -1, -1):
            tail[k] = max(tail[k], fixed[k])
            for p in graph.predecessors[k]:
                tail[p] = max(tail[p], latency.get((p, k), fixed[p]) + tail[k])
        path = max((r + t for r, t in zip(ready, tail, strict=True)), default=0.0)
        # An operation of one round and its use in the next have the latency between them, wherever
        # in their bodies they stand.
        carried = max(
            ((ready[p] + self.total - self.issue[p] + self.issue[wait] + tail[user]) / 2
             for wait, pairs in graph.carried.items() for p, user in pairs), default=0.0)
        pipes = max((residency.sharing(pipe) * clk for pipe, clk in graph.pipe_totals.items()),
                    default=0.0)
        return max(path, carried, sum(fixed), pipes)

    def _fixed(self, position: int) -> float:
        """The cost of an instruction that no order changes."""
        stalls = self.stalls[position]
        cost = sum(clk for cause, clk in stalls.items() if cause not in _SCHEDULABLE)
        cost -= self._uneven(position)
        outside = self.graph.nops.get(position)
        if outside is not None:
            # A turn is left of a nop that others need, nothing of one that nobody does.
            return cost + min(TURN * outside, TURN + stalls.get(StallCause.NOP, 0.0))
        return cost + TURN

    def _latencies(self, slowest: Mapping[Unit, float]) -> Iterator[tuple[tuple[int, int], float]]:
        graph = self.graph
        for (producer, user), wait in graph.awaited.items():
            distance = self.issue[wait] - self.issue[producer]
            if self._waited(wait) <= 0.0:
                distance = min(distance, slowest.get(graph.unit(producer), _NO_LATENCY))
            yield (producer, user), max(distance, float(TURN))
        for position, stalls in enumerate(self.stalls):
            writer = graph.last_writer(position)
            if stalls.get(StallCause.DEPENDENCY) and writer is not None:
                yield (writer, position), self.issue[position] - self.issue[writer]

    def _shares(self) -> list[float]:
        """At most how much of each instruction's stalls independent work could hide."""
        graph = self.graph
        clk = [sum(stalls.values()) + (0 if graph.unit(k) is Unit.WAIT else TURN)
               for k, stalls in enumerate(self.stalls)]
        turns = [float(TURN)] * len(graph)
        most = []
        for k, stalls in enumerate(self.stalls):
            share = self._uneven(k)
            waited = self._waited(k)
            if waited > 0.0 and graph.holds(k):
                share += min(waited, _time(clk, graph.movable_for_wait(k)))
            waited = stalls.get(StallCause.DEPENDENCY, 0.0)
            producer = graph.last_writer(k)
            if waited > 0.0 and producer is not None:
                share += min(waited, _time(clk, graph.movable(producer, k, graph.behind(k))))
            waited = stalls.get(StallCause.UNIT_BUSY, 0.0)
            if waited > 0.0:
                share += min(waited, _time(turns, graph.other_pipes(k)))
            waited = stalls.get(StallCause.NOP, 0.0)
            if waited > 0.0 and k in graph.nops:
                spare = max(TURN + waited - TURN * graph.nops_needed[k], 0.0)
                work = max((_time(turns, graph.movable(p, c, graph.behind(c)))
                            for p, c in graph.spanning(k)), default=0.0)
                share += min(waited, spare + work)
            most.append(share)
        return most


def _executions(graph: BlockGraph, own: Sequence[InstructionProfile]) -> float:
    """How often a block ran: what its instructions issued on average, for samples vary.

    Profilers count no issues of waits and wait states, which no unit executes.
    """
    issued = [i.issued for k, i in enumerate(own) if not graph.is_placed(k)]
    return sum(issued) / len(issued) if any(issued) else max(i.issued for i in own)


def _time(clk: Sequence[float], positions: int) -> float:
    return sum(clk[k] for k in members(positions))


def _add_fetch(program: Program, profile: Profile, found: list[float]) -> None:
    for index, instruction in enumerate(profile.instructions):
        stalled = instruction.stalls.get(StallCause.FETCH, 0)
        offset, end = program.offsets[index], program.offsets[index + 1]
        if stalled and end - offset == 8 and offset % 8 == 4:
            found[index] += min(stalled, TURN * instruction.issued)


def _imbalance(profile: Profile) -> float:
    """The share of all waits at barriers that even waves would not have."""
    waited: dict[tuple[int, int], list[int]] = defaultdict(list)
    for wave in profile.waves:
        waited[wave.unit, wave.workgroup].append(wave.stalls.get(StallCause.BARRIER, 0))
    uneven = sum(clk - min(group) for group in waited.values() for clk in group)
    total = sum(clk for group in waited.values() for clk in group)
    return uneven / total if total else 0.0
