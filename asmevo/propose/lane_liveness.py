"""Which registers the lanes that are on may still read: liveness of one lane, not of the wave.

`asmevo.isa.dataflow.liveness` lets a vector write end a life only where all lanes are on, so that
every temporary of a masked region seems to live from the kernel's start. Seen from one lane, a
write that the lane takes part in does end the old value's life. Two sets are followed backwards:
``active``, what lanes that are on may read before they overwrite it, and ``idle``, what lanes that
are off may read once they are on again. An instruction that switches lanes off makes them wait
with what is ``idle`` behind it; one that switches lanes on makes them need what is ``active``. Of
two instructions of which one switches on what the other switched off (`mask_pairs`), the latter's
lanes wait for what is ``active`` behind the former, and no others do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from asmevo.isa.cfg import Cfg
from asmevo.isa.effects import VECTOR_REGISTERS, VECTOR_UNITS, Effects, State
from asmevo.isa.instruction import Instruction, Unit
from asmevo.isa.mask_pairs import mask_pairs
from asmevo.isa.program import Program
from asmevo.isa.registers import EXEC_MASK

# Reads lanes whatever EXEC says (CDNA3 ISA, "VOP1", "VOP3A": V_READLANE, V_READFIRSTLANE), or lets
# lanes read one another.
_CROSSING = ("v_readlane", "v_readfirstlane", "ds_bpermute", "ds_permute", "ds_swizzle",
             "v_permlane", "v_writelane")
# EXEC operations that can only switch lanes off, and only on (the destination being EXEC).
_NARROWS = ("s_and_saveexec", "v_cmpx")
_WIDENS = ("s_or_saveexec",)


@dataclass(frozen=True, slots=True)
class LaneLiveness:
    """Per instruction, register masks behind it and in front of it.

    ``after[i]`` are registers that a lane which is on behind *i* may still read, ``before[i]`` the
    same in front of it. Scalar registers are in both as the wave reads them. A vector register that
    is not in ``before[i]`` may be overwritten by an instruction put there.
    """

    after: tuple[int, ...]
    before: tuple[int, ...]

    @staticmethod
    def of(
        program: Program, cfg: Cfg, facts: tuple[Effects, ...], states: tuple[State, ...],
    ) -> LaneLiveness:
        """``facts`` and ``states`` are those of `asmevo.isa.effects`."""
        count = len(program)
        after, before = [0] * count, [0] * count
        steps = [_Step.of(i, facts[k], states[k]) for k, i in enumerate(program.instructions)]
        pairs = mask_pairs(program, cfg)
        joins: dict[int, list[int]] = {}
        for join, start in pairs.items():
            joins.setdefault(start, []).append(join)
            steps[join] = replace(steps[join], on=False)
        entry = dict.fromkeys(cfg.order, (0, 0))
        changed = True
        while changed:
            behind = [after[join] for join in pairs]
            changed = False
            for number in reversed(cfg.order):
                block = cfg.blocks[number]
                active = idle = 0
                for successor in block.successors:
                    a, b = entry.get(successor, (0, 0))
                    active |= a
                    idle |= b
                for index in range(block.end - 1, block.start - 1, -1):
                    after[index] = active
                    for join in joins.get(index, ()):
                        active |= after[join]
                    active, idle = steps[index].before(active, idle)
                    before[index] = active
                if (active, idle) != entry[number]:
                    entry[number] = active, idle
                    changed = True
            changed = changed or behind != [after[join] for join in pairs]
        return LaneLiveness(tuple(after), tuple(before))


@dataclass(frozen=True, slots=True)
class _Step:
    """What one instruction does to the two sets."""

    reads: int
    kills: int
    crossing: int
    off: bool
    on: bool

    @staticmethod
    def of(instruction: Instruction, fact: Effects, state: State) -> _Step:
        kills = fact.kills
        doubtful = state & ~(State.EXEC_LO_PARTIAL | State.EXEC_HI_PARTIAL)
        if (instruction.unit in VECTOR_UNITS and not doubtful
                and not instruction.op.startswith(_CROSSING)
                and not _keeps(instruction)):
            kills |= instruction.writes & VECTOR_REGISTERS
        crossing = 0
        if instruction.op.startswith(_CROSSING) or instruction.encoding == "dpp" or (
                instruction.unit is Unit.MFMA):
            crossing = fact.reads & VECTOR_REGISTERS
        off, on = _switches(instruction)
        return _Step(fact.reads, kills, crossing, off, on)

    def before(self, active: int, idle: int) -> tuple[int, int]:
        if self.off or self.on:
            vectors = active & VECTOR_REGISTERS
            if self.off:
                active |= idle
            if self.on:
                idle |= vectors
        return active & ~self.kills | self.reads, idle | self.crossing


def _keeps(instruction: Instruction) -> bool:
    """Whether lanes that are on may keep their old destination."""
    if instruction.encoding in ("dpp", "sdwa"):
        return True
    # Half-word loads keep the other half; loads to LDS write no register.
    return "_d16" in instruction.op or bool(instruction.modifier("lds"))


def _switches(instruction: Instruction) -> tuple[bool, bool]:
    """Whether an instruction may switch lanes off, and on."""
    if not instruction.writes & EXEC_MASK:
        return False, False
    op = instruction.op
    if op.startswith(_NARROWS):
        return True, False
    if op.startswith(_WIDENS):
        return False, True
    operands = instruction.operands
    if op in ("s_and_b64", "s_andn2_b64", "s_or_b64") and len(operands) == 3:
        kept = [o.text for o in operands[1:]]
        if op == "s_or_b64" and "exec" in kept:
            return False, True
        if (op == "s_and_b64" and "exec" in kept) or (op == "s_andn2_b64" and kept[0] == "exec"):
            return True, False
    return True, True

