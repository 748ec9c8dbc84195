"""Where the values in a program's registers come from, as nodes that name their sources.

Moves are looked through, and where several writes may reach a read, the node is a `Merge` of them.
Nothing is said of what the values are: `asmevo.isa.values` does that.
"""

from __future__ import annotations

import functools
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from asmevo.isa.active_lanes import active
from asmevo.isa.cfg import Cfg
from asmevo.isa.chosen_lanes import ChosenLanes, LaneMask, is_choice
from asmevo.isa.effects import Effects, effects
from asmevo.isa.errors import ControlFlowError
from asmevo.isa.instruction import Instruction, Operand, OperandKind, Unit
from asmevo.isa.lane_writers import LaneWriters
from asmevo.isa.opcodes import OPCODES
from asmevo.isa.program import Program
from asmevo.isa.registers import (
    EXEC_MASK,
    M0_MASK,
    SCC_MASK,
    VCC_MASK,
    VGPR0,
    mask,
    members,
)

_MOST_NODES = 200_000
_FEW_REGISTERS = 8
_MOVES = frozenset({"s_mov_b32", "s_mov_b64", "v_mov_b32", "v_mov_b64",
                    "v_accvgpr_read_b32", "v_accvgpr_write_b32", "v_accvgpr_mov_b32"})
_PAIR = "v_pk_mov_b32"
_WIDE_MOVES = ("s_mov_b64", "v_mov_b64")
# Vector operations whose result depends on which lanes are on, beyond keeping the others' values.
_CROSS_LANE = ("v_cmp", "v_readfirstlane", "v_mbcnt", "ds_permute", "ds_bpermute")


# 64-bit operations in which nothing of an upper word comes to the lower one.
_UPWARDS = frozenset({"v_lshl_add_u64", "v_lshlrev_b64"})
_BY_LANE = frozenset({Unit.VALU, Unit.TRANS, Unit.VMEM, Unit.FLAT, Unit.LDS})
# Operations that read what lanes hold which are off: v_writelane leaves all others what they have,
# and without any lane on v_readfirstlane reads lane 0 (CDNA3 ISA, "VOP3A" and "VOP1" instructions).
_ACROSS = ("v_readlane", "v_writelane", "v_permlane", "ds_permute", "ds_bpermute", "ds_swizzle",
           "v_swap")
_FIRST_ACTIVE = "v_readfirstlane"


# Named tuples, because hashing them is most of the work; the kind keeps them apart.
class Launched(NamedTuple):
    """A register's value at the entry."""

    register: int
    kind: Literal["launched"] = "launched"


class Definition(NamedTuple):
    """What an instruction writes to a register."""

    at: int
    register: int


class Merge(NamedTuple):
    """One of several values, by the path or the lanes."""

    nodes: frozenset[Node]
    kind: Literal["merge"] = "merge"


class Constant(NamedTuple):
    value: int
    kind: Literal["constant"] = "constant"


class Named(NamedTuple):
    """A value that the hardware computes or a field of the instruction."""

    text: str
    words: tuple[Node, ...]
    kind: Literal["named"] = "named"


Node = Launched | Definition | Merge | Constant | Named
Inputs = tuple[tuple[tuple[Node, ...], ...], dict[int, Node]]


