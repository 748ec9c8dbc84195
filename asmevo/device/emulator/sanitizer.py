"""What a checked launch found: reports with pc, instruction, place and producer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import asmevo_core as core

from asmevo.device.device import DeviceFault
from asmevo.dispatch.dispatch import Dispatch
from asmevo.isa import registers
from asmevo.isa.program import Program
from asmevo.isa.violation import Violation

_ACCESS = re.compile(
    r"(?:ds|buffer|global|flat|scratch|s|s_buffer)_(?:read|write|load|store|atomic)"
    r"|v_mfma|v_smfmac|s_(?:endpgm|barrier|cbranch)")
_NO_WAVE = 0xFFFF
_NO_WORKGROUP = 0xFFFF_FFFF


class Kind(StrEnum):
    """What a report is about; docs/sanitizer.md has the rules of each."""

    UNINITIALISED_REGISTER = "uninitialised-register"
    UNINITIALISED_LDS = "uninitialised-lds"
    UNINITIALISED_MEMORY = "uninitialised-memory"
    USE_BEFORE_WAIT = "use-before-wait"
    HAZARD = "hazard"
    OUT_OF_BOUNDS = "out-of-bounds"
    STORE_TO_INPUT = "store-to-input"
    LDS_OUT_OF_BOUNDS = "lds-out-of-bounds"
    LDS_RACE = "lds-race"
    LDS_ORDER = "lds-order"
    CROSS_WORKGROUP = "cross-workgroup"
    ATOMIC_ORDER = "atomic-order"

    @property
    def is_information(self) -> bool:
        """Whether it names no error: the launch is right in any order, up to rounding."""
        return self is Kind.ATOMIC_ORDER


@dataclass(frozen=True, slots=True)
class Report:
    """The first of ``count`` findings of one kind at one instruction with one producer.

    ``pc`` and ``producer_pc`` are byte offsets from the kernel's entry; ``producer_pc`` is ``None``
    for state that is undefined since the launch. ``lane`` is -1 where the finding is about no lane.
    ``address`` is a byte address, in LDS for the kinds about LDS.
    """

    kind: Kind
    pc: int
    text: str
    producer_pc: int | None
    producer_text: str
    workgroup: int
    wave: int
    lane: int
    detail: str
    register: str = ""
    address: int | None = None
    count: int = 1

    def __str__(self) -> str:
        producer = ("launch" if self.producer_pc is None
                    else f"'{self.producer_text}' at {self.producer_pc:#x}")
        lane = f", lane {self.lane}" if self.lane >= 0 else ""
        times = f" ({self.count} times)" if self.count > 1 else ""
        return (f"{self.kind.value}: '{self.text}' at {self.pc:#x} in workgroup {self.workgroup}, "
                f"wave {self.wave}{lane}: {self.detail}; producer: {producer}{times}")

    @property
    def family(self) -> str:
        """Kind and families of the operations, widths and registers left out."""
        producer = _family(self.producer_text) if self.producer_pc is not None else "launch"
        return f"{self.kind.value}: {_family(self.text)} after {producer}"

    def to_dict(self) -> dict[str, Any]:
        """A JSON-compatible form."""
        return {**asdict(self), "kind": self.kind.value}


def _family(text: str) -> str:
    """``ds_read2_b64 ...`` is a ``ds_read``; arithmetic is that of its unit."""
    op = text.partition(" ")[0]
    access = _ACCESS.match(op)
    return access[0] if access else op.partition("_")[0]


@dataclass(frozen=True, slots=True)
class SanitizerResult:
    """A checked launch.

    ``regions`` and ``instructions`` are those of a `RunResult`, empty and 0 after a ``fault``.
    ``dropped`` counts findings beyond the bound of a thousand reports.
    """

    reports: tuple[Report, ...]
    regions: tuple[bytes, ...]
    instructions: int
    dropped: int = 0
    fault: DeviceFault | None = None

    @property
    def errors(self) -> tuple[Report, ...]:
        """The reports that are no mere information."""
        return tuple(r for r in self.reports if not r.kind.is_information)

    @property
    def errors_by_class(self) -> Mapping[str, str]:
        """The first error of each kind and pair of families of operations."""
        found: dict[str, str] = {}
        for report in self.errors:
            found.setdefault(report.family, str(report))
        if self.fault is not None:
            found[f"fault-{self.fault.kind}"] = str(self.fault)
        return found

    def summary(self) -> tuple[str, ...]:
        """One line for each kind and pair of operations: how many reports, and the first."""
        def pair(r: Report) -> tuple[str, str, str]:
            return r.kind, r.text.split()[0], r.producer_text.partition(" ")[0]

        counts = Counter(pair(r) for r in self.reports)
        first: dict[tuple[str, str, str], Report] = {}
        for report in self.reports:
            first.setdefault(pair(report), report)
        return tuple(
            str(first[key]) if count == 1 else
            f"{count} pairs of '{key[1]}' after '{key[2] or 'launch'}', first {first[key]}"
            for key, count in counts.items())

    def to_dict(self) -> dict[str, Any]:
        """A JSON-compatible form, without the memory."""
        return {"reports": [r.to_dict() for r in self.reports], "dropped": self.dropped,
                "instructions": self.instructions,
                "fault": None if self.fault is None else str(self.fault)}


def result_of(program: Program, dispatch: Dispatch, sanitizer: core.Sanitizer,
              hazards: Sequence[Violation], fault: DeviceFault | None, regions: tuple[bytes, ...],
              instructions: int) -> SanitizerResult:
    """The core's findings as reports, in program order; ``hazards`` are those it looked for."""
    rules: dict[tuple[int, int], str] = {}
    for hazard in hazards:
        pair = (hazard.producer, hazard.consumer)
        rules[pair] = f"{rules[pair]}, {hazard.kind}" if pair in rules else hazard.kind
    found = sorted(sanitizer.reports, key=lambda r: r.pc)
    reports = tuple(_report(program, dispatch, rules, r) for r in found)
    return SanitizerResult(reports, regions, instructions, sanitizer.dropped, fault)


