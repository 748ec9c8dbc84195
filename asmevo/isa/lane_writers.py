"""Which writes of a vector register the lanes may hold that execute an instruction.

A write under EXEC leaves lanes that are off with what they had. But lanes that are on at a later
instruction were on at an earlier one if nothing in between switched lanes on; and a conditional
stretch ends with the lanes with which it began (`asmevo.isa.mask_groups`). So most writes do
replace all earlier ones for those who read the register.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence

from asmevo.isa.cfg import Cfg
from asmevo.isa.instruction import Instruction
from asmevo.isa.mask_groups import mask_groups
from asmevo.isa.program import Program
from asmevo.isa.registers import EXEC_MASK

_NARROWING = ("s_and_saveexec_b64", "v_cmpx")
# The block that is walked backwards, the stretches that are the reader's own so far, and whether
# lanes may have been switched on in between.
_State = tuple[int, frozenset[int], bool]


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
        self._stretches: dict[int, set[int]] = {}
        self._starts: dict[int, int] = {}
        joins: set[int] = set()
        for group in mask_groups(program, cfg):
            joins |= group.joins
            name = min(group.joins)
            self._starts.update(dict.fromkeys(group.starts, name))
            for index in group.inside:
                self._stretches.setdefault(index, set()).add(name)
        self._masks = [
            k for k, i in enumerate(program.instructions) if i.writes & EXEC_MASK]
        self._widening = {
            k for k in self._masks if k not in joins
            and not _only_narrows(program.instructions[k])}

    def reaching(self, index: int, register: int) -> set[int]:
        """Instructions whose write lanes that are on at ``index`` may hold there; -1 is what they
        have at the entry.
        """
        found: set[int] = set()
        block = self._cfg.block_of[index]
        own = frozenset(self._stretches.get(index, ()))
        state = self._walk(block, self._cfg.blocks[block].start, index, own, False, register, found)
        if state is None:
            return found
        seen: set[_State] = set()
        pending = [state]
        while pending:
            here, own, widened = pending.pop()
            if here == self._cfg.entry:
                found.add(-1)
            for previous in self._cfg.blocks[here].predecessors:
                block_ = self._cfg.blocks[previous]
                arrived = previous, own, widened
                if arrived in seen or not self._cfg.reachable(block_.start):
                    continue
                seen.add(arrived)
                state = self._walk(
                    previous, block_.start, block_.end, own, widened, register, found)
                if state is not None:
                    pending.append(state)
        return found

    def _walk(
        self, block: int, start: int, stop: int, own: frozenset[int], widened: bool,
        register: int, found: set[int],
    ) -> _State | None:
        """From the end of a block to its start; ``None`` where a write replaces all before it."""
        writers, masks = self._writers.get(register, ()), self._masks
        at, mask = bisect_left(writers, stop), bisect_left(masks, stop)
        while True:
            write = writers[at - 1] if at and writers[at - 1] >= start else -1
            change = masks[mask - 1] if mask and masks[mask - 1] >= start else -1
            if write < 0 and change < 0:
                return block, own, widened
            if write >= change:
                at -= 1
                found.add(write)
                if self._kills(write, register) or (
                        not widened and self._replaces(write, register)
                        and self._stretches.get(write, set()) <= own):
                    return None
            if change >= write:
                mask -= 1
                widened = widened or change in self._widening
                own -= {self._starts.get(change, -1)}


def _only_narrows(i: Instruction) -> bool:
    if i.op.startswith(_NARROWING):
        return True
    operands = [o.text for o in i.operands[1:]]
    return (i.op == "s_and_b64" and "exec" in operands) or (
        i.op == "s_andn2_b64" and operands[:1] == ["exec"])
