"""Does two f32 operations on neighbouring registers with one packed instruction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from asmevo.isa.instruction import Instruction, Operand, OperandKind
from asmevo.isa.registers import AGPR0, EXEC_MASK, VGPR0, mask
from asmevo.propose.free_registers import text as register_text
from asmevo.propose.proposal import Direction, Proposal
from asmevo.propose.repair import is_clean, repair
from asmevo.propose.rule import Rule, RuleContext

_PACKED = {
    "v_add_f32": "v_pk_add_f32", "v_sub_f32": "v_pk_add_f32", "v_mul_f32": "v_pk_mul_f32",
    "v_fma_f32": "v_pk_fma_f32", "v_fmac_f32": "v_pk_fma_f32",
}
# Processors with packed f32 arithmetic (LLVM AMDGPU, FeaturePackedFP32Ops).
_PROCESSORS = ("gfx90a", "gfx942", "gfx950")


@dataclass(frozen=True)
class _Pair:
    """Two instructions, of which the second moves up to the first."""

    first: int
    second: int
    text: str


class PackMath(Rule):
    """Two independent additions, products or sums of products fill an aligned pair of registers.

    Applies where their operands pair up already: both from one aligned pair, in either order, or
    the same scalar or inline constant. Each half rounds as the single operation does.
    """

    name = "pack-math"
    direction = Direction.SIMPLIFICATION

    def __init__(self, reach: int = 24) -> None:
        self._reach = reach

    def matches(self, context: RuleContext) -> Iterator[Proposal]:
        if context.program.isa not in _PROCESSORS:
            return
        found = [pair for block in context.cfg.blocks
                 for pair in self._pairs(context, block.start, block.end)]
        if not found:
            return
        yield from self._packed(context, found)
        runs = _runs(context, found)
        if len(runs) > 1:
            yield from context.by_weight(
                (tuple(p.first for p in run), proposal) for run in runs
                for proposal in self._packed(context, run))

    def _pairs(self, context: RuleContext, start: int, stop: int) -> Iterator[_Pair]:
        at = context.program.instructions
        taken: set[int] = set()
        for first in range(start, stop):
            if first in taken or not _can_pack(context, first):
                continue
            for second in range(first + 1, min(stop, first + self._reach)):
                if at[second].writes & EXEC_MASK or second in context.fences:
                    break
                if (second in taken or at[second].op != at[first].op
                        or at[second].operands[0].first != at[first].operands[0].first ^ 1
                        or not _can_pack(context, second)):
                    continue
                text = _text(at[first], at[second])
                if text is not None and _moves_up(context, first, second):
                    taken |= {first, second}
                    yield _Pair(first, second, text)
                break

    def _packed(self, context: RuleContext, pairs: Sequence[_Pair]) -> Iterator[Proposal]:
        rewrite = context.rewrite()
        for pair in pairs:
            rewrite.replace(pair.first, pair.text)
            rewrite.delete((pair.second,))
        preview = repair(context, context.preview.apply(rewrite.edits(self.name)))
        if is_clean(context, preview):
            yield self.proposal(
                preview, f"{len(pairs)} pair(s) of f32 operations become packed ones")


def _runs(context: RuleContext, pairs: Sequence[_Pair]) -> list[list[_Pair]]:
    """Pairs of one block each."""
    runs: dict[int, list[_Pair]] = {}
    for pair in pairs:
        runs.setdefault(context.cfg.block_of[pair.first], []).append(pair)
    return list(runs.values())


def _can_pack(context: RuleContext, index: int) -> bool:
    i = context.program.instructions[index]
    return (i.op in _PACKED and i.encoding not in ("dpp", "sdwa") and not i.modifiers
            and not any(o.abs or o.sext for o in i.operands)
            and VGPR0 <= i.operands[0].first < AGPR0
            and index not in context.indexed and index not in context.cold
            and not context.is_partly_written(index, _read(i)))


def _moves_up(context: RuleContext, first: int, second: int) -> bool:
    """Whether the second may be done together with the first."""
    at = context.program.instructions
    result, read = mask(at[second].operands[0].first), _read(at[second])
    if mask(at[first].operands[0].first) & read:
        return False
    between = range(first + 1, second)
    return not any(at[k].reads & result or at[k].writes & (result | read) for k in between)


def _read(i: Instruction) -> int:
    bits = 0
    for operand in _sources(i):
        if operand.kind is OperandKind.REGISTER:
            bits |= mask(operand.first, operand.count)
    return bits


def _sources(i: Instruction) -> tuple[Operand, ...]:
    to, *sources = i.operands
    if i.op == "v_fmac_f32":
        return (*sources, to)
    if i.op == "v_sub_f32":
        return (sources[0], replace(sources[1], neg=not sources[1].neg))
    return tuple(sources)


def _text(a: Instruction, b: Instruction) -> str | None:
    """The packed instruction, ``None`` when an operand has no packed form."""
    low, high = (a, b) if a.operands[0].first < b.operands[0].first else (b, a)
    to = low.operands[0].first
    if (to - VGPR0) % 2:
        return None
    operands = [register_text(to, 2)]
    selects: list[tuple[int, int]] = []
    scalars: set[int] = set()
    pairs = list(zip(_sources(low), _sources(high), strict=True))
    for x, y in pairs:
        if x.kind is not y.kind:
            return None
        if x.kind is OperandKind.CONSTANT:
            # A packed constant is the low half only.
            if x.text != y.text or x.text.startswith("0x"):
                return None
            operands.append(x.text)
            selects.append((0, 0))
            continue
        if x.kind is not OperandKind.REGISTER or x.count != 1 or y.count != 1:
            return None
        base = x.first - (x.first - _bank(x.first)) % 2
        if base != y.first - (y.first - _bank(y.first)) % 2 or x.first >= AGPR0:
            return None
        if x.first < VGPR0:
            scalars.add(base)
            if not x.text.startswith("s"):
                return None
        operands.append(register_text(base, 2))
        selects.append((x.first - base, y.first - base))
    if len(scalars) > 1:
        return None
    words = [f"{_PACKED[low.op]} {', '.join(operands)}"]
    for name, values, default in (
        ("op_sel", [s[0] for s in selects], 0),
        ("op_sel_hi", [s[1] for s in selects], 1),
        ("neg_lo", [int(x.neg) for x, _ in pairs], 0),
        ("neg_hi", [int(y.neg) for _, y in pairs], 0),
    ):
        if any(value != default for value in values):
            words.append(f"{name}:[{','.join(map(str, values))}]")
    return " ".join(words)


def _bank(register: int) -> int:
    return VGPR0 if register >= VGPR0 else 0
