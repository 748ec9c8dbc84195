"""G2: the candidate does what the original does, on every dispatch."""

from __future__ import annotations

from dataclasses import dataclass, field

from asmevo.device.device import CheckedKernel, DeviceFault, UnsupportedError
from asmevo.dispatch.comparison import RegionComparison, Tolerance, compare
from asmevo.dispatch.dispatch import Dispatch
from asmevo.dispatch.generator import to_floats
from asmevo.gates.baseline import Baseline
from asmevo.gates.condition import condition
from asmevo.gates.precision import Precision
from asmevo.gates.trial import Trial
from asmevo.gates.verdict import Gate, JsonValue, Outcome, Verdict


@dataclass(frozen=True)
class EqualityGate:
    """Runs every dispatch and compares all memory it can reach with the original's.

    Each repeat uses other undefined state, output contents, buffer placement and workgroup order.
    Held-out dispatches run last; what they show is kept out of the verdict, because verdicts are
    shown to proposers.

    Where the kernel's operation is known a candidate must also be as near its exact result as the
    original is.
    """

    tolerance: Tolerance = field(default_factory=Tolerance)
    repeats: int = 3
    precision: Precision = field(default_factory=Precision)
    gate: Gate = Gate.G2

    def judge(self, trial: Trial, repeat: int) -> Verdict:
        if trial.code_object is None:
            return Verdict(self.gate, Outcome.MISSING, "no-object", "there is no object to run")
        baseline = trial.baseline
        if not baseline.dispatches:
            return Verdict(self.gate, Outcome.MISSING, "no-dispatch", "the oracle has no inputs")
        try:
            if trial.loaded is None:
                trial.loaded = baseline.candidate_device.load(trial.code_object, baseline.kernel)
        except UnsupportedError as error:
            return Verdict(self.gate, Outcome.MISSING, "unsupported", str(error))
        except DeviceFault as fault:
            return Verdict(self.gate, Outcome.FAIL, f"fault-{fault.kind}", str(fault))
        evidence: dict[str, JsonValue] = {"repeat": repeat, "dispatches": len(baseline.dispatches)}
        worst_cosine, worst_abs = 1.0, 0.0
        at = condition(repeat, baseline.seed)
        for index, dispatch in sorted(
            enumerate(baseline.dispatches), key=lambda item: item[1].held_out
        ):
            prepared = baseline.prepared(index, repeat)
            try:
                result = trial.loaded.run(
                    prepared, at.state, limit=baseline.instruction_limit(index)
                )
            except UnsupportedError as error:
                # Names of held-out dispatches and what they need are no one's business either.
                reason = "on held-out inputs" if dispatch.held_out else str(error)
                return Verdict(self.gate, Outcome.MISSING, "unsupported", reason, evidence)
            except DeviceFault as fault:
                trial.exposed_by = index
                if dispatch.held_out:
                    return _held_out_failure(evidence)
                return Verdict(
                    self.gate, Outcome.FAIL, f"fault-{fault.kind}",
                    f"dispatch '{dispatch.name}': {fault}", evidence,
                )
            reference = baseline.reference(index, repeat)
            if result.regions == reference:
                continue
            outcomes = compare(
                prepared, reference, result.regions, self.tolerance, baseline.noise(index)
            )
            for outcome in outcomes:
                worst_cosine = min(worst_cosine, outcome.cosine)
                worst_abs = max(worst_abs, outcome.max_abs)
                if not outcome.equal:
                    trial.exposed_by = index
                    if dispatch.held_out:
                        return _held_out_failure(evidence)
                    return _mismatch(dispatch.name, outcome, evidence)
            lost = self._lost_precision(baseline, index, prepared, result.regions, reference)
            if lost is not None:
                trial.exposed_by = index
                if dispatch.held_out:
                    return _held_out_failure(evidence)
                return Verdict(self.gate, Outcome.FAIL, "less-precise", lost, evidence)
        evidence |= {"cosine": worst_cosine, "max_abs": worst_abs}
        return Verdict(self.gate, Outcome.PASS, "ok", "equal on every dispatch", evidence)

    def _lost_precision(
        self, baseline: Baseline, index: int, dispatch: Dispatch, actual: tuple[bytes, ...],
        expected: tuple[bytes, ...],
    ) -> str | None:
        for number, region in enumerate(dispatch.regions):
            if not region.element.is_float or actual[number] == expected[number]:
                continue
            truth = baseline.truth(index).get(region.name)
            data = slice(region.guard, region.guard + len(region.data))
            if truth is None or truth.size * region.element.size != len(region.data):
                continue
            lost = self.precision.lost(truth, to_floats(expected[number][data], region.element),
                                       to_floats(actual[number][data], region.element),
                                       baseline.noise(index).get(region.name))
            if lost is not None:
                return f"dispatch '{dispatch.name}', region '{region.name}': {lost}"
        return None

    def check(self, trial: Trial) -> Verdict | None:
        """Run the smallest visible dispatch under the device's sanitizer.

        A class of error that the original does not have fails. ``None`` when the device has no
        sanitizer.
        """
        baseline = trial.baseline
        index = baseline.smallest_dispatch
        if index is None or not isinstance(trial.loaded, CheckedKernel):
            return None
        at = condition(0, baseline.seed)
        dispatch = baseline.prepared(index, 0)
        evidence: dict[str, JsonValue] = {"sanitized": dispatch.name}
        try:
            known = baseline.sanitized
            found = trial.loaded.sanitize(
                dispatch, at.state, limit=baseline.instruction_limit(index)).errors_by_class
        except UnsupportedError as error:
            return Verdict(self.gate, Outcome.MISSING, "unsupported", str(error), evidence)
        except DeviceFault as fault:
            return Verdict(self.gate, Outcome.FAIL, f"fault-{fault.kind}", str(fault), evidence)
        new = [name for name in found if name not in known]
        if new:
            reason = f"dispatch '{dispatch.name}': {found[new[0]]}"
            return Verdict(self.gate, Outcome.FAIL, "sanitizer", reason,
                           {**evidence, "classes": list(new)})
        return Verdict(self.gate, Outcome.PASS, "ok", "nothing new under the sanitizer", evidence)


def _mismatch(
    dispatch: str, outcome: RegionComparison, evidence: dict[str, JsonValue]
) -> Verdict:
    details: dict[str, JsonValue] = {
        "dispatch": dispatch, "region": outcome.region, "cosine": outcome.cosine,
        "max_abs": outcome.max_abs, "differing": outcome.differing, "first": outcome.first,
    }
    reason = (
        f"dispatch '{dispatch}', region '{outcome.region}': {outcome.code} at element "
        f"{outcome.first}, {outcome.differing} differ, max |difference| {outcome.max_abs:.3g}"
    )
    return Verdict(Gate.G2, Outcome.FAIL, outcome.code, reason, {**evidence, **details})


def _held_out_failure(evidence: dict[str, JsonValue]) -> Verdict:
    return Verdict(
        Gate.G2, Outcome.FAIL, "held-out", "not equal on inputs that are kept from proposers",
        evidence,
    )
