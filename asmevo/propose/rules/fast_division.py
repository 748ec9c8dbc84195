"""Divides by a reciprocal and a correction, without the scaling that IEEE rounding needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from asmevo.isa.instruction import Instruction, Operand, OperandKind
from asmevo.isa.registers import VCC_MASK, mask
from asmevo.propose.block_uses import BlockUses
from asmevo.propose.proposal import Direction, Proposal
from asmevo.propose.repair import is_clean, repair
from asmevo.propose.rule import Rule, RuleContext

_RANGE = ("divisors are 0, infinite, NaN or between 2^-126 and 2^126 in magnitude, as are "
          "quotients that matter")
_CORRECTED = f"quotients may differ in the last bit; {_RANGE}"
_UNCORRECTED = f"quotients that are off by one or two in the last bit are close enough; {_RANGE}"


@dataclass(frozen=True)
class _Division:
    """LLVM's expansion of an f32 division, by the positions of its instructions."""

    divisor_scale: int
    reciprocal: int
    error: int          # 1 - divisor * reciprocal
    refined: int        # reciprocal
    dividend_scale: int
    quotient: int
    residue: int        # dividend - divisor * quotient
    corrected: int      # quotient
    last_residue: int
    fused: int          # v_div_fmas, which undoes the scaling
    fixed: int          # v_div_fixup, which handles zeros, infinities and NaN
    flag_move: int | None

    @property
    def indices(self) -> tuple[int, ...]:
        moves = () if self.flag_move is None else (self.flag_move,)
        return (self.divisor_scale, self.reciprocal, self.error, self.refined,
                self.dividend_scale, self.quotient, self.residue, self.corrected,
                self.last_residue, self.fused, self.fixed, *moves)


class FastDivision(Rule):
    """An IEEE division scales its operands, refines the reciprocal and corrects twice.

    Without scaling, the quotient by the hardware's reciprocal (1 ulp) and one correction of it
    remain, or none. ``v_div_fixup`` stays, so that zeros, infinities and NaN divide as before.
    """

    name = "fast-division"
    direction = Direction.SIMPLIFICATION

    def matches(self, context: RuleContext) -> Iterator[Proposal]:
        found = [
            division for index, i in enumerate(context.program.instructions)
            if i.op == "v_div_fixup_f32" and index not in context.cold
            and (division := _division(context, index)) is not None
        ]
        if not found:
            return
        for corrected in (False, True):
            yield from self._shortened(context, found, corrected)
        if len(found) > 1:
            yield from context.by_weight(
                (tuple(sorted(d.indices)), proposal) for d in found
                for corrected in (False, True)
                for proposal in self._shortened(context, [d], corrected))

    def _shortened(
        self, context: RuleContext, divisions: Sequence[_Division], corrected: bool,
    ) -> Iterator[Proposal]:
        rewrite = context.rewrite()
        for division in divisions:
            texts = _texts(context, division, corrected)
            for index in division.indices:
                if index not in texts:
                    rewrite.delete((index,))
            for index, text in texts.items():
                if text != context.lines[index]:
                    rewrite.replace(index, text)
        preview = repair(context, context.preview.apply(rewrite.edits(self.name)))
        if is_clean(context, preview):
            how = "one correction" if corrected else "no correction"
            yield self.proposal(
                preview, f"{len(divisions)} IEEE division(s) become a product with the"
                f" reciprocal and {how}", _CORRECTED if corrected else _UNCORRECTED)


def _texts(context: RuleContext, d: _Division, corrected: bool) -> dict[int, str]:
    """The instructions that stay and their new texts."""
    at = context.program.instructions
    divisor, dividend = (o.text for o in at[d.fixed].operands[2:4])
    reciprocal, quotient, residue = (
        at[k].operands[0].text for k in (d.reciprocal, d.quotient, d.residue))
    result = at[d.fixed].operands[0].text
    texts = {
        d.reciprocal: f"v_rcp_f32_e32 {reciprocal}, {divisor}",
        d.quotient: f"v_mul_f32_e32 {quotient}, {dividend}, {reciprocal}",
        d.fixed: f"v_div_fixup_f32 {result}, {quotient}, {divisor}, {dividend}",
    }
    if corrected:
        texts[d.residue] = f"v_fma_f32 {residue}, -{divisor}, {quotient}, {dividend}"
        texts[d.corrected] = context.lines[d.corrected]
    return texts


