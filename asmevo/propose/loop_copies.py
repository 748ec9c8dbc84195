"""Texts of loops whose rounds overlap."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from asmevo.isa.registers import AGPR0, VGPR0, members
from asmevo.propose.free_registers import scalar, text, vector
from asmevo.propose.pipelined_loop import PipelinedLoop, vector_run
from asmevo.propose.renaming import renamed
from asmevo.propose.rule import RuleContext

_INVERSE = {
    "s_cbranch_scc0": "s_cbranch_scc1", "s_cbranch_scc1": "s_cbranch_scc0",
    "s_cbranch_vccz": "s_cbranch_vccnz", "s_cbranch_vccnz": "s_cbranch_vccz",
    "s_cbranch_execz": "s_cbranch_execnz", "s_cbranch_execnz": "s_cbranch_execz",
}
_ENDS = ("s_endpgm", "s_or_b64 exec, exec, ", "s_mov_b64 exec, ")
# f32 values that many sums do not notice, as terms or as exponents: 0 and minus infinity.
NEUTRAL = {"0": "0", "minus infinity": "0xff800000"}


def restoring(context: RuleContext, loop: PipelinedLoop) -> str | None:
    """The instruction that switches all lanes on again that entered the loop; none if the next
    one does, and an empty text where nothing can.
    """
    instructions = context.program.instructions
    exit_ = loop.latch + 1
    narrowing = next((instructions[i] for i in loop.ahead if instructions[i].op == "s_andn2_b64"
                      and instructions[i].text.startswith("s_andn2_b64 exec, exec, ")), None)
    if narrowing is None:
        return ""
    gone = narrowing.operands[2].text
    block = context.cfg.blocks[context.cfg.block_of[exit_]]
    if (instructions[exit_].text == f"s_or_b64 exec, exec, {gone}" and block.start == exit_
            and len(block.predecessors) == 1):
        return None
    sums = any(instructions[i].op == "s_or_b64" and instructions[i].operands[0].text == gone
               and gone in [o.text for o in instructions[i].operands[1:]] for i in loop.ahead)
    return f"s_or_b64 exec, exec, {gone}" if sums and context.lines[exit_].startswith(_ENDS) else ""


class LoopCopies:
    """Copies of the halves of a loop, each with registers of its own for what goes from the one
    half to the other; and loops made of them.
    """

    def __init__(self, context: RuleContext, loop: PipelinedLoop, depth: int,
                 labels: Iterator[str], filling: str = "") -> None:
        self._context, self._loop, self._depth, self._filling = context, loop, depth, filling
        self._labels = labels
        self._copies: list[dict[int, int]] = []
        self._given = 0
        for registers in loop.made.values():
            self._given |= registers

    def in_batches(self) -> list[str] | None:
        """What goes in front of the loop: another one, of ``depth`` rounds at a time, which leaves
        at least one round to the loop itself.
        """
        loop, depth = self._loop, self._depth
        temporary = scalar(self._free_during())
        if loop.count is None or temporary is None or not self._allocate():
            return None
        without = {loop.count.comparison}
        users = [self._behind(copy) for copy in range(depth)]
        fetchers = [self._ahead(copy, without=without) for copy in range(depth)]
        if any(u is None for u in users) or any(f is None for f in fetchers):
            return None
        head, rest = next(self._labels), next(self._labels)
        return [
            *loop.count.branch(depth, rest, temporary, more=False),
            f"{head}:",
            *(line for fetcher in fetchers for line in fetcher or []),
            *(line for user in users for line in user or []),
            *loop.count.branch(depth, head, temporary, more=True),
            f"{rest}:",
            # Here the loop's values join that may have been through the batches: who follows them
            # finds the same ones as in the batches.
            *(f"{'v_mov_b32_e32' if r >= VGPR0 else 's_mov_b32'} {text(r)}, {text(r)}"
              for r in members(loop.running)),
        ]

    def with_exits(self) -> tuple[list[str], list[str], list[str]] | None:
        """What goes in front of the loop, in its place, and behind it: one round at a time, each
        with the loop's own condition.
        """
        context, loop, depth = self._context, self._loop, self._depth
        restore = restoring(context, loop) if loop.masked else None
        if (loop.masked and restore == "") or not self._allocate():
            return None
        branch = context.lines[loop.latch].split()
        inverse = _INVERSE.get(branch[0])
        if inverse is None:
            return None
        head = next(self._labels)
        exits = [next(self._labels)] * (2 * depth) if loop.masked else [
            next(self._labels) for _ in range(2 * depth)]
        users = [self._behind(copy) for copy in range(depth)]
        fetchers = [self._ahead(copy) for copy in range(depth)]
        if any(u is None for u in users) or any(f is None for f in fetchers):
            return None
        before: list[str] = []
        for copy in range(depth):
            if loop.masked and copy == 0:
                before += self._first()
            else:
                before += fetchers[copy] or []
            before.append(f"{inverse} {exits[copy]}")
        body = [f"{head}:"]
        for copy in range(depth):
            body += users[copy] or []
            body += fetchers[copy] or []
            last = copy == depth - 1
            body.append(f"{branch[0]} {head}" if last else f"{inverse} {exits[depth + copy]}")
        if loop.masked:
            behind = [f"{exits[0]}:", *([restore] if restore else []),
                      *(line for user in users for line in user or [])]
        else:
            behind = self._drained([user or [] for user in users], exits)
        return before, body, behind

    def one_ahead(self) -> tuple[list[str], list[str], list[str]] | None:
        """What goes in front of the loop, in its place, and behind it: each round takes over what
        was fetched, fetches the next one's, and only then uses its own.

        Scalar loads come back in any order, so that they can only all be waited for: what was
        fetched before the wait is there, what is fetched behind it has the time of a use. No branch
        is needed but the loop's own and its opposite.
        """
        loop, count = self._loop, self._loop.count
        if self._depth != 2 or count is None or not self._allocate():
            return None
        use, drain = self._behind(0), self._behind(1)
        fetch = self._ahead(1, without={count.comparison})
        if use is None or drain is None or fetch is None:
            return None
        head, last = next(self._labels), next(self._labels)
        more, branch = self._context.lines[count.comparison], self._context.lines[loop.latch]
        taken = branch.split()[0]
        opposite = _INVERSE[taken]
        none = more
        if opposite not in count.branches:
            opposite, none = taken, count.inverted(more)
        return (
            [*fetch, none, f"{opposite} {last}"],
            [f"{head}:", "s_waitcnt lgkmcnt(0)", *self._taken_over(), *fetch, *use, more,
             f"{taken} {head}"],
            [f"{last}:", *drain])

    def _taken_over(self) -> list[str]:
        """Moves to the first copy of what the second one has fetched."""
        first, second = self._copies
        lines: list[str] = []
        done: set[int] = set()
        for register, source in sorted(second.items()):
            target = first.get(register, register)
            if register in done:
                continue
            scalar_file = register < VGPR0
            if (scalar_file and source % 2 == target % 2 == 0
                    and second.get(register + 1) == source + 1
                    and first.get(register + 1, register + 1) == target + 1):
                lines.append(f"s_mov_b64 {text(target, 2)}, {text(source, 2)}")
                done.add(register + 1)
            else:
                move = "s_mov_b32" if scalar_file else "v_mov_b32_e32"
                lines.append(f"{move} {text(target)}, {text(source)}")
        return lines

    def _drained(self, users: list[list[str]], exits: list[str]) -> list[str]:
        """What is under way when the loop ends, used in the order in which it was fetched.

        The first half of ``exits`` are those in front of the loop, at which only so many rounds
        have been fetched; the others those behind each copy in it.
        """
        depth = self._depth
        out: list[str] = []
        for copy in reversed(range(depth)):
            if copy < depth - 1:
                out.append(f"{exits[depth + copy]}:")
                out += [line for user in users[copy + 1:] for line in user]
            out.append(f"{exits[copy]}:")
            out += [line for user in users[:copy + 1] for line in user]
            out.append(f"s_branch {exits[2 * depth - 1]}" if copy else f"{exits[2 * depth - 1]}:")
        return out

    def _free_during(self) -> int:
        end = min(self._loop.latch + 2, len(self._context.program))
        return self._context.free.during(range(self._loop.start, end))

    def _allocate(self) -> bool:
        """Registers for each copy of what goes from the fetching half to the using half."""
        loop = self._loop
        free = self._free_during()
        own = loop.loaded & ~loop.overwritten
        for copy in range(self._depth):
            taken: dict[int, int] = {}
            for first, count in vector_run(loop.loaded | loop.kept | self._given):
                run = range(first, first + count)
                if copy == 0 and all(own >> r & 1 for r in run):
                    continue
                start = _place(free, first, count)
                if start is None:
                    return False
                for k in run:
                    taken[k] = start + k - first
                    free &= ~(1 << taken[k])
            self._copies.append(taken)
        return True

    def _behind(self, copy: int) -> list[str] | None:
        lines = [renamed(self._context.lines[i], self._copies[copy]) for i in self._loop.behind]
        return None if None in lines else [line for line in lines if line is not None]

    def _ahead(
        self, copy: int, *, again: Sequence[int] = (), without: Collection[int] = (),
    ) -> list[str] | None:
        """One round of fetching; loads are repeated for the copies in ``again``."""
        context, loop = self._context, self._loop
        copies = (copy, *again)
        lines: list[str | None] = []
        for target in copies:
            lines += self._moves(loop.kept, target)
        for index in loop.ahead:
            if index in without:
                continue
            line = context.lines[index]
            if index in loop.loads:
                lines += [renamed(line, self._copies[target], only=0) for target in copies]
            else:
                lines.append(line)
            for target in copies:
                lines += self._moves(loop.made.get(index, 0), target)
        return None if None in lines else [line for line in lines if line is not None]

    def _first(self) -> list[str]:
        """The first round of fetching where lanes may have no other."""
        others = range(1, self._depth)
        if self._filling == "again":
            return self._ahead(0, again=others) or []
        value = NEUTRAL[self._filling]
        lines = []
        for copy in others:
            for register in members(self._loop.loaded):
                target = self._copies[copy][register]
                move = "v_mov_b32_e32" if target >= VGPR0 else "s_mov_b32"
                lines.append(f"{move} {text(target)}, {value}")
            for register in members(self._loop.kept | self._given):
                lines += self._moves(1 << register, copy)
        return lines + (self._ahead(0) or [])

    def _moves(self, registers: int, copy: int) -> list[str]:
        taken = self._copies[copy]
        lines: list[str] = []
        done = 0
        for register in members(registers):
            if done >> register & 1:
                continue
            target = taken[register]
            if register < VGPR0:
                lines.append(f"s_mov_b32 {text(target)}, {text(register)}")
                continue
            pair = registers >> register & 3 == 3
            if pair and register % 2 == 0 and target % 2 == 0:
                lines.append(f"v_pk_mov_b32 {text(target, 2)}, {text(register, 2)},"
                             f" {text(register, 2)} op_sel:[0,1]")
                done |= 3 << register
            else:
                lines.append(f"v_mov_b32_e32 {text(target)}, {text(register)}")
        return lines


def _place(free: int, first: int, count: int) -> int | None:
    """A free run for registers that start at ``first``, as odd or even as they are."""
    if first < VGPR0:
        # A run may hold several tuples: all of them keep their alignment.
        shift = first % 4 if count > 1 else 0
        start = scalar(free, max(count + shift, 3)) if count > 1 else scalar(free)
        return None if start is None else start + shift
    if first >= AGPR0:
        return None
    if count == 1:
        return vector(free)
    odd = first % 2
    start = vector(free, count + odd, 2)
    return None if start is None else start + odd
