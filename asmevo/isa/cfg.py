"""Basic blocks, their edges through branches and calls, and natural loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from asmevo.isa.calls import CALLS, jump_targets, link_register
from asmevo.isa.errors import ControlFlowError
from asmevo.isa.instruction import Unit
from asmevo.isa.program import Program
from asmevo.isa.recent import Recent


@dataclass(frozen=True, slots=True)
class Block:
    """Instructions ``start`` up to but not including ``end``; edges are block indices.

    A block that ends in a call of known code has the callee's first block as its successor, and a
    returning one the blocks behind all calls that may have led to it. ``resumes`` is the block
    behind the call, for every call.
    """

    start: int
    end: int
    successors: tuple[int, ...]
    predecessors: tuple[int, ...]
    resumes: int | None = None


@dataclass(frozen=True, slots=True)
class Loop:
    """A natural loop: ``header`` dominates all of ``blocks``, and ``latches`` jump back to it."""

    header: int
    latches: tuple[int, ...]
    blocks: frozenset[int]


@dataclass(frozen=True, slots=True)
class Cfg:
    """The control flow graph of one kernel and of the functions in its program that it calls.

    ``block_of`` maps an instruction index to its block; ``order`` lists the reachable blocks in
    reverse postorder, the entry first. ``functions`` are the first blocks of the kernel and of each
    function it calls. ``unknown`` are the instructions that run code nobody has seen: words LLVM
    cannot decode, and calls whose target is not known or not in the program. Such code is taken to
    come back to the next instruction; everything else about it is assumed to be as bad as can be
    (see :func:`asmevo.isa.effects.effects`).
    """

    blocks: tuple[Block, ...]
    block_of: tuple[int, ...]
    order: tuple[int, ...]
    functions: tuple[int, ...] = (0,)
    unknown: frozenset[int] = frozenset()
    _local: tuple[tuple[int, ...], ...] = ()
    _reachable: frozenset[int] = field(default=frozenset(), repr=False)

    @staticmethod
    def of(program: Program) -> Cfg:
        """Build the graph.

        ``s_setpc_b64`` through the register in which the calls of a function left their return
        address is a return. Raises ControlFlowError for any other jump to an address known only at
        run time, and when execution can run past the last instruction.
        """
        # Several analyses of one program follow one another.
        return _recent.get(lambda: _Builder(program).build(), program)

    @property
    def entry(self) -> int:
        """The block in which the kernel starts."""
        return self.order[0]

    def reachable(self, index: int) -> bool:
        """Whether execution can reach an instruction."""
        return self.block_of[index] in self._reachable

    def next_indices(self, index: int) -> tuple[int, ...]:
        """Instructions that may execute right after ``index``."""
        block = self.blocks[self.block_of[index]]
        if index + 1 < block.end:
            return (index + 1,)
        return tuple(self.blocks[s].start for s in block.successors)

    def previous_indices(self, index: int) -> tuple[int, ...]:
        """Instructions that may execute right before ``index``."""
        block = self.blocks[self.block_of[index]]
        if index > block.start:
            return (index - 1,)
        return tuple(self.blocks[p].end - 1 for p in block.predecessors)

    def dominators(self) -> dict[int, int]:
        """Immediate dominator of each reachable block within its function.

        The first block of a function is its own, as is a block that several functions share.
        """
        return {block: block if above == _ROOT else above
                for block, above in self._immediate_dominators().items() if block != _ROOT}

    def loops(self) -> tuple[Loop, ...]:
        """Natural loops, outermost first; back edges to one header form one loop.

        A loop lies within one function; calls in its body count as straight-line code.
        """
        immediate = self._immediate_dominators()
        before = _reversed(self._local)
        latches: dict[int, list[int]] = {}
        for block in immediate:
            for successor in self._local[block] if block != _ROOT else ():
                if _dominates(immediate, successor, block):
                    latches.setdefault(successor, []).append(block)
        loops = []
        for header, sources in latches.items():
            body = {header}
            pending = list(sources)
            while pending:
                block = pending.pop()
                if block not in body:
                    body.add(block)
                    pending += [p for p in before[block] if p in immediate]
            loops.append(Loop(header, tuple(sorted(sources)), frozenset(body)))
        return tuple(sorted(loops, key=lambda loop: (-len(loop.blocks), loop.header)))

    def _immediate_dominators(self) -> dict[int, int]:
        """Over the graph within functions, all of which hang below one root."""
        order = _reverse_postorder(self._local, self.functions)
        before = _reversed(self._local)
        position = {_ROOT: -1} | {block: n for n, block in enumerate(order)}
        immediate = {_ROOT: _ROOT}
        roots = frozenset(self.functions)
        changed = True
        while changed:
            changed = False
            for block in order:
                known = [p for p in before[block] if p in immediate]
                best = _ROOT if block in roots else known[0]
                for other in known:
                    a, b = best, other
                    while a != b:
                        while position[a] > position[b]:
                            a = immediate[a]
                        while position[b] > position[a]:
                            b = immediate[b]
                    best = a
                if immediate.get(block) != best:
                    immediate[block] = best
                    changed = True
        return immediate


_recent: Recent[Cfg] = Recent(4)
_ROOT = -1
# Hostile code can make every return go everywhere; real code stays far below.
_CALL_EDGE_LIMIT = 1 << 20


class _Builder:
    """Blocks first, then the functions that calls reach, then the edges of calls and returns."""

    def __init__(self, program: Program) -> None:
        self.program = program
        count = len(program)
        if not count:
            raise ControlFlowError("the kernel has no instructions")
        self.jumps = jump_targets(program)
        leaders = {0, program.entry, *(t for t in self.jumps.values() if t is not None)}
        for index, (instruction, target) in enumerate(
                zip(program.instructions, program.targets, strict=True)):
            if target is not None:
                leaders.add(target)
            if instruction.is_branch or instruction.ends_program:
                leaders.add(index + 1)
        leaders.discard(count)
        self.starts = sorted(leaders)
        self.ends = [*self.starts[1:], count]
        self.block_at = {start: number for number, start in enumerate(self.starts)}
        self.local = tuple(self._local(end - 1) for end in self.ends)
        self.entry = self.block_at[program.entry]

    def build(self) -> Cfg:
        owners, callers = self._functions()
        edges: list[list[int]] = [list(following) for following in self.local]
        for function, calls in callers.items():
            for call in calls:
                edges[call] = [function]
        count = 0
        for number in self._returns(owners, callers):
            behind = (following for function in owners[number]
                      for call in callers[function] for following in self.local[call])
            edges[number] = list(dict.fromkeys(behind))
            count += len(edges[number])
            if count > _CALL_EDGE_LIMIT:
                raise ControlFlowError("the kernel's calls and returns are too many to follow")
        order = _reverse_postorder(edges, (self.entry,))
        for number in order:
            self._check(number)
        before = _reversed(edges)
        blocks = tuple(
            Block(start, end, tuple(edges[number]), tuple(before[number]),
                  self.block_at.get(end) if self._calls(end - 1) else None)
            for number, (start, end) in enumerate(zip(self.starts, self.ends, strict=True)))
        block_of = tuple(number for number, block in enumerate(blocks)
                         for _ in range(block.start, block.end))
        unknown = frozenset(
            index for index, instruction in enumerate(self.program.instructions)
            if instruction.unit is Unit.OPAQUE
            or (instruction.op in CALLS and self.jumps[index] is None))
        functions = tuple(callers)
        return Cfg(blocks, block_of, order, functions, unknown, self.local, frozenset(order))

    def _calls(self, index: int) -> bool:
        return self.program.instructions[index].op in CALLS

    def _local(self, last: int) -> tuple[int, ...]:
        """The successors within a function: a call goes on behind itself, a return nowhere."""
        instruction, target = self.program.instructions[last], self.program.targets[last]
        if instruction.ends_program:
            return ()
        following: list[int] = []
        falls_through = (not instruction.is_branch or instruction.is_conditional
                         or instruction.op in CALLS)
        if falls_through and last + 1 < len(self.program):
            following.append(self.block_at[last + 1])
        if instruction.op in CALLS:
            return tuple(following)
        if instruction.op == "s_setpc_b64":
            target = self.jumps[last]
        if target is not None and self.block_at[target] not in following:
            following.append(self.block_at[target])
        return tuple(following)

    def _functions(self) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
        """Block -> the functions it belongs to; function -> the blocks that call it.

        A function is named by its first block; the kernel is one that nobody need call.
        """
        owners: dict[int, list[int]] = {}
        callers: dict[int, list[int]] = {self.entry: []}
        done: set[int] = set()
        pending = [self.entry]
        total = 0
        while pending:
            function = pending.pop()
            if function in done:
                continue
            done.add(function)
            body = _reverse_postorder(self.local, (function,))
            total += len(body)
            if total > _CALL_EDGE_LIMIT:
                raise ControlFlowError("the kernel's functions share too much code to follow")
            for number in body:
                owners.setdefault(number, []).append(function)
                last = self.ends[number] - 1
                target = self.jumps.get(last) if self._calls(last) else None
                if target is not None:
                    callee = self.block_at[target]
                    calls = callers.setdefault(callee, [])
                    if number not in calls:
                        calls.append(number)
                    pending.append(callee)
        return owners, callers

    def _returns(self, owners: Mapping[int, Sequence[int]],
                 callers: Mapping[int, Sequence[int]]) -> list[int]:
        """Blocks that end in a return of every function they belong to."""
        found = []
        for number, end in enumerate(self.ends):
            last = self.program.instructions[end - 1]
            if last.op != "s_setpc_b64" or self.jumps[end - 1] is not None:
                continue
            functions = owners.get(number)
            if not functions:
                continue
            links = {link_register(self.program.instructions[self.ends[call] - 1])
                     for function in functions for call in callers[function]}
            if links == {last.operands[0].first} and all(callers[f] for f in functions):
                found.append(number)
            else:
                raise ControlFlowError(f"'{last.text}' goes to an address known only at run time")
        return found

    def _check(self, number: int) -> None:
        last = self.program.instructions[self.ends[number] - 1]
        goes_on = not last.is_branch or last.is_conditional or last.op in CALLS
        if self.ends[number] == len(self.program) and goes_on and not last.ends_program:
            raise ControlFlowError("execution runs past the last instruction")


def _reversed(edges: Sequence[Sequence[int]]) -> list[list[int]]:
    before: list[list[int]] = [[] for _ in edges]
    for number, following in enumerate(edges):
        for successor in following:
            before[successor].append(number)
    return before


def _reverse_postorder(edges: Sequence[Sequence[int]], roots: Sequence[int]) -> tuple[int, ...]:
    postorder: list[int] = []
    seen: set[int] = set()
    for root in reversed(roots):
        if root in seen:
            continue
        seen.add(root)
        stack = [(root, iter(edges[root]))]
        while stack:
            block, following = stack[-1]
            successor = next((s for s in following if s not in seen), None)
            if successor is None:
                postorder.append(block)
                stack.pop()
            else:
                seen.add(successor)
                stack.append((successor, iter(edges[successor])))
    return tuple(reversed(postorder))


def _dominates(immediate: Mapping[int, int], ancestor: int, block: int) -> bool:
    while block not in (ancestor, _ROOT):
        block = immediate[block]
    return block == ancestor
