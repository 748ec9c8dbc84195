"""Which instruction switches on again the lanes that another one switched off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from asmevo.isa.cfg import Cfg
from asmevo.isa.program import Program
from asmevo.isa.registers import EXEC_MASK, mask


@dataclass(frozen=True, slots=True)
class MaskPair:
    """A ``join`` that switches on the lanes that ``start`` switched off, and what is ``inside``."""

    start: int
    join: int
    inside: frozenset[int]


def mask_pairs(program: Program, cfg: Cfg) -> Mapping[int, int]:
    """Per join its start, see `paired_masks`."""
    return {pair.join: pair.start for pair in paired_masks(program, cfg)}


def paired_masks(program: Program, cfg: Cfg) -> tuple[MaskPair, ...]:
    """For each ``s_or_b64 exec, exec, x`` the ``s_and_saveexec_b64 x`` whose lanes it switches on.

    Only where ``x`` can come from nowhere else, and where between the two nothing changes EXEC but
    other such pairs: then the lanes that it switches on are those that the other switched off.
    """
    found: dict[int, int] = {}
    inside: dict[int, set[int]] = {}
    for index, i in enumerate(program.instructions):
        if (i.op == "s_or_b64" and i.writes & EXEC_MASK and cfg.reachable(index)
                and i.text.startswith("s_or_b64 exec, exec, s[")):
            start = only_definition(program, cfg, index, mask(i.operands[2].first, 2))
            if start is not None and program.instructions[start].op == "s_and_saveexec_b64":
                region = between(program, cfg, start, index)
                if region is not None:
                    found[index], inside[index] = start, region
    while True:
        paired = set(found) | set(found.values())
        wrong = {
            join for join, start in found.items()
            if any(program.instructions[k].writes & EXEC_MASK and k not in paired
                   for k in inside[join])
            or any((other in inside[join]) != (found[other] in inside[join])
                   for other in found if other != join)}
        if not wrong:
            return tuple(MaskPair(start, join, frozenset(inside[join]))
                         for join, start in sorted(found.items()))
        for join in wrong:
            del found[join]


def only_definition(program: Program, cfg: Cfg, index: int, registers: int) -> int | None:
    """The one instruction from which all of these registers come on all paths to another."""
    found: set[int] = set()
    seen: set[int] = set()
    launch = cfg.blocks[cfg.entry].start
    if index == launch:
        return None
    pending = list(cfg.previous_indices(index))
    while pending:
        here = pending.pop()
        if here in seen:
            continue
        seen.add(here)
        if program.instructions[here].writes & registers or here in cfg.unknown:
            found.add(here)
            if len(found) > 1 or program.instructions[here].writes & registers != registers:
                return None
            continue
        previous = cfg.previous_indices(here)
        # Where the program begins it may also go on from a loop.
        if not previous or here == launch:
            return None
        pending += previous
    return found.pop() if found else None


def between(program: Program, cfg: Cfg, start: int, stop: int) -> set[int] | None:
    """The instructions on paths from one to the other; ``None`` if some path avoids the other or
    comes back to the first.
    """
    seen: set[int] = set()
    pending = list(cfg.next_indices(start))
    while pending:
        here = pending.pop()
        if here == stop or here in seen:
            continue
        if here == start or program.instructions[here].ends_program or here in cfg.unknown:
            return None
        seen.add(here)
        pending += cfg.next_indices(here)
    return seen
