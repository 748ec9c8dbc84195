"""The wait-state tables of gfx90a, gfx942 and gfx950, as data.

A rule says: between an instruction for which ``produces`` is not empty and one for which
``consumes`` shares a register with it, ``states`` wait states must pass (CDNA2, CDNA3 and CDNA4
ISA, "Manually Inserted Wait States"; where the documents are silent or looser, what LLVM's hazard
recogniser inserts, except where hand-written production kernels rely on less).

Not checked, on purpose: VALU writes VCC or an SGPR mask -> carry-in or ``v_cndmask`` selector (the
ISA asks for none); f32 matrix result -> XDL SrcC overlap (the sources disagree); matrix result
overwritten by another matrix operation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache

from asmevo.isa import hazard_selects as select
from asmevo.isa.hazard_selects import SCALAR, VECTOR, Select
from asmevo.isa.instruction import Instruction
from asmevo.isa.matrix_timing import MatrixClass, passes
from asmevo.isa.parse import parse
from asmevo.isa.registers import ALL_VGPR_MASK, EXEC_MASK, VCC_MASK
from asmevo.isa.targets import GFX90A, GFX950

States = int | Callable[[Instruction], int]


@dataclass(frozen=True, slots=True)
class Rule:
    """``states`` is a number, or depends on the producer.

    With ``behind``, the rule only holds when an instruction of that kind stands right before the
    consumer.
    """

    kind: str
    produces: Select
    consumes: Select
    states: States
    behind: Select | None = None


@dataclass(frozen=True, slots=True)
class HazardFacts:
    """One instruction's part in the rules: (rule, registers, wait states) and rule -> registers."""

    produced: tuple[tuple[int, int, int], ...]
    consumed: tuple[tuple[int, int], ...]
    interest: int


@cache
def rules(isa: str) -> tuple[Rule, ...]:
    """The table of one of :data:`asmevo.isa.targets.TARGETS`."""
    table = (*_common(isa), *(_matrix_gfx90a(isa) if isa == GFX90A else _matrix_gfx942(isa)),
             *_matrix_f64(isa))
    return tuple(rule for rule in table if rule.states != 0)


def _common(isa: str) -> tuple[Rule, ...]:
    def on(gfx90a: int, later: int) -> int:
        return gfx90a if isa == GFX90A else later

    gfx950 = isa == GFX950
    return (
        Rule("valu-sgpr-vmem", select.valu_writes(SCALAR), select.scalar_address, 5),
        Rule("valu-sgpr-constant", select.valu_writes(SCALAR), select.constants, on(0, 2)),
        Rule("valu-lane-select", select.valu_writes(SCALAR), select.lane_select, 4),
        Rule("valu-vcc-div-fmas", select.valu_writes(VCC_MASK), select.div_fmas, 4),
        Rule("valu-zero-flag", select.valu_writes(VCC_MASK | EXEC_MASK), select.zero_flags,
             on(0, 5)),
        Rule("valu-readlane", select.valu_writes(ALL_VGPR_MASK), select.lane_reads, on(0, 1)),
        Rule("valu-permlane", select.valu_writes(ALL_VGPR_MASK), select.permlane_reads,
             2 if gfx950 else 0),
        Rule("cmpx-lane", select.cmpx, select.lane_ops, on(0, 4)),
        Rule("cmpx-permlane", select.cmpx, select.permlane, 4 if gfx950 else 0),
        Rule("cmpx-exec-constant", select.cmpx, select.exec_constant, on(0, 2)),
        Rule("valu-dpp", select.valu_writes(ALL_VGPR_MASK), select.dpp_reads, 2),
        Rule("exec-dpp", select.valu_writes(EXEC_MASK), select.dpp, 5),
        Rule("exec-mfma", select.valu_writes(EXEC_MASK), select.matrix, 4),
        Rule("trans-valu", select.trans_result, select.non_trans_reads, on(0, 1)),
        Rule("shifted-valu", select.shifted, select.valu_reads, on(0, 1)),
        Rule("setreg-getreg", select.hwreg("s_setreg_b32", "s_setreg_imm32_b32"),
             select.hwreg("s_setreg_b32", "s_setreg_imm32_b32", "s_getreg_b32"), 2),
        Rule("salu-m0", select.salu_m0, select.m0_users, 1),
        Rule("store-data", select.wide_store_data, select.valu_or_matrix_writes, on(1, 2)),
        Rule("vskip", select.vskip_write, select.vector_state, on(0, 2)),
        Rule("dot-result", select.dot_result, select.dot_users, 3),
        Rule("valu-mfma", select.valu_writes(VECTOR), select.matrix_reads, 2),
    )