class ValueGraph:
    """The nodes of one program, found as they are asked for.

    Raises `ControlFlowError` for code that cannot be followed, and for programs that need more than
    is reasonable.
    """

    def __init__(self, program: Program, cfg: Cfg | None = None) -> None:
        self.program = program
        self.cfg = Cfg.of(program) if cfg is None else cfg
        self.effects = effects(program, self.cfg)
        self._arrivals: dict[tuple[int, int], frozenset[int]] = {}
        self._writers = _Writers(self.effects)
        self._sources: dict[Node, tuple[Node, ...]] = {}
        self._read: dict[int, Inputs] = {}
        self._resolved: dict[Node, Node] = {}
        self._loaded: set[Node] = set()
        self._clean: set[Node] = set()
        # Then lanes are not told apart.
        self.skips = any(i.op == "s_setvskip" for i in program.instructions)

    def origins(self, index: int) -> Iterator[int]:
        """The instructions that made what an instruction reads, however far back, each once."""
        operands, implied = self.inputs(index)
        pending = [*(node for words in operands for node in words), *implied.values()]
        seen = set(pending)
        found: set[int] = set()
        while pending:
            node = pending.pop()
            if isinstance(node, Definition) and node.at not in found:
                found.add(node.at)
                yield node.at
            for need in self.needs(node):
                if need not in seen:
                    seen.add(need)
                    pending.append(need)

    def from_memory(self, root: Node) -> bool:
        """Whether a value depends on what vector memory or LDS holds."""
        path: list[tuple[Node, Iterator[Node]]] = [(root, iter((root,)))]
        seen: set[Node] = set()
        while path:
            for need in path[-1][1]:
                if need in self._clean or need in seen:
                    continue
                if need in self._loaded or self._is_loaded(need):
                    self._loaded.update((need, *(node for node, _ in path)))
                    return True
                seen.add(need)
                path.append((need, iter(self.needs(need))))
                break
            else:
                path.pop()
        self._clean |= seen
        return False

    def _is_loaded(self, node: Node) -> bool:
        if not isinstance(node, Definition):
            return False
        i = self.program.instructions[node.at]
        return (i.is_load or i.is_atomic) and i.unit is not Unit.SMEM

    def reaching(self, index: int, register: int) -> Node:
        """The value of a register just before an instruction."""
        block = self.cfg.blocks[self.cfg.block_of[index]]
        found: set[int] = set()
        ends = self._last_writers(register, block.start, index, found)
        # What one block writes twice may be two values of lanes as well, where EXEC was changed.
        every = found if ends else found | self._arriving(block.start, register)
        if (register >= VGPR0 and (not ends or len(found) > 1) and self._by_lane(index)
                and not every & self.cfg.unknown):
            writes = self._lane_writers.reaching(index, register)
            # Lanes that went round a stretch were not spared what ignores EXEC in it.
            writes |= {at for at in every & self._lane_writers.inside if not self._is_masked(at)}
            if len(writes) > 1 and is_choice(self.program.instructions[index]):
                writes -= self._chosen_lanes.unseen(index, register, writes)
            return self._merge(writes, register)
        return self._merge(every, register)

    def only_arriving(self, block: int, index: int, register: int) -> Node | None:
        """What is in a register in front of an instruction of a block, or at its end, where it can
        come from one write alone."""
        found: set[int] = set()
        start = self.cfg.blocks[block].start
        if not self._last_writers(register, start, index, found):
            found |= self._arriving(start, register)
        if len(found) != 1:
            return None
        return self._merge(found, register)

    def _by_lane(self, reader: int) -> bool:
        """Whether an instruction reads vector registers in the lanes that are on, each its own."""
        i = self.program.instructions[reader]
        if i.op.startswith(_FIRST_ACTIVE) and reader not in self.active:
            return False
        return (i.unit in _BY_LANE and i.encoding != "dpp" and not i.op.startswith(_ACROSS)
                and not self.skips)

    def _is_masked(self, at: int) -> bool:
        """Whether an instruction leaves lanes that are off what they have; -1 is the launch."""
        return at < 0 or bool(self.program.instructions[at].reads & EXEC_MASK)

    @functools.cached_property
    def active(self) -> frozenset[int]:
        """The instructions at which some lane is certainly on."""
        return active(self.program, self.cfg)

    @functools.cached_property
    def _lane_writers(self) -> LaneWriters:
        effects, instructions = self.effects, self.program.instructions

        def replaces(at: int, register: int) -> bool:
            return (effects[at].writes == instructions[at].writes
                    and bool(instructions[at].reads & EXEC_MASK))

        def kills(at: int, register: int) -> bool:
            return bool(effects[at].kills >> register & 1)

        return LaneWriters(self.program, self.cfg, self._writers, replaces, kills)

    @functools.cached_property
    def _chosen_lanes(self) -> ChosenLanes:
        def mask_of(index: int, operand: int) -> LaneMask | None:
            given = self.program.instructions[index].operands[operand]
            if given.kind is not OperandKind.REGISTER or given.count != 2:
                return None
            registers = (given.first, given.first + 1)
            words = tuple(self.reaching(index, register) for register in registers)
            made = {word.at for word in words if isinstance(word, Definition)}
            put = set().union(*(self._putting(index, register) for register in registers))
            if len(made) != 1 or len(put) != 1 or min(put) < 0 or not all(
                    isinstance(word, Definition) for word in words):
                return None
            return LaneMask(words, made.pop(), put.pop())

        return ChosenLanes(self.program, self.cfg, mask_of, self._lane_writers.reaching)

    def _putting(self, index: int, register: int) -> set[int]:
        """The instructions that may have written a scalar register; -1 is the launch."""
        found: set[int] = set()
        start = self.cfg.blocks[self.cfg.block_of[index]].start
        if not self._last_writers(register, start, index, found):
            found |= self._arriving(start, register)
        return found

    def _last_writers(self, register: int, start: int, stop: int, found: set[int]) -> bool:
        """Add what may still hold at ``stop`` of the writes from ``start`` on; whether the last
        of them overwrites all that came before."""
        writers = self._writers[register]
        position = bisect_left(writers, stop)
        while position and writers[position - 1] >= start:
            position -= 1
            at = writers[position]
            found.add(at)
            if self.effects[at].kills >> register & 1:
                return True
        return False

    def _arriving(self, start: int, register: int) -> frozenset[int]:
        """Definitions that may reach the start of a block; -1 is the launch."""
        key = (start, register)
        known = self._arrivals.get(key)
        if known is not None:
            return known
        found: set[int] = set()
        seen: set[int] = set()
        blocks = self.cfg.blocks
        pending = [self.cfg.block_of[start]]
        while pending:
            here = pending.pop()
            if here == self.cfg.entry:
                found.add(-1)
            for previous in blocks[here].predecessors:
                block = blocks[previous]
                if previous in seen or not self.cfg.reachable(block.start):
                    continue
                seen.add(previous)
                if not self._last_writers(register, block.start, block.end, found):
                    pending.append(previous)
        self._arrivals[key] = frozenset(found)
        return self._arrivals[key]

    def _merge(self, definitions: set[int], register: int) -> Node:
        nodes = {self.resolve(Definition(d, register)) if d >= 0 else Launched(register)
                 for d in definitions}
        return nodes.pop() if len(nodes) == 1 else Merge(frozenset(nodes))

    def resolve(self, node: Node) -> Node:
        """What a move copies stands for the move."""
        trail = []
        while (known := self._resolved.get(node)) is None:
            trail.append(node)
            self._resolved[node] = node  # a cycle of moves stands for itself
            source = self._copied(node)
            if source is None or source == node:
                break
            node = source
        else:
            node = known
        for step in trail:
            self._resolved[step] = node
        return node

    def _copied(self, node: Node) -> Node | None:
        if not isinstance(node, Definition):
            return None
        i = self.program.instructions[node.at]
        if (not is_move(i) or node.at in self.cfg.unknown
                or self.effects[node.at].writes != i.writes
                or self.effects[node.at].reads != i.reads):
            return None
        word = node.register - i.operands[0].first
        if i.op == _PAIR:
            return self._operand(node.at, i.operands[1 + word], _halves(i)[word])
        return self._operand(node.at, i.operands[1], word)

    def _operand(self, index: int, operand: Operand, word: int) -> Node:
        match operand.kind:
            case OperandKind.REGISTER:
                return self.reaching(index, operand.first + min(word, operand.count - 1))
            case OperandKind.CONSTANT:
                negative = operand.text.startswith("-") and "." not in operand.text
                return Constant(operand.value if not word else -1 if negative else 0)
        return Named(operand.text, tuple(
            self.reaching(index, operand.first + k) for k in range(max(operand.count, 0))))

    def needs(self, node: Node) -> tuple[Node, ...]:
        """The nodes that a node is made from."""
        known = self._sources.get(node)
        if known is None:
            if len(self._sources) > _MOST_NODES:
                raise ControlFlowError("the kernel's values are too many to follow")
            known = self._sources[node] = self._find_sources(node)
        return known

    def _find_sources(self, node: Node) -> tuple[Node, ...]:
        if isinstance(node, Merge):
            return tuple(node.nodes)
        if isinstance(node, Named):
            return node.words
        if isinstance(node, Definition):
            operands, implied = self.inputs(node.at)
            if self.low_words(node.at, node.register):
                return tuple(words[0] for words in operands)
            return (*(n for words in operands for n in words), *implied.values())
        return ()

    def low_words(self, index: int, register: int) -> bool:
        """Whether what goes to a register is made from the lowest words of the operands alone."""
        i = self.program.instructions[index]
        return (i.op in _UPWARDS and i.operands[0].first == register and is_plain(i)
                and self.effects[index].reads == i.reads)

    def inputs(self, index: int) -> Inputs:
        """Where the operands and implied registers that an instruction reads come from."""
        known = self._read.get(index)
        if known is None:
            known = self._read[index] = self._find_inputs(index)
        return known

    def _find_inputs(self, index: int) -> Inputs:
        i = self.program.instructions[index]
        if index in self.cfg.unknown:
            return (), {}
        roles = OPCODES[i.op].roles_with({name for name, _ in i.modifiers})
        operands: list[tuple[Node, ...]] = []
        for operand, role in zip(i.operands, roles, strict=True):
            if role in "rxi":
                words = 2 if operand.kind is OperandKind.CONSTANT else max(operand.count, 1)
                operands.append(tuple(self._operand(index, operand, k) for k in range(words)))
        reads = i.reads
        for operand, role in zip(i.operands, roles, strict=True):
            if role in "rx" and operand.count > 0:
                reads &= ~mask(operand.first, operand.count)
        if i.unit is not Unit.SALU and not i.op.startswith(_CROSS_LANE):
            reads &= ~EXEC_MASK
        if self.effects[index].reads != i.reads:
            reads |= M0_MASK
        implied = {register: self.reaching(index, register)
                   for register in members(reads & (SCC_MASK | VCC_MASK | M0_MASK | EXEC_MASK))}
        return tuple(operands), implied


