"""What the reasons of stochastic sampling for not issuing mean as stall causes.

rocprofiler-sdk, ``pc_sampling.h`` and documentation, "Analyzing PC sampling data on CDNA3 and CDNA4
GPU architectures".
"""

from __future__ import annotations

from collections.abc import Mapping

from asmevo.isa.instruction import Instruction, Unit
from asmevo.profile.errors import ProfileError
from asmevo.profile.profile import StallCause

_PREFIX = "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_"

# WAITCNT and INTERNAL_INSTRUCTION depend on the instruction at which the wave stands.
_CAUSES: Mapping[str, StallCause | None] = {
    "NONE": StallCause.OTHER,
    "NO_INSTRUCTION_AVAILABLE": StallCause.FETCH,
    "ALU_DEPENDENCY": StallCause.DEPENDENCY,
    "WAITCNT": None,
    "INTERNAL_INSTRUCTION": None,
    "BARRIER_WAIT": StallCause.BARRIER,
    # Another wave was chosen for the pipe, or the pipe could not take more.
    "ARBITER_NOT_WIN": StallCause.UNIT_BUSY,
    "ARBITER_WIN_EX_STALL": StallCause.UNIT_BUSY,
    "OTHER_WAIT": StallCause.OTHER,
    "SLEEP_WAIT": StallCause.OTHER,
}


def short_reason(name: str) -> str:
    """The profiler's name of a reason without its prefix."""
    return name.removeprefix(_PREFIX)


def stall_cause(reason: str, instruction: Instruction, counters: frozenset[StallCause]) -> (
        StallCause):
    """The cause of a stall at ``instruction``, whose wait holds for ``counters``.

    A wait for both counters goes to VMCNT, the slower as a rule: the profiler does not tell them
    apart. Raises ProfileError for a reason that is not in the table.
    """
    if reason not in _CAUSES:
        raise ProfileError(f"'{reason[:80]}' is not a stall reason that rocprofv3 is known to give")
    return _CAUSES[reason] or cause_at(instruction, counters)


def cause_at(instruction: Instruction, counters: frozenset[StallCause]) -> StallCause:
    """What holds a wave at an instruction as far as the instruction tells."""
    if instruction.wait is not None:
        if StallCause.VMCNT in counters:
            return StallCause.VMCNT
        return StallCause.LGKMCNT if counters else StallCause.OTHER
    if instruction.unit is Unit.BARRIER:
        return StallCause.BARRIER
    return StallCause.NOP if instruction.unit is Unit.NOP else StallCause.OTHER
