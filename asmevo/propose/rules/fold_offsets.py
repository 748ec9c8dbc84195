"""Moves a constant that is added to an address into the offset field of the access."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from asmevo.isa.instruction import Instruction, Operand, OperandKind, Unit
from asmevo.isa.registers import AGPR0, VGPR0, mask
from asmevo.propose.block_uses import BlockUses
from asmevo.propose.proposal import Direction, Proposal
from asmevo.propose.repair import is_clean, repair
from asmevo.propose.rule import Rule, RuleContext
from asmevo.propose.rules.shift_multiplies import constant_of

# CDNA3 ISA, "DS instructions": one 16-bit offset in bytes, or two of 8 bits in units of what is
# accessed (64 times as much with ST64). "MUBUF": 12 bits.
_DS_LIMIT, _DS_PAIR_LIMIT, _BUFFER_LIMIT = 0xFFFF, 0xFF, 0xFFF
_NO_WRAP = "buffer offsets and the constants added to them stay below 2^32"
# Aligned or not, a double word in LDS is read right: LLVM's HSA ABI rests on the unaligned access
# mode ("+unaligned-access-mode" in GCNSubtarget.cpp), which amdkfd sets on gfx9 (update_qpd_v9:
# SH_MEM_ALIGNMENT_MODE_UNALIGNED), and in which gfx9 takes ds_read_b64 at any address
# (SITargetLowering::allowsMisalignedMemoryAccessesImpl). The emulator reads as in that mode and
# prices all alignments alike. LLVM itself keeps to ds_read2_b32 for words that it knows to be
# aligned to 4 bytes only: what an unaligned read costs is left to the device to tell.
_ALIGNED = ("the LDS addresses of neighbouring words are multiples of 8: others are read right in "
            "the unaligned access mode of amdhsa, but perhaps more slowly")


@dataclass(frozen=True)
class _Fold:
    """An addition that goes away, and the new texts of the accesses that used its sum."""

    addition: int
    accesses: tuple[tuple[int, str], ...]
    assumption: str


class FoldOffsets(Rule):
    """Every use of the sum is an access that can add the constant itself.

    An LDS read of two neighbouring words, whose offsets reach 1020 bytes, becomes one of a double
    word, whose offset reaches 65535.
    """

    name = "fold-offsets"
    direction = Direction.MEMORY_ACCESS

    def matches(self, context: RuleContext) -> Iterator[Proposal]:
        found = [
            fold for index in range(len(context.program))
            if index not in context.cold and (fold := _fold(context, index)) is not None
        ]
        certain = [fold for fold in found if not fold.assumption]
        if found:
            yield from self._folded(context, found)
        if certain and len(certain) < len(found):
            yield from self._folded(context, certain)
        if len(found) > 1:
            yield from context.by_weight(
                ((fold.addition,), proposal) for fold in found
                for proposal in self._folded(context, [fold]))

    def _folded(self, context: RuleContext, folds: Sequence[_Fold]) -> Iterator[Proposal]:
        rewrite = context.rewrite()
        for fold in folds:
            rewrite.delete((fold.addition,))
            for index, text in fold.accesses:
                rewrite.replace(index, text)
        preview = repair(context, context.preview.apply(rewrite.edits(self.name)))
        if is_clean(context, preview):
            yield self.proposal(
                preview, f"{len(folds)} constant(s) added to addresses move into the accesses",
                "; ".join(sorted({fold.assumption for fold in folds} - {""})))


def _fold(context: RuleContext, index: int) -> _Fold | None:
    i = context.program.instructions[index]
    if (i.op != "v_add_u32" or i.encoding in ("dpp", "sdwa") or i.modifiers
            or index in context.indexed):
        return None
    total, *terms = i.operands
    base, constant = None, None
    for value, other in (terms, terms[::-1]):
        if (value.kind is OperandKind.REGISTER and VGPR0 <= value.first < AGPR0
                and base is None):
            constant = constant_of(context, index, other)
            base = value if constant is not None else None
    if base is None or constant is None or context.is_partly_written(index, mask(base.first)):
        return None
    if constant >> 31:
        constant -= 1 << 32
    uses = BlockUses.around(context, index)
    readers = uses.readers(index, mask(total.first))
    if not readers:
        return None
    last = max(readers)
    if not uses.keeps(index, last, mask(base.first) & ~mask(total.first)):
        return None
    if base.first == total.first and not uses.keeps(index, last, mask(base.first)):
        return None
    accesses, assumptions = [], set()
    for reader in sorted(readers):
        folded = _access(context.program.instructions[reader], total, base, constant)
        if folded is None:
            return None
        accesses.append((reader, folded[0]))
        assumptions.add(folded[1])
    return _Fold(index, tuple(accesses), "; ".join(sorted(assumptions - {""})))


def _access(i: Instruction, total: Operand, base: Operand, constant: int) -> tuple[str, str] | None:
    """An access at ``base + constant`` instead of ``total``, and what that assumes."""
    address = _address_position(i)
    if address is None or [k for k, o in enumerate(i.operands)
                           if o.kind is OperandKind.REGISTER and o.first <= total.first
                           < o.first + o.count and not _is_written(i, k)] != [address]:
        return None
    operands = [o.text for o in i.operands]
    operands[address] = base.text
    modifiers = i.text.split(", ")[-1].split(" ")[1:]
    mnemonic, assumption = i.mnemonic, ""
    if constant:
        if i.unit is Unit.VMEM:
            changed = _advanced(modifiers, "offset", constant, _BUFFER_LIMIT)
            assumption = _NO_WRAP
        elif _unit_of_pairs(i.op) == 0:
            changed = _advanced(modifiers, "offset", constant, _DS_LIMIT)
        else:
            changed = _advanced_pair(i, modifiers, constant)
            if changed is None:
                wide = _as_double_word(i, constant)
                if wide is None:
                    return None
                mnemonic, changed = wide
                assumption = _ALIGNED
        if changed is None:
            return None
        modifiers = changed
    text = f"{mnemonic} {', '.join(operands)}"
    return " ".join((text, *modifiers)), assumption


def _is_written(i: Instruction, position: int) -> bool:
    return position == 0 and i.is_load and not i.is_store


def _address_position(i: Instruction) -> int | None:
    """Which operand is the address, where its offset can be changed."""
    if i.unit is Unit.LDS and i.op.startswith(("ds_read", "ds_write")) and not i.is_atomic:
        return 1 if i.op.startswith("ds_read") else 0
    if (i.unit is Unit.VMEM and i.op.startswith(("buffer_load_", "buffer_store_"))
            and i.modifier("offen") and not i.modifier("idxen")):
        return 0 if i.modifier("lds") and len(i.operands) == 3 else 1
    return None


def _advanced(modifiers: Sequence[str], name: str, by: int, limit: int) -> list[str] | None:
    """Modifiers with an offset that much larger."""
    rest = [m for m in modifiers if not m.startswith(f"{name}:")]
    old = next((int(m.split(":")[1], 0) for m in modifiers if m.startswith(f"{name}:")), 0)
    new = old + by
    if not 0 <= new <= limit:
        return None
    return [*rest, f"{name}:{new}"] if new else rest


def _unit_of_pairs(op: str) -> int:
    """The unit of the two offsets of an access to two places, 0 for one to one place."""
    if "2" not in op.split("_")[1]:
        return 0
    return (8 if op.endswith("b64") else 4) * (64 if "st64" in op else 1)


def _advanced_pair(i: Instruction, modifiers: Sequence[str], by: int) -> list[str] | None:
    unit = _unit_of_pairs(i.op)
    if by % unit:
        return None
    out: list[str] | None = list(modifiers)
    for name in ("offset0", "offset1"):
        if out is not None:
            out = _advanced(out, name, by // unit, _DS_PAIR_LIMIT)
    return out


def _as_double_word(i: Instruction, by: int) -> tuple[str, list[str]] | None:
    first, second = (int(str(i.modifier(name) or 0)) for name in ("offset0", "offset1"))
    offset = first * 4 + by
    if i.op != "ds_read2_b32" or second != first + 1 or offset % 8 or offset > _DS_LIMIT:
        return None
    return "ds_read_b64", [f"offset:{offset}"]
