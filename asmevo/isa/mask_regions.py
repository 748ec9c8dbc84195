"""Stretches of code for some lanes, and for the others of them: conditionals made of lane masks.

LLVM makes three kinds of code for what a lane's condition decides ("SILowerControlFlow"):

    s_and_saveexec_b64 x, c      s_and_saveexec_b64 x, c       s_and_saveexec_b64 x, c
      ...                        s_xor_b64 x, exec, x          s_xor_b64 x, exec, x
    s_or_b64 exec, exec, x         ...                           ...
                                 s_andn2_saveexec_b64 d, x     s_or_saveexec_b64 d, x
                                   ...                           ... of all lanes
                                 s_or_b64 exec, exec, d        s_xor_b64 exec, exec, d
                                                                 ...
                                                               s_or_b64 exec, exec, d

Whether a stretch is jumped over where it has no lanes makes no difference to what lanes hold.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from asmevo.isa.cfg import Cfg
from asmevo.isa.mask_pairs import between, only_definition
from asmevo.isa.program import Program
from asmevo.isa.registers import EXEC_MASK, mask


@dataclass(frozen=True, slots=True)
class MaskRegion:
    """``start`` switches lanes off, ``turn`` switches these on; ``other`` leaves only these on, and
    is ``turn`` itself where that switches the first ones off; ``join`` switches on all.

    Without a stretch for the others, ``turn`` and ``other`` are the ``join``.
    """

    start: int
    turn: int
    other: int
    join: int
    stretches: tuple[frozenset[int], ...]

    @property
    def changes(self) -> frozenset[int]:
        """The instructions that write EXEC."""
        return frozenset((self.start, self.turn, self.other, self.join))

    @property
    def has_other(self) -> bool:
        return self.turn != self.join


def mask_regions(program: Program, cfg: Cfg) -> tuple[MaskRegion, ...]:
    """All of a program whose inner changes of EXEC are those of other such regions, so that each
    switches on the lanes that it switched off."""
    found = {region.join: region for region in _candidates(program, cfg)}
    while True:
        changing = frozenset().union(*(region.changes for region in found.values()))
        wrong = [join for join, region in found.items()
                 if any(not _nests(program, region, stretch, found.values(), changing)
                        for stretch in region.stretches)]
        if not wrong:
            return tuple(found.values())
        for join in wrong:
            del found[join]


def _nests(program: Program, region: MaskRegion, stretch: frozenset[int],
           regions: Collection[MaskRegion], changing: frozenset[int]) -> bool:
    if any(program.instructions[k].writes & EXEC_MASK and k not in changing for k in stretch):
        return False
    return all(other is region or len(other.changes & stretch) in (0, len(other.changes))
               for other in regions) and not region.changes & stretch


def _candidates(program: Program, cfg: Cfg) -> list[MaskRegion]:
    found = []
    for index, i in enumerate(program.instructions):
        if not (i.op == "s_or_b64" and i.text.startswith("s_or_b64 exec, exec, s[")
                and cfg.reachable(index)):
            continue
        region = _region(program, cfg, index)
        if region is not None:
            found.append(region)
    return found


def _region(program: Program, cfg: Cfg, join: int) -> MaskRegion | None:
    code = program.instructions
    saved = code[join].operands[2]
    turn = only_definition(program, cfg, join, mask(saved.first, 2))
    if turn is None:
        return None
    if code[turn].op == "s_and_saveexec_b64":
        inside = _closed(program, cfg, turn, join)
        return None if inside is None else MaskRegion(turn, join, join, join, (inside,))
    if code[turn].op not in ("s_andn2_saveexec_b64", "s_or_saveexec_b64"):
        return None
    lanes = code[turn].operands[1]
    kept = only_definition(program, cfg, turn, mask(lanes.first, 2)) if lanes.count == 2 else None
    if kept is None or code[kept].text != f"s_xor_b64 {lanes.text}, exec, {lanes.text}":
        return None
    start = only_definition(program, cfg, kept, mask(lanes.first, 2))
    if start is None or code[start].op != "s_and_saveexec_b64":
        return None
    other = turn
    stretches = []
    if code[turn].op == "s_or_saveexec_b64":
        narrowed = _next_change(program, cfg, turn)
        if narrowed is None or code[narrowed].text != f"s_xor_b64 exec, exec, {saved.text}" or (
                only_definition(program, cfg, narrowed, mask(saved.first, 2)) != turn):
            return None
        other = narrowed
    first = between(program, cfg, start, kept)
    if first is None or any(code[k].writes & EXEC_MASK for k in first):
        return None
    for begin, end in ((start, turn), (other, join)):
        inside = _closed(program, cfg, begin, end)
        if inside is None:
            return None
        stretches.append(inside)
    return MaskRegion(start, turn, other, join, tuple(stretches))


def _closed(program: Program, cfg: Cfg, start: int, stop: int) -> frozenset[int] | None:
    """The instructions on paths from one to the other; ``None`` where paths enter or leave them
    elsewhere."""
    inside = between(program, cfg, start, stop)
    if inside is None:
        return None
    allowed = inside | {start}
    for k in (*inside, stop):
        if any(cfg.reachable(p) and p not in allowed for p in cfg.previous_indices(k)):
            return None
    return frozenset(inside)


def _next_change(program: Program, cfg: Cfg, index: int) -> int | None:
    """The next instruction that writes EXEC, if it is in the same block."""
    for k in range(index + 1, cfg.blocks[cfg.block_of[index]].end):
        if program.instructions[k].writes & EXEC_MASK:
            return k
    return None
