"""What of a kernel decides where the launch has a say, so that most candidates need no new look.

`LaunchUses` and `OperandUses` follow values through the registers that lead to branches, masks,
selections, operands and addresses. An edit that leaves every instruction alone that writes one of
these registers, decides, accesses memory or jumps cannot change what is found: scheduling, waits
and wait states are most of what proposers do. The order of such instructions within a block does
not matter where each still reads what the same ones wrote.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from asmevo.gates.launch_uses import NARROWING
from asmevo.isa.cfg import Cfg
from asmevo.isa.instruction import Instruction, Unit
from asmevo.isa.parse import parse
from asmevo.isa.program import Program
from asmevo.isa.registers import EVERYTHING, EXEC_MASK, M0_MASK, MODE_MASK, SGPR_LIMIT, members

_SCALARS = (1 << SGPR_LIMIT) - 1
# What else instructions do depends on these.
_STATE = EXEC_MASK | MODE_MASK | M0_MASK

# Of each block that is reached: where it goes to, and what its instructions that matter do.
Skeleton = tuple[tuple[tuple[int, ...], int, str], ...]


@dataclass(frozen=True)
class Skeletons:
    """Makes them. ``followed`` are the registers through which values were followed; ``carriers``
    those that hold values of the launch: whoever reads these matters."""

    followed: int
    carriers: int
    _known: dict[tuple[bool, tuple[str, ...]], int] = field(default_factory=dict, repr=False)

    def of(self, program: Program) -> Skeleton:
        cfg = Cfg.of(program)
        instructions = program.instructions
        found = []
        # Then any vector operation may write any vector register.
        indexes = any(map(_indexes, instructions))
        for number in sorted(cfg.order):
            block = cfg.blocks[number]
            texts = tuple(i.text for i in instructions[block.start:block.end])
            last = instructions[block.end - 1]
            if last.is_branch:
                # Distances change with code between; where it goes to is told apart from it.
                texts = texts[:-1]
            key = self._known.get((indexes, texts))
            if key is None:
                key = self._known[indexes, texts] = hash(self._block(texts, indexes))
            found.append((tuple(block.successors), key, _text(last) if last.is_branch else ""))
        return tuple(found)

    def _block(self, texts: tuple[str, ...], indexes: bool) -> tuple[object, ...]:
        """What the block does with what its registers hold at its start."""
        state: dict[int, int] = {}
        done = []
        followed = EVERYTHING if indexes else self.followed
        for text in texts:
            i = parse(text)
            if not (i.writes & followed or i.reads & self.carriers or _decides(text)):
                continue
            made = hash((text, *(state.get(r, r) for r in _members(i.reads))))
            if i.is_store or i.is_atomic or i.unit is Unit.BARRIER:
                done.append(("order", made))
            done.append(("", made))
            for register in _members(i.writes):
                state[register] = hash((made, register))
        return (tuple(sorted(done)), tuple(sorted(state.items())))


@lru_cache(maxsize=1 << 12)
def _members(registers: int) -> tuple[int, ...]:
    return tuple(members(registers))


def _indexes(i: Instruction) -> bool:
    return i.op.startswith("s_set_gpr_idx") or "movrel" in i.op


def _text(i: Instruction) -> str:
    return i.op if i.op.startswith(("s_branch", "s_cbranch")) else i.text


@lru_cache(maxsize=1 << 16)
def _decides(text: str) -> bool:
    i = parse(text)
    return (i.is_branch or i.ends_program or i.accesses_memory
            or i.unit in (Unit.SALU, Unit.SMEM, Unit.OPAQUE)
            or bool(i.writes & _STATE) or bool(i.reads & _SCALARS) or i.op.startswith(NARROWING))
