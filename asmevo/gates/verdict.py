"""The tri-state verdict of a gate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Outcome(StrEnum):
    """``MISSING`` means the gate has no evidence; it never counts as a pass."""

    PASS = "pass"  # noqa: S105 - not a password
    FAIL = "fail"
    MISSING = "missing"


class Gate(StrEnum):
    """The five gates, in the order they run."""

    G0 = "G0"
    G1 = "G1"
    G2 = "G2"
    G3 = "G3"
    G4 = "G4"


JsonValue = str | int | float | bool | None | list["JsonValue"] | dict[str, "JsonValue"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a gate says of a candidate.

    ``code`` is a stable machine-readable reason (``ok``, ``assembler-error``, ``new-hazard``...),
    ``reason`` one sentence, ``evidence`` JSON-serialisable facts behind it.
    """

    gate: Gate
    outcome: Outcome
    code: str
    reason: str
    evidence: Mapping[str, JsonValue] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return self.outcome is Outcome.PASS
