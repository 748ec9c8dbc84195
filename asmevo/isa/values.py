"""The values that reach registers, as numbers that programs can be compared by.

A value is followed backwards, on demand, through moves, arithmetic and all paths to what the launch
gives and what memory holds. Values that loops carry are told apart by unfolding their definitions
as often as two loops of that size can differ; loops of more than :data:`_LARGE` definitions are
unfolded :data:`_LARGE` times, so that a difference farther away than that is not seen. What vector
operations make of loaded data is one value, whatever it is: data are what inputs vary.
"""

from __future__ import annotations

import functools
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from asmevo.isa.cfg import Cfg
from asmevo.isa.effects import VECTOR_UNITS, Effects, effects
from asmevo.isa.errors import ControlFlowError
from asmevo.isa.instruction import Instruction, Operand, OperandKind, Unit
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
    names,
)
from asmevo.isa.value_forms import Arguments, rule_of
from asmevo.isa.value_numbers import Numbers, Taint

_SMALL, _LARGE = 8, 64
_MOST_NODES = 200_000
KERNARG_POINTER = "kernarg pointer"
DISPATCH_POINTER = "dispatch packet pointer"
_MOVES = frozenset({"s_mov_b32", "s_mov_b64", "v_mov_b32", "v_accvgpr_read_b32",
                    "v_accvgpr_write_b32", "v_accvgpr_mov_b32"})
_CLOCKS = ("s_memtime", "s_memrealtime", "s_getreg")
# Vector operations whose result depends on which lanes are on, beyond keeping the others' values.
_CROSS_LANE = ("v_cmp", "v_readfirstlane", "v_mbcnt", "ds_permute", "ds_bpermute")
_NOTHING = Taint(0)
_COMMUTATIVE = ("s_min", "s_max", "s_mul_hi", "v_min_", "v_max_", "v_mul_", "v_add_f")


@dataclass(frozen=True, slots=True)
class Source:
    """What the launch puts into a register.

    ``value`` is set where that is always the same, ``kernarg`` to the offset of a preloaded word.
    """

    name: str
    taint: Taint = _NOTHING
    value: int | None = None
    kernarg: int | None = None


@dataclass(frozen=True, slots=True)
class Launched:
    """A register's value at the entry."""

    register: int


@dataclass(frozen=True, slots=True)
class Definition:
    """What an instruction writes to a register."""

    index: int
    register: int


@dataclass(frozen=True, slots=True)
class Merge:
    """One of several values, by the path or the lanes."""

    nodes: frozenset[Node]


@dataclass(frozen=True, slots=True)
class Constant:
    value: int


@dataclass(frozen=True, slots=True)
class Named:
    """A value that the hardware computes or a field of the instruction."""

    text: str
    words: tuple[Node, ...]


Node = Launched | Definition | Merge | Constant | Named
_Inputs = tuple[tuple[tuple[Node, ...], ...], dict[int, Node]]


