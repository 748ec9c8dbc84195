"""Harnesses that lack one check, as published ones did: what they believe shows what it is for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from asmevo.codeobject.assembly import Assembly
from asmevo.codeobject.container import CodeObject
from asmevo.device.device import DeviceFault, LoadedKernel
from asmevo.dispatch.comparison import RegionComparison, Tolerance, compare
from asmevo.dispatch.dispatch import Dispatch, Role
from asmevo.gates.condition import condition
from asmevo.gates.latency import geometric_mean
from asmevo.gates.trial import Trial
from asmevo.threats.subject import Subject


class Weaker(StrEnum):
    """What a harness leaves out."""

    STATIC = "static checks"
    POISON = "poisoned outputs"
    SHAPES = "more than one shape"
    FAMILIES = "more than one family of inputs"
    GUARDS = "guards and inputs compared"
    NORM = "a bound on single elements"
    NAN = "NaN compared by class"


@dataclass(frozen=True, slots=True)
class Belief:
    """Whether a weaker harness takes the candidate, and for how fast (0: it did not run)."""

    accepted: bool
    speedup: float


# Cosine alone is what several public harnesses ask for.
_COSINE_ONLY = Tolerance(cosine=0.99, max_abs=1e30)


def believed(weaker: Weaker, subject: Subject, candidate: Assembly | CodeObject) -> Belief | None:
    """What a harness without one check says of a candidate; None where the check means nothing.

    The harnesses without several shapes and without guards see the first dispatch alone, those
    without families and with nothing but a cosine normal inputs.
    """
    if weaker is Weaker.POISON and any(
            r.role is Role.INOUT for r in subject.baseline.dispatches[0].regions):
        return None
    baseline = subject.baseline
    trial = Trial(
        baseline, subject.toolchain,
        assembly=candidate if isinstance(candidate, Assembly) else None,
        code_object=candidate if isinstance(candidate, CodeObject) else None)
    if not subject.gates.assemble.judge(trial, 0).passed or trial.code_object is None:
        return Belief(accepted=False, speedup=0.0)
    loaded = baseline.device.load(trial.code_object, baseline.kernel)
    ratios: list[float] = []
    at = condition(0, baseline.seed)
    for index in _chosen(weaker, subject):
        dispatch = at.prepare(baseline.dispatches[index])
        expected = baseline.reference(index, 0)
        if weaker is Weaker.POISON:
            dispatch = _holding_the_answer(dispatch, expected)
        try:
            after = loaded.run(dispatch, at.state).regions
            outcomes = compare(
                dispatch, expected, after,
                _COSINE_ONLY if weaker is Weaker.NORM else subject.gates.tolerance)
            if not all(_overlooked(o, weaker, dispatch) for o in outcomes):
                return Belief(accepted=False, speedup=0.0)
            if index in baseline.timed_dispatches or index == 0:
                ratios.append(_ratio(subject, loaded, dispatch))
        except DeviceFault:
            return Belief(accepted=False, speedup=0.0)
    return Belief(accepted=True, speedup=geometric_mean(ratios))


def _chosen(weaker: Weaker, subject: Subject) -> Iterator[int]:
    dispatches = subject.baseline.dispatches
    for index, dispatch in enumerate(dispatches):
        if weaker in (Weaker.SHAPES, Weaker.GUARDS) and index:
            continue
        if weaker in (Weaker.FAMILIES, Weaker.NORM) and dispatch.family != dispatches[0].family:
            continue
        yield index


def _overlooked(outcome: RegionComparison, weaker: Weaker, dispatch: Dispatch) -> bool:
    if outcome.equal:
        return True
    if weaker is Weaker.GUARDS:
        return outcome.code in ("guard-overwritten", "input-modified")
    return weaker is Weaker.NAN and outcome.code == "nan-class"


def _holding_the_answer(dispatch: Dispatch, expected: tuple[bytes, ...]) -> Dispatch:
    regions = tuple(
        replace(r, data=after[r.guard:r.guard + len(r.data)]) if r.role is Role.OUTPUT else r
        for r, after in zip(dispatch.regions, expected, strict=True))
    return replace(dispatch, regions=regions)


def _ratio(subject: Subject, loaded: LoadedKernel, dispatch: Dispatch) -> float:
    state = condition(0, subject.baseline.seed).state
    old = subject.baseline.loaded.time(dispatch, state, samples=1, warmup=0)
    new = loaded.time(dispatch, state, samples=1, warmup=0)
    return old.median_us / new.median_us
