"""Which writes of a vector register the lanes may hold that execute an instruction.

A write under EXEC leaves lanes that are off with what they had. But lanes that are on at a later
instruction were on at an earlier one if nothing in between switched lanes on; and where a
conditional stretch ends (`asmevo.isa.mask_regions`), a lane was either on in it, or held there what
it held in front of it. Stretches with their code in several places (`asmevo.isa.mask_groups`) end
with the lanes with which they began, so that of a write in one only readers in it can be sure. So
most writes do replace all earlier ones for those who read the register.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence

from asmevo.isa.cfg import Cfg
from asmevo.isa.mask_groups import mask_groups
from asmevo.isa.mask_pairs import only_narrows
from asmevo.isa.mask_regions import MaskRegion, mask_regions
from asmevo.isa.program import Program
from asmevo.isa.registers import EXEC_MASK

_NOWHERE: frozenset[int] = frozenset()
# Of regions with a stretch for the other lanes, by their turn: whether the lane is one of these.
_Sides = frozenset[tuple[int, bool]]
# In front of which instruction of a block a lane is, on which sides it was, in which stretches of
# several places, and whether it may have been switched on since, so that nothing is known of what
# is in front.
_State = tuple[int, int, _Sides, frozenset[int], bool]


class LaneWriters:
    """Walks back from readers. ``writers`` gives ascending instructions by register, ``replaces``
    tells whether a write leaves nothing of an older one in the lanes that are on, and ``kills``
    whether in any lane.
    """

    def __init__(
        self, program: Program, cfg: Cfg, writers: Mapping[int, Sequence[int]],
        replaces: Callable[[int, int], bool], kills: Callable[[int, int], bool],
    ) -> None:
        self._program, self._cfg, self._writers = program, cfg, writers
        self._replaces, self._kills = replaces, kills
        self._joins: dict[int, MaskRegion] = {}
        self._turns: dict[int, MaskRegion] = {}
        self._others: dict[int, MaskRegion] = {}
        # What lanes may have been off in that are on again behind it.
        self.inside: set[int] = set()
        for region in mask_regions(program, cfg):
            self.inside.update(*region.stretches)
            self._joins[region.join] = region
            if region.has_other:
                self._turns[region.turn] = region
                self._others[region.other] = region
        self._masks = [
            k for k, i in enumerate(program.instructions) if i.writes & EXEC_MASK]
        known = {*self._joins, *self._turns, *self._others}
        self._scattered: dict[int, set[int]] = {}
        self._starts: dict[int, int] = {}
        for group in mask_groups(program, cfg):
            if group.joins & self._joins.keys():
                continue
            known |= group.joins
            self.inside |= group.inside
            name = min(group.joins)
            self._starts.update(dict.fromkeys(group.starts, name))
            for index in group.inside:
                self._scattered.setdefault(index, set()).add(name)
        self._widening = {
            k for k in self._masks if k not in known
            and not only_narrows(program.instructions[k])}

    def reaching(self, index: int, register: int) -> set[int]:
        """Instructions whose write lanes that are on at ``index`` may hold there; -1 is what they
        have at the entry.
        """
        cfg = self._cfg
        found: set[int] = set()
        first: _State = (cfg.block_of[index], index, frozenset(),
                         frozenset(self._scattered.get(index, ())), False)
        seen, pending = {first}, [first]

        def add(state: _State) -> None:
            if state not in seen:
                seen.add(state)
                pending.append(state)

        while pending:
            for state in self._walk(pending.pop(), register, found):
                block, stop, sides, own, widened = state
                if stop != cfg.blocks[block].start:
                    add(state)
                    continue
                if block == cfg.entry:
                    found.add(-1)
                for previous in cfg.blocks[block].predecessors:
                    end = cfg.blocks[previous].end
                    if cfg.reachable(end - 1) and (
                            widened or self._passes(end - 1, stop, own)):
                        add((previous, end, sides, own, widened))
        return found

    def _passes(self, branch: int, to: int, own: frozenset[int]) -> bool:
        """Whether lanes may go on there at the end of a block, where they are on but in stretches
        of several places that are not their own."""
        op = self._program.instructions[branch].op
        if op not in ("s_cbranch_execz", "s_cbranch_execnz") or not (
                self._scattered.get(branch, _NOWHERE) <= own):
            return True
        target = self._program.targets[branch]
        return target == branch + 1 or (to == target) == (op == "s_cbranch_execnz")

    def _walk(self, state: _State, register: int, found: set[int]) -> list[_State]:
        """Where lanes come from that are not done: the start of the block, or in front of what they
        were not on for."""
        block, stop, sides, own, widened = state
        start = self._cfg.blocks[block].start
        writers, masks = self._writers[register], self._masks
        at, mask = bisect_left(writers, stop), bisect_left(masks, stop)
        away: list[_State] = []
        while True:
            write = writers[at - 1] if at and writers[at - 1] >= start else -1
            change = masks[mask - 1] if mask and masks[mask - 1] >= start else -1
            if write < 0 and change < 0:
                return [*away, (block, start, sides, own, widened)]
            if write >= change:
                at -= 1
                found.add(write)
                if self._kills(write, register) or (
                        not widened and self._replaces(write, register)
                        and self._scattered.get(write, _NOWHERE) <= own):
                    return away
            if change >= write:
                mask -= 1
                own -= {self._starts.get(change, -1)}
                if widened:
                    continue
                if change in self._widening:
                    # The sides say nothing of a lane that may have been off.
                    widened, sides = True, frozenset()
                    continue
                stays = True
                if change in self._joins:
                    away.append(self._skipped(self._joins[change], sides, own))
                if change in self._others:
                    sides |= {(self._others[change].turn, True)}
                if change in self._turns:
                    region = self._turns[change]
                    stays = (change, True) not in sides
                    if not stays or (change, False) not in sides:
                        left = sides - {(change, True), (change, False)}
                        away.append(self._before(region.start, left, own))
                    if region.other == change:
                        stays = False
                    sides -= {(change, True), (change, False)}
                if not stays:
                    return away

    def _skipped(self, region: MaskRegion, sides: _Sides, own: frozenset[int]) -> _State:
        """A lane that was not on in the stretch in front of a join."""
        if not region.has_other:
            return self._before(region.start, sides, own)
        if region.other != region.turn:
            return self._before(region.other, sides | {(region.turn, False)}, own)
        return self._before(region.turn, sides, own)

    def _before(self, index: int, sides: _Sides, own: frozenset[int]) -> _State:
        return self._cfg.block_of[index], index, sides, own, False
