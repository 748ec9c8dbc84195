"""Splits the body of a loop into what fetches and what uses, so that the two can be rounds apart.

A loop of one block is read as two halves. The fetching half (``ahead``) are its loads, everything
that their addresses, the counter and the condition need, and whatever else does not depend on what
the loads bring. The using half (``behind``) are the other instructions: they depend on loaded
values, directly or through one another, or store. Values that go from the first to the second, the
loaded ones among them, are ``carried``; a pipelined loop needs a copy of them for each round that
is under way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from asmevo.isa.instruction import Instruction, OperandKind, Unit
from asmevo.isa.registers import (
    AGPR0,
    ALL_VGPR_MASK,
    EXEC_MASK,
    M0_MASK,
    MODE_MASK,
    SCC_MASK,
    SGPR_LIMIT,
    VGPR0,
    mask,
    members,
)
from asmevo.propose.round_count import RoundCount
from asmevo.propose.rule import RuleContext

_CROSS_LANE = ("v_readlane", "v_readfirstlane", "v_writelane", "ds_bpermute", "ds_permute",
               "ds_swizzle", "v_permlane", "v_mbcnt")
_LOGIC = ("s_and_b64", "s_or_b64", "s_xor_b64", "s_andn2_b64", "s_orn2_b64", "s_nand_b64",
          "s_nor_b64", "s_xnor_b64", "s_not_b64", "s_mov_b64", "s_nop")
_PACKED = ("v_pk_fma_f32", "v_pk_mul_f32", "v_pk_add_f32")
_STATE = EXEC_MASK | M0_MASK | MODE_MASK


@dataclass(frozen=True)
class PipelinedLoop:
    """One loop of one block whose rounds can overlap.

    ``start`` to ``latch`` are its instructions, ``latch`` the branch back. ``loads`` are the loads
    to issue early. ``kept`` are registers that the fetching half holds when a round begins and the
    using half reads, and ``made`` registers that an instruction of the fetching half gives to it
    (by instruction); both must be copied for each round, while ``loaded`` registers are renamed.
    ``masked`` says that lanes leave the loop one by one; ``summed`` are registers in which rounds
    of the using half build on one another, and ``overwritten`` what the fetching half writes.
    ``rounds`` is how often the loop is run when it is entered, if a profile tells; ``count`` tells
    how many rounds are left, if that can be told; ``running`` are registers that the fetching half
    takes from one round to the next. ``drains``: what the last rounds use may be done
    behind the loop; without it the last round has to be one of the original's.
    """

    start: int
    latch: int
    ahead: tuple[int, ...]
    behind: tuple[int, ...]
    loads: tuple[int, ...]
    loaded: int
    kept: int
    made: dict[int, int]
    masked: bool
    summed: int
    overwritten: int
    rounds: float | None
    count: RoundCount | None
    drains: bool
    running: int


def pipelined_loops(context: RuleContext) -> Iterator[PipelinedLoop]:
    """The loops that can be split so, by address."""
    for loop in sorted(context.cfg.loops(), key=lambda x: context.cfg.blocks[x.header].start):
        if len(loop.blocks) == 1:
            found = _split(context, loop.header)
            if found is not None and found.start not in context.cold:
                yield found


def _split(context: RuleContext, number: int) -> PipelinedLoop | None:
    block = context.cfg.blocks[number]
    start, latch = block.start, block.end - 1
    instructions = context.program.instructions
    branch = instructions[latch]
    outside = [p for p in block.predecessors if p != number]
    if (not branch.is_conditional or context.program.targets[latch] != start
            or len(outside) != 1 or context.cfg.blocks[outside[0]].end != start
            or len(block.successors) != 2
            or any(i in context.indexed or i in context.cfg.unknown for i in range(start, latch))):
        return None
    # Branches into the loop from elsewhere would be predecessors; the one before it must fall in.
    before = instructions[start - 1]
    if before.ends_program or (before.is_branch and (
            not before.is_conditional or context.program.targets[start - 1] == start)):
        return None
    body = [i for i in range(start, latch)
            if i in context.guards or not (
                instructions[i].wait is not None or instructions[i].op == "s_nop")]
    if any(_forbids(context, i) for i in body):
        return None
    loads = [i for i in body if _is_early(instructions[i])]
    if not loads:
        return None
    definitions = _Definitions(context, body)
    behind = _behind(definitions, loads, instructions)
    if not behind or latch in definitions.users_of(behind, latch):
        return None
    ahead = [i for i in body if i not in behind]
    narrowing = [i for i in body if instructions[i].writes & EXEC_MASK]
    if len(narrowing) > 1 or any(i in behind for i in narrowing):
        return None
    if narrowing and any(i > narrowing[0] and instructions[i].reads & EXEC_MASK for i in body):
        return None
    if narrowing and not _is_laned(instructions, behind):
        return None
    shared = any(instructions[i].unit is Unit.BARRIER for i in body)
    if shared and (narrowing or any(instructions[i].unit is Unit.BARRIER for i in ahead)):
        return None
    found = _carried(context, definitions, start, latch, ahead, sorted(behind), loads,
                     bool(narrowing), not shared)
    if found is None and not narrowing:
        # What neither a load nor the condition needs may as well stay with the users.
        needed = _needed(definitions, loads, latch)
        ahead, behind = [i for i in ahead if i in needed], set(body) - needed
        found = _carried(context, definitions, start, latch, ahead, sorted(behind), loads,
                         False, not shared)
    return found


def _forbids(context: RuleContext, index: int) -> bool:
    i = context.program.instructions[index]
    return (i.unit in (Unit.FLAT, Unit.MESSAGE, Unit.OPAQUE)
            or i.is_branch or i.is_atomic or bool(i.modifier("lds")) or i.wait is not None
            or (index in context.fences and not i.writes & EXEC_MASK)
            or bool(i.writes & (M0_MASK | MODE_MASK)))


def _is_early(i: Instruction) -> bool:
    return i.is_load and i.unit in (Unit.VMEM, Unit.SMEM) and "_d16" not in i.op


class _Definitions:
    """Who made what an instruction of a loop's body reads."""

    def __init__(self, context: RuleContext, body: list[int]) -> None:
        self._instructions = context.program.instructions
        self._body = body
        self.latch = context.cfg.blocks[context.cfg.block_of[body[0]]].end - 1
        self._writers: dict[int, list[int]] = {}
        for index in body:
            for register in members(self._instructions[index].writes):
                self._writers.setdefault(register, []).append(index)

    def of(self, index: int, register: int) -> tuple[int | None, bool]:
        """The instruction, and whether it is one of the round before; none for what no round
        changes."""
        writers = self._writers.get(register)
        if not writers:
            return None, False
        earlier = [w for w in writers if w < index]
        return (earlier[-1], False) if earlier else (writers[-1], True)

    def changed(self, register: int) -> bool:
        return register in self._writers

    def reads(self, index: int) -> int:
        """Registers whose value matters to an instruction."""
        i = self._instructions[index]
        out = i.reads
        if i.op not in _PACKED or i.encoding == "dpp":
            return out
        # Both results take the low word of a source where both selections are zero (CDNA3 ISA,
        # "Packed 32-bit Instructions").
        sources = i.operands[1:]
        select = i.modifier("op_sel") or (0,) * len(sources)
        high = i.modifier("op_sel_hi") or (1,) * len(sources)
        if not (isinstance(select, tuple) and isinstance(high, tuple)):
            return out
        used = 0
        for o, a, b in zip(sources, select, high, strict=True):
            if o.kind is OperandKind.REGISTER and o.count == 2:
                used |= sum(mask(o.first + k) for k in {a, b})
                out &= ~mask(o.first, 2)
        return out | used

    def users_of(self, producers: set[int], *more: int) -> set[int]:
        """The instructions that read what one of these makes, in this round or the next."""
        out = set()
        for index in (*self._body, *more):
            for register in members(self.reads(index) & ~_STATE):
                if self.of(index, register)[0] in producers:
                    out.add(index)
                    break
        return out


