"""From profiles to hot windows: where a program spends its stalled cycles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from asmevo.isa.dependence import Edge, EdgeKind
from asmevo.isa.hazards import requirements
from asmevo.isa.program import Program
from asmevo.isa.registers import ALL_AGPR_MASK, ALL_VGPR_MASK
from asmevo.profile.analysis import Analysis, Range, basic_blocks
from asmevo.profile.edge_counts import edge_counts
from asmevo.profile.errors import ProfileError
from asmevo.profile.hotwindow import HotWindow, Wait, total_share
from asmevo.profile.profile import Profile, StallCause
from asmevo.profile.recoverable import recoverable

__all__ = ["ProfileError", "WindowFinder", "basic_blocks", "hot_windows", "stalls_by_instruction",
           "total_share"]


def stalls_by_instruction(program: Program,
                          profiles: Iterable[Profile]) -> tuple[Counter[StallCause], ...]:
    """Stalled cycles by cause, per instruction, summed over the profiles.

    Raises ProfileError when a profile has another number of instructions.
    """
    totals: tuple[Counter[StallCause], ...] = tuple(Counter() for _ in program.instructions)
    for profile in profiles:
        if len(profile.instructions) != len(program):
            raise ProfileError(
                f"the profile of {profile.dispatch} covers {len(profile.instructions)} "
                f"instructions, the program has {len(program)}")
        for total, instruction in zip(totals, profile.instructions, strict=True):
            total.update(instruction.stalls)
    return totals


def hot_windows(profiles: Sequence[Profile], program: Program, *, count: int,
                max_length: int) -> tuple[HotWindow, ...]:
    """The ``count`` non-overlapping windows with the most recoverable cycles, the worst first.

    A window has at most ``max_length`` instructions, stays inside one basic block, ends at
    stalled instructions, and carries the instructions before its first stall as far as they fit:
    that is where the stall can be hidden. Behind those with recoverable cycles come windows of
    what is left by stalled cycles; windows without stalls are not returned. Raises ProfileError
    and ControlFlowError.
    """
    if count < 1 or max_length < 1:
        raise ProfileError("a window search needs a count and a length of at least 1")
    stalls = stalls_by_instruction(program, profiles)
    if not any(stalls):
        return ()
    analysis = Analysis(program)
    gains = [0.0] * len(program)
    for profile in profiles:
        for index, clk in enumerate(recoverable(analysis, profile)):
            gains[index] += clk
    gains = [clk if clk >= 1.0 else 0.0 for clk in gains]
    builder = _Builder(analysis, profiles, stalls, gains)
    free = list(analysis.blocks)
    found: list[HotWindow] = []
    for weights in (gains, [float(total.total()) for total in stalls]):
        for start, stop in _heaviest(weights, free, max_length, count - len(found)):
            found.append(builder.window(start, stop))
    return tuple(found)


def _heaviest(weights: Sequence[float], free: list[Range], max_length: int,
              count: int) -> list[Range]:
    """Take up to ``count`` windows with a weight out of the ``free`` ranges, the heaviest first."""
    best = {block: _heaviest_of(weights, block, max_length) for block in free}
    taken: list[Range] = []
    while best and len(taken) < count:
        block = max(best, key=lambda b: (best[b][0], -b[0]))
        weight, start, stop = best.pop(block)
        if weight <= 0:
            break
        taken.append((start, stop))
        free.remove(block)
        for piece in ((block[0], start), (stop, block[1])):
            if piece[0] < piece[1]:
                free.append(piece)
                best[piece] = _heaviest_of(weights, piece, max_length)
    return taken


def _heaviest_of(weights: Sequence[float], block: Range,
                 max_length: int) -> tuple[float, int, int]:
    """Weight, start and stop of the heaviest window of a block; the earliest of equals.

    The weight only grows where a stalled instruction enters, so the window ends at one.
    """
    first, end = block
    best = (0.0, first, first)
    for stop in range(first + 1, end + 1):
        if weights[stop - 1] > 0:
            start = max(first, stop - max_length)
            weight = sum(weights[start:stop])
            if weight > best[0]:
                best = (weight, start, stop)
    return best


class _Builder:
    """Describes windows of one program."""

    def __init__(self, analysis: Analysis, profiles: Sequence[Profile],
                 stalls: Sequence[Counter[StallCause]], gains: Sequence[float]) -> None:
        self._analysis = analysis
        self._stalls = stalls
        self._gains = gains
        self._all = sum(total.total() for total in stalls)
        self._issued = [sum(p.instructions[k].issued for p in profiles)
                        for k in range(len(analysis.program))]
        self._loops = analysis.cfg.loops()
        self._executions = [max(self._issued[b.start:b.end]) for b in analysis.cfg.blocks]
        self._edge_counts = edge_counts(analysis.cfg, self._executions)

    def window(self, start: int, stop: int) -> HotWindow:
        analysis = self._analysis
        causes: Counter[StallCause] = Counter()
        reads = writes = needs = kills = changes = 0
        for index in range(start, stop):
            instruction, effect = analysis.program.instructions[index], analysis.effects[index]
            reads |= instruction.reads & ~writes
            writes |= instruction.writes
            needs |= effect.reads & ~kills
            kills |= effect.kills
            changes |= effect.writes
            causes.update(self._stalls[index])
        stalled = causes.total()
        behind = analysis.live[stop - 1]
        number = analysis.cfg.block_of[start]
        return HotWindow(
            start, stop, stalled / self._all, max(StallCause, key=lambda c: causes[c]), reads,
            writes, recoverable=round(sum(self._gains[start:stop])), stalled=stalled,
            causes=dict(causes), live_in=needs, live_out=changes & behind,
            live_through=behind & ~changes & ~needs, pressure=self._pressure(start, stop),
            edges=self._edges(start, stop),
            waits=tuple(Wait(k, analysis.awaited[k]) for k in range(start, stop)
                        if k in analysis.awaited),
            hazards=requirements(analysis.program, [(start, stop)]),
            loop_depth=sum(number in loop.blocks for loop in self._loops),
            trip_count=self._trip_count(number),
            executions=max(self._issued[start:stop]))

    def _pressure(self, start: int, stop: int) -> int:
        vector = ALL_VGPR_MASK | ALL_AGPR_MASK
        return max((live & vector).bit_count() for live in self._analysis.live[start:stop])

    def _edges(self, start: int, stop: int) -> tuple[Edge, ...]:
        block = next(b for b in self._analysis.blocks if b[0] <= start < b[1])
        inside = [edge for edge in self._analysis.graph(block).edges
                  if start <= edge.producer and edge.consumer < stop]
        awaited = self._analysis.awaited
        waits = [Edge(operation, wait, EdgeKind.WAIT)
                 for wait in range(start, stop) for operation in awaited.get(wait, ())
                 if start <= operation < wait]
        return tuple(sorted((*inside, *waits), key=lambda e: (e.consumer, e.producer, e.kind)))

    def _trip_count(self, number: int) -> float | None:
        """Rounds per entry of the innermost loop, where entries can be told from issue counts."""
        loop = min((loop for loop in self._loops if number in loop.blocks),
                   key=lambda loop: len(loop.blocks), default=None)
        if loop is None:
            return None
        before = self._analysis.cfg.blocks[loop.header].predecessors
        entering = [self._edge_counts.get((p, loop.header)) for p in before if p not in loop.blocks]
        entries = sum(count for count in entering if count is not None)
        if None in entering or entries < 1:
            return None
        return self._executions[loop.header] / entries


@dataclass(frozen=True, slots=True)
class WindowFinder:
    """`hot_windows` with its settings, as ``conf/profile`` builds it."""

    count: int = 8
    length: int = 48

    def find(self, program: Program, profiles: Sequence[Profile]) -> tuple[HotWindow, ...]:
        """The hot windows of ``program`` over all ``profiles``."""
        return hot_windows(profiles, program, count=self.count, max_length=self.length)
