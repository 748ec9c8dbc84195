"""Running a kernel's dispatches, to see what they give and how near the reference that is."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import cycle
from typing import Any

import numpy as np

from asmevo.device.device import (
    CheckedKernel,
    DeviceFault,
    LaunchState,
    LoadedKernel,
    NanBits,
    RunResult,
    WorkgroupOrder,
)
from asmevo.dispatch.comparison import Tolerance, compare
from asmevo.dispatch.declared import DeclaredOracle
from asmevo.dispatch.dispatch import Dispatch, Region
from asmevo.dispatch.kernel import Kernel
from asmevo.operation.accuracy import measure
from asmevo.operation.declared import OperationError, expected
from asmevo.operation.operation import Array, Arrays
from asmevo.report.result import Result, Status
from asmevo.task.session import ConfigError, Session

# What a YAML demands was found with normal inputs and means nothing for others: sums cancel in the
# wide ones, and those of boundary ones overflow.
_BOUND_FAMILIES = ("normal",)
_EXACT = Tolerance(cosine=1.0, max_abs=0.0)


@dataclass(frozen=True)
class Run:
    """Launches every dispatch of the oracle ``repeats`` times, each with other undefined state.

    ``families`` replaces the oracle's input families: with infinities and NaNs among its inputs no
    kernel agrees with the formula it implements, only with itself, which the gates look at.

    Every buffer that the kernel writes is compared with the reference of the kernel's operation and
    held against the accuracy that its YAML demands, if its inputs are of the family ``normal``, for
    which that is meant: of other families the distance is shown without a verdict. Repeats must
    give the same bytes, except in buffers whose bytes depend on the order of workgroups: those are
    held against it every time.
    ``sanitize`` launches each dispatch once more under the device's sanitizer; what that reports is
    shown and decides nothing, since production kernels have findings of their own.
    """

    repeats: int = 1
    families: Sequence[str] = ("normal",)
    sanitize: bool = False

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise ConfigError(f"task.repeats must be at least 1, not {self.repeats}")
        if not self.families:
            raise ConfigError("task.families is empty: nothing would be launched")

    def run(self, session: Session) -> Result:
        started = time.monotonic()
        kernel, device = session.kernel, session.device
        metadata = session.code_object.kernel(session.symbol).metadata
        loaded = device.load(session.code_object, session.symbol)
        if self.sanitize and not isinstance(loaded, CheckedKernel):
            raise ConfigError(f"task.sanitize: the device {device.name} has no sanitizer")
        oracle = session.oracle
        if isinstance(oracle, DeclaredOracle):
            oracle = replace(oracle, families=self.families, held_out_families=self.families,
                             extreme_families=())
        launches = [self._launch(kernel, loaded, dispatch)
                    for dispatch in oracle.dispatches(kernel, session.symbol, metadata)]
        seconds = sum(launch["seconds"] for launch in launches)
        instructions = sum(launch["wave_instructions"] for launch in launches)
        return Result(
            task="run",
            status=_status(launches),
            error=_first_complaint(launches),
            kernel=kernel.name,
            symbol=session.symbol,
            original_sha256=session.code_object.sha256,
            device=device.name,
            folder=str(session.folder),
            wall_seconds=time.monotonic() - started,
            wave_instructions_per_second=instructions / seconds if seconds else None,
            details={
                "operation": None if kernel.operation is None else type(kernel.operation).__name__,
                "launches": launches,
            },
        )

    def _launch(self, kernel: Kernel, loaded: LoadedKernel, dispatch: Dispatch) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "dispatch": dispatch.name, "grid": dispatch.grid, "workgroup": dispatch.workgroup,
            "repeats": self.repeats, "wave_instructions": 0, "seconds": 0.0, "fault": None,
            "varies": None, "buffers": [], "sanitizer": None,
        }
        if self.sanitize and isinstance(loaded, CheckedKernel):
            findings = loaded.sanitize(dispatch)
            facts["sanitizer"] = {"summary": list(findings.summary()), **findings.to_dict()}
        results: list[RunResult] = []
        try:
            for poison, order, nan in zip(range(self.repeats), cycle(WorkgroupOrder),
                                          cycle(NanBits), strict=False):
                result = loaded.run(dispatch, LaunchState(poison, order, nan=nan))
                facts["wave_instructions"] += result.instructions
                facts["seconds"] += result.seconds
                results.append(result)
        except DeviceFault as fault:
            facts["fault"] = str(fault)
            return facts
        first = results[0]
        varying = {b.name for b in kernel.buffers if b.order_dependent}
        facts["varies"] = next(
            (region.region for other in results[1:]
             for region in compare(dispatch, first.regions, other.regions, _EXACT)
             if not region.equal and (region.region not in varying
                                      or region.code == "guard-overwritten")), None)
        before = {r.name: np.frombuffer(r.data, r.element.dtype) for r in dispatch.regions}
        wanted: Arrays = {}
        # A capture has no values of shape variables, and may have parts of buffers only.
        if kernel.operation is not None and dispatch.recorded is None:
            # Boundary inputs hold infinities and NaNs, and references pass them on.
            with np.errstate(all="ignore"):
                wanted = expected(kernel.operation, before, dispatch.names)
        damaged = {c.region: c.code for c in compare(dispatch, first.regions, first.regions, _EXACT)
                   if not c.equal}
        for index, region in enumerate(dispatch.regions):
            repeats = results if region.name in varying else results[:1]
            found = [_contents(region, result.regions[index]) for result in repeats]
            facts["buffers"].append({
                **_summary(region, found[0]),
                "damage": damaged.get(region.name),
                **_worst([_against(kernel, dispatch, region.name, values, wanted)
                          for values in found]),
            })
        return facts


def _contents(region: Region, mapped: bytes) -> Array:
    return np.frombuffer(mapped[region.guard:len(mapped) - region.guard], region.element.dtype)


def _worst(findings: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What is not within its bound, or else what is furthest from its reference."""
    return max(findings, key=lambda found: (
        found["within"] is False, found["accuracy"]["max_abs"] if found["accuracy"] else 0.0))


