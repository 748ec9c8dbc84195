"""Parameters of the cycle model; values, units and sources are in ``conf/device/emulator.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TypeVar

from asmevo.errors import AsmEvoError


class TimingParameterError(AsmEvoError):
    """A parameter of the cycle model is unknown, missing, not an integer or out of range."""


@dataclass(frozen=True, slots=True)
class MachineParameters:
    """What the GPU has: counts, capacities in bytes, allocation granules, core clock in MHz.

    ``clock_mhz`` is the clock of a kernel without matrix operations; ``matrix_clock_mhz`` what the
    GPU would sustain were the matrix pipes always busy, and ``byte_matrix_clock_mhz`` the same for
    operations on 8-bit elements. Power and firmware limit it (see `clock`).
    """

    xcds: int
    compute_units_per_xcd: int
    clock_mhz: int
    matrix_clock_mhz: int
    byte_matrix_clock_mhz: int
    waves_per_simd: int
    workgroups_per_compute_unit: int
    vgprs_per_simd: int
    vgpr_granule: int
    sgprs_per_simd: int
    sgpr_granule: int
    lds_bytes: int
    lds_granule: int

    @property
    def compute_units(self) -> int:
        return self.xcds * self.compute_units_per_xcd

    def clock(self, matrix: float, byte_matrix: float) -> float:
        """Clock in MHz that a kernel sustains, of the shares of time that its matrix pipes work.

        The time of a clk is taken to grow linearly with them. The figures come from dense GEMM
        (AMD, "Measuring max-achievable FLOPs") and from AITER's timings; see docs/timing.md.
        """
        period = (1 / self.clock_mhz
                  + matrix * (1 / self.matrix_clock_mhz - 1 / self.clock_mhz)
                  + byte_matrix * (1 / self.byte_matrix_clock_mhz - 1 / self.clock_mhz))
        return 1 / period


@dataclass(frozen=True, slots=True)
class IssueParameters:
    """Cost of issuing, in clk."""

    valu: int
    transcendental: int
    integer_multiply: int
    branch_taken: int
    branch_not_taken: int
    barrier_release: int
    misaligned_fetch: int
    matrix_pass: int
    matrix_start: int
    matrix_latency: int
    beside_other: int
    sleep: int
    code_miss: int
    code_bytes: int
    code_lines_ahead: int


@dataclass(frozen=True, slots=True)
class VectorMemoryParameters:
    """The CU's vector memory pipe: clk, bytes per clk, instructions."""

    minimum: int
    bytes_per_clk: int
    vl1d_bytes_per_clk: int
    to_lds: int
    atomic_factor: int
    queue: int


@dataclass(frozen=True, slots=True)
class MemoryParameters:
    """Caches, MALL and HBM: latencies in clk, capacities in bytes, rates of L2 in bytes per clk.

    ``l2_channel_read`` and ``l2_channel_write`` are one channel's, the latter for fills too;
    ``l2_to_compute_unit`` is what one compute unit takes in; MALL and HBM are the device's, GB/s.
    """

    vl1d_latency: int
    vl1d_bytes: int
    sl1d_latency: int
    sl1d_miss_latency: int
    sl1d_bytes: int
    l2_latency: int
    l2_bytes: int
    l2_channels: int
    l2_channel_read: int
    l2_channel_write: int
    l2_to_compute_unit: int
    mall_latency: int
    mall_bytes: int
    mall_gigabytes_per_second: int
    hbm_latency: int
    hbm_read_gigabytes_per_second: int
    hbm_write_gigabytes_per_second: int
    store_latency: int
    atomic_latency: int


@dataclass(frozen=True, slots=True)
class LdsParameters:
    """Local data share: clk and bytes per clk. ``latency`` leaves the data cycles out."""

    latency: int
    pair_bytes_per_clk: int
    bytes_per_clk: int
    store_overhead: int


@dataclass(frozen=True, slots=True)
class LaunchParameters:
    """What a launch costs beside its waves: ns of one launch, clk between two waves of an XCD."""

    overhead_ns: int
    wave_interval: int


@dataclass(frozen=True, slots=True)
class TimingParameters:
    """Everything the cycle model knows about the machine."""

    machine: MachineParameters
    issue: IssueParameters
    vector_memory: VectorMemoryParameters
    memory: MemoryParameters
    lds: LdsParameters
    launch: LaunchParameters


_Group = TypeVar("_Group", MachineParameters, IssueParameters, VectorMemoryParameters,
                 MemoryParameters, LdsParameters, LaunchParameters)