class _Writers(dict[int, Sequence[int]]):
    """By register the instructions that may write it, ascending.

    Few registers are asked for where most values are known; then it is quicker to look for each.
    """

    def __init__(self, facts: Sequence[Effects]) -> None:
        super().__init__()
        self._facts = facts

    def __missing__(self, register: int) -> Sequence[int]:
        if len(self) < _FEW_REGISTERS:
            bit = 1 << register
            found = [k for k, fact in enumerate(self._facts) if fact.writes & bit]
            self[register] = found
            return found
        every: defaultdict[int, list[int]] = defaultdict(list)
        for index, fact in enumerate(self._facts):
            for written in _members(fact.writes):
                every[written].append(index)
        self.update(every)
        return self.setdefault(register, ())


@functools.lru_cache(maxsize=1 << 14)
def _members(registers: int) -> tuple[int, ...]:
    return tuple(members(registers))


def is_move(i: Instruction) -> bool:
    """Whether an instruction copies registers or constants, and nothing else."""
    if i.op == _PAIR:
        return all(name == "op_sel" for name, _ in i.modifiers) and all(
            o.kind is OperandKind.REGISTER and o.count == 2 and not (o.neg or o.abs)
            for o in i.operands)
    if i.op in _WIDE_MOVES and "." in i.operands[1].text:
        return False  # a constant of 64 bits
    return i.op in _MOVES and is_plain(i)


def _halves(i: Instruction) -> tuple[int, int]:
    """Which word of the first source becomes the lower, and which of the second the upper one."""
    chosen = i.modifier("op_sel")
    return (chosen[0], chosen[1]) if isinstance(chosen, tuple) else (0, 0)


def is_plain(i: Instruction) -> bool:
    return not i.modifiers and i.encoding not in ("dpp", "sdwa") and not any(
        o.neg or o.abs or o.sext for o in i.operands)
