"""Moves what uses conditionally loaded values to the end of a chain of conditional stretches."""

from __future__ import annotations

from asmevo.isa.effects import VALU_UNITS
from asmevo.isa.instruction import Instruction, OperandKind, Unit
from asmevo.isa.registers import (
    AGPR0,
    ALL_VGPR_MASK,
    EXEC_MASK,
    MODE_MASK,
    SGPR_LIMIT,
    VCC_LO,
    VGPR0,
    mask,
    members,
)
from asmevo.propose.free_registers import scalar, text, vector
from asmevo.propose.masked_chain import MaskedChain
from asmevo.propose.renaming import renamed
from asmevo.propose.rule import RuleContext

_STATE = EXEC_MASK | MODE_MASK
_SCALARS = (1 << SGPR_LIMIT) - 1
_CROSS_LANE = ("v_readlane", "v_readfirstlane", "v_writelane", "ds_bpermute", "ds_permute",
               "ds_swizzle", "v_permlane", "v_mbcnt")
# Accumulating operations, which name their destination once, and the forms that name it twice.
_ACCUMULATING = {"v_fmac_f32": "v_fma_f32", "v_fmac_f64": "v_fma_f64", "v_mac_f32": "v_mad_f32"}


def is_early(i: Instruction) -> bool:
    """A load whose latency is worth hiding."""
    return i.is_load and i.unit is Unit.VMEM and not i.modifier("lds")


