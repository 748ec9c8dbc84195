"""Asks in front of a loop's round whether more than so many rounds are left."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from asmevo.isa.instruction import Instruction, OperandKind
from asmevo.isa.registers import SCC, SCC_MASK, SGPR_LIMIT, mask
from asmevo.propose.free_registers import text
from asmevo.propose.rule import RuleContext

_OPPOSITE = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "lg", "lg": "eq"}
_ORDERED = ("lt", "ge", "gt", "le")
_STEPS = {"s_add_i32": 1, "s_add_u32": 1, "s_addk_i32": 1, "s_sub_i32": -1, "s_sub_u32": -1}
# Relations under which a loop that counts up, or down, goes on.
_UP, _DOWN = ("lt", "le", "lg"), ("gt", "ge", "lg")
_SIGN, _WHOLE = 1 << 31, 1 << 32


@dataclass(frozen=True)
class RoundCount:
    """A loop that goes on while ``counter`` stands in ``relation`` to ``bound``.

    ``step`` is added to the counter in each round before the comparison, which is at ``comparison``
    and of type ``kind`` (``i32`` or ``u32``).
    """

    counter: int
    bound: str
    relation: str
    kind: str
    step: int
    comparison: int
    branches: frozenset[str]

    @staticmethod
    def of(context: RuleContext, start: int, latch: int, ahead: Iterable[int]) -> RoundCount | None:
        """Of the loop of one block from ``start`` to its branch back; ``ahead`` are the
        instructions that do not depend on what the loop loads.
        """
        instructions = context.program.instructions
        branch = instructions[latch].op
        body = set(ahead)
        comparison = next((i for i in range(latch - 1, start - 1, -1)
                           if instructions[i].writes & SCC_MASK), None)
        if (branch not in ("s_cbranch_scc0", "s_cbranch_scc1") or comparison not in body
                or context.lanes.before[start] >> SCC & 1):
            return None
        i = instructions[comparison]
        parts = i.op.split("_")
        if len(parts) != 4 or parts[:2] != ["s", "cmp"] or parts[2] not in _OPPOSITE:
            return None
        relation = parts[2] if branch == "s_cbranch_scc1" else _OPPOSITE[parts[2]]
        for place in (0, 1):
            counter, bound = i.operands[place], i.operands[1 - place]
            if counter.kind is not OperandKind.REGISTER or counter.count != 1:
                continue
            step = _step(context, range(start, comparison), range(start, latch), counter.first)
            if step is None or _changes(instructions[start:latch], bound.first, bound.kind):
                continue
            if place:
                relation = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}.get(relation, relation)
            if relation not in (_UP if step > 0 else _DOWN):
                return None
            branches = frozenset(x.op for x in instructions if x.op.startswith("s_cbranch_scc"))
            return RoundCount(counter.first, bound.text, relation, parts[3], step, comparison,
                              branches)
        return None

    def branch(self, rounds: int, target: str, temporary: int, *, more: bool) -> list[str]:
        """Go to a label if more than so many rounds are left, or if not."""
        distance = rounds * self.step
        name = text(temporary)
        if self.relation in _ORDERED:
            lines = [f"s_add_i32 {name}, {text(self.counter)}, {_constant(distance)}"]
            relation, left, right, kind = self.relation, name, self.bound, self.kind
        else:
            pair = ((self.bound, text(self.counter)) if self.step > 0
                    else (text(self.counter), self.bound))
            lines = [f"s_sub_i32 {name}, {pair[0]}, {pair[1]}"]
            relation, left, right, kind = "gt", name, _constant(abs(distance)), "u32"
            if pair[1] == "0":
                lines, left = [], pair[0]
        taken = "s_cbranch_scc1" if more else "s_cbranch_scc0"
        if taken not in self.branches:
            taken = "s_cbranch_scc0" if more else "s_cbranch_scc1"
            relation = _OPPOSITE[relation]
        return [*lines, f"s_cmp_{relation}_{kind} {left}, {right}", f"{taken} {target}"]

    @staticmethod
    def inverted(comparison: str) -> str:
        """The comparison that holds when this one does not."""
        operation, _, operands = comparison.partition(" ")
        first, relation, kind = operation.rsplit("_", 2)
        return f"{first}_{_OPPOSITE[relation]}_{kind} {operands}"


def _step(context: RuleContext, before: range, body: range, register: int) -> int | None:
    """What the only instruction adds that changes a register, if it stands in ``before``."""
    instructions = context.program.instructions
    writers = [i for i in body if instructions[i].writes >> register & 1]
    if len(writers) != 1 or writers[0] not in before:
        return None
    i = instructions[writers[0]]
    sign = _STEPS.get(i.op)
    sources = i.operands[1:] if i.op != "s_addk_i32" else (i.operands[0], i.operands[1])
    if sign is None or len(sources) != 2 or not i.reads >> register & 1:
        return None
    constant = sources[1]
    if sources[0].first != register or constant.kind is not OperandKind.CONSTANT:
        return None
    value = constant.value - _WHOLE if constant.value & _SIGN else constant.value
    return sign * value or None


def _changes(body: Iterable[Instruction], first: int, kind: OperandKind) -> bool:
    if kind is OperandKind.CONSTANT:
        return False
    return (kind is not OperandKind.REGISTER or not 0 <= first < SGPR_LIMIT
            or any(i.writes & mask(first) for i in body))


def _constant(value: int) -> str:
    return str(value) if -16 <= value <= 64 else f"{value % _WHOLE:#x}"