def _report(program: Program, dispatch: Dispatch, rules: Mapping[tuple[int, int], str],
            r: core.Report) -> Report:
    launch = r.producer < 0
    kind = Kind(r.kind)
    addressed = r.size > 0
    return Report(
        kind=kind, pc=program.offsets[r.pc], text=program.instructions[r.pc].text,
        producer_pc=None if launch else program.offsets[r.producer],
        producer_text="" if launch else program.instructions[r.producer].text,
        workgroup=r.workgroup, wave=r.wave, lane=r.lane,
        detail=(f"{rules[r.producer, r.pc]} needs {r.needed} wait states, found {r.found}"
                if kind is Kind.HAZARD else _detail(kind, dispatch, r)),
        register="" if r.register == core.ABSENT else registers.name(r.register),
        address=r.address if addressed else None, count=r.count)


def _detail(kind: Kind, dispatch: Dispatch, r: core.Report) -> str:
    register = "" if r.register == core.ABSENT else registers.name(r.register)
    does, did = ("writes" if r.write else "reads"), ("wrote" if r.other_write else "read")
    match kind:
        case Kind.UNINITIALISED_REGISTER:
            since = "" if r.origin in (core.ABSENT, r.register) else (
                f", from {registers.name(r.origin)}, which no one has written")
            return f"{register} is undefined{since}"
        case Kind.UNINITIALISED_LDS:
            return f"{register} holds LDS words that no one has written"
        case Kind.UNINITIALISED_MEMORY:
            return f"{register} holds bytes of an output that no one has written"
        case Kind.USE_BEFORE_WAIT if register:
            return f"{does} {register} while a load to it is outstanding"
        case Kind.USE_BEFORE_WAIT:
            return (f"{does} LDS address {r.address:#x}, which {_wave(r)} {did} without waiting "
                    "for it before the barrier" if r.other_wave != r.wave else
                    f"{does} LDS address {r.address:#x}, whose load or read is outstanding")
        case Kind.OUT_OF_BOUNDS | Kind.STORE_TO_INPUT:
            return f"{does} {r.size} bytes at {r.address:#x}, {_place(dispatch, r.address)}"
        case Kind.LDS_OUT_OF_BOUNDS:
            return f"{does} {r.size} bytes at LDS address {r.address:#x}, beyond the allocation"
        case Kind.LDS_RACE:
            return (f"{does} LDS address {r.address:#x}, which {_wave(r)} {did} with no barrier "
                    "between")
        case Kind.LDS_ORDER:
            return (f"writes LDS address {r.address:#x} while a load to it is outstanding, and "
                    "relies on that landing first")
        case Kind.CROSS_WORKGROUP:
            return f"{does} {_place(dispatch, r.address)}, which {_workgroup(r)} {did}"
        case Kind.ATOMIC_ORDER:
            return (f"adds to {_place(dispatch, r.address)} as {_workgroup(r)} does: rounding "
                    "depends on their order")
    raise AssertionError(kind)


def _wave(r: core.Report) -> str:
    return "an earlier wave" if r.other_wave == _NO_WAVE else f"wave {r.other_wave}"


def _workgroup(r: core.Report) -> str:
    return ("several workgroups" if r.other_workgroup == _NO_WORKGROUP
            else f"workgroup {r.other_workgroup}")


def _place(dispatch: Dispatch, address: int) -> str:
    """An address relative to the nearest region."""
    def distance(region_start: int, size: int) -> int:
        return max(region_start - address, address - (region_start + size - 1), 0)

    if not dispatch.regions:
        return f"{address:#x}"
    region = min(dispatch.regions, key=lambda r: distance(r.address, len(r.data)))
    offset = address - region.address
    if 0 <= offset < len(region.data):
        return f"'{region.name}' + {offset:#x}"
    where = "before" if offset < 0 else "behind"
    away = -offset if offset < 0 else offset - len(region.data)
    guard = " (in its guard)" if -region.guard <= offset < len(region.data) + region.guard else ""
    return f"{away:#x} bytes {where} '{region.name}' of {len(region.data):#x} bytes{guard}"
