"""By what a session judges, as the registry keeps it with each replacement."""

from __future__ import annotations

from omegaconf import OmegaConf

from asmevo.gates.assemble import AssembleGate
from asmevo.gates.commit import CommitGate
from asmevo.gates.equality import EqualityGate
from asmevo.gates.harness import Gates
from asmevo.gates.latency import LatencyGate
from asmevo.gates.precision import Precision
from asmevo.gates.reach import ReachGate
from asmevo.gates.static import StaticGate
from asmevo.registry.judgement import Judgement
from asmevo.task.session import Session

_BUILT_IN = {
    "assemble": AssembleGate, "static": StaticGate, "equality": EqualityGate,
    "reach": ReachGate, "latency": LatencyGate, "commit": CommitGate,
}


def judgement_of(session: Session) -> Judgement:
    """The gates as they are, not as the configuration words them; of one that is replaced the
    thresholds are those of the run, which it may or may not heed."""
    gates, dispatches = session.gates, session.baseline.dispatches
    equality, static = gates.equality, gates.static
    commit = gates.commit
    # A gate made of the built-in class by a node of its own may have bounds of its own.
    tolerances = [gates.tolerance, *(gate.tolerance for gate in (equality, gates.latency)
                                     if isinstance(gate, EqualityGate | LatencyGate))]
    precision = equality.precision if isinstance(equality, EqualityGate) else Precision()
    operation = session.kernel.operation
    families = sorted({d.family for d in dispatches if d.family is not None})
    return Judgement(
        cosine=min(t.cosine for t in tolerances), max_abs=max(t.max_abs for t in tolerances),
        repeats=equality.repeats, precision_slack=precision.slack, sanitize=gates.sanitize,
        extra_ops=tuple(static.extra_ops) if isinstance(static, StaticGate) else (),
        epsilon=commit.epsilon, k=commit.k, s_floor=commit.s_floor,
        dispatch_floor=commit.dispatch_floor, replaced=tuple(_replaced(gates, session)),
        oracle=_class(session.oracle), dispatches=len(dispatches),
        held_out=sum(d.held_out for d in dispatches), families=tuple(families),
        operation=None if operation is None else _class(operation))


def _replaced(gates: Gates, session: Session) -> list[str]:
    found = [f"{name}={_class(getattr(gates, name))}" for name, kind in _BUILT_IN.items()
             if type(getattr(gates, name)) is not kind]
    if type(gates) is not Gates:
        found.append(f"_target_={_class(gates)}")
    target = OmegaConf.select(session.config, "gates._target_")
    if not found and target not in (None, "asmevo.gates.harness.from_settings"):
        found.append(f"_target_={target}")
    return found


def _class(thing: object) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"
