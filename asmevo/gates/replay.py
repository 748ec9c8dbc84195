"""Whether the original still does what a captured dispatch recorded of it."""

from __future__ import annotations

from asmevo.device.device import DeviceFault, LoadedKernel
from asmevo.dispatch.comparison import RegionComparison, Tolerance, compare
from asmevo.dispatch.dispatch import Dispatch
from asmevo.gates.errors import OracleError


def check_replay(loaded: LoadedKernel, dispatch: Dispatch, tolerance: Tolerance) -> int:
    """Launch the original as it was captured and compare; gives the wave-instructions run.

    Nothing is moved, filled or reordered here. In regions that depend on the order of workgroups,
    which was another's, only NaN, infinities and cosine decide. Dispatches that are no captures
    pass. Raises `OracleError`.
    """
    if dispatch.recorded is None:
        return 0
    if dispatch.recorded == tuple(region.data for region in dispatch.regions):
        raise OracleError(f"capture '{dispatch.name}' records no change of memory: it cannot tell "
                          "a right kernel from a wrong one")
    try:
        result = loaded.run(dispatch)
    except DeviceFault as fault:
        raise OracleError(f"the original faults on the replay of capture '{dispatch.name}' "
                          f"({fault}); task=capture finds what its recorder missed") from fault
    recorded = tuple(_mapped_as(region.mapped, region.guard, data)
                     for region, data in zip(dispatch.regions, dispatch.recorded, strict=True))
    varying = {region.name for region in dispatch.regions if region.order_dependent}
    for outcome in compare(dispatch, recorded, result.regions, tolerance):
        if not outcome.equal and not (outcome.region in varying
                                      and _is_rounding(outcome, tolerance)):
            raise OracleError(
                f"the original's replay of capture '{dispatch.name}' differs from what was "
                f"recorded in '{outcome.region}' ({outcome.code}, first at element "
                f"{outcome.first})")
    return result.instructions


def _mapped_as(mapped: bytes, guard: int, data: bytes) -> bytes:
    return mapped[:guard] + data + mapped[guard + len(data):]


def _is_rounding(outcome: RegionComparison, tolerance: Tolerance) -> bool:
    return outcome.code == "max-abs" and outcome.cosine >= tolerance.cosine
