"""Cuts a long chain of additions into two that run side by side."""

from __future__ import annotations

from collections.abc import Iterator

from asmevo.isa.instruction import Instruction, OperandKind
from asmevo.isa.registers import AGPR0, EXEC_MASK, VGPR0, mask, members
from asmevo.propose.proposal import Direction, Proposal
from asmevo.propose.repair import is_clean, repair
from asmevo.propose.rule import Rule, RuleContext

# Accumulating operation -> the operation that starts a new accumulator, and the one that joins two.
_FMA = {
    "v_pk_fma_f32": ("v_pk_mul_f32", "v_pk_add_f32"),
    "v_fma_f32": ("v_mul_f32_e64", "v_add_f32_e32"),
}
_ADD = ("v_pk_add_f32", "v_add_f32")


class SplitAccumulators(Rule):
    """Each step of a sum waits for the one before, although the terms are independent.

    Every second term goes to a register that is free throughout, and one addition joins the two.
    The sum is taken in another order, so rounding changes.
    """

    name = "split-accumulators"
    direction = Direction.DEPENDENCY_CHAINS

    def __init__(self, shortest: int = 6) -> None:
        self._shortest = shortest

    def matches(self, context: RuleContext) -> Iterator[Proposal]:
        chains = [c for c in _chains(context) if len(c) >= self._shortest]
        if not chains:
            return
        yield from self._split(context, chains)
        if len(chains) > 1:
            yield from context.by_weight(
                (chain, proposal) for chain in chains
                for proposal in self._split(context, [chain]))

    def _split(self, context: RuleContext, chains: list[tuple[int, ...]]) -> Iterator[Proposal]:
        rewrite = context.rewrite()
        terms = 0
        last = -1
        for chain in chains:
            # Chains that overlap might pick the same free register.
            texts = _split_texts(context, chain) if chain[0] > last else None
            if texts is None:
                continue
            terms += len(chain)
            last = chain[-1]
            for index, replacement in zip(chain, texts, strict=True):
                if replacement != (context.lines[index],):
                    rewrite.replace(index, *replacement)
        if not terms:
            return
        preview = repair(context, context.preview.apply(rewrite.edits(self.name)))
        if is_clean(context, preview):
            yield self.proposal(
                preview, f"a chain of {terms} dependent additions becomes two half as long",
                "a sum in another order is close enough: rounding changes")


def _chains(context: RuleContext) -> list[tuple[int, ...]]:
    """Runs of accumulations into one register within a block, nothing else touching it between."""
    out: list[tuple[int, ...]] = []
    for block in context.cfg.blocks:
        open_chains: dict[int, list[int]] = {}
        for index in range(block.start, block.end):
            i = context.program.instructions[index]
            accumulator = mask(i.operands[0].first, i.operands[0].count) if _accumulates(i) else 0
            if index in context.indexed:
                accumulator = 0
            for registers in list(open_chains):
                touched = registers & (i.reads | i.writes) or i.writes & EXEC_MASK
                if registers != accumulator and touched:
                    out.append(tuple(open_chains.pop(registers)))
            if accumulator:
                chain = open_chains.setdefault(accumulator, [])
                if chain and context.program.instructions[chain[0]].op != i.op:
                    out.append(tuple(open_chains.pop(accumulator)))
                    chain = open_chains.setdefault(accumulator, [])
                chain.append(index)
        out.extend(tuple(c) for c in open_chains.values())
    return sorted(out)


def _accumulates(instruction: Instruction) -> bool:
    """Whether an instruction adds a term to its destination and uses it for nothing else."""
    operands = instruction.operands
    if instruction.modifiers or instruction.encoding in ("dpp", "sdwa"):
        return False
    if instruction.op in _FMA:
        addend, terms = operands[3], operands[1:3]
    elif instruction.op in _ADD:
        addend, terms = operands[1], operands[2:3]
    else:
        return False
    target = operands[0]
    registers = mask(target.first, target.count)
    return (
        (addend.first, addend.count) == (target.first, target.count)
        and not any(o.neg or o.abs for o in operands)
        and all(t.kind is OperandKind.REGISTER and not mask(t.first, t.count) & registers
                and VGPR0 <= t.first < AGPR0 for t in terms)
    )


def _split_texts(context: RuleContext, chain: tuple[int, ...]) -> list[tuple[str, ...]] | None:
    instructions = context.program.instructions
    first = instructions[chain[0]]
    target = first.operands[0]
    free = _free(context, chain[0], chain[-1], target.count)
    if free is None:
        return None
    other = f"v{free}" if target.count == 1 else f"v[{free}:{free + target.count - 1}]"
    texts: list[tuple[str, ...]] = []
    # A sum has no operation that starts an accumulator: the first two terms of the second half do.
    pending: str | None = None
    started = False
    for position, index in enumerate(chain):
        i = instructions[index]
        line = context.lines[index]
        if position % 2 == 0:
            texts.append((line,))
        elif i.op in _FMA:
            a, b = (o.text for o in i.operands[1:3])
            texts.append((f"{_FMA[i.op][0]} {other}, {a}, {b}",) if not started else
                         (f"{i.mnemonic} {other}, {a}, {b}, {other}",))
            started = True
        else:
            term = i.operands[2].text
            if started:
                texts.append((f"{i.mnemonic} {other}, {other}, {term}",))
            elif pending is None:
                pending = term
                texts.append(())
            else:
                texts.append((f"{i.mnemonic} {other}, {pending}, {term}",))
                started = True
    if not started:
        return None
    join = _FMA[first.op][1] if first.op in _FMA else first.mnemonic
    texts[-1] = (*texts[-1], f"{join} {target.text}, {target.text}, {other}")
    return texts


def _free(context: RuleContext, first: int, last: int, count: int) -> int | None:
    """A vector register (an even one for pairs), used elsewhere but idle from first to last."""
    program = context.program
    allocated = busy = 0
    for i in program.instructions:
        allocated |= i.reads | i.writes
    for index in range(first, last + 1):
        busy |= context.live[index] | context.effects[index].reads | context.effects[index].writes
    if first > 0:
        busy |= context.live[first - 1]
    for register in members(allocated & ~busy):
        if VGPR0 <= register <= AGPR0 - count and (register - VGPR0) % count == 0:
            wanted = mask(register, count)
            if wanted & allocated & ~busy == wanted:
                return register - VGPR0
    return None
