"""The C++ core of the gfx942 emulator: functional execution and the cycle model."""

from collections.abc import Sequence
from enum import Enum
from typing import Any, Final

import numpy as np
import numpy.typing as npt

# (name, shape, destination dwords, dwords of each source, traits); the index is the operation id.
OPERATIONS: Final[list[tuple[str, str, int, tuple[int, int, int], int]]]
# How a constant becomes the value of each source, by operation id.
SOURCE_TYPES: Final[list[tuple[str, str, str]]]
# (name, byte offset, size, signed) of each field of a record.
RECORD_FIELDS: Final[list[tuple[str, int, int, bool]]]
RECORD_SIZE: Final[int]
# Register numbers of a record that stand for its literal and for no operand.
CONSTANT: Final[int]
ABSENT: Final[int]
# Flat addresses of offset 0 in LDS and in a work-item's private segment.
SHARED_APERTURE: Final[int]
PRIVATE_APERTURE: Final[int]
# Bytes of a memory line, in which a trace counts.
LINE_BYTES: Final[int]
# Names and bit values.
FLAGS: Final[tuple[tuple[str, int], ...]]
TRAITS: Final[tuple[tuple[str, int], ...]]

class FaultError(Exception):
    """A fault of the kernel; ``args`` are kind, message, instruction, workgroup, lane, address."""

class InvalidRecordError(ValueError):
    """A record that cannot run; ``args`` are its index and the reason."""

class Program:
    """A validated program whose waves start with the floating-point fields ``mode`` of MODE.

    ``fused_matrix_sums`` sums matrix products as CDNA3 does. ``narrow`` keeps to the vectors that
    every host of the build has; results do not depend on it. ``addresses`` are those of the
    records, ascending, for indirect jumps. Records outside ``own``, first and end, need not be
    valid: arriving there is a fault, and ``refused`` has their indices and what is wrong. Raises
    `InvalidRecordError`, or ValueError for a truncated array and other bits of MODE.
    """

    def __init__(self, records: npt.NDArray[np.uint8], *, vgprs: int, agprs: int,
                 mode: int, fused_matrix_sums: bool = False, narrow: bool = False,
                 addresses: Sequence[int] = (), own: tuple[int, int] | None = None) -> None: ...
    @property
    def refused(self) -> list[tuple[int, str]]: ...
    def __len__(self) -> int: ...

class Memory:
    """Device memory over NumPy arrays, without copies.

    A region is its name, device address, bytes, and whether a kernel may write it. ``initial`` may
    hold for each region other bytes equal to its own, which spares a launch that has to start over
    a copy of them. Raises ValueError when regions overlap or wrap around the address space.
    """

    def __init__(
        self, regions: Sequence[tuple[str, int, npt.NDArray[np.uint8], bool]],
        initial: Sequence[npt.NDArray[np.uint8] | None] = ...) -> None: ...

class Trace:
    """What the waves of a launch did, for the cycle model."""

    def __init__(self, limit: int | None = None) -> None: ...
    @property
    def waves_per_workgroup(self) -> int: ...
    @property
    def wave_count(self) -> int: ...
    @property
    def entry_count(self) -> int: ...
    def issue_counts(self, size: int) -> npt.NDArray[np.uint64]:
        """How often each of the first ``size`` instructions issued, over all waves."""
    def accesses(self, wave: int) -> list[tuple[int, int, int, int]]:
        """Instruction, lines, LDS cycles and bytes of every memory access of one wave."""
    def touched_lines(self) -> npt.NDArray[np.uint64]:
        """Which lines of `LINE_BYTES` any wave touched: addresses / `LINE_BYTES`, ascending."""

def launch(program: Program, memory: Memory, order: npt.NDArray[np.uint32], *,
           grid: tuple[int, int, int], workgroup: tuple[int, int, int],
           user_sgprs: Sequence[int], group_id_sgprs: tuple[int, int, int],
           work_item_dimensions: int, lds_bytes: int, poison: int, instruction_budget: int,
           resident: int = 1, threads: int = 1, seconds: float = 0.0,
           trace: Trace | None = None, private_bytes: int = 0, entry: int = 0,
           prompt_returns: bool = False, sanitizer: Sanitizer | None = None,
           everyone: npt.NDArray[np.uint32] | None = None, together: bool = False,
           nan: int = 0) -> int:
    """Run the workgroups of ``order`` (linear ids); returns the wave-instructions executed.

    Workgroups that depend on one another run ``resident`` at a time, the others on ``threads``
    host threads; the result does not depend on the number of threads. ``seconds`` of host time end
    the launch, 0 never does. A work-item has ``private_bytes`` of scratch; ``entry`` is the index
    of the first instruction. With ``prompt_returns`` results of loads return after some
    instructions even when nothing waits for them. ``nan`` chooses the quiet NaN that arithmetic
    gives: 1 sets its sign, 2 all of its payload. A launch with a ``sanitizer`` takes one thread.
    Raises `FaultError`, ValueError for an impossible launch, and what a signal handler raises.
    """

