"""Launches for the inferred oracle on the session's device."""

from __future__ import annotations

from asmevo.device.device import DeviceFault, LaunchState, LoadedKernel, NanBits, WorkgroupOrder
from asmevo.dispatch.dispatch import Dispatch
from asmevo.dispatch.inferred.probing import Probe, ProbeFault

# What a launch may not depend on differs in everything between the two conditions of a probe.
_CONDITIONS = (LaunchState(11, WorkgroupOrder.ASCENDING),
               LaunchState(977, WorkgroupOrder.DESCENDING, nan=NanBits.FULL))


def probe(loaded: LoadedKernel) -> Probe:
    """A `Probe` that launches a loaded kernel."""

    def launch(dispatch: Dispatch, condition: int, limit: int) -> tuple[tuple[bytes, ...], int]:
        try:
            result = loaded.run(dispatch, _CONDITIONS[condition], limit=limit)
        except DeviceFault as fault:
            raise ProbeFault(str(fault), kind=fault.kind, address=fault.address) from None
        return result.regions, result.instructions

    return launch
