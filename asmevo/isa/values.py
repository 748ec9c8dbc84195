"""The values that reach registers, as numbers that programs can be compared by.

A value is followed backwards, on demand, through moves, arithmetic and all paths to what the launch
gives and what memory holds. What loops carry by adding to it is a base and a step times how often
the loop was run (`asmevo.isa.loop_values`), lane masks that it narrows have a form of their own
(`asmevo.isa.loop_masks`). Other values of loops are told apart by unfolding their
definitions as often as two loops of that size can differ; loops of more than :data:`_LARGE`
definitions are unfolded :data:`_LARGE` times, so that a difference farther away than that is not
seen.

What was read from vector memory or LDS is named by where it was read from, and followed while it is
treated as an integer: what floating-point and matrix operations make of data is one value, whatever
it is, because data are what inputs vary. That is enough for branches and masks if it holds for what
only the algebra knows of (`asmevo.isa.value_forms`), and one value otherwise; addresses are
`exact`: there the results of all other operations on integers are told apart as well.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

from asmevo.isa.addresses import address_of
from asmevo.isa.cfg import Cfg
from asmevo.isa.effects import (
    VALU_UNITS,
    VECTOR_REGISTERS,
    VECTOR_UNITS,
    State,
    machine_states,
)
from asmevo.isa.instruction import Instruction, Unit
from asmevo.isa.loaded_values import loaded_word
from asmevo.isa.loop_masks import carried_masks
from asmevo.isa.loop_values import counted
from asmevo.isa.program import Program
from asmevo.isa.registers import VGPR0, members, names
from asmevo.isa.value_forms import rule_of
from asmevo.isa.value_graph import (
    Constant,
    Definition,
    Launched,
    Merge,
    Named,
    Node,
    ValueGraph,
    is_move,
    is_plain,
)
from asmevo.isa.value_numbers import Numbers, Taint
from asmevo.isa.wide_forms import Arguments

_SMALL, _LARGE = 8, 64
KERNARG_POINTER = "kernarg pointer"
DISPATCH_POINTER = "dispatch packet pointer"
_CLOCKS = ("s_memtime", "s_memrealtime", "s_getreg")
_FLOAT_UNITS = frozenset({Unit.TRANS, Unit.MFMA})
_FLOATS = re.compile(r"_(b?f(16|32|64)|fp8|bf8)(_|$)|^v_cvt_")
_LOADED = Taint.MEMORY | Taint.LDS
_COMMUTATIVE = ("s_min", "s_max", "s_mul_hi", "v_min_", "v_max_", "v_mul_", "v_add_f")


@dataclass(frozen=True, slots=True)
class Source:
    """What the launch puts into a register.

    ``value`` is set where that is always the same, ``kernarg`` to the offset of a preloaded word.
    """

    name: str
    taint: int = 0
    value: int | None = None
    kernarg: int | None = None


class Values:
    """Numbers of the values in one program.

    ``entry`` names what registers hold at the start. Raises `ControlFlowError` for code that cannot
    be followed, and for programs that need more than is reasonable.
    """

    def __init__(self, program: Program, entry: Mapping[int, Source], numbers: Numbers,
                 cfg: Cfg | None = None) -> None:
        self.program = program
        self.graph = ValueGraph(program, cfg)
        self.cfg = self.graph.cfg
        self.numbers = numbers
        self._entry = entry
        self._exact = _Numbering(self.graph, entry, numbers)
        self._plain = _Numbering(self.graph, entry, numbers, exact=self._exact)
        self._exact.clean = self._plain
        # What was asked for before, by instruction and register.
        self._before: dict[tuple[int, int], int] = {}
        self._exact_before: dict[tuple[int, int], int] = {}
        self._loaded_before: dict[tuple[int, int], bool] = {}

    @functools.cached_property
    def states(self) -> tuple[State, ...]:
        """The machine's state that may hold before each instruction."""
        return machine_states(self.program, self.cfg)

    @property
    def kept_blocks(self) -> Container[int]:
        """The blocks of which all values are those of an original, and which have its number."""
        return ()

    @property
    def followed(self) -> int:
        """The registers through which values were followed so far, as a mask."""
        instructions = self.program.instructions
        found = 0
        for node in (*self._plain.numbered(), *self._exact.numbered()):
            if isinstance(node, Definition):
                i = instructions[node.at]
                found |= i.writes if self._plain.is_cut(node) and not self._exact.has(node) else (
                    i.writes | i.reads)
        before = -1
        while found != before:
            before = found
            for i in instructions:
                if is_move(i) and i.writes & found:
                    found |= i.reads
        return found

    @functools.cached_property
    def carriers(self) -> int:
        """The vector registers that hold, at some point, what is no constant and not loaded."""
        found = 1 << VGPR0
        for index, i in enumerate(self.program.instructions):
            if i.unit not in VALU_UNITS or not self.cfg.reachable(index):
                continue
            for register in members(i.writes & VECTOR_REGISTERS & ~found):
                if not self.from_memory(index, register) and (
                        (rule_of(i.op) is None and not is_move(i))
                        or self.numbers.value_of(self.after(index, register)) is None):
                    found |= 1 << register
        return found

    def before(self, index: int, register: int) -> int:
        """The number of a register's value just before an instruction."""
        key = index, register
        known = self._before.get(key)
        if known is None:
            known = self._before[key] = self._plain.number(self.graph.reaching(index, register))
        return known

    def exact_before(self, index: int, register: int) -> int:
        """The same, of what integer operations make of loaded data each told apart."""
        key = index, register
        known = self._exact_before.get(key)
        if known is None:
            known = self._exact_before[key] = self._exact.number(
                self.graph.reaching(index, register))
        return known

    def after(self, index: int, register: int) -> int:
        """The number of what an instruction writes to a register."""
        return self._plain.number(self.graph.resolve(Definition(index, register)))

    def exact_after(self, index: int, register: int) -> int:
        """The exact number of what an instruction writes to a register."""
        return self._exact.number(self.graph.resolve(Definition(index, register)))

    def from_memory(self, index: int, register: int) -> bool:
        """Whether what an instruction writes depends on what vector memory or LDS holds."""
        return self.graph.from_memory(self.graph.resolve(Definition(index, register)))

    def loaded_before(self, index: int, register: int) -> bool:
        """Whether a register's value just before an instruction depends on such memory."""
        key = index, register
        known = self._loaded_before.get(key)
        if known is None:
            known = self._loaded_before[key] = self.graph.from_memory(
                self.graph.reaching(index, register))
        return known

    def is_of(self, entry: Mapping[int, Source], numbers: Numbers) -> bool:
        """Whether these are numbers of that table, with that at the start."""
        return self._entry == entry and self.numbers is numbers

    def traits(self, node: Node) -> tuple[object, ...]:
        """All that others which are made from a node learn of it; nothing of nodes of which more
        may matter: those that loops carry, which are numbered together, and those that are one of
        several. Scalars are told apart by node where selections compare masks."""
        plain, exact = self._plain.number(node), self._exact.number(node)
        if isinstance(node, Merge) or self._plain.is_carried(node) or (
                self._exact.is_carried(node)):
            return ()
        loaded = self.graph.from_memory(node)
        return plain, exact, loaded, loaded and self._plain.is_integer(node)

    def origins(self, index: int) -> Iterator[int]:
        """The instructions that made what an instruction reads, however far back, each once."""
        return self.graph.origins(index)


