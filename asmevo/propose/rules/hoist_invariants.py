"""Moves what every round of a loop computes anew in front of the loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from asmevo.isa.calls import CALLS
from asmevo.isa.cfg import Block, Loop
from asmevo.isa.effects import has_side_effects
from asmevo.isa.instruction import Instruction, OperandKind, Unit
from asmevo.isa.mask_pairs import mask_pairs, only_narrows
from asmevo.isa.parse import parse
from asmevo.isa.registers import (
    EXEC_MASK,
    M0_MASK,
    MODE_MASK,
    SGPR_LIMIT,
    VCC_MASK,
    VGPR0,
    mask,
    members,
)
from asmevo.propose.block_uses import BlockUses
from asmevo.propose.free_registers import scalar, vector
from asmevo.propose.proposal import Direction, Proposal
from asmevo.propose.renaming import renamed
from asmevo.propose.repair import is_clean, repair
from asmevo.propose.rewrite import Rewrite
from asmevo.propose.rule import Rule, RuleContext

_UNITS = (Unit.SALU, Unit.VALU, Unit.TRANS)
# They read other lanes, or keep a part of what stands in their destination.
_NOT = ("v_readlane", "v_readfirstlane", "v_writelane", "v_permlane", "v_mbcnt", "v_movrel",
        "s_movrel", "s_cmov", "s_bitset", "s_getreg", "s_get_waveid")
_NUMBERED = (1 << SGPR_LIMIT) - 1
# State that no instruction of a loop may be moved past, as other instructions depend on it.
_STATE = EXEC_MASK | MODE_MASK | M0_MASK


class HoistInvariants(Rule):
    """An instruction that gives the same in each round is executed once, in front of the loop.

    Its sources are written nowhere in the loop, or only by what moves as well. Its result is
    written by nothing else there and needed from before by nobody, or gets a free register of its
    own. EXEC only gets narrower in the loop, so that in front of it all lanes are on that could
    ever execute the instruction. A scalar load moves when the loop stores nothing and executes it
    in every round.
    """

    name = "hoist-invariants"
    direction = Direction.SIMPLIFICATION

    def matches(self, context: RuleContext) -> Iterator[Proposal]:
        loops = sorted(_entries(context), key=lambda x: (-context.weight(x.indices), x.first))
        for loads in (False, True):
            whole = _Motion(context, loads)
            moved = [loop for loop in _outermost_first(loops) if whole.hoist(loop)]
            if not moved or (loads and not whole.loads):
                continue
            yield from self._hoisted(context, whole, len(moved))
            if len(moved) > 1:
                for loop in (x for x in loops if x in moved):
                    alone = _Motion(context, loads)
                    if alone.hoist(loop):
                        yield from self._hoisted(context, alone, 1)

    def _hoisted(self, context: RuleContext, motion: _Motion, loops: int) -> Iterator[Proposal]:
        rewrite = context.rewrite()
        motion.write(rewrite)
        preview = repair(context, context.preview.apply(rewrite.edits(self.name)))
        if is_clean(context, preview):
            yield self.proposal(
                preview, f"{len(motion.order)} instruction(s) give the same in each round of"
                f" {loops} loop(s): they are executed once, in front",
                "what a loop that stores nothing loads again stays what it is"
                if motion.loads else "")


@dataclass(frozen=True)
class _Entered:
    """A loop that is entered at one place: behind ``before``, whose last instruction stays last
    when ``jumps``."""

    loop: Loop
    first: int
    before: Block
    jumps: bool
    indices: tuple[int, ...]


def _entries(context: RuleContext) -> Iterator[_Entered]:
    cfg, program = context.cfg, context.program
    for loop in cfg.loops():
        header = cfg.blocks[loop.header]
        outside = [p for p in header.predecessors if p not in loop.blocks]
        if len(outside) != 1 or cfg.entry in loop.blocks or not cfg.reachable(header.start):
            continue
        indices = tuple(k for number in sorted(loop.blocks)
                        for k in range(cfg.blocks[number].start, cfg.blocks[number].end))
        if (header.start in context.cold or not _closed(context, loop)
                or any(k in cfg.unknown or program.instructions[k].op in CALLS for k in indices)):
            continue
        before = cfg.blocks[outside[0]]
        last = program.instructions[before.end - 1]
        only = before.successors == (loop.header,)
        falls = before.end == header.start and program.targets[before.end - 1] != header.start
        if falls and last.op not in CALLS:
            yield _Entered(loop, header.start, before, False, indices)
        elif only and last.op == "s_branch":
            yield _Entered(loop, header.start, before, True, indices)


def _closed(context: RuleContext, loop: Loop) -> bool:
    """Whether all ways into the loop go through its header."""
    blocks = context.cfg.blocks
    return all(p in loop.blocks for number in loop.blocks if number != loop.header
               for p in blocks[number].predecessors)


def _outermost_first(loops: Sequence[_Entered]) -> list[_Entered]:
    return sorted(loops, key=lambda x: (-len(x.loop.blocks), x.first))


@dataclass
class _Motion:
    """What moves in front of which loops, and which registers that takes."""

    context: RuleContext
    with_loads: bool
    order: list[tuple[int, _Entered]] = field(default_factory=list)
    texts: dict[int, str] = field(default_factory=dict)
    taken: int = 0
    loads: bool = False

    def __post_init__(self) -> None:
        self._gone: set[int] = set()
        self._pairs = mask_pairs(self.context.program, self.context.cfg)

    def hoist(self, loop: _Entered) -> bool:
        """Move what can move out of a loop; whether there was anything."""
        inside = _Inside.of(self, loop)
        count = len(self.order)
        found = True
        while found:
            found = False
            for index in loop.indices:
                if index not in self._gone and self._move(inside, index):
                    found = True
        return len(self.order) > count

    def write(self, rewrite: Rewrite) -> None:
        """Put all of it into a `Rewrite`."""
        lines = self.context.lines
        appended: dict[int, list[str]] = {}
        for index, loop in self.order:
            appended.setdefault(loop.before.end - 1, []).append(self.texts.get(index, lines[index]))
        jumps = {loop.before.end - 1 for _, loop in self.order if loop.jumps}
        for index in sorted({*appended, *self.texts, *self._gone}):
            own = () if index in self._gone else (self.texts.get(index, lines[index]),)
            behind = tuple(appended.get(index, ()))
            rewrite.replace(index, *(behind + own if index in jumps else own + behind))

    def now(self, index: int) -> Instruction:
        """An instruction with the registers that it has come to name."""
        text = self.texts.get(index)
        return self.context.program.instructions[index] if text is None else parse(text)

    def is_gone(self, index: int) -> bool:
        return index in self._gone

    def keeps_lanes(self, loop: _Entered) -> bool:
        """Whether no lane is on in the loop that is off in front of it."""
        instructions = self.context.program.instructions
        inside = frozenset(loop.indices)
        return all(
            only_narrows(instructions[k]) or self._pairs.get(k) in inside
            for k in loop.indices if instructions[k].writes & EXEC_MASK)

    def _move(self, inside: _Inside, index: int) -> bool:
        context, loop = self.context, inside.loop
        i = self.now(index)
        if (not self._movable(i, index, inside) or i.reads & inside.written_but(i, index)
                or not _pays(context, index, loop)):
            return False
        needed = context.live[index] & i.writes
        entered = context.lanes.before[loop.first]
        side = i.writes & ~needed
        to = i.operands[0]
        if to.kind is not OperandKind.REGISTER or not needed & mask(to.first, to.count):
            return False
        main = mask(to.first, to.count)
        # Results that nobody reads may be lost, but must not hit what others left there.
        if side & entered or needed & ~main:
            return False
        if not inside.others_write(main, index) and not main & entered:
            changes: dict[int, str] | None = {}
        else:
            changes = self._renaming(inside, index, i)
        if changes is None:
            return False
        self.taken |= main
        self.texts.update(changes)
        self._gone.add(index)
        inside.forget(i)
        self.order.append((index, loop))
        self.loads |= i.unit is Unit.SMEM
        return True

    def _movable(self, i: Instruction, index: int, inside: _Inside) -> bool:
        context = self.context
        if (index in context.fences or index in context.indexed or index in context.cold
                or i.op.startswith(_NOT) or has_side_effects(i) or i.writes & _STATE
                or i.reads & M0_MASK or i.reads & i.writes & ~_STATE):
            return False
        if i.unit is Unit.SMEM:
            return self.with_loads and i.op.startswith("s_load_dword") and inside.repeats(index)
        if i.unit not in _UNITS or i.encoding in ("dpp", "sdwa"):
            return False
        if i.modifier("op_sel") is not None and not i.op.startswith("v_pk_"):
            return False
        if i.unit is Unit.SALU:
            return not i.reads & EXEC_MASK
        # What a comparison says of lanes that are off depends on EXEC.
        scalars = i.writes & (_NUMBERED | VCC_MASK)
        return inside.same_lanes if scalars else inside.no_other_lanes

    def _renaming(self, inside: _Inside, index: int, i: Instruction) -> dict[int, str] | None:
        """New texts of the instruction and of all that read its result, from a free register."""
        context = self.context
        to = i.operands[0]
        main = mask(to.first, to.count)
        readers = BlockUses.around(context, index).readers(index, main)
        if not readers:
            return None
        free = context.free.during(inside.loop.indices) & ~self.taken
        start = (vector(free, to.count, min(to.count, 2)) if to.first >= VGPR0
                 else scalar(free, to.count))
        if start is None or to.first + to.count > VGPR0 + 256:
            return None
        names = {to.first + n: start + n for n in range(to.count)}
        own = renamed(self.texts.get(index, context.lines[index]), names, only=0)
        if own is None:
            return None
        changes = {index: own}
        for k in readers:
            if k in context.indexed or self.is_gone(k):
                return None
            line = _sources_renamed(self.texts.get(k, context.lines[k]), self.now(k), names)
            if line is None:
                return None
            changes[k] = line
        self.taken |= mask(start, to.count)
        return changes


@dataclass
class _Inside:
    """What a loop writes, without what has left it."""

    motion: _Motion
    loop: _Entered
    writers: Counter[int]
    same_lanes: bool
    no_other_lanes: bool

    @staticmethod
    def of(motion: _Motion, loop: _Entered) -> _Inside:
        writers: Counter[int] = Counter()
        own = {index for index, _ in motion.order}
        for k in loop.indices:
            if k not in own:
                writers.update(members(motion.now(k).writes))
        for index, other in motion.order:
            if other.before.end - 1 in loop.indices:
                writers.update(members(motion.now(index).writes))
        instructions = motion.context.program.instructions
        same = not any(instructions[k].writes & EXEC_MASK for k in loop.indices)
        return _Inside(motion, loop, writers, same, same or motion.keeps_lanes(loop))

    def written_but(self, i: Instruction, index: int) -> int:
        """What others in the loop write; EXEC is looked at elsewhere."""
        out = 0
        for register in members(i.reads & ~EXEC_MASK):
            if self.writers[register] > bool(i.writes >> register & 1):
                out |= 1 << register
        return out

    def others_write(self, registers: int, index: int) -> bool:
        return any(self.writers[r] > 1 for r in members(registers))

    def forget(self, i: Instruction) -> None:
        self.writers.subtract(members(i.writes))

    def repeats(self, index: int) -> bool:
        """Whether each round executes an instruction and the loop changes no memory."""
        context = self.motion.context
        header = context.cfg.blocks[self.loop.loop.header]
        instructions = context.program.instructions
        return header.start <= index < header.end and not any(
            instructions[k].is_store or instructions[k].is_atomic
            or instructions[k].unit in (Unit.BARRIER, Unit.MESSAGE) or k in context.guards
            or instructions[k].op.startswith(("s_dcache", "buffer_inv", "buffer_wbl2", "s_sleep"))
            for k in self.loop.indices)


def _sources_renamed(text: str, i: Instruction, names: dict[int, int]) -> str | None:
    """The text with other registers for what it reads; what it writes stays."""
    mnemonic, _, operands = text.partition(" ")
    kept, read = "", operands
    first = i.operands[0]
    if mask(first.first, first.count) & i.writes:
        kept, _, read = operands.partition(",")
    moved = renamed(f"{mnemonic} {read.strip()}", names)
    if moved is None:
        return None
    out = f"{mnemonic} {kept}, {moved.partition(' ')[2]}" if kept else moved
    now, old = parse(out), sum(1 << register for register in names)
    # An accumulation goes on reading the old ones, a second result would be renamed as well.
    return None if now.reads & old or now.writes != i.writes else out


def _pays(context: RuleContext, index: int, loop: _Entered) -> bool:
    """Whether profiles say that the loop executes an instruction more often than it is entered."""
    profiles = [p.instructions for p in context.evidence.profiles
                if len(p.instructions) == len(context.lines)]
    if not profiles:
        return True
    return (sum(p[index].issued for p in profiles)
            > sum(p[loop.before.end - 1].issued for p in profiles))