def _behind(
    definitions: _Definitions, loads: list[int], instructions: tuple[Instruction, ...],
) -> set[int]:
    body = definitions._body
    behind = {i for i in body if instructions[i].is_store
              or instructions[i].unit in (Unit.BARRIER, Unit.LDS)}
    while True:
        more = definitions.users_of(behind | set(loads)) | behind
        if more == behind:
            break
        behind = more
    # Loads that need loaded values stay with their users.
    if len(set(loads) - behind) == 0:
        return set()
    loads[:] = [i for i in loads if i not in behind]
    return behind


def _needed(definitions: _Definitions, loads: list[int], latch: int) -> set[int]:
    """The loads, and what they and the branch back depend on."""
    needed = set(loads)
    pending = [*loads, latch]
    while pending:
        index = pending.pop()
        for register in members(definitions.reads(index) & ~_STATE):
            producer = definitions.of(index, register)[0]
            if producer is not None and producer not in needed:
                needed.add(producer)
                pending.append(producer)
    return needed


def _is_laned(instructions: tuple[Instruction, ...], behind: set[int]) -> bool:
    """Whether each lane works for itself, so that lanes may be in different rounds."""
    for index in behind:
        i = instructions[index]
        if i.op.startswith(_CROSS_LANE) or i.encoding == "dpp":
            return False
        if i.unit is Unit.SALU and not i.op.startswith(_LOGIC):
            return False
        if i.unit is Unit.SMEM or (i.unit is Unit.LDS and i.is_store):
            return False
    return True


