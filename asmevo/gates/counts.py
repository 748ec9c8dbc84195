"""How often a program does what a candidate may not do more often than the original."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from asmevo.isa.instruction import Instruction, OperandKind
from asmevo.isa.parse import parse
from asmevo.isa.program import Program
from asmevo.isa.recent import Recent
from asmevo.isa.registers import (
    EXEC_MASK,
    FLAT_SCRATCH_LO,
    M0_MASK,
    MODE_MASK,
    XNACK_MASK_LO,
    mask,
)

# Of these what they set counts as well: one may not become another.
_SETTING_OPS = frozenset({
    "s_setreg_b32", "s_setreg_imm32_b32", "s_trap", "s_sendmsg", "s_sendmsghalt", "s_sleep",
    "s_setprio", "s_set_gpr_idx_on", "s_set_gpr_idx_mode", "s_setvskip",
})

# Registers with a meaning of their own: a candidate may not write them more often. EXEC counts
# where constants or nothing but itself go there.
SPECIAL_REGISTERS = {
    "exec": EXEC_MASK, "m0": M0_MASK, "mode": MODE_MASK,
    "flat_scratch": mask(FLAT_SCRATCH_LO, 2), "xnack_mask": mask(XNACK_MASK_LO, 2),
}

# Bits that decide which caches an access goes through, and so who sees a store when.
COHERENCE_MODIFIERS = ("sc0", "sc1", "nt", "glc", "slc", "dlc")


@dataclass(frozen=True)
class Counts:
    """Operations, settings by what they set, writes of special registers, and accesses with their
    cache bits."""

    ops: Counter[str]
    settings: Counter[tuple[str, ...]]
    special: Counter[str]
    accesses: Counter[tuple[str, ...]]

    @staticmethod
    def of(program: Program) -> Counts:
        return _recent.get(lambda: _counted(program), program)


_recent: Recent[Counts] = Recent(4)


def _counted(program: Program) -> Counts:
    found = Counts(Counter(), Counter(), Counter(), Counter())
    # All of it is told by the text.
    for text, count in Counter(i.text for i in program.instructions).items():
        op, setting, special, access = _facts(text)
        found.ops[op] += count
        if setting:
            found.settings[setting] += count
        for name in special:
            found.special[name] += count
        if access:
            found.accesses[access] += count
    return found


@lru_cache(maxsize=1 << 16)
def _facts(text: str) -> tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    i = parse(text)
    special = tuple(name for name, registers in SPECIAL_REGISTERS.items()
                    if i.writes & registers and not _computed_mask(i))
    return i.op, _setting(i), special, _access(i)


def _setting(i: Instruction) -> tuple[str, ...]:
    """The operation and its immediate operands; registers may be renamed."""
    if i.op not in _SETTING_OPS:
        return ()
    fixed = (OperandKind.CONSTANT, OperandKind.NAMED)
    return (i.op, *(o.text for o in i.operands if o.kind in fixed))


def _computed_mask(i: Instruction) -> bool:
    """Whether EXEC gets what other registers hold: the comparison of launch uses looks at those."""
    return bool(i.writes & EXEC_MASK) and bool(i.reads & ~EXEC_MASK)


def _access(i: Instruction) -> tuple[str, ...]:
    """The operation of an access and its cache bits.

    A load that is only marked as non-temporal sees what it would see without the mark
    (LLVM "User Guide for AMDGPU Backend", memory model gfx942); it may gain or lose that.
    """
    if not i.accesses_memory:
        return ()
    return (i.op, *(m for m in COHERENCE_MODIFIERS if i.modifier(m) and not _hint(i, m)))


def _hint(instruction: Instruction, modifier: str) -> bool:
    return modifier == "nt" and "_load_" in instruction.op
