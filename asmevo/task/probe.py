"""Launches for the inferred oracle on the session's device."""

from __future__ import annotations

from asmevo.device.device import DeviceFault, LaunchState, LoadedKernel, WorkgroupOrder
from asmevo.dispatch.dispatch import Dispatch
from asmevo.dispatch.inferred.probing import Probe, ProbeFault

# What a launch may not depend on differs between the two conditions of a probe, but for the bits of
# NaNs: which elements are floats is not known yet, so results are compared as bytes.
_CONDITIONS = (LaunchState(11, WorkgroupOrder.ASCENDING),
               LaunchState(977, WorkgroupOrder.DESCENDING))


def probe(loaded: LoadedKernel) -> Probe:
    """A `Probe` that launches a loaded kernel."""

    def launch(dispatch: Dispatch, condition: int, limit: int) -> tuple[tuple[bytes, ...], int]:
        try:
            result = loaded.run(dispatch, _CONDITIONS[condition], limit=limit)
        except DeviceFault as fault:
            raise ProbeFault(str(fault), kind=fault.kind, address=fault.address) from None
        return result.regions, result.instructions

    return launch
