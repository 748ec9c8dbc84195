"""Straight stretches of a kernel, across branches that come together again.

A trace is a list of items, in the order of execution. What cannot move stands in *pinned* items: a
branch together with everything between it and where its ways meet again (a hammock, a diamond, a
whole loop), and the branches that only join blocks. All other items are single instructions, or
lanes that are switched off for a while with what runs meanwhile, and may be put anywhere in the
trace that dependences allow: pinned items are entered and left at one place, so an instruction in
front of one is executed exactly when one behind it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from asmevo.isa.cfg import Cfg
from asmevo.isa.instruction import Instruction, Unit
from asmevo.isa.program import Program
from asmevo.isa.registers import EXEC_MASK

_LARGEST_REGION = 24
# Skipped over when no lane is on: executing the same with no lane on has no effect.
_SKIPS = ("s_cbranch_execz",)
_MASKED = frozenset({Unit.VALU, Unit.TRANS, Unit.VMEM, Unit.FLAT, Unit.LDS})
# Vector operations that do something with no lane on.
_UNMASKED = ("v_readlane", "v_writelane", "v_readfirstlane", "v_mfma", "v_smfmac", "v_accvgpr",
             "ds_gws")


@dataclass(frozen=True, slots=True)
class Item:
    """``indices`` of the program in order; ``dropped`` ones are not executed any more.

    A ``pinned`` item keeps its place in the text.
    """

    indices: tuple[int, ...]
    pinned: bool = False
    dropped: tuple[int, ...] = ()

    @property
    def kept(self) -> tuple[int, ...]:
        """What it executes, in order."""
        return tuple(i for i in self.indices if i not in self.dropped)


@dataclass(frozen=True, slots=True)
class Trace:
    """Items in the order of execution.

    ``gaps`` says for each instruction that may move how many pinned items its text stands behind;
    ``loops`` that the trace's end leads back to its start.
    """

    items: tuple[Item, ...]
    gaps: dict[int, int]
    loops: bool = False

    @property
    def start(self) -> int:
        return self.items[0].indices[0]

    def indices(self) -> Iterator[int]:
        for item in self.items:
            yield from item.indices


class Tracer:
    """Cuts a program into traces.

    ``convert`` executes what a branch skips when no lane is on, instead of branching; ``joined``
    follows control over branches, otherwise every block is a trace.
    """

    def __init__(self, program: Program, cfg: Cfg, *, live: Sequence[int], fences: Set[int],
                 executed: Set[int], convert: bool = True, joined: bool = True) -> None:
        self._program, self._cfg = program, cfg
        self._live, self._fences, self._executed = live, fences, executed
        self._convert, self._joined = convert, joined
        self._meets = _postdominators(cfg)

    def traces(self) -> list[Trace]:
        """All traces of what is executed; each instruction lies in one at most."""
        taken: set[int] = set()
        found: list[Trace] = []
        for number in self._cfg.order:
            if number in taken or self._cfg.blocks[number].start not in self._executed:
                continue
            items = self._follow(number, taken)
            loops = self._cfg.blocks[number].start in self._program.targets and (
                number in self._cfg.blocks[self._cfg.block_of[items[-1].indices[-1]]].successors)
            found.append(Trace(tuple(_grouped(self._program, items)), _gaps(items), loops))
        return found

    def _follow(self, number: int, taken: set[int]) -> list[Item]:
        items: list[Item] = []
        cfg, instructions = self._cfg, self._program.instructions
        first = number
        while True:
            block = cfg.blocks[number]
            taken.add(number)
            last = block.end - 1
            branches = instructions[last].is_branch or instructions[last].ends_program
            items += [Item((i,), i in self._fences and not self._is_mask(i))
                      for i in range(block.start, block.end - branches)]
            following = self._after(number) if self._joined else None
            if following is None or following[0] in taken or following[0] == first:
                if branches:
                    items.append(Item((last,), True))
                return items
            meet, region = following
            if not region:
                if branches:
                    items.append(Item((last,), True))
            elif self._convert and (skipped := self._skipped(number, meet, region)) is not None:
                items.append(Item((last,), False, (last,)))
                items += skipped
                taken |= region
            else:
                inside = tuple(i for r in sorted(region)
                               for i in range(cfg.blocks[r].start, cfg.blocks[r].end))
                items.append(Item((last, *inside), True))
            number = meet

    def _is_mask(self, index: int) -> bool:
        """An instruction that is a fence only because it changes which lanes are on."""
        i = self._program.instructions[index]
        return bool(i.writes & EXEC_MASK) and i.unit is Unit.SALU

    def _after(self, number: int) -> tuple[int, set[int]] | None:
        """Where control meets again behind a block, and the blocks between."""
        cfg = self._cfg
        block = cfg.blocks[number]
        if not block.successors or block.resumes is not None or any(
                i in cfg.unknown for i in range(block.start, block.end)):
            return None
        if len(block.successors) == 1:
            (meet,) = block.successors
            region: set[int] = set()
        else:
            found = self._meets.get(number)
            if found is None:
                return None
            meet, region = found, set()
            pending = [s for s in block.successors if s != meet]
            while pending:
                inner = pending.pop()
                if inner in region:
                    continue
                region.add(inner)
                if inner == number or len(region) > _LARGEST_REGION:
                    return None
                if cfg.blocks[inner].resumes is not None:
                    return None
                pending += [s for s in cfg.blocks[inner].successors if s != meet]
        inside = region | {number}
        entered = [*region, meet]
        if any(not set(cfg.blocks[b].predecessors) <= inside for b in entered):
            return None
        return meet, region

    def _skipped(self, number: int, meet: int, region: set[int]) -> list[Item] | None:
        """What a branch skips when no lane is on, if executing it then changes nothing."""
        cfg, instructions = self._cfg, self._program.instructions
        last = cfg.blocks[number].end - 1
        if instructions[last].op not in _SKIPS or len(region) != 1:
            return None
        (only,) = region
        block = cfg.blocks[only]
        if block.successors != (meet,):
            return None
        items: list[Item] = []
        needed = self._live[last] if meet not in cfg.blocks[number].successors else 0
        needed = self._live_at(meet) | needed
        for index in range(block.start, block.end):
            i = instructions[index]
            if i.is_branch:
                items.append(Item((index,), True))
                continue
            if i.wait is None and i.unit is not Unit.NOP and not self._harmless(i, needed):
                return None
            items.append(Item((index,), index in self._fences and not self._is_mask(index)))
        return items

    def _live_at(self, number: int) -> int:
        start = self._cfg.blocks[number].start
        i = self._program.instructions[start]
        return self._live[start] & ~i.writes | i.reads

    def _harmless(self, i: Instruction, needed: int) -> bool:
        """Whether an instruction does nothing that anyone sees when no lane is on."""
        scalars = i.writes & ((1 << 256) - 1)
        if i.writes & EXEC_MASK or scalars & needed:
            return False
        if i.unit is Unit.SALU:
            return True
        return i.unit in _MASKED and not i.op.startswith(_UNMASKED)


def _postdominators(cfg: Cfg) -> dict[int, int]:
    """Immediate postdominator of each block that has one."""
    order = list(reversed(cfg.order))
    universe = frozenset(cfg.order)
    after: dict[int, frozenset[int]] = {}
    for b in order:
        after[b] = frozenset({b}) if not cfg.blocks[b].successors else universe
    changed = True
    while changed:
        changed = False
        for b in order:
            following = [after[s] for s in cfg.blocks[b].successors if s in after]
            if not following:
                continue
            merged = frozenset.intersection(*following) | {b}
            if merged != after[b]:
                after[b] = merged
                changed = True
    out: dict[int, int] = {}
    for b in order:
        strict = after[b] - {b}
        nearest = [p for p in strict if len(after[p]) == len(strict)]
        if nearest:
            out[b] = nearest[0]
    return out


def _gaps(items: Sequence[Item]) -> dict[int, int]:
    gaps: dict[int, int] = {}
    gap = 0
    for item in items:
        if item.pinned:
            gap += 1
        else:
            gaps.update(dict.fromkeys(item.indices, gap))
    return gaps


def _grouped(program: Program, items: Sequence[Item]) -> Iterator[Item]:
    """Items with lanes switched off and on again, and what runs meanwhile, as one."""
    position = 0
    while position < len(items):
        stop = _switched_back(program, items, position)
        if stop is None:
            yield items[position]
            position += 1
            continue
        group = [item for item in items[position:stop + 1] if not item.pinned]
        dropped = tuple(i for item in group for i in item.dropped)
        # Waits and wait states inside are put anew, like all others.
        dropped += tuple(
            i for item in group for i in item.kept
            if program.instructions[i].wait is not None
            or program.instructions[i].unit is Unit.NOP)
        yield Item(tuple(i for item in group for i in item.indices), False, dropped)
        # Jumps to the very next instruction executed may as well come behind.
        yield from (item for item in items[position:stop + 1] if item.pinned)
        position = stop + 1


def _switched_back(program: Program, items: Sequence[Item], position: int) -> int | None:
    """The item that restores EXEC as it was in front of one that narrows it."""
    if items[position].pinned or len(items[position].indices) > 1:
        return None
    first = program.instructions[items[position].indices[0]]
    if not first.op.startswith("s_and_saveexec_b64"):
        return None
    saved = first.operands[0]
    for at in range(position + 1, len(items)):
        item = items[at]
        if len(item.indices) > 1:
            return None
        i = program.instructions[item.indices[0]]
        if item.dropped or (item.pinned and i.op == "s_branch"):
            continue
        if item.pinned or i.unit in (Unit.BARRIER, Unit.MFMA) or i.is_store:
            return None
        if i.writes & EXEC_MASK:
            restores = (i.op == "s_or_b64" and [o.text for o in i.operands]
                        == ["exec", "exec", saved.text])
            return at if restores else None
        if i.writes & (((1 << saved.count) - 1) << saved.first):
            return None
    return None
