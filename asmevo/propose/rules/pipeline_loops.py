"""Fetches for the next rounds of a loop while this one computes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from asmevo.isa.registers import AGPR0, VGPR0, members
from asmevo.propose.free_registers import scalar, text, vector
from asmevo.propose.pipelined_loop import PipelinedLoop, pipelined_loops, vector_run
from asmevo.propose.proposal import Direction, Proposal
from asmevo.propose.renaming import renamed
from asmevo.propose.repair import is_clean, repair
from asmevo.propose.rule import Rule, RuleContext

_INVERSE = {
    "s_cbranch_scc0": "s_cbranch_scc1", "s_cbranch_scc1": "s_cbranch_scc0",
    "s_cbranch_vccz": "s_cbranch_vccnz", "s_cbranch_vccnz": "s_cbranch_vccz",
    "s_cbranch_execz": "s_cbranch_execnz", "s_cbranch_execnz": "s_cbranch_execz",
}
# Sums that do not mind a term twice.
_REPEATABLE = ("v_max", "v_min", "v_pk_max", "v_pk_min", "v_med3", "v_or_b32", "v_and_b32", "v_cmp",
               "v_cndmask", "s_")
_ENDS = ("s_endpgm", "s_or_b64 exec, exec, ", "s_mov_b64 exec, ")
# f32 values that many sums do not notice, as terms or as exponents: 0 and minus infinity.
_NEUTRAL = {"0": "0", "minus infinity": "0xff800000"}


class PipelineLoops(Rule):
    """Each round of a loop waits for its own loads; those of later rounds could be under way.

    The loop becomes ``depth`` copies of itself, each with the loop's own condition. A copy uses
    what was fetched ``depth`` rounds before and fetches for as many rounds ahead, always for rounds
    that the condition has found to take place, so that nothing else is read. What is under way when
    the condition ends the loop is used behind it. Where lanes leave one by one, a lane may have
    less under way than others: its copies then hold its first element once more, if using it twice
    changes nothing, or a value that a sum does not notice.
    """

    name = "pipeline-loops"
    direction = Direction.LATENCY_HIDING

    def __init__(
        self, depths: Sequence[int] = (8, 12, 16, 6, 4, 3, 2), longest: int = 2400,
    ) -> None:
        self._depths = tuple(depths)
        self._longest = longest

    def matches(self, context: RuleContext) -> Iterator[Proposal]:
        loops = list(pipelined_loops(context))
        if not loops:
            return
        if len(loops) > 1:
            for depth in self._depths:
                yield from self._together(context, loops, depth)
        hottest = sorted(
            loops, key=lambda x: (-context.weight(range(x.start, x.latch)), x.start))
        for loop in hottest:
            for depth in self._depths:
                for filling in fillings(context, loop):
                    yield from self._pipelined(context, [(loop, filling)], depth)

    def _together(
        self, context: RuleContext, loops: list[PipelinedLoop], depth: int,
    ) -> Iterator[Proposal]:
        choices = [fillings(context, loop) for loop in loops]
        for number in range(max(map(len, choices))):
            yield from self._pipelined(context, [
                (loop, found[min(number, len(found) - 1)])
                for loop, found in zip(loops, choices, strict=True) if found], depth)

    def _built(
        self, context: RuleContext, loop: PipelinedLoop, depth: int, filling: str,
        labels: Iterator[str],
    ) -> tuple[list[str], list[str], list[str]] | None:
        """The loop at this depth, or the largest below it that registers and code size allow."""
        for smaller in sorted({d for d in self._depths if d <= min(depth, _most(loop))},
                              reverse=True):
            users = smaller if loop.masked else smaller * smaller
            if len(loop.ahead) * 2 * smaller + len(loop.behind) * users <= self._longest:
                built = _Builder(context, loop, smaller, filling, labels).build()
                if built is not None:
                    return built
        return None

    def _pipelined(
        self, context: RuleContext, loops: list[tuple[PipelinedLoop, str]], depth: int,
    ) -> Iterator[Proposal]:
        rewrite = context.rewrite()
        assumptions: dict[str, None] = {}
        done = 0
        labels = iter(context.preview.fresh_labels(len(loops) * 8 * (1 + 2 * depth)))
        for loop, filling in loops:
            built = self._built(context, loop, depth, filling, labels)
            if built is None:
                continue
            before, body, behind = built
            rewrite.replace(loop.start - 1, context.lines[loop.start - 1], *before)
            for index in range(loop.start, loop.latch):
                rewrite.delete((index,))
            rewrite.replace(loop.start, *body)
            restore = restoring(context, loop)
            if loop.masked and restore is None:
                rewrite.replace(loop.latch)
                rewrite.replace(
                    loop.latch + 1, *behind[:1], context.lines[loop.latch + 1], *behind[1:])
            else:
                rewrite.replace(loop.latch, *behind)
            done += 1
            assumptions.update(dict.fromkeys(_assumptions(context, loop, filling)))
        if not done:
            return
        preview = repair(context, context.preview.apply(rewrite.edits(self.name)), 0)
        if is_clean(context, preview):
            yield self.proposal(
                preview,
                f"{done} loop(s) fetch up to {depth} rounds ahead of their use: latencies of memory"
                " overlap", "; ".join(assumptions))


def _most(loop: PipelinedLoop) -> float:
    """A depth beyond which there would be nothing left to fetch ahead for."""
    return math.inf if loop.rounds is None else max(loop.rounds - 1, 2)


def fillings(context: RuleContext, loop: PipelinedLoop) -> list[str]:
    """What copies of a lane may hold that has nothing under way; one empty text for no need."""
    if not loop.masked:
        return [""]
    instructions = [context.program.instructions[i] for i in loop.behind]
    if not any(i.writes & loop.summed and not i.op.startswith(_REPEATABLE) for i in instructions):
        return ["again"]
    if any(i.is_store for i in instructions):
        return []
    exponents = any(i.op == "v_exp_f32" for i in instructions)
    return list(_NEUTRAL)[::-1] if exponents else list(_NEUTRAL)


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


def _assumptions(context: RuleContext, loop: PipelinedLoop, filling: str) -> Iterator[str]:
    if any(context.program.instructions[i].is_store for i in loop.behind):
        yield "what a round stores no later round of the loop loads"
    if filling in _NEUTRAL:
        yield f"a sum does not notice {filling}"
    if loop.summed and loop.masked:
        yield "a sum in another order is close enough: rounding changes"


class _Builder:
    """The texts of one pipelined loop."""

    def __init__(self, context: RuleContext, loop: PipelinedLoop, depth: int, filling: str,
                 labels: Iterator[str]) -> None:
        self._context, self._loop, self._depth, self._filling = context, loop, depth, filling
        self._labels = labels
        self._copies: list[dict[int, int]] = []
        self._given = 0
        for registers in loop.made.values():
            self._given |= registers

    def build(self) -> tuple[list[str], list[str], list[str]] | None:
        """What goes in front of the loop, in its place, and behind it."""
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

    def _allocate(self) -> bool:
        """Registers for each copy of what goes from the fetching half to the using half."""
        context, loop = self._context, self._loop
        free = context.free.during(range(loop.start, min(loop.latch + 2, len(context.program))))
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

    def _ahead(self, copy: int, *, again: Sequence[int] = ()) -> list[str] | None:
        """One round of fetching; loads are repeated for the copies in ``again``."""
        context, loop = self._context, self._loop
        copies = (copy, *again)
        lines: list[str | None] = []
        for target in copies:
            lines += self._moves(loop.kept, target)
        for index in loop.ahead:
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
        value = _NEUTRAL[self._filling]
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
        return scalar(free, count if count < 3 else 4)
    if first >= AGPR0:
        return None
    if count == 1:
        return vector(free)
    odd = first % 2
    start = vector(free, count + odd, 2)
    return None if start is None else start + odd