def _summary(region: Region, values: Array) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "name": region.name, "role": region.role.value, "element": region.element.value,
        "count": len(values), "sha256": hashlib.sha256(values.tobytes()).hexdigest(),
    }
    with np.errstate(invalid="ignore"):
        wide = values.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    return {
        **facts,
        "nan": int(np.isnan(wide).sum()),
        "infinite": int(np.isinf(wide).sum()),
        "zero": int((wide == 0).sum()),
        "minimum": float(finite.min()) if len(finite) else None,
        "maximum": float(finite.max()) if len(finite) else None,
        "mean": float(finite.mean()) if len(finite) else None,
    }


def _against(kernel: Kernel, dispatch: Dispatch, name: str, found: Array,
             wanted: Arrays) -> dict[str, Any]:
    """The distance from the reference, and whether that is within what the YAML demands."""
    if name not in wanted:
        return {"accuracy": None, "within": None}
    reference = wanted[name].reshape(-1)
    if len(reference) != len(found):
        raise OperationError(f"the operation {type(kernel.operation).__name__} gives "
                             f"{len(reference)} elements for the buffer '{name}', which has "
                             f"{len(found)}")
    accuracy = measure(found, reference)
    bound = kernel.accuracy.get(name) if dispatch.family in _BOUND_FAMILIES else None
    within = None if bound is None else bound.holds(accuracy)
    return {"accuracy": asdict(accuracy), "within": within}


def _complaint(launch: Mapping[str, Any]) -> str | None:
    where = f"dispatch '{launch['dispatch']}'"
    if launch["fault"] is not None:
        return f"{where}: {launch['fault']}"
    if launch["varies"] is not None:
        return f"{where}: buffer '{launch['varies']}' differs from one repeat to another"
    for buffer in launch["buffers"]:
        if buffer["damage"] is not None:
            return f"{where}: buffer '{buffer['name']}': {buffer['damage']}"
        if buffer["within"] is False:
            found = ", ".join(f"{key} {value:.6g}" for key, value in buffer["accuracy"].items())
            return (f"{where}: buffer '{buffer['name']}' is further from its reference than the "
                    f"kernel's YAML allows ({found})")
    return None


def _first_complaint(launches: list[dict[str, Any]]) -> str | None:
    """A fault before anything else, as it decides the status."""
    faulted_first = sorted(launches, key=lambda launch: launch["fault"] is None)
    return next((text for launch in faulted_first if (text := _complaint(launch)) is not None),
                None)


def _status(launches: list[dict[str, Any]]) -> Status:
    if any(launch["fault"] is not None for launch in launches):
        return Status.FAULTED
    if _first_complaint(launches) is not None:
        return Status.DISAGREES
    held = any(buffer["within"] for launch in launches for buffer in launch["buffers"])
    return Status.AGREES if held else Status.RAN
