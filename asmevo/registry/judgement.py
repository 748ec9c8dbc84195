"""By what a replacement was judged: the thresholds of its gates, and what its inputs were."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from asmevo.registry.errors import RegistryError

LEAST: Mapping[str, float] = {
    "cosine": 0.9999, "repeats": 3, "epsilon": 0.002, "k": 0.85, "s_floor": 1.0,
    "dispatch_floor": 0.98,
}
MOST: Mapping[str, float] = {"max_abs": 1e-3, "precision_slack": 0.05}
"""The defaults of conf/gates/default.yaml; whoever judged by less than these judged weaker."""

UNKNOWN = "it is not recorded by which thresholds it was judged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Thresholds under their names in the configuration, and the inputs that were judged on.

    ``replaced`` are gates that are not the built-in ones, as ``name=class``. Of ``dispatches``
    ``held_out`` were kept from proposers; ``families`` are the kinds of inputs among them, and
    ``operation`` is what exact results were computed with, ``None`` where nothing was.
    """

    cosine: float
    max_abs: float
    repeats: int
    precision_slack: float
    sanitize: bool
    extra_ops: tuple[str, ...]
    epsilon: float
    k: float
    s_floor: float
    dispatch_floor: float
    replaced: tuple[str, ...]
    oracle: str
    dispatches: int
    held_out: int
    families: tuple[str, ...]
    operation: str | None

    def weaknesses(self) -> tuple[str, ...]:
        """Where this is less than the defaults ask for, each as the rest of a sentence."""
        return (*self.loosened(), *self._inputs())

    def loosened(self) -> Iterator[str]:
        """Of `weaknesses` those of the gates."""
        # Not the other way round: a NaN is neither above nor below anything.
        for name, least in LEAST.items():
            if not getattr(self, name) >= least:
                yield f"gates.{name} was {getattr(self, name):g}, below {least:g}"
        for name, most in MOST.items():
            if not getattr(self, name) <= most:
                yield f"gates.{name} was {getattr(self, name):g}, above {most:g}"
        if not self.sanitize:
            yield "gates.sanitize was off"
        if self.extra_ops:
            yield f"gates.extra_ops allowed {', '.join(self.extra_ops)}"
        for gate in self.replaced:
            yield f"gates.{gate} replaced a built-in gate"

    def _inputs(self) -> Iterator[str]:
        if not self.dispatches:
            yield "it was judged on no dispatch"
        elif not self.held_out:
            yield "no dispatch was held out"

    def to_json(self) -> dict[str, Any]:
        """A JSON object; `judgement` makes the same of it again."""
        return {name: list(value) if isinstance(value, tuple) else value
                for name, value in dataclasses.asdict(self).items()}


def judgement(data: object) -> Judgement:
    """From what `Judgement.to_json` gave. Raises `RegistryError` for anything else."""
    names = {field.name for field in dataclasses.fields(Judgement)}
    if not isinstance(data, Mapping) or set(data) != names:
        raise RegistryError("the record of how a replacement was judged is malformed")
    made: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in data.items()}
    for name, value in made.items():
        if not _fits(name, value):
            raise RegistryError(f"the record of how a replacement was judged has a '{name}' of "
                                f"{str(value)[:80]!r}")
    return Judgement(**made)


def _fits(name: str, value: object) -> bool:
    if name == "sanitize":
        return isinstance(value, bool)
    if name in ("extra_ops", "replaced", "families"):
        return isinstance(value, tuple) and all(isinstance(item, str) for item in value)
    if name in ("oracle", "operation"):
        return isinstance(value, str) or (value is None and name == "operation")
    if name in ("repeats", "dispatches", "held_out"):
        return isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return (isinstance(value, int | float) and not isinstance(value, bool)
            and math.isfinite(value))
