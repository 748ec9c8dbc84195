"""The one instruction model that recovery, dataflow, gates, emulator and profiler share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Unit(StrEnum):
    """The functional unit that executes an instruction (CDNA3 ISA, "Instruction Types").

    ``OPAQUE`` stands for a word that LLVM cannot decode: it may be anything.
    """

    SALU = "salu"
    SMEM = "smem"
    VALU = "valu"
    TRANS = "trans"
    MFMA = "mfma"
    VMEM = "vmem"
    FLAT = "flat"
    LDS = "lds"
    BRANCH = "branch"
    WAIT = "wait"
    NOP = "nop"
    BARRIER = "barrier"
    MESSAGE = "message"
    END = "end"
    OPAQUE = "opaque"


class OperandKind(StrEnum):
    """What an operand denotes."""

    REGISTER = "register"
    CONSTANT = "constant"
    TARGET = "target"
    OFF = "off"
    NAMED = "named"
    SYMBOL = "symbol"


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand as written.

    ``first``/``count`` are a register number of :mod:`asmevo.isa.registers` and a length in dwords
    (``REGISTER``). ``value`` is the 32-bit pattern of an integer or floating-point constant
    (``CONSTANT``; inline integers are sign-extended to 32 bits, floats are given as f32 bits), and
    ``text`` the operand as written, without ``-``/``|..|``/``sext()``. A ``NAMED`` operand is a
    value the hardware computes (``src_vccz``; ``first``/``count`` are the registers behind it, if
    any) or an instruction field (``hwreg(..)``, ``gpr_idx(..)``; ``value`` is its encoding). A
    ``TARGET`` given as a number has it in ``value``, in words from the next instruction. A
    ``SYMBOL`` is a 32-bit literal that the linker computes (``f@rel32@lo+4``); ``value`` is what is
    added to it.
    """

    kind: OperandKind
    text: str
    first: int = -1
    count: int = 0
    value: int = 0
    neg: bool = False
    abs: bool = False
    sext: bool = False


@dataclass(frozen=True, slots=True)
class WaitCount:
    """Upper bounds that an ``s_waitcnt`` imposes; ``None`` leaves a counter alone."""

    vmcnt: int | None = None
    expcnt: int | None = None
    lgkmcnt: int | None = None


@dataclass(frozen=True, slots=True)
class Instruction:
    """One decoded instruction.

    ``text``      canonical LLVM text (single spaces, no comment)
    ``mnemonic``  as LLVM prints it, e.g. ``v_add_f32_dpp``
    ``op``        mnemonic without the encoding suffix, e.g. ``v_add_f32``; a ``.long`` with its
                  value, so that no two words pass for the same operation
    ``encoding``  ``e32``, ``e64``, ``dpp``, ``sdwa`` or ``""``
    ``modifiers`` name -> value; a flag without value (``offen``, ``sc0``) maps to 1, a list
                  (``quad_perm``, ``op_sel``) to a tuple of ints, a named value
                  (``dst_sel:BYTE_0``) to its name
    ``reads``/``writes`` register masks, implicit registers (VCC, EXEC, SCC, M0, MODE) included
    ``vmcnt``/``lgkmcnt``/``expcnt`` by how much issuing it raises each counter
    """

    text: str
    mnemonic: str
    op: str
    encoding: str
    operands: tuple[Operand, ...]
    modifiers: tuple[tuple[str, int | str | tuple[int, ...]], ...]
    reads: int
    writes: int
    unit: Unit
    is_load: bool = False
    is_store: bool = False
    is_atomic: bool = False
    vmcnt: int = 0
    lgkmcnt: int = 0
    expcnt: int = 0
    wait: WaitCount | None = None
    is_branch: bool = False
    is_conditional: bool = False
    ends_program: bool = False

    def modifier(self, name: str) -> int | str | tuple[int, ...] | None:
        """The value of a modifier, or ``None`` when it is not written."""
        for key, value in self.modifiers:
            if key == name:
                return value
        return None

    @property
    def accesses_memory(self) -> bool:
        return self.is_load or self.is_store or self.is_atomic