class _Numbering:
    """Numbers of nodes: exact ones, or with an ``exact`` numbering to ask for integers.

    An exact one asks ``clean`` for what does not depend on loaded data.
    """

    def __init__(self, graph: ValueGraph, entry: Mapping[int, Source], numbers: Numbers,
                 exact: _Numbering | None = None) -> None:
        self.clean: _Numbering | None = None
        self.graph = graph
        self.numbers = numbers
        self._entry = entry
        self._exact = exact
        self._done: dict[Node, int] = {}
        self._data = numbers.atom(("data",), taint=_LOADED)
        self._integers: set[Node] = set()
        self._others: set[Node] = set()
        self._carried: set[Node] = set()

    def number(self, root: Node) -> int:
        """Tarjan's components give loops; what is in none is numbered once its sources are."""
        done = self._done
        if root in done:
            return done[root]
        if self._is_clean(root):
            return done[root]
        position: dict[Node, int] = {root: 0}
        low: dict[Node, int] = {root: 0}
        stack, work = [root], [(root, iter(self._needs(root)))]
        on_stack = {root}
        while work:
            node, needs = work[-1]
            for need in needs:
                if need in done:
                    continue
                if need not in position and self._is_clean(need):
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
        return done[root]

    def numbered(self) -> Iterable[Node]:
        return self._done

    def has(self, node: Node) -> bool:
        return node in self._done

    def is_carried(self, node: Node) -> bool:
        """Whether a node is made from itself in an earlier turn of a loop."""
        return node in self._carried

    def _is_clean(self, node: Node) -> bool:
        """Whether the other numbering has numbered it."""
        if self.clean is None or self.graph.from_memory(node):
            return False
        self._done[node] = self.clean.number(node)
        return True

    def _finish(self, component: list[Node]) -> None:
        done = self._done
        if len(component) == 1 and component[0] not in self._needs(component[0]):
            done[component[0]] = self._form(component[0], done.__getitem__)
            return
        numbers = self.numbers
        self._carried.update(component)
        found = (counted(component, self._needs, self._form, done, numbers)
                 or carried_masks(component, self._needs, self._form, done, numbers))
        if found is not None:
            done.update(found)
            return
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
        return () if self.is_cut(node) else self.graph.needs(node)

    def is_cut(self, node: Node) -> bool:
        """Whether a number is not made from those of the node's sources."""
        if not isinstance(node, Definition):
            return False
        i = self.graph.program.instructions[node.at]
        if self._exact is None and i.unit not in _FLOAT_UNITS and not _FLOATS.search(i.op):
            return False
        return i.unit in VECTOR_UNITS and self.graph.from_memory(node)

    def is_integer(self, root: Node) -> bool:
        """Whether nothing but arithmetic that the algebra knows was done to loaded data."""
        if root in self._integers:
            return True
        seen, pending = {root}, [root]
        while pending:
            node = pending.pop()
            if node in self._others or not self._keeps_integers(node):
                self._others.add(root)
                return False
            if isinstance(node, Definition) and self._is_load(node):
                continue
            for need in self.graph.needs(node):
                if need not in seen and need not in self._integers and self.graph.from_memory(need):
                    seen.add(need)
                    pending.append(need)
        self._integers |= seen
        return True

    def _is_load(self, node: Definition) -> bool:
        return self.graph.program.instructions[node.at].is_load

    def _keeps_integers(self, node: Node) -> bool:
        if not isinstance(node, Definition):
            return True
        i = self.graph.program.instructions[node.at]
        return i.is_load or (
            is_plain(i) and rule_of(i.op) is not None and not _FLOATS.search(i.op))

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
            case Definition() if self.is_cut(node):
                return self._cut(node)
            case Definition(index, register):
                return self._defined(index, register, number)

    def _cut(self, node: Definition) -> int:
        """What loaded data are in a numbering that is not exact."""
        if self._exact is None or not self.is_integer(node):
            return self._data
        return self._exact.number(node)

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
        i = self.graph.program.instructions[index]
        if index in self.graph.cfg.unknown:
            return self.numbers.atom(("unknown", i.text, register), taint=Taint.HARDWARE)
        operands, implied = self.graph.inputs(index)
        if self.graph.low_words(index, register):
            operands = tuple(words[:1] for words in operands)
        arguments = Arguments(tuple(tuple(number(n) for n in words) for words in operands),
                              {r: number(n) for r, n in implied.items()})
        target = i.operands[0] if i.operands else None
        inside = target is not None and target.first <= register < target.first + target.count
        word = register - target.first if target is not None and inside else 0
        certain = self.graph.effects[index].writes == i.writes
        if is_plain(i) and certain:
            rule = rule_of(i.op)
            if rule is not None:
                made = rule(self.numbers, arguments, register, word)
                if made is not None:
                    return made
        if i.is_load and certain and inside and len(arguments.operands) == len(i.operands) - 1:
            made = self._load(i, arguments, word)
            if made is not None:
                return made
        output: object = word if inside else names(1 << register) if register < VGPR0 else "second"
        return self._opaque(i, arguments, output, _own_taint(i))

    def _opaque(self, i: Instruction, arguments: Arguments, output: object, taint: int) -> int:
        marks = tuple((o.neg, o.abs, o.sext) for o in i.operands if o.neg or o.abs or o.sext)
        operands = list(arguments.operands)
        if not marks and i.op.startswith(_COMMUTATIVE) and len(operands) == 2:
            operands.sort()
        form = (i.op, i.modifiers, marks, output, *operands, *arguments.implied.items())
        return self.numbers.atom(form, arguments.flat(), taint)

    def _load(self, i: Instruction, arguments: Arguments, word: int) -> int | None:
        """Words of the kernarg are told by their offset, however they are loaded."""
        numbers = self.numbers

        def operand(position: int, part: int) -> int:
            return arguments.word(position - 1, part)

        if i.unit is not Unit.SMEM:
            return loaded_word(i, operand, word, numbers)
        address = address_of(i, operand, numbers)
        if address is None:
            return None
        low = numbers.add(address.low, numbers.constant(4 * word))
        pointer = self._pointer(KERNARG_POINTER)
        # The upper half of an address has 16 bits; some kernels mask the others out.
        if pointer is not None and arguments.word(0, 1) in (
                pointer[1], numbers.field(pointer[1], 0, 16)):
            distance = numbers.value_of(numbers.subtract(low, pointer[0]))
            if distance is not None:
                return numbers.kernarg(distance)
        for name, taint in ((KERNARG_POINTER, Taint.KERNARG), (DISPATCH_POINTER, Taint.WORKGROUP)):
            launch = self._pointer(name)
            if launch is not None and numbers.mentions(low, launch[0]):
                return numbers.atom(("launch word", low, address.high), (low, address.high), taint)
        return loaded_word(i, operand, word, numbers)

    def _pointer(self, name: str) -> tuple[int, int] | None:
        halves = tuple(self._launched(register) for register, source in sorted(self._entry.items())
                       if source.name.startswith(name))
        return (halves[0], halves[1]) if len(halves) == 2 else None


def _own_taint(i: Instruction) -> int:
    if i.op.startswith(_CLOCKS):
        return Taint.HARDWARE
    if i.op.startswith("v_mbcnt"):
        return Taint.WORK_ITEM
    if i.unit is Unit.LDS and (i.is_load or i.is_atomic):
        return Taint.LDS
    return Taint.MEMORY if i.is_load or i.is_atomic else 0
