"""Basic blocks, their edges, and natural loops."""

from __future__ import annotations

from dataclasses import dataclass

from asmevo.isa.errors import ControlFlowError
from asmevo.isa.program import Program


@dataclass(frozen=True, slots=True)
class Block:
    """Instructions ``start`` up to but not including ``end``; edges are block indices."""

    start: int
    end: int
    successors: tuple[int, ...]
    predecessors: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """A natural loop: ``header`` dominates all of ``blocks``, and ``latches`` jump back to it."""

    header: int
    latches: tuple[int, ...]
    blocks: frozenset[int]


@dataclass(frozen=True, slots=True)
class Cfg:
    """The control flow graph of one kernel; block 0 is the entry.

    ``block_of`` maps an instruction index to its block; ``order`` lists the reachable blocks in
    reverse postorder.
    """

    blocks: tuple[Block, ...]
    block_of: tuple[int, ...]
    order: tuple[int, ...]

    @staticmethod
    def of(program: Program) -> Cfg:
        """Build the graph.

        Raises ControlFlowError for a reachable indirect branch or call, and when execution can run
        past the last instruction.
        """
        count = len(program)
        if not count:
            raise ControlFlowError("the kernel has no instructions")
        leaders = {0}
        for index, (instruction, target) in enumerate(
                zip(program.instructions, program.targets, strict=True)):
            if target is not None:
                leaders.add(target)
            if instruction.is_branch or instruction.ends_program:
                leaders.add(index + 1)
        leaders.discard(count)
        starts = sorted(leaders)
        ends = [*starts[1:], count]
        block_at = {start: number for number, start in enumerate(starts)}
        block_of = tuple(
            number for number, (start, end) in enumerate(zip(starts, ends, strict=True))
            for _ in range(start, end))

        successors = [_successors(program, end - 1, block_at) for end in ends]
        order = _reverse_postorder(successors)
        for number in order:
            last = program.instructions[ends[number] - 1]
            if last.is_branch and program.targets[ends[number] - 1] is None:
                raise ControlFlowError(f"'{last.text}' goes to an address known only at run time")
            if last.op == "s_call_b64":
                raise ControlFlowError(f"'{last.text}' is a call, which is not supported")
            if ends[number] == count and not last.ends_program and (
                    not last.is_branch or last.is_conditional):
                raise ControlFlowError("execution runs past the last instruction")
        predecessors: list[list[int]] = [[] for _ in starts]
        for number, following in enumerate(successors):
            for successor in following:
                predecessors[successor].append(number)
        blocks = tuple(
            Block(start, end, tuple(after), tuple(before)) for start, end, after, before
            in zip(starts, ends, successors, predecessors, strict=True))
        return Cfg(blocks, block_of, order)

    def reachable(self, index: int) -> bool:
        """Whether execution can reach an instruction."""
        return self.block_of[index] in self.order

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
        """Immediate dominator of each reachable block; the entry's is itself."""
        position = {block: n for n, block in enumerate(self.order)}
        immediate = {0: 0}
        changed = True
        while changed:
            changed = False
            for block in self.order[1:]:
                known = [p for p in self.blocks[block].predecessors if p in immediate]
                best = known[0]
                for other in known[1:]:
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

    def loops(self) -> tuple[Loop, ...]:
        """Natural loops, outermost first; back edges to one header form one loop."""
        immediate = self.dominators()
        latches: dict[int, list[int]] = {}
        for block in self.order:
            for successor in self.blocks[block].successors:
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
                    pending += [p for p in self.blocks[block].predecessors if p in immediate]
            loops.append(Loop(header, tuple(sorted(sources)), frozenset(body)))
        return tuple(sorted(loops, key=lambda loop: (-len(loop.blocks), loop.header)))


def _successors(program: Program, last: int, block_at: dict[int, int]) -> list[int]:
    instruction, target = program.instructions[last], program.targets[last]
    if instruction.ends_program:
        return []
    following: list[int] = []
    falls_through = not instruction.is_branch or instruction.is_conditional
    if falls_through and last + 1 < len(program):
        following.append(block_at[last + 1])
    if target is not None and block_at[target] not in following:
        following.append(block_at[target])
    return following


def _reverse_postorder(successors: list[list[int]]) -> tuple[int, ...]:
    postorder: list[int] = []
    seen = {0}
    stack = [(0, iter(successors[0]))]
    while stack:
        block, following = stack[-1]
        successor = next((s for s in following if s not in seen), None)
        if successor is None:
            postorder.append(block)
            stack.pop()
        else:
            seen.add(successor)
            stack.append((successor, iter(successors[successor])))
    return tuple(reversed(postorder))


def _dominates(immediate: dict[int, int], ancestor: int, block: int) -> bool:
    while block != ancestor and block != immediate[block]:
        block = immediate[block]
    return block == ancestor