_XDL, _F32 = MatrixClass.XDL, MatrixClass.F32
_F64_4, _F64_16 = MatrixClass.F64_4X4, MatrixClass.F64_16X16


def _matrix_gfx942(isa: str) -> tuple[Rule, ...]:
    """gfx950 adds one wait state to the XDL rows, to most of them not for two passes."""
    gfx950 = isa == GFX950

    def after(more: int) -> Callable[[Instruction], int]:
        return lambda i: passes(i, isa) + more

    def after_xdl(more: int) -> Callable[[Instruction], int]:
        return lambda i: passes(i, isa) + more + (gfx950 and passes(i, isa) != 2)

    xdl, f32 = select.matrix_result(isa, _XDL), select.matrix_result(isa, _F32)
    return (
        Rule("xdl-c", xdl, select.matrix_c_of(isa, _XDL), after(2 if gfx950 else 1)),
        Rule("xdl-c", xdl, select.matrix_c_of(isa, _F32, _F64_4, _F64_16), after_xdl(1)),
        Rule("xdl-result", xdl, select.ab_valu_memory, after_xdl(3)),
        Rule("xdl-c-overwritten", select.matrix_c_of(isa, _XDL), select.valu_overwrites,
             after(-1)),
        Rule("f32-c", f32, select.matrix_c_of(isa, _F32, _F64_4, _F64_16), after(0)),
        Rule("f32-result", f32, select.ab_valu_memory, after(2)),
    )


def _matrix_gfx90a(isa: str) -> tuple[Rule, ...]:
    def after(more: int) -> Callable[[Instruction], int]:
        return lambda i: passes(i, isa) + more

    result = select.matrix_result(isa, _XDL)
    return (
        Rule("xdl-c", result, select.matrix_c_of(isa, _XDL), after(0)),
        Rule("xdl-c", result, select.matrix_c_of(isa, _F64_4, _F64_16), after(1)),
        Rule("xdl-result", result, select.ab_valu_memory, after(3)),
        Rule("xdl-c-overwritten", select.matrix_c_of(isa, _XDL), select.valu_overwrites,
             after(-1)),
        # The hardware forgets its own two wait states when an f64 matrix operation comes between.
        Rule("valu-f64-mfma-memory", select.valu_or_matrix_writes, select.memory_reads, 2,
             behind=select.f64_matrix),
    )


def _matrix_f64(isa: str) -> tuple[Rule, ...]:
    small, large = select.matrix_result(isa, _F64_4), select.matrix_result(isa, _F64_16)
    # On gfx90a an f64 result meets only other f64 operations late.
    taker = select.matrix_c_of(isa, _F64_4, _F64_16) if isa == GFX90A else select.matrix_c
    gfx950 = isa == GFX950
    return (
        Rule("f64-4x4-c", small, taker, 4),
        Rule("f64-4x4-result", small, select.ab_or_valu, 6),
        Rule("f64-4x4-memory", small, select.memory_touches, 9),
        Rule("f64-16x16-c", large, taker, 17 if gfx950 else 9),
        Rule("f64-16x16-result", large, select.ab_or_valu_reads if gfx950 else select.ab_or_valu,
             19 if gfx950 else 11),
        Rule("f64-16x16-overwritten", large, select.valu_overwrites, 11 if gfx950 else 0),
        Rule("f64-16x16-memory", large, select.memory_touches, 18),
        Rule("f64-mfma-fma", select.f64_matrix, select.f64_fma, 2),
    )


_FORWARDED = frozenset({"xdl-c", "f32-c", "f64-16x16-c"})


def forwarded_states(rule: Rule, producer: Instruction, consumer: Instruction,
                     isa: str) -> int | None:
    """Wait states where the accumulator input is exactly the producer's result, else ``None``.

    Such a result is forwarded; only after two passes gfx942 and gfx950 need two wait states.
    """
    if rule.kind not in _FORWARDED or select.matrix_c(consumer) != producer.writes:
        return None
    return 2 if isa != GFX90A and passes(producer, isa) == 2 else 0


@lru_cache(maxsize=1 << 16)
def hazard_facts(text: str, isa: str) -> HazardFacts:
    """The rules an instruction takes part in. Raises what :func:`asmevo.isa.parse.parse` does."""
    i = parse(text)
    produced, consumed, interest = [], [], 0
    for number, rule in enumerate(rules(isa)):
        registers = rule.produces(i)
        if registers:
            states = rule.states if isinstance(rule.states, int) else rule.states(i)
            produced.append((number, registers, states))
        registers = rule.consumes(i)
        if registers:
            consumed.append((number, registers))
            interest |= registers
    return HazardFacts(tuple(produced), tuple(consumed), interest)
