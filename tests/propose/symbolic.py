"""Names for everything a straight-line kernel computes, whatever registers it computes it in.

Every value is named by the operation and the values that went in, lane masks included, so two
orders of the same computation, and two choices of registers for it, give the same names.
"""

from __future__ import annotations

from asmevo.isa.instruction import Instruction, OperandKind, Unit
from asmevo.isa.registers import EXEC_HI, EXEC_LO, EXEC_MASK, MODE, VGPR0, mask, members
from asmevo.propose.preview import Preview

_FREE = ("ds_bpermute", "ds_permute", "ds_swizzle")

Effect = tuple[int, str, object]


def effects(preview: Preview) -> list[Effect]:
    """Stores and barriers by epoch and address space, with the names of all values they read.

    Different address spaces need no common order between two barriers. Branches are passed by: what
    they skip has no lane on, so that executing it anyway does nothing.
    """
    state = _State()
    for i in preview.program.instructions:
        if i.wait is None and not i.is_branch and i.op not in ("s_nop", "s_endpgm"):
            state.execute(i)
    return sorted(state.out, key=lambda e: (e[0], e[1]))


class _State:
    def __init__(self) -> None:
        self.values: dict[int, object] = {}
        self.written: dict[str, int] = {}
        self.barriers = 0
        self.out: list[Effect] = []

    def value(self, register: int) -> object:
        return self.values.get(register, f"entry {register}")

    def run(self, first: int, count: int) -> tuple[object, ...]:
        return tuple(self.value(r) for r in range(first, first + count))

    def execute(self, i: Instruction) -> None:
        name: tuple[object, ...] = (i.op, i.encoding, i.modifiers)
        seen = mask(MODE)
        for n, o in enumerate(i.operands):
            if o.kind is not OperandKind.REGISTER:
                name = (*name, o.text)
                continue
            run = mask(o.first, o.count)
            seen |= run
            read = bool(run & i.reads) and not (n == 0 and not run & ~i.writes)
            name = (*name, self.run(o.first, o.count) if read else "result", o.neg, o.abs)
        name = (*name, tuple(self.value(r) for r in members(i.reads & ~seen)))
        space = i.unit.value
        if i.op == "s_barrier":
            self.barriers += 1
            self.out.append((self.barriers, space, "barrier"))
            return
        if i.is_store:
            self.written[space] = self.written.get(space, 0) + 1
            self.out.append((self.barriers, space, hash(name)))
        elif i.is_load and not i.op.startswith(_FREE):
            # Scalar loads may pass vector stores, and global loads barriers before any store.
            epoch = self.barriers if space != "vmem" or self.written.get(space) else 0
            name = (*name, self.written.get(space, 0), 0 if i.unit is Unit.SMEM else epoch)
        self.write(i, hash(name))

    def write(self, i: Instruction, name: int) -> None:
        if i.op.startswith("s_and_saveexec"):
            saved = i.operands[0]
            mask_before = self.run(EXEC_LO, 2)
            for k in range(2):
                self.values[saved.first + k] = mask_before[k]
                self.values[EXEC_LO + k] = (name, k)
        elif i.op == "s_or_b64" and i.writes & EXEC_MASK:
            source = i.operands[2]
            for k, value in enumerate(self.run(source.first, 2)):
                self.values[EXEC_LO + k] = value
        else:
            masked = self.run(EXEC_LO, 2) != (f"entry {EXEC_LO}", f"entry {EXEC_HI}")
            for register in members(i.writes):
                new: object = (name, self._place(i, register))
                if masked and register >= VGPR0:
                    new = (new, self.value(register))
                self.values[register] = new

    @staticmethod
    def _place(i: Instruction, register: int) -> tuple[int, int]:
        for n, o in enumerate(i.operands):
            if o.kind is OperandKind.REGISTER and o.first <= register < o.first + o.count:
                return n, register - o.first
        return -1, register