class Values:
    """Numbers of the values in one program.

    ``entry`` names what registers hold at the start. Raises `ControlFlowError` for code that cannot
    be followed, and for programs that need more than is reasonable.
    """

    def __init__(self, program: Program, entry: Mapping[int, Source], numbers: Numbers,
                 cfg: Cfg | None = None) -> None:
        self.program = program
        self.cfg = Cfg.of(program) if cfg is None else cfg
        self.numbers = numbers
        # The registers that were looked at so far, as a mask.
        self.followed = 0
        self._entry = entry
        self._effects = effects(program, self.cfg)
        self._arrivals: dict[tuple[int, int], frozenset[int]] = {}
        self._writers = _writers(self._effects)
        self._sources: dict[Node, tuple[Node, ...]] = {}
        self._read: dict[int, _Inputs] = {}
        self._resolved: dict[Node, Node] = {}
        self._done: dict[Node, int] = {}
        self._loaded: set[Node] = set()
        self._clean: set[Node] = set()

    def before(self, index: int, register: int) -> int:
        """The number of a register's value just before an instruction."""
        return self._number(self._reaching(index, register))

    def after(self, index: int, register: int) -> int:
        """The number of what an instruction writes to a register."""
        return self._number(self._resolve(Definition(index, register)))

    def from_memory(self, index: int, register: int) -> bool:
        """Whether what an instruction writes depends on what vector memory or LDS holds."""
        return self._from_memory(self._resolve(Definition(index, register)))

    def origins(self, index: int) -> Iterator[int]:
        """The instructions that made what an instruction reads, however far back, each once."""
        operands, implied = self._inputs(index)
        pending = [*(node for words in operands for node in words), *implied.values()]
        seen = set(pending)
        found: set[int] = set()
        while pending:
            node = pending.pop()
            if isinstance(node, Definition) and node.index not in found:
                found.add(node.index)
                yield node.index
            for need in self._all_needs(node):
                if need not in seen:
                    seen.add(need)
                    pending.append(need)

    def _from_memory(self, root: Node) -> bool:
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
                path.append((need, iter(self._all_needs(need))))
                break
            else:
                path.pop()
        self._clean |= seen
        return False

    def _is_loaded(self, node: Node) -> bool:
        if not isinstance(node, Definition):
            return False
        i = self.program.instructions[node.index]
        return (i.is_load or i.is_atomic) and i.unit is not Unit.SMEM

    def _reaching(self, index: int, register: int) -> Node:
        self.followed |= 1 << register
        block = self.cfg.blocks[self.cfg.block_of[index]]
        found: set[int] = set()
        if self._last_writers(register, block.start, index, found):
            return self._merge(found, register)
        return self._merge(found | self._arriving(block.start, register), register)

    def _last_writers(self, register: int, start: int, stop: int, found: set[int]) -> bool:
        """Add what may still hold at ``stop`` of the writes from ``start`` on; whether the last
        of them overwrites all that came before."""
        writers = self._writers[register]
        position = bisect_left(writers, stop)
        while position and writers[position - 1] >= start:
            position -= 1
            at = writers[position]
            found.add(at)
            if self._effects[at].kills >> register & 1:
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
        nodes = {self._resolve(Definition(d, register)) if d >= 0 else Launched(register)
                 for d in definitions}
        return nodes.pop() if len(nodes) == 1 else Merge(frozenset(nodes))

    def _resolve(self, node: Node) -> Node:
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
        i = self.program.instructions[node.index]
        if (i.op not in _MOVES or not _is_plain(i) or node.index in self.cfg.unknown
                or self._effects[node.index].writes != i.writes
                or self._effects[node.index].reads != i.reads):
            return None
        return self._operand(node.index, i.operands[1], node.register - i.operands[0].first)

    def _operand(self, index: int, operand: Operand, word: int) -> Node:
        match operand.kind:
            case OperandKind.REGISTER:
                return self._reaching(index, operand.first + min(word, operand.count - 1))
            case OperandKind.CONSTANT:
                negative = operand.text.startswith("-") and "." not in operand.text
                return Constant(operand.value if not word else -1 if negative else 0)
        return Named(operand.text, tuple(
            self._reaching(index, operand.first + k) for k in range(max(operand.count, 0))))

    def _number(self, root: Node) -> int:
        """Tarjan's components give loops; what is in none is numbered once its sources are."""
        if root in self._done:
            return self._done[root]
        position: dict[Node, int] = {root: 0}
        low: dict[Node, int] = {root: 0}
        stack, work = [root], [(root, iter(self._needs(root)))]
        on_stack = {root}
        while work:
            node, needs = work[-1]
            for need in needs:
                if need in self._done:
                    continue
                if need not in position:
                    position[need] = low[need] = len(position)
                    stack.append(need)
                    on_stack.add(need)
                    work.append((need, iter(self._needs(need))))
                    break
                if need in on_stack:
                    low[node] = min(low[node], position[need])
            else:
                work.pop()
                if work:
                    above = work[-1][0]
                    low[above] = min(low[above], low[node])
                if low[node] == position[node]:
                    component = []
                    while True:
                        component.append(stack.pop())
                        on_stack.discard(component[-1])
                        if component[-1] == node:
                            break
                    self._finish(component)
        return self._done[root]

    def _finish(self, component: list[Node]) -> None:
        done = self._done
        if len(component) == 1 and component[0] not in self._needs(component[0]):
            done[component[0]] = self._form(component[0], done.__getitem__)
            return
        numbers = self.numbers
        colours = dict.fromkeys(component, numbers.atom(("loop",)))
        taint = Taint.PATH
        rounds = _SMALL
        while rounds < min(2 * len(component), _LARGE):
            rounds *= 2
        for _ in range(rounds):
            def number(node: Node, colours: Mapping[Node, int] = colours) -> int:
                known = colours.get(node)
                return done[node] if known is None else known

            colours = {node: self._form(node, number) for node in component}
            for colour in colours.values():
                taint |= numbers.taints[colour]
        for node, colour in colours.items():
            done[node] = numbers.atom(("loop", colour), (colour,), taint)

    def _needs(self, node: Node) -> tuple[Node, ...]:
        """The nodes that a node's number is made from."""
        return () if self._is_data(node) else self._all_needs(node)

    def _is_data(self, node: Node) -> bool:
        return (isinstance(node, Definition)
                and self.program.instructions[node.index].unit in VECTOR_UNITS
                and self._from_memory(node))

    def _all_needs(self, node: Node) -> tuple[Node, ...]:
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
            operands, implied = self._inputs(node.index)
            return (*(n for words in operands for n in words), *implied.values())
        return ()

    def _inputs(self, index: int) -> _Inputs:
        """Where the operands and implied registers that an instruction reads come from."""
        known = self._read.get(index)
        if known is None:
            known = self._read[index] = self._find_inputs(index)
        return known

    def _find_inputs(self, index: int) -> _Inputs:
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
        if self._effects[index].reads != i.reads:
            reads |= M0_MASK
        implied = {register: self._reaching(index, register)
                   for register in members(reads & (SCC_MASK | VCC_MASK | M0_MASK | EXEC_MASK))}
        return tuple(operands), implied

    def _form(self, node: Node, number: Callable[[Node], int]) -> int:
        numbers = self.numbers
        match node:
            case Constant(value):
                return numbers.constant(value)
            case Named(text, words):
                parts = [number(word) for word in words]
                return numbers.atom(("named", text, *parts), parts)
            case Merge(nodes):
                return numbers.merged(number(n) for n in nodes)
            case Launched(register):
                return self._launched(register)
            case Definition() if self._is_data(node):
                return numbers.atom(("data",), taint=Taint.MEMORY | Taint.LDS)
            case Definition(index, register):
                return self._defined(index, register, number)

    def _launched(self, register: int) -> int:
        source = self._entry.get(register)
        if source is None:
            return self.numbers.atom(("undefined", register), taint=Taint.UNDEFINED)
        if source.value is not None:
            return self.numbers.constant(source.value)
        if source.kernarg is not None:
            return self.numbers.kernarg(source.kernarg)
        return self.numbers.atom(("launch", source.name), taint=source.taint)

    def _defined(self, index: int, register: int, number: Callable[[Node], int]) -> int:
        i = self.program.instructions[index]
        if index in self.cfg.unknown:
            return self.numbers.atom(("unknown", i.text, register), taint=Taint.HARDWARE)
        operands, implied = self._inputs(index)
        arguments = Arguments(tuple(tuple(number(n) for n in words) for words in operands),
                              {r: number(n) for r, n in implied.items()})
        target = i.operands[0] if i.operands else None
        inside = target is not None and target.first <= register < target.first + target.count
        word = register - target.first if target is not None and inside else 0
        if _is_plain(i) and self._effects[index].writes == i.writes:
            rule = rule_of(i.op)
            if rule is not None:
                made = rule(self.numbers, arguments, register, word)
                if made is not None:
                    return made
        if i.is_load and i.unit is Unit.SMEM and len(arguments.operands) == 2:
            return self._scalar_load(i, arguments, word)
        output: object = word if inside else names(1 << register) if register < VGPR0 else "second"
        return self._opaque(i, arguments, output, _own_taint(i))

    def _opaque(self, i: Instruction, arguments: Arguments, output: object, taint: Taint) -> int:
        marks = tuple((o.neg, o.abs, o.sext) for o in i.operands if o.neg or o.abs or o.sext)
        operands = list(arguments.operands)
        if not marks and i.op.startswith(_COMMUTATIVE) and len(operands) == 2:
            operands.sort()
        form = (i.op, i.modifiers, marks, output, *operands, *arguments.implied.items())
        return self.numbers.atom(form, arguments.flat(), taint)

    def _scalar_load(self, i: Instruction, arguments: Arguments, word: int) -> int:
        """Words of the kernarg are told by their offset, however they are loaded."""
        numbers = self.numbers
        base, offset = arguments.operands
        extra = i.modifier("offset")
        low = numbers.add(base[0], offset[0])
        if isinstance(extra, int):
            low = numbers.add(low, numbers.constant(extra))
        pointer = self._pointer(KERNARG_POINTER)
        # The upper half of an address has 16 bits; some kernels mask the others out.
        if pointer is not None and len(base) == 2 and base[1] in (
                pointer[1], numbers.field(pointer[1], 0, 16)):
            distance = numbers.value_of(numbers.subtract(low, pointer[0]))
            if distance is not None:
                return numbers.kernarg(distance + 4 * word)
        taint = Taint.MEMORY
        for name in (KERNARG_POINTER, DISPATCH_POINTER):
            launch = self._pointer(name)
            if launch is not None and numbers.mentions(low, launch[0]):
                taint = Taint.KERNARG if name == KERNARG_POINTER else Taint.WORKGROUP
        form = ("scalar load", i.op.startswith("s_buffer"), low, *base[1:])
        loaded = numbers.atom(form, (low, *base[1:]), taint)
        return numbers.atom(("word", loaded, word), (loaded,))

    def _pointer(self, name: str) -> tuple[int, int] | None:
        halves = tuple(self._launched(register) for register, source in sorted(self._entry.items())
                       if source.name.startswith(name))
        return (halves[0], halves[1]) if len(halves) == 2 else None


def _writers(facts: Sequence[Effects]) -> defaultdict[int, list[int]]:
    """By register the instructions that may write it, ascending."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    for index, fact in enumerate(facts):
        for register in _members(fact.writes):
            found[register].append(index)
    return found


@functools.lru_cache(maxsize=1 << 14)
def _members(registers: int) -> tuple[int, ...]:
    return tuple(members(registers))


def _is_plain(i: Instruction) -> bool:
    return not i.modifiers and i.encoding not in ("dpp", "sdwa") and not any(
        o.neg or o.abs or o.sext for o in i.operands)


def _own_taint(i: Instruction) -> Taint:
    if i.op.startswith(_CLOCKS):
        return Taint.HARDWARE
    if i.unit is Unit.LDS and (i.is_load or i.is_atomic):
        return Taint.LDS
    return Taint.MEMORY if i.is_load or i.is_atomic else _NOTHING
