"""G2: the candidate does what the original does, on every dispatch."""

from __future__ import annotations

from dataclasses import dataclass, field

from asmevo.device.device import DeviceFault, UnsupportedError
from asmevo.dispatch.comparison import RegionComparison, Tolerance, compare
from asmevo.gates.baseline import condition
from asmevo.gates.trial import Trial
from asmevo.gates.verdict import Gate, JsonValue, Outcome, Verdict


@dataclass(frozen=True)
class EqualityGate:
    """Runs every dispatch and compares all memory it can reach with the original's.

    Each repeat uses other undefined state, output contents, buffer placement and workgroup order.
    Held-out dispatches run last; what they show is kept out of the verdict, because verdicts are
    shown to proposers.
    """

    tolerance: Tolerance = field(default_factory=Tolerance)
    repeats: int = 3
    gate: Gate = Gate.G2

    def judge(self, trial: Trial, repeat: int) -> Verdict:
        if trial.code_object is None:
            return Verdict(self.gate, Outcome.MISSING, "no-object", "there is no object to run")
        baseline = trial.baseline
        if not baseline.dispatches:
            return Verdict(self.gate, Outcome.MISSING, "no-dispatch", "the oracle has no inputs")
        try:
            if trial.loaded is None:
                trial.loaded = baseline.device.load(trial.code_object, baseline.kernel)
        except UnsupportedError as error:
            return Verdict(self.gate, Outcome.MISSING, "unsupported", str(error))
        evidence: dict[str, JsonValue] = {"repeat": repeat, "dispatches": len(baseline.dispatches)}
        worst_cosine, worst_abs = 1.0, 0.0
        at = condition(repeat, baseline.seed)
        for index, dispatch in sorted(
            enumerate(baseline.dispatches), key=lambda item: item[1].held_out
        ):
            try:
                prepared = at.prepare(dispatch)
                result = trial.loaded.run(
                    prepared, at.state, limit=baseline.instruction_limit(index)
                )
            except UnsupportedError as error:
                return Verdict(self.gate, Outcome.MISSING, "unsupported", str(error), evidence)
            except DeviceFault as fault:
                trial.exposed_by = index
                if dispatch.held_out:
                    return _held_out_failure(evidence)
                return Verdict(
                    self.gate, Outcome.FAIL, f"fault-{fault.kind}",
                    f"dispatch '{dispatch.name}': {fault}", evidence,
                )
            outcomes = compare(
                prepared, baseline.reference(index, repeat), result.regions,
                self.tolerance,
            )
            for outcome in outcomes:
                worst_cosine = min(worst_cosine, outcome.cosine)
                worst_abs = max(worst_abs, outcome.max_abs)
                if not outcome.equal:
                    trial.exposed_by = index
                    if dispatch.held_out:
                        return _held_out_failure(evidence)
                    return _mismatch(dispatch.name, outcome, evidence)
        evidence |= {"cosine": worst_cosine, "max_abs": worst_abs}
        return Verdict(self.gate, Outcome.PASS, "ok", "equal on every dispatch", evidence)


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