def _division(context: RuleContext, fixed: int) -> _Division | None:
    """The division that ends with a ``v_div_fixup_f32``, if all of it is there as expected."""
    at = context.program.instructions
    uses = BlockUses.around(context, fixed)
    if len(at[fixed].operands) != 4 or fixed in context.indexed or at[fixed].modifiers:
        return None
    divisor, dividend = at[fixed].operands[2:4]
    if not _plain(divisor) or not _plain(dividend) or divisor.kind is not OperandKind.REGISTER:
        return None

    def made_by(index: int | None, operand: int, op: str) -> int | None:
        if index is None:
            return None
        source = at[index].operands[operand]
        if source.kind is not OperandKind.REGISTER or source.abs:
            return None
        maker = uses.writer(index, mask(source.first, source.count))
        return maker if maker is not None and _is(at[maker], op) else None

    fused = made_by(fixed, 1, "v_div_fmas_f32")
    last = made_by(fused, 1, "v_fma_f32")
    refined = made_by(fused, 2, "v_fmac_f32")
    corrected = made_by(fused, 3, "v_fmac_f32")
    divisor_scale = made_by(last, 1, "v_div_scale_f32")
    dividend_scale = made_by(last, 3, "v_div_scale_f32")
    error = made_by(refined, 1, "v_fma_f32")
    reciprocal = made_by(refined, 0, "v_rcp_f32")
    residue = made_by(corrected, 1, "v_fma_f32")
    quotient = made_by(corrected, 0, "v_mul_f32")
    if (fused is None or last is None or refined is None or corrected is None
            or divisor_scale is None or dividend_scale is None or error is None
            or reciprocal is None or residue is None or quotient is None):
        return None
    flag, move = uses.writer(fused, VCC_MASK), None
    if flag is not None and flag != dividend_scale and at[flag].op == "s_mov_b64":
        move = flag
        source = at[flag].operands[1]
        flag = (uses.writer(flag, mask(source.first, source.count))
                if source.kind is OperandKind.REGISTER else None)
    d = _Division(divisor_scale, reciprocal, error, refined, dividend_scale, quotient, residue,
                  corrected, last, fused, fixed, move)
    if flag != dividend_scale or not _fits(context, uses, d, divisor, dividend):
        return None
    return d


def _fits(
    context: RuleContext, uses: BlockUses, d: _Division, divisor: Operand, dividend: Operand,
) -> bool:
    """Whether operands agree, nobody else uses what goes away, and what stays is not overwritten.
    """
    at = context.program.instructions
    scaled, r, n, q = (
        at[k].operands[0] for k in (d.divisor_scale, d.reciprocal, d.dividend_scale, d.quotient))
    one = Operand(OperandKind.CONSTANT, "1.0")
    shapes: dict[int, tuple[Operand, ...]] = {
        d.divisor_scale: (divisor, divisor, dividend),
        d.dividend_scale: (dividend, divisor, dividend),
        d.reciprocal: (scaled,),
        d.error: (scaled, r, one),
        d.residue: (scaled, q, n),
        d.last_residue: (scaled, at[d.corrected].operands[0], n),
    }
    for index, sources in shapes.items():
        if [o.text for o in at[index].operands[-len(sources):]] != [o.text for o in sources]:
            return False
    for index in (d.error, d.residue, d.last_residue):
        if [o.neg for o in at[index].operands[1:4]] != [True, False, False]:
            return False
    # All but the reciprocal's and the quotient's own registers, which are written twice.
    if (at[d.refined].operands[2].text != r.text or at[d.corrected].operands[2].text != r.text
            or {o.text for o in at[d.quotient].operands[1:3]} != {n.text, r.text}):
        return False
    chain = frozenset(d.indices)
    for index in chain - {d.fixed}:
        read = uses.readers(index, at[index].writes)
        if read is None or not read <= chain:
            return False
    start = min(chain)
    kept = mask(divisor.first, divisor.count)
    if dividend.kind is OperandKind.REGISTER:
        kept |= mask(dividend.first, dividend.count)
    instructions = range(start, d.fixed + 1)
    return (
        not chain & context.indexed
        and not any(at[k].writes & kept for k in instructions if k != d.fixed)
        and uses.keeps(d.corrected, d.fixed, mask(q.first))
        # A product of two scalars or with a literal has no short form.
        and (dividend.kind is OperandKind.CONSTANT or dividend.first >= 0)
    )


def _is(instruction: Instruction, op: str) -> bool:
    return (instruction.op == op and not instruction.modifiers
            and instruction.encoding not in ("dpp", "sdwa"))


def _plain(operand: Operand) -> bool:
    return not (operand.neg or operand.abs or operand.sext)
