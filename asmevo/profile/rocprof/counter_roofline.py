"""A roofline from hardware counters that ``rocprofv3 --pmc`` collected.

Definitions: AMD, "MI300 and MI200 series performance counters and metrics", and the derived metrics
VALUBusy and MfmaUtil of rocprofiler-sdk. Counters that were not collected leave their ceiling out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from statistics import fmean, median

from asmevo.isa.targets import GFX942
from asmevo.profile.arithmetic import Number, OperationClass, peak
from asmevo.profile.errors import ProfileError
from asmevo.profile.machine import Machine
from asmevo.profile.pipes import TURN, WAVE
from asmevo.profile.profile import MemoryLevel
from asmevo.profile.rocprof.recording import Recording
from asmevo.profile.roofline import Ceiling, Limit, Roofline, place

_SIMDS = 4
_KIB = 1024
_MHZ_PER_CLK_PER_NS = 1000
# Matrix operations are counted in units of 512, VALU instructions a wave at a time.
_MATRIX_UNIT = 512
_MATRIX = {
    "SQ_INSTS_VALU_MFMA_MOPS_F16": Number.F16, "SQ_INSTS_VALU_MFMA_MOPS_BF16": Number.BF16,
    "SQ_INSTS_VALU_MFMA_MOPS_F32": Number.F32, "SQ_INSTS_VALU_MFMA_MOPS_F64": Number.F64,
    "SQ_INSTS_VALU_MFMA_MOPS_XF32": Number.XF32, "SQ_INSTS_VALU_MFMA_MOPS_I8": Number.I8,
    "SQ_INSTS_VALU_MFMA_MOPS_F8": Number.FP8,
}
_VALU = {
    f"SQ_INSTS_VALU_{kind}_{number.name}": (number, count * WAVE)
    for number in (Number.F16, Number.F32, Number.F64)
    for kind, count in (("ADD", 1), ("MUL", 1), ("TRANS", 1), ("FMA", 2))
}
_BEYOND_L2 = ("FETCH_SIZE", "WRITE_SIZE")
# Counter, name, limit, busy clk an increment, units of a compute unit.
_BUSY = (
    ("SQ_VALU_MFMA_BUSY_CYCLES", "MFMA pipe", Limit.MFMA, 1, _SIMDS),
    ("SQ_ACTIVE_INST_VALU", "VALU pipe", Limit.ISSUE, TURN, _SIMDS),
    ("SQ_LDS_IDX_ACTIVE", "LDS pipe", Limit.LDS, 1, 1),
)


def kernel_counters(recording: Recording, kernel: str,
                    names: Collection[str] = ()) -> tuple[dict[str, float], float]:
    """The mean of each counter over a kernel's dispatches, and their median duration in ns.

    Passes that collected different counters complement each other. Raises ProfileError when nothing
    was collected of the kernel, or no duration.
    """
    known = {kernel, *names}
    launches = [one for one in recording.launches.values() if one.kernels & known]
    values: dict[str, list[float]] = {}
    for launch in launches:
        for name, value in recording.counters.get(launch.dispatch, {}).items():
            values.setdefault(name, []).append(value)
    nanoseconds = median(one.nanoseconds for one in launches) if launches else 0.0
    if not values or nanoseconds <= 0:
        raise ProfileError(f"the files have no counters of '{kernel[:60]}' with their durations")
    return {name: fmean(found) for name, found in values.items()}, float(nanoseconds)


def counter_roofline(counters: Mapping[str, float], nanoseconds: float, machine: Machine, *,
                     dispatch: str, clock_mhz: int = 0, isa: str = GFX942) -> Roofline:
    """Place a dispatch by what the hardware counted.

    The clock is the machine's unless given. Traffic beyond L2 is taken to reach HBM, since the
    counters do not tell what the MALL held; packed VALU operations count as single ones. Raises
    ProfileError when none of the counters says anything here.
    """
    clock = clock_mhz or machine.clock_mhz
    cycles = round(nanoseconds * clock / _MHZ_PER_CLK_PER_NS)
    if cycles < 1:
        raise ProfileError(f"{dispatch} has no duration")
    operations: dict[OperationClass, float] = {}
    for name, number in _MATRIX.items():
        if counters.get(name):
            operations[OperationClass(number, True)] = _MATRIX_UNIT * counters[name]
    for name, (number, count) in _VALU.items():
        if counters.get(name):
            kind = OperationClass(number, False)
            operations[kind] = operations.get(kind, 0.0) + count * counters[name]
    beyond = _KIB * sum(counters.get(name, 0.0) for name in _BEYOND_L2)
    moved = {MemoryLevel.HBM: beyond} if beyond else {}
    ceilings = [*_busy(counters, cycles, machine), *_rates(operations, cycles, machine, isa)]
    if beyond:
        rate = machine.bytes_per_clk[MemoryLevel.HBM] * machine.clock_mhz / clock
        ceilings.append(Ceiling("hbm bandwidth", Limit.BANDWIDTH, "B", beyond, rate,
                                beyond / (rate * cycles), MemoryLevel.HBM))
    if not ceilings:
        raise ProfileError(f"no counter of {dispatch} says what limits it; collect for example "
                           "SQ_VALU_MFMA_BUSY_CYCLES, SQ_ACTIVE_INST_VALU, FETCH_SIZE, WRITE_SIZE")
    return place(dispatch, machine, clock, cycles, operations=operations, moved=moved,
                 lds_bytes=0.0, ceilings=ceilings, causes={})


def _busy(counters: Mapping[str, float], cycles: int, machine: Machine) -> Iterator[Ceiling]:
    for counter, name, limit, clk, units in _BUSY:
        if counters.get(counter):
            work, rate = clk * counters[counter], float(units * machine.compute_units)
            yield Ceiling(name, limit, "clk", work, rate, work / (rate * cycles))


def _rates(operations: Mapping[OperationClass, float], cycles: int, machine: Machine,
           isa: str) -> Iterator[Ceiling]:
    for kind, count in operations.items():
        most = peak(kind, isa)
        if most is not None:
            rate = most * machine.compute_units
            yield Ceiling(f"{kind} rate", Limit.MFMA if kind.matrix else Limit.ISSUE, "op", count,
                          rate, count / (rate * cycles))