# A misaligned fetch costs less than a turn, and some costs may be switched off.
_MAY_BE_ZERO = frozenset({"barrier_release", "beside_other",
                          "code_lines_ahead", "code_miss", "misaligned_fetch", "overhead_ns",
                          "sl1d_miss_latency", "store_overhead", "wave_interval"})
# One issue turn of a SIMD, the smallest cost of an instruction (CDNA3: four SIMDs take turns).
TURN = 4
_AT_LEAST_A_TURN = frozenset({"valu", "transcendental", "integer_multiply", "branch_taken",
                              "branch_not_taken", "matrix_pass", "matrix_latency", "matrix_start",
                              "sleep"})
_LIMITS = {"misaligned_fetch": TURN - 1, "waves_per_simd": 8, "valu": 1 << 15,
           "transcendental": 1 << 15, "integer_multiply": 1 << 15, "matrix_pass": 1 << 10,
           "matrix_start": 1 << 10, "sleep": 1 << 8, "code_lines_ahead": 64, "l2_channels": 256,
           "atomic_factor": 1024,
           "l2_bytes": 1 << 27, "mall_bytes": 1 << 31}
_DEFAULT_LIMIT = 1 << 20
_MOST_UNITS = 4096  # what the core takes
# Capacities in lines of 128 bytes must hold at least one line.
_LINE_CAPACITIES = frozenset({"vl1d_bytes", "sl1d_bytes", "l2_bytes", "mall_bytes", "code_bytes"})
LINE_BYTES = 128


def _group(cls: type[_Group], name: str, values: object) -> _Group:
    if not isinstance(values, Mapping):
        raise TimingParameterError(f"timing.{name} must be a table of parameters")
    known = {field.name for field in fields(cls)}
    for key in values:
        if key not in known:
            raise TimingParameterError(f"timing.{name}.{key} is not a parameter of the cycle model")
    for key in sorted(known):
        if key not in values:
            raise TimingParameterError(f"timing.{name}.{key} is missing")
        _check(f"timing.{name}.{key}", key, values[key])
    return cls(**{key: values[key] for key in known})


def _check(path: str, key: str, value: object) -> None:
    low = 0 if key in _MAY_BE_ZERO else 1
    if key in _AT_LEAST_A_TURN:
        low = TURN
    elif key in _LINE_CAPACITIES:
        low = LINE_BYTES
    high = _LIMITS.get(key, _DEFAULT_LIMIT)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise TimingParameterError(f"{path} must be an integer from {low} to {high}, not {value!r}")


def timing_parameters(machine: Mapping[str, int], issue: Mapping[str, int],
                      vector_memory: Mapping[str, int], memory: Mapping[str, int],
                      lds: Mapping[str, int], launch: Mapping[str, int], *,
                      model: str = "", models: Mapping[str, Mapping[str, Mapping[str, int]]] = {},
                      ) -> TimingParameters:
    """Build checked parameters from the tables of a YAML file.

    ``models`` holds what differs between GPUs, by name and table; that of ``model`` completes the
    other tables. Raises TimingParameterError naming the first parameter that is unknown, missing,
    given twice or out of range, or a model that there is none of.
    """
    tables: dict[str, object] = {
        "machine": machine, "issue": issue, "vector_memory": vector_memory, "memory": memory,
        "lds": lds, "launch": launch}
    if model not in models and (model or models):
        raise TimingParameterError(
            f"device.model must be one of {', '.join(sorted(models))}, not '{model}'")
    for name, values in models[model].items() if model else ():
        if name not in tables or not isinstance(values, Mapping):
            raise TimingParameterError(f"timing.models.{model}.{name} is not a table of the model")
        tables[name] = _completed(name, tables[name], values)
    parameters = TimingParameters(
        machine=_group(MachineParameters, "machine", tables["machine"]),
        issue=_group(IssueParameters, "issue", tables["issue"]),
        vector_memory=_group(VectorMemoryParameters, "vector_memory", tables["vector_memory"]),
        memory=_group(MemoryParameters, "memory", tables["memory"]),
        lds=_group(LdsParameters, "lds", tables["lds"]),
        launch=_group(LaunchParameters, "launch", tables["launch"]),
    )
    if parameters.machine.compute_units > _MOST_UNITS:
        raise TimingParameterError(f"timing.machine has {parameters.machine.compute_units} compute "
                                   f"units; at most {_MOST_UNITS} can be timed")
    return parameters


def _completed(name: str, table: object, values: Mapping[str, int]) -> object:
    if not isinstance(table, Mapping):
        return table
    for key in values:
        if key in table:
            raise TimingParameterError(f"timing.{name}.{key} is given twice")
    return {**table, **values}
