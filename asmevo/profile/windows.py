"""From profiles to hot windows: where a program spends its stalled cycles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from asmevo.errors import AsmEvoError
from asmevo.isa.program import Program
from asmevo.profile.hotwindow import HotWindow
from asmevo.profile.profile import Profile, StallCause


class ProfileError(AsmEvoError):
    """A profile does not belong to the program, or a window setting makes no sense."""


def basic_blocks(program: Program) -> tuple[tuple[int, int], ...]:
    """Half-open index ranges that control enters only at their start and leaves only at their end.

    Every label starts a block: an edit may not move an instruction across one.
    """
    leaders = {0, *(t for t in program.targets if t is not None), *program.labels}
    for index, instruction in enumerate(program.instructions):
        if instruction.is_branch or instruction.ends_program:
            leaders.add(index + 1)
    starts = sorted(leader for leader in leaders if 0 <= leader < len(program))
    return tuple(zip(starts, [*starts[1:], len(program)], strict=True)) if len(program) else ()


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
    """The ``count`` non-overlapping windows with the most stalled cycles, the worst first.

    A window has at most ``max_length`` instructions, stays inside one basic block, ends at
    stalled instructions, and carries the instructions before its first stall as far as they fit:
    that is where the stall can be hidden. Windows without stalls are not returned. Raises
    ProfileError.
    """
    if count < 1 or max_length < 1:
        raise ProfileError("a window search needs a count and a length of at least 1")
    stalls = stalls_by_instruction(program, profiles)
    weights = [total.total() for total in stalls]
    all_stalled = sum(weights)
    free = list(basic_blocks(program))
    found: list[HotWindow] = []
    while free and len(found) < count:
        block = max(free, key=lambda b: (_heaviest(weights, b, max_length)[0], -b[0]))
        weight, start, stop = _heaviest(weights, block, max_length)
        if weight == 0:
            break
        found.append(_window(program, stalls, start, stop, weight / all_stalled))
        free.remove(block)
        free += [piece for piece in ((block[0], start), (stop, block[1])) if piece[0] < piece[1]]
    return tuple(found)


def _heaviest(weights: Sequence[int], block: tuple[int, int],
              max_length: int) -> tuple[int, int, int]:
    """Weight, start and stop of the heaviest window of a block; the earliest of equals.

    The weight only grows where a stalled instruction enters, so the window ends at one.
    """
    first, end = block
    best = (0, first, first)
    running = 0
    for stop in range(first + 1, end + 1):
        running += weights[stop - 1]
        start = max(first, stop - max_length)
        if start > first:
            running -= weights[start - 1]
        if running > best[0]:
            best = (running, start, stop)
    return best


def _window(program: Program, stalls: Sequence[Counter[StallCause]], start: int, stop: int,
            share: float) -> HotWindow:
    causes: Counter[StallCause] = Counter()
    reads = writes = 0
    for index in range(start, stop):
        instruction = program.instructions[index]
        reads |= instruction.reads & ~writes
        writes |= instruction.writes
        causes.update(stalls[index])
    cause = max(StallCause, key=lambda c: causes[c])
    return HotWindow(start, stop, share, cause, reads, writes)


@dataclass(frozen=True, slots=True)
class WindowFinder:
    """`hot_windows` with its settings, as ``conf/profile`` builds it."""

    count: int = 8
    length: int = 48

    def find(self, program: Program, profiles: Sequence[Profile]) -> tuple[HotWindow, ...]:
        """The hot windows of ``program`` over all ``profiles``."""
        return hot_windows(profiles, program, count=self.count, max_length=self.length)