# Of the sanitizer's records: their size, operands each, and the names behind numbers and bits.
CHECK_RECORD_SIZE: Final[int]
CHECK_OPERANDS: Final[int]
CHECK_FLOWS: Final[tuple[str, ...]]
CHECK_SPACES: Final[tuple[str, ...]]
CHECK_FLAGS: Final[tuple[tuple[str, int], ...]]
CHECK_OPERAND_FLAGS: Final[tuple[tuple[str, int], ...]]

class Report:
    """One finding; ``core/sanitizer_report.hpp`` says what each field means."""

    kind: str
    pc: int
    producer: int
    workgroup: int
    wave: int
    lane: int
    register: int
    origin: int
    address: int
    size: int
    other_workgroup: int
    other_wave: int
    needed: int
    found: int
    write: bool
    other_write: bool
    count: int

class Sanitizer:
    """Shadow state for launches of one program.

    ``hazards`` are (producer, consumer, wait states); ``regions`` (base, size, address and size of
    the data, writable, undefined before the launch, guarded). Raises `InvalidRecordError` and
    ValueError.
    """

    def __init__(
        self, program: Program, records: npt.NDArray[np.uint8], *,
        hazards: Sequence[tuple[int, int, int]],
        regions: Sequence[tuple[int, int, int, int, bool, bool, bool]], lds_bytes: int) -> None: ...
    @property
    def reports(self) -> list[Report]: ...
    @property
    def dropped(self) -> int:
        """Findings beyond the thousandth."""

class IssueClass(Enum):
    """The unit that a cycle of issue goes to."""

    SALU = ...
    SMEM = ...
    VALU = ...
    VMEM = ...
    LDS = ...
    BRANCH = ...
    WAIT = ...
    NOP = ...
    BARRIER = ...
    END = ...

class AccessKind(Enum):
    """What a memory instruction does in the caches."""

    LOAD = ...
    STORE = ...
    ATOMIC = ...
    LOAD_TO_LDS = ...
    WRITE_BACK = ...
    INVALIDATE = ...

class InstructionTiming:
    """What the cycle model knows of one instruction."""

    def __init__(self, unit: IssueClass, *, busy: int = ..., vmcnt: int = ..., lgkmcnt: int = ...,
                 wait_vmcnt: int = ..., wait_lgkmcnt: int = ..., fetch_debt: int = ...,
                 access: AccessKind = ..., matrix: int = ..., beside_matrix: bool = ...,
                 priority: int = ..., code_line: int = ...,
                 uses_matrix: bool = ...) -> None: ...

class TimingParameters:
    """Parameters of the machine, in clk, bytes and lines."""

    branch_taken: int
    branch_not_taken: int
    barrier_release: int
    matrix_latency: int
    atomic_factor: int
    atomic_latency: int
    vmem_to_lds: int
    vmem_minimum: int
    vmem_bytes_per_clk: int
    vl1d_bytes_per_clk: int
    vmem_queue: int
    vl1d_latency: int
    vl1d_lines: int
    sl1d_latency: int
    sl1d_miss_latency: int
    sl1d_lines: int
    l2_latency: int
    hbm_latency: int
    store_latency: int
    beside_other: int
    wave_launch: int
    code_miss_latency: int
    code_lines: int
    code_lines_ahead: int
    mall_latency: int
    l2_channels: int
    l2_lines: int
    mall_lines: int
    cu_fill_q8: int
    l2_read_q8: int
    l2_write_q8: int
    mall_q8: int
    hbm_read_q8: int
    hbm_write_q8: int
    lds_latency: int
    lds_pair_bytes_per_clk: int
    lds_bytes_per_clk: int
    lds_store_overhead: int

    def __init__(self) -> None: ...

def trace_from_waves(waves_per_workgroup: int, waves: Sequence[Any]) -> Trace:
    """A trace written by hand, for tests of the cycle model."""

class TimingTimeoutError(TimeoutError):
    """A simulation took longer than its ``seconds`` of host time."""

class TimingResult:
    """What the cycle model says of a launch; matrices by instruction."""

    cycles: int
    written: int
    timeline_complete: bool
    issued: npt.NDArray[np.uint64]
    stalls: npt.NDArray[np.uint64]
    lines: npt.NDArray[np.uint64]
    bytes: npt.NDArray[np.uint64]
    conflicts: npt.NDArray[np.uint64]
    waves: npt.NDArray[np.uint64]

    def events(self, wave: int) -> npt.NDArray[np.uint64]:
        """Rows of instruction, ready, held, issue, resume, cause and after (255: none)."""

def simulate_timing(program: Sequence[Any], trace: Any, parameters: TimingParameters, *,
                    slots: int, resident: int, units: int = ..., busy_units_of_xcd: int = ...,
                    busy_units: int = ..., workgroups: Sequence[int] = ...,
                    buffers: Sequence[tuple[int, int]] = ..., timeline_limit: int = ...,
                    seconds: float = ...) -> TimingResult:
    """Time ``units`` compute units of one XCD that run ``workgroups`` (none: all of the trace).

    ``buffers`` of the launch are (first line, lines). ``seconds`` bounds the host time, 0 does not.
    Raises TimingTimeoutError, and ValueError for what does not fit together.
    """
