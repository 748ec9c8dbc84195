"""Conditional stretches whose code lies in several places, and the lanes that each switches off.

Compilers move the body of a stretch out of line, with the beginning of the next one behind it: then
several instructions switch lanes off, and several may switch them on again, but on every path it is
one of each, in turns (compare `asmevo.isa.mask_pairs`).
"""

from __future__ import annotations

from dataclasses import dataclass

from asmevo.isa.cfg import Cfg
from asmevo.isa.program import Program
from asmevo.isa.registers import EXEC_MASK, mask


@dataclass(frozen=True, slots=True)
class MaskGroup:
    """``joins``, each of which switches on the lanes that the last of ``starts`` switched off, and
    what is ``inside``.
    """

    starts: frozenset[int]
    joins: frozenset[int]
    inside: frozenset[int]


def mask_groups(program: Program, cfg: Cfg) -> tuple[MaskGroup, ...]:
    """All groups of which nothing inside changes EXEC but other groups."""
    groups: list[tuple[set[int], set[int]]] = []
    for index, i in enumerate(program.instructions):
        if not (i.op == "s_or_b64" and i.writes & EXEC_MASK and cfg.reachable(index)
                and i.text.startswith("s_or_b64 exec, exec, s[")):
            continue
        starts = _definitions(program, cfg, index, mask(i.operands[2].first, 2))
        if not starts or any(
                program.instructions[k].op != "s_and_saveexec_b64" for k in starts):
            continue
        joins = {index}
        for group in [g for g in groups if g[0] & starts]:
            groups.remove(group)
            starts |= group[0]
            joins |= group[1]
        groups.append((starts, joins))
    found = []
    for starts, joins in groups:
        inside = _between(program, cfg, starts, joins)
        if inside is not None:
            found.append(MaskGroup(frozenset(starts), frozenset(joins), frozenset(inside)))
    while True:
        known = {k for group in found for k in (*group.starts, *group.joins)}
        right = [
            group for group in found
            if not any(program.instructions[k].writes & EXEC_MASK and k not in known
                       for k in group.inside)
            and not any(0 < len((other.starts | other.joins) & group.inside)
                        < len(other.starts | other.joins)
                        for other in found if other is not group)]
        if len(right) == len(found):
            return tuple(found)
        found = right


def _definitions(program: Program, cfg: Cfg, index: int, registers: int) -> set[int]:
    """What may have written registers last; nothing where that is unknown, or writes only part."""
    found: set[int] = set()
    seen: set[int] = set()
    launch = cfg.blocks[cfg.entry].start
    if index == launch:
        return set()
    pending = list(cfg.previous_indices(index))
    while pending:
        here = pending.pop()
        if here in seen:
            continue
        seen.add(here)
        previous = cfg.previous_indices(here)
        written = program.instructions[here].writes & registers
        # Where the program begins it may also go on from a loop.
        if here in cfg.unknown or (written and written != registers) or (
                not written and (not previous or here == launch)):
            return set()
        if written:
            found.add(here)
        else:
            pending += previous
    return found


def _between(program: Program, cfg: Cfg, starts: set[int], joins: set[int]) -> set[int] | None:
    """The instructions on paths from a start to a join; ``None`` if some path leads elsewhere."""
    # A second join behind the first one would switch on what was switched off in between.
    if joins & _behind(cfg, joins, starts):
        return None
    seen: set[int] = set()
    pending = [k for start in starts for k in cfg.next_indices(start)]
    while pending:
        here = pending.pop()
        if here in joins or here in seen:
            continue
        if here in starts or program.instructions[here].ends_program or here in cfg.unknown:
            return None
        seen.add(here)
        pending += cfg.next_indices(here)
    return seen


def _behind(cfg: Cfg, first: set[int], stops: set[int]) -> set[int]:
    """What can be executed behind some instructions and in front of others."""
    seen: set[int] = set()
    pending = [k for index in first for k in cfg.next_indices(index)]
    while pending:
        here = pending.pop()
        if here not in seen and here not in stops:
            seen.add(here)
            pending += cfg.next_indices(here)
    return seen
