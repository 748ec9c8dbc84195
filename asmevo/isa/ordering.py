"""Instructions whose place matters for reasons that registers do not show."""

from __future__ import annotations

from collections.abc import Sequence

from asmevo.isa.effects import State
from asmevo.isa.instruction import Instruction, Unit
from asmevo.isa.program import Program
from asmevo.isa.registers import EXEC_MASK

# What follows executes in a mode that the operands do not show, or ends it; also everything whose
# effect depends on its place in the instruction stream.
_FENCES = (
    "s_set_gpr_idx", "s_setreg", "s_setvskip", "s_setprio", "s_sethalt", "s_sleep", "s_sendmsg",
    "s_trap", "s_getpc", "s_setpc", "s_swappc", "s_rfe", "s_call", "s_memtime", "s_memrealtime",
    "s_getreg", "s_icache", "s_dcache", "s_incperflevel", "s_decperflevel", "s_ttracedata",
    "buffer_wbl2", "buffer_inv", "v_movrel", "s_movrel", "s_wakeup",
)
_ORDERING = ("buffer_wbl2", "buffer_inv", "s_dcache", "s_sendmsg", "s_setpc", "s_swappc")


def labelled(program: Program) -> frozenset[int]:
    """Instructions that control may reach other than from the one before."""
    return frozenset({t for t in program.targets if t is not None} | set(program.labels))


def indexed(program: Program, states: Sequence[State]) -> frozenset[int]:
    """Instructions whose operands may not be the registers they name, or that may not run.

    ``states`` are those of :func:`asmevo.isa.effects.machine_states`.
    """
    special = State.INDEXING | State.VSKIP
    return frozenset(
        index for index, i in enumerate(program.instructions)
        if states[index] & special or "movrel" in i.op)


def fences(program: Program, states: Sequence[State]) -> frozenset[int]:
    """Instructions that nothing may be moved across."""
    moved = indexed(program, states)
    return frozenset(
        index for index, i in enumerate(program.instructions)
        if i.is_branch or i.ends_program or i.unit is Unit.MESSAGE
        or i.op.startswith(_FENCES) or i.writes & EXEC_MASK or index in moved)


def guards(program: Program) -> frozenset[int]:
    """Waits in front of an atomic, a write-back or a message.

    They may order memory between waves or workgroups, which registers do not show. Barriers need
    no such care: the wait analysis knows them.
    """
    starts = labelled(program)
    out: set[int] = set()
    pending: list[int] = []
    for index, i in enumerate(program.instructions):
        if index in starts or i.is_branch:
            pending.clear()
        if i.wait is not None:
            pending.append(index)
        elif i.is_atomic or i.op.startswith(_ORDERING):
            out.update(pending)
            pending.clear()
    return frozenset(out)


def lds_waits(program: Program) -> frozenset[int]:
    """Waits for vector memory in a program that loads some of it to LDS: behind them a wave reads
    there what it has loaded itself, which registers do not show either."""
    instructions = program.instructions
    if not any(map(loads_to_lds, instructions)):
        return frozenset()
    return frozenset(index for index, i in enumerate(instructions)
                     if i.wait is not None and i.wait.vmcnt is not None)


def loads_to_lds(i: Instruction) -> bool:
    """Whether an instruction loads from memory to LDS, past the registers."""
    return i.modifier("lds") is not None or "_load_lds_" in i.op