def _carried(
    context: RuleContext, definitions: _Definitions, start: int, latch: int, ahead: list[int],
    behind: list[int], loads: list[int], masked: bool, drains: bool,
) -> PipelinedLoop | None:
    instructions = context.program.instructions
    loaded = kept = summed = 0
    made: dict[int, int] = {}
    behind_set, load_set = set(behind), set(loads)
    for index in behind:
        for register in members(definitions.reads(index) & ~_STATE):
            producer, before = definitions.of(index, register)
            if producer is None:
                continue
            if producer in behind_set:
                summed |= mask(register) if before else 0
            elif before and producer in load_set:
                return None
            elif before:
                kept |= mask(register)
            elif producer in load_set:
                loaded |= mask(register)
            else:
                made[producer] = made.get(producer, 0) | mask(register)
    brought = 0
    for index in loads:
        # Early, the one would overwrite what the other brought.
        if brought & instructions[index].writes:
            return None
        brought |= instructions[index].writes
    loaded |= brought
    given = 0
    for registers in made.values():
        if given & registers:
            return None
        given |= registers
    written_ahead = written_behind = 0
    for index in ahead:
        if index not in load_set:
            written_ahead |= instructions[index].writes
    for index in behind:
        written_behind |= instructions[index].writes
    carried = loaded | kept | given
    if kept & (loaded | given) or loaded & given or summed & (written_ahead | carried):
        return None
    # Behind the loop only sums and what the fetching half holds are as before.
    if _live_after(context, latch) & (loaded | written_behind & ~summed):
        drains = False
    # Where lanes leave one by one, a scalar would be that of another round for some of them.
    allowed = ALL_VGPR_MASK | (0 if masked else mask(0, SGPR_LIMIT))
    if (kept | given) & ~allowed or loaded & SCC_MASK:
        return None
    running = 0
    # The using half may overwrite its own copies, but nothing that the fetching half goes on with.
    for index in ahead:
        for register in members(definitions.reads(index) & ~_STATE):
            producer, before = definitions.of(index, register)
            if producer is not None and before:
                running |= mask(register)
                if written_behind & mask(register) & ~loaded:
                    return None
            if producer in load_set:
                return None
    if written_behind & kept or written_behind & given:
        return None
    if not carried:
        return None
    return PipelinedLoop(start, latch, tuple(ahead), tuple(behind), tuple(loads), loaded, kept,
                         made, masked, summed, written_ahead,
                         context.rounds(context.cfg.blocks[context.cfg.block_of[start]]),
                         None if masked else RoundCount.of(context, start, latch, ahead), drains,
                         running & (ALL_VGPR_MASK | mask(0, SGPR_LIMIT)))


def _live_after(context: RuleContext, latch: int) -> int:
    """Registers that are read behind the loop before they are written."""
    return context.lanes.before[latch + 1] if latch + 1 < len(context.program) else 0


def vector_run(registers: int) -> list[tuple[int, int]]:
    """Runs of neighbouring registers as pairs of a first one and a length."""
    out: list[tuple[int, int]] = []
    for register in members(registers):
        if out and out[-1][0] + out[-1][1] == register and register not in (VGPR0, AGPR0):
            out[-1] = out[-1][0], out[-1][1] + 1
        else:
            out.append((register, 1))
    return out
