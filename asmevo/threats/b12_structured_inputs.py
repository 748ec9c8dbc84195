"""B12: structure of the inputs is used, or the inputs ask for nothing."""

from __future__ import annotations

from dataclasses import replace

from asmevo.dispatch.dispatch import Dispatch, Role
from asmevo.gates.baseline import Baseline, OracleError
from asmevo.gates.verdict import Gate, Outcome, Verdict
from asmevo.threats.subject import Subject
from asmevo.threats.threat import Threat
from asmevo.threats.trick import Measured, edited, replaced


def _zeros(dispatch: Dispatch) -> Dispatch:
    """Inputs of zeros: the output is the same whatever is done with them."""
    return replace(dispatch, regions=tuple(
        replace(r, data=bytes(len(r.data))) if r.role is not Role.OUTPUT else r
        for r in dispatch.regions))


def _vacuous(subject: Subject) -> tuple[Verdict, ...]:
    base = subject.baseline
    empty = Baseline(base.code_object, base.kernel, base.assembly,
                     [_zeros(d) for d in base.dispatches], base.device, seed=base.seed)
    try:
        empty.self_check(subject.gates.tolerance)
    except OracleError as error:
        return (Verdict(Gate.G2, Outcome.MISSING, "vacuous-oracle", str(error)),)
    return (Verdict(Gate.G2, Outcome.PASS, "ok", "zeros were taken for inputs"),)


THREATS = (
    Threat("B12", "inputs of zeros alone", "layer_norm", Measured(_vacuous),
           Gate.G2, ("vacuous-oracle",)),
    Threat("B12", "the weights are taken for one", "layer_norm",
           edited(replaced("v_pk_fma_f32 v[48:49], v[48:49], v[112:113], v[144:145]",
                           "v_pk_add_f32 v[48:49], v[48:49], v[144:145]")),
           Gate.G2, ("max-abs", "cosine", "nan-class", "infinity")),
    Threat("B12", "exponents are taken for small", "topksoftmax",
           edited(replaced("v_exp_f32_e32 v12, v12", "v_add_f32_e32 v12, 1.0, v12")),
           Gate.G2, ("max-abs", "bits")),
)
