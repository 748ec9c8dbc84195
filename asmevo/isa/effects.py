"""What an instruction reads and writes *where it stands*.

Three pieces of machine state change the meaning of a vector instruction and are set elsewhere:
EXEC (lanes that are off keep their destination), VSKIP (vector instructions are skipped) and VGPR
indexing (operands move by M0). A forward analysis over all paths bounds them at each instruction.

Unknown code (:attr:`asmevo.isa.cfg.Cfg.unknown`) may read and write every register, certainly
overwrites none, and leaves all of this state in doubt.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import IntFlag

from asmevo.isa.cfg import Cfg
from asmevo.isa.instruction import Instruction, Operand, OperandKind, Unit
from asmevo.isa.program import Program
from asmevo.isa.recent import Recent
from asmevo.isa.registers import (
    AGPR0,
    ALL_AGPR_MASK,
    ALL_VGPR_MASK,
    EVERYTHING,
    EXEC_HI,
    EXEC_LO,
    EXEC_MASK,
    M0_MASK,
    MODE_MASK,
    VGPR0,
    mask,
)

VECTOR_UNITS = frozenset({Unit.VALU, Unit.TRANS, Unit.MFMA, Unit.VMEM, Unit.FLAT, Unit.LDS})
VALU_UNITS = frozenset({Unit.VALU, Unit.TRANS, Unit.MFMA})
VECTOR_REGISTERS = ALL_VGPR_MASK | ALL_AGPR_MASK

# MODE fields (CDNA3 ISA, "Mode Register"): GPR_IDX_EN is bit 27 and VSKIP bit 28.
_HWREG_MODE = 1
_GPR_IDX_EN = 1 << 27
_VSKIP = 1 << 28


class State(IntFlag):
    """Machine state that *may* hold before an instruction."""

    EXEC_LO_PARTIAL = 1
    EXEC_HI_PARTIAL = 2
    VSKIP = 4
    INDEXING = 8
    INDEX_SRC0 = 16
    INDEX_SRC1 = 32
    INDEX_SRC2 = 64
    INDEX_DST = 128


_PARTIAL = State.EXEC_LO_PARTIAL | State.EXEC_HI_PARTIAL
_INDEX_SOURCES = State.INDEX_SRC0 | State.INDEX_SRC1 | State.INDEX_SRC2
_INDEX_MODES = _INDEX_SOURCES | State.INDEX_DST
_IN_DOUBT = _PARTIAL | State.VSKIP | State.INDEXING | _INDEX_MODES
_FIRST_MODE_BIT = 16


@dataclass(frozen=True, slots=True)
class Effects:
    """Register masks: ``reads`` and ``writes`` may happen, ``kills`` certainly overwrite."""

    reads: int
    writes: int
    kills: int


# By state and text: programs that are compared have most of both in common.
_KNOWN: defaultdict[State, dict[str, Effects]] = defaultdict(dict)
_MOST_KNOWN = 1 << 17
_UNKNOWN = Effects(reads=EVERYTHING, writes=EVERYTHING, kills=0)
# Waits, hazards and liveness of one program ask for the same.
_recent_states: Recent[tuple[State, ...]] = Recent(6)
_recent_effects: Recent[tuple[Effects, ...]] = Recent(6)


def machine_states(program: Program, cfg: Cfg, *, full_exec: bool = True) -> tuple[State, ...]:
    """The state that may hold before each instruction; unreachable ones get ``State(0)``.

    ``full_exec`` says that all 64 lanes are on at entry, which the hardware grants when the
    workgroup size is a multiple of 64.
    """
    return _recent_states.get(
        lambda: _machine_states(program, cfg, full_exec), program, cfg, full_exec)


def _machine_states(program: Program, cfg: Cfg, full_exec: bool) -> tuple[State, ...]:
    entry: dict[int, State] = {cfg.entry: State(0) if full_exec else _PARTIAL}
    states = [State(0)] * len(program)
    pending = [cfg.entry]
    while pending:
        number = pending.pop()
        block, state = cfg.blocks[number], entry[number]
        for index in range(block.start, block.end):
            states[index] = state
            instruction = program.instructions[index]
            if index in cfg.unknown:
                state = _IN_DOUBT
            elif instruction.writes & _STATE_REGISTERS:
                state = _after(instruction, state)
        for successor in block.successors:
            merged = entry.get(successor, State(0)) | state
            if successor not in entry or merged != entry[successor]:
                entry[successor] = merged
                pending.append(successor)
    return tuple(states)


def effects(program: Program, cfg: Cfg, *, full_exec: bool = True) -> tuple[Effects, ...]:
    """The effects of each instruction under :func:`machine_states`."""
    return _recent_effects.get(
        lambda: _all_effects(program, cfg, full_exec), program, cfg, full_exec)


def _all_effects(program: Program, cfg: Cfg, full_exec: bool) -> tuple[Effects, ...]:
    if sum(map(len, _KNOWN.values())) > _MOST_KNOWN:
        _KNOWN.clear()
    found = []
    state, known = State(0), _KNOWN[State(0)]
    for index, (instruction, here) in enumerate(zip(
            program.instructions, machine_states(program, cfg, full_exec=full_exec), strict=True)):
        if here is not state:
            state, known = here, _KNOWN[here]
        fact = known.get(instruction.text)
        if fact is None:
            fact = known[instruction.text] = _effects(instruction, state)
        found.append(_UNKNOWN if index in cfg.unknown else fact)
    return tuple(found)


def has_side_effects(instruction: Instruction) -> bool:
    """Whether an instruction does anything besides writing registers that liveness tracks.

    Stores, atomics, loads to LDS, control flow, synchronisation, MODE changes and clock reads do,
    and so may a word that LLVM cannot decode.
    """
    return (not instruction.writes or instruction.is_store or instruction.is_atomic
            or instruction.is_branch or bool(instruction.writes & MODE_MASK)
            or instruction.op in ("s_memtime", "s_memrealtime"))


_STATE_REGISTERS = EXEC_MASK | MODE_MASK | M0_MASK


def _after(instruction: Instruction, state: State) -> State:
    if instruction.writes & EXEC_MASK:
        return _after_exec(instruction, state)
    match instruction.op:
        case "s_set_gpr_idx_on":
            return _with_modes(state | State.INDEXING, instruction.operands[1].value)
        case "s_set_gpr_idx_off":
            return state & ~(State.INDEXING | _INDEX_MODES)
        case "s_set_gpr_idx_mode":
            return _with_modes(state, instruction.operands[0].value)
        case "s_setvskip":
            value, bit = instruction.operands
            constant = OperandKind.CONSTANT
            if value.kind is constant is bit.kind and not value.value >> (bit.value & 31) & 1:
                return state & ~State.VSKIP
            return state | State.VSKIP
        case "s_setreg_b32" | "s_setreg_imm32_b32":
            return state | _mode_write(instruction.operands[0].value)
    if instruction.writes & M0_MASK and state & State.INDEXING:
        # M0[15:12] is the indexing mode.
        return state | _INDEX_MODES
    return state


def _after_exec(instruction: Instruction, state: State) -> State:
    full = (instruction.op in ("s_mov_b32", "s_mov_b64")
            and instruction.operands[1].kind is OperandKind.CONSTANT
            and instruction.operands[1].text == "-1")
    for register, bit in ((EXEC_LO, State.EXEC_LO_PARTIAL), (EXEC_HI, State.EXEC_HI_PARTIAL)):
        if instruction.writes & mask(register):
            state = state & ~bit if full else state | bit
    return state


def _with_modes(state: State, modes: int) -> State:
    if not state & State.INDEXING:
        return state
    return state & ~_INDEX_MODES | State(modes * _FIRST_MODE_BIT) & _INDEX_MODES


def _mode_write(hwreg: int) -> State:
    if hwreg & 63 != _HWREG_MODE:
        return State(0)
    field = mask(hwreg >> 6 & 31, (hwreg >> 11 & 31) + 1)
    state = State.VSKIP if field & _VSKIP else State(0)
    return state | State.INDEXING | _INDEX_MODES if field & _GPR_IDX_EN else state


def _effects(instruction: Instruction, state: State) -> Effects:
    reads, writes = instruction.reads, instruction.writes
    kills = writes
    if instruction.unit not in VECTOR_UNITS or not state:
        return Effects(reads, writes, kills)
    if state & State.VSKIP:
        kills = 0
    if state & _PARTIAL and reads & EXEC_MASK:
        kills &= ~VECTOR_REGISTERS
    if state & State.INDEXING and instruction.unit in VALU_UNITS:
        reads |= M0_MASK
        destinations = [o for o in instruction.operands if _is_vgpr(o) and
                        mask(o.first) & writes]
        sources = [o for o in instruction.operands if _is_vgpr(o) and mask(o.first) & reads]
        if state & _INDEX_SOURCES:
            reads |= _from_lowest(sources)
        if state & State.INDEX_DST:
            writes |= _from_lowest(destinations)
            reads |= _from_lowest([o for o in destinations if o in sources])
            kills &= ~ALL_VGPR_MASK
    return Effects(reads, writes, kills)


def _is_vgpr(operand: Operand) -> bool:
    return VGPR0 <= operand.first < AGPR0


def _from_lowest(operands: list[Operand]) -> int:
    """Every VGPR an operand may stand for: M0 adds an unsigned index to its number."""
    if not operands:
        return 0
    lowest = min(o.first for o in operands)
    return mask(lowest, AGPR0 - lowest)
