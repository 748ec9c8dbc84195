"""Operations that a candidate may use although the original does not.

They read and write registers and LDS, or access memory in ways that the original has: none changes
mode or EXEC, none is less precise than its name says, and what they make of launch and data is
compared (`asmevo.gates.launch_uses`, `asmevo.gates.operand_uses`). Branches within the kernel are
among them: what they test is compared as well, and of code that no launch reaches there is no
evidence (`asmevo.gates.reach`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from asmevo.isa.form import Form
from asmevo.isa.instruction import Unit
from asmevo.isa.opcodes import OPCODES
from asmevo.isa.registers import EXEC_MASK, M0_MASK, MODE_MASK

_STATE = EXEC_MASK | M0_MASK | MODE_MASK
# What depends on more than operands, moves registers by index, or narrows floats.
_LEFT_OUT = (
    "s_getreg", "s_getpc", "s_set", "s_movrel", "s_mem", "s_dcache", "s_icache", "s_sleep",
    "s_trap", "s_rfe", "s_wakeup", "s_incperf", "s_decperf", "s_ttrace", "s_scratch", "s_atc",
    "v_movrel", "v_clrexcp", "v_cmpx", "v_cvt", "v_interp", "v_pk_cvt", "v_div", "v_trig",
    "v_permlane", "v_prng", "v_ashr_pk", "v_dot", "v_bitop3", "v_minimum3", "v_maximum3",
)
_HALF = re.compile(r"_(b?f16|legacy|mix\w*)(_|$)")
_BRANCH = re.compile(r"s_branch|s_cbranch_(scc[01]|vccn?z|execn?z)")
_LDS = re.compile(r"ds_(read|write)(2|2st64)?_b(32|64|96|128)|ds_(bpermute|permute|swizzle)_b32")
_DWORDS = re.compile(r"((?:s_|s_buffer_|buffer_|global_|flat_)(?:load|store))_dword(x\d+)?")


def _is_reviewed(op: str, form: Form) -> bool:
    if _BRANCH.fullmatch(op):
        return True
    if form.is_branch or form.ends_program or form.is_atomic or form.writes & _STATE:
        return False
    if op.startswith(_LEFT_OUT) or _HALF.search(op) or "saveexec" in op or "wrexec" in op:
        return False
    if form.unit is Unit.LDS:
        return _LDS.fullmatch(op) is not None
    return form.unit in (Unit.SALU, Unit.VALU, Unit.NOP) or op == "s_waitcnt"


REVIEWED_OPS = frozenset(op for op, form in OPCODES.items() if _is_reviewed(op, form))


def widths_of(ops: Iterable[str]) -> frozenset[str]:
    """Loads and stores of other numbers of words than these, otherwise the same."""
    return _of_families(frozenset(match[1] for op in ops if (match := _DWORDS.fullmatch(op))))


@lru_cache(maxsize=64)
def _of_families(families: frozenset[str]) -> frozenset[str]:
    return frozenset(op for op in OPCODES
                     if (match := _DWORDS.fullmatch(op)) and match[1] in families)