class Gathering:
    """What moves to the end of a chain, and the texts that stay and come there.

    ``sunk`` are the instructions that move, in their order, and ``behind`` the texts that take
    their place at the end; ``lines`` are the new texts of what stays, ``removed`` the waits and
    branches that go. ``unskipped`` says that stretches lose the branch over them.
    """

    def __init__(self, context: RuleContext, chain: MaskedChain, straight: bool) -> None:
        self._context, self._chain = context, chain
        self._instructions = context.program.instructions
        self._place = {index: k for k, index in enumerate(chain.trace)}
        self._texts = {index: context.lines[index] for index in chain.trace}
        self._waits = {
            i for i in chain.trace if (i in chain.outside or i in chain.inner)
            and i not in context.guards
            and (self._instructions[i].wait is not None or self._instructions[i].op == "s_nop")}
        self._free = context.free.during(chain.trace)
        self._masks: dict[int, str] = {}
        self._copies: dict[int, str] = {}
        self.sunk = self._chosen(straight)
        self.unskipped = straight
        self.behind: list[str] = []

    @staticmethod
    def of(context: RuleContext, chain: MaskedChain, straight: bool) -> Gathering | None:
        """The plan for a chain, ``None`` where there is none."""
        made = Gathering(context, chain, straight)
        return made if made.sunk and made._separate() and made._place_behind() else None

    @property
    def lines(self) -> dict[int, str]:
        return {i: line for i, line in self._texts.items() if i not in self.sunk}

    @property
    def removed(self) -> set[int]:
        return self._waits | (set(self._chain.skips) if self.unskipped else set())

    def _chosen(self, straight: bool) -> list[int]:
        """Uses of loaded values that nothing which stays needs."""
        chain, instructions = self._chain, self._instructions
        carried = 0
        chosen: set[int] = set()
        for index in chain.trace:
            i = instructions[index]
            if index in self._waits:
                continue
            late = bool(i.reads & ~_STATE & carried)
            inner = index in chain.inner
            movable = index in chain.outside or (inner and straight and self._can_leave(index))
            if movable and late and not _stays(i, index, self._context):
                chosen.add(index)
                carried |= i.writes & ~_STATE
            elif is_early(i):
                carried |= i.writes & ALL_VGPR_MASK
            elif index in chain.outside:
                carried &= ~i.writes
        while True:
            refused = {s for s in chosen if self._blocked(s, chosen)}
            if not refused:
                return sorted(chosen, key=self._place.__getitem__)
            chosen -= refused

    def _can_leave(self, index: int) -> bool:
        """Whether an instruction of a stretch can be computed for all lanes."""
        i = self._instructions[index]
        target = i.operands[0] if i.operands else None
        if (i.unit not in VALU_UNITS or i.unit is Unit.MFMA or target is None
                or target.kind is not OperandKind.REGISTER or target.count != 1
                or i.writes & ~_STATE != mask(target.first) or i.modifiers
                or i.encoding in ("dpp", "sdwa")):
            return False
        sources = [o.first for o in i.operands[1:] if o.kind is OperandKind.REGISTER]
        return (not i.reads >> target.first & 1 or target.first in sources
                or i.op in _ACCUMULATING)

    def _blocked(self, sunk: int, chosen: set[int]) -> bool:
        """Whether something that stays would be overtaken by what it depends on."""
        s = self._instructions[sunk]
        reads, writes = s.reads & ~_STATE, s.writes & ~_STATE
        for index in self._chain.trace[self._place[sunk] + 1:]:
            if index in self._waits:
                continue
            t = self._instructions[index]
            if index not in chosen:
                if t.reads & writes or t.writes & reads & ~(ALL_VGPR_MASK | _SCALARS):
                    return True
                if t.unit is Unit.BARRIER or t.is_atomic or index in self._context.guards:
                    return True
                if s.accesses_memory and t.accesses_memory and (s.is_store or t.is_store):
                    lds = (s.unit is Unit.LDS, t.unit is Unit.LDS)
                    if Unit.FLAT in (s.unit, t.unit) or all(lds) or (
                            not any(lds) and t.is_store):
                        return True
            for register in members(t.writes & writes):
                if self._begins(index, register):
                    writes &= ~mask(register)
                elif index not in chosen:
                    return True
        return False

    def _separate(self) -> bool:
        """New names for registers that are overwritten in front of their uses' new place."""
        for index in self.sunk:
            i = self._instructions[index]
            later = self._chain.trace[self._place[index] + 1:]
            overwritten = 0
            for t in later:
                if t not in self.sunk and t not in self._waits:
                    overwritten |= self._instructions[t].writes
            done: set[int] = set()
            for operand in i.operands:
                run = mask(operand.first, operand.count) if operand.count > 0 else 0
                if run & (i.reads | i.writes) & overwritten and operand.first not in done:
                    if operand.count != 1 or not self._rename(index, operand.first):
                        return False
                    done.add(operand.first)
        return True

    def _begins(self, index: int, register: int) -> bool:
        """Whether an instruction begins a value that has nothing to do with that of other lanes or
        of before, except through its sources.
        """
        i = self._instructions[index]
        if not i.writes >> register & 1 or i.op in _ACCUMULATING:
            return False
        stretch = self._chain.inner.get(index)
        if stretch is None:
            return index in self._chain.outside
        return not self._context.lanes.before[self._chain.joins[stretch]] >> register & 1

    def _rename(self, use: int, register: int) -> bool:
        """Rename from where the value begins that an instruction uses to where the next begins.

        In a stretch, lanes that are on may use the register for something else before they put
        there what counts behind it; that keeps the old name.
        """
        trace = self._chain.trace
        at = self._place[use]
        start = next((k for k in range(at - 1, -1, -1)
                      if self._begins(trace[k], register)), None)
        stop = next((k for k in range(at + 1, len(trace))
                     if self._begins(trace[k], register)), None)
        if start is None or stop is None or register >= AGPR0:
            return False
        fresh = vector(self._free) if register >= VGPR0 else scalar(self._free)
        if fresh is None:
            return False
        names = {register: fresh}
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        for k in range(start + 1, stop):
            stretch = self._chain.inner.get(trace[k])
            if stretch is not None and self._replaces(trace[k], register):
                first.setdefault(stretch, k)
                last[stretch] = k
        for k in range(start, stop + 1):
            index = trace[k]
            i = self._instructions[index]
            if not (i.reads | i.writes) >> register & 1:
                continue
            stretch = self._chain.inner.get(index, -1)
            begin, end = first.get(stretch, k), last.get(stretch, k)
            target = k == start or (stretch in last and k == end)
            source = k == stop or (stretch in first and k == begin and begin != end)
            if begin < k < end or (target and source):
                continue
            line = self._texts[index]
            moved = (renamed(line, names, only=0) if target
                     else _renamed_sources(line, names) if source else renamed(line, names))
            if moved is None:
                return False
            self._texts[index] = moved
        self._free &= ~mask(fresh)
        return True

    def _replaces(self, index: int, register: int) -> bool:
        """Whether lanes that are on have something else in a register behind an instruction."""
        i = self._instructions[index]
        return bool(i.writes >> register & 1) and (not i.reads >> register & 1 or i.is_load)

    def _place_behind(self) -> bool:
        """The texts at the end: what was outside as it is, what was inside for all lanes."""
        for index in self.sunk:
            stretch = self._chain.inner.get(index)
            if stretch is None:
                self.behind.append(self._texts[index])
                continue
            i = self._instructions[index]
            lanes = self._mask(stretch)
            temporary = vector(self._free)
            if lanes is None or temporary is None:
                return False
            line = self._texts[index]
            target = line.partition(" ")[2].split(",")[0].strip()
            if i.op in _ACCUMULATING:
                line = f"{_ACCUMULATING[i.op]} {line.partition(' ')[2]}, {target}"
            mnemonic, _, operands = line.partition(" ")
            computed = f"{mnemonic} {text(temporary)},{operands.partition(',')[2]}"
            if "," not in operands:
                return False
            choice = ("v_cndmask_b32_e32" if lanes == "vcc" else "v_cndmask_b32_e64")
            self.behind += [computed, f"{choice} {target}, {target}, {text(temporary)}, {lanes}"]
        return True

    def _mask(self, stretch: int) -> str | None:
        """Registers that tell at the end which lanes were on in a stretch."""
        if stretch in self._masks:
            return self._masks[stretch]
        narrowing = self._chain.narrowing[stretch]
        operand = self._instructions[narrowing].operands[1]
        if operand.kind is not OperandKind.REGISTER or operand.count != 2:
            return None
        registers = mask(operand.first, 2)
        later = self._chain.trace[self._place[narrowing]:]
        if not any(self._instructions[t].writes & registers for t in later):
            found: str | None = operand.text
        else:
            fresh = scalar(self._free & ~(3 << VCC_LO), 2)
            if fresh is None:
                return None
            self._free &= ~mask(fresh, 2)
            found = text(fresh, 2)
            self._copies[narrowing] = f"s_mov_b64 {found}, {operand.text}"
        self._masks[stretch] = found or ""
        return found

    @property
    def copies(self) -> dict[int, str]:
        """What keeps a lane mask, in front of the instruction that applies it."""
        return self._copies


def _renamed_sources(line: str, names: dict[int, int]) -> str | None:
    mnemonic, _, operands = line.partition(" ")
    target, comma, sources = operands.partition(",")
    moved = renamed(f"{mnemonic} {sources.strip()}", names)
    return None if moved is None else f"{mnemonic} {target}{comma} {moved.partition(' ')[2]}"


def _stays(i: Instruction, index: int, context: RuleContext) -> bool:
    return (i.is_load or i.is_atomic or i.op.startswith(_CROSS_LANE) or i.encoding == "dpp"
            or i.unit in (Unit.SALU, Unit.SMEM, Unit.BARRIER, Unit.MESSAGE, Unit.OPAQUE)
            or index in context.fences or bool(i.writes & ~ALL_VGPR_MASK & ~_STATE))

