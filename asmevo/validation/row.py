"""One figure that somebody published, beside what the cycle model says of the same thing."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from asmevo.errors import AsmEvoError


class RowError(AsmEvoError):
    """A row cannot be made: its figure, or which rows there should be, makes no sense."""


class Confidence(StrEnum):
    """How much a published figure can be relied on."""

    HIGH = "H"    # a vendor's document, or two sources agree
    MEDIUM = "M"  # one source measured it
    LOW = "L"     # second-hand, or sources contradict one another


class Basis(StrEnum):
    """What agreement with a figure proves."""

    # The model has the figure, or what it is made of by addition, as a parameter: a miss would be a
    # defect, agreement proves no more than that the mechanism is there.
    PARAMETER = "parameter"
    # It follows from several mechanisms, none of which was given the figure.
    EMERGENT = "emergent"


@dataclass(frozen=True, slots=True)
class ValidationRow:
    """``expected`` and ``modelled`` are in ``unit``.

    ``group`` is what statistics are made of: a section, or a family of kernels. Of a comparison of
    times over kernels and shapes, ``kernel`` and ``shape`` tell which row is which, for rank
    correlations. ``modelled`` is None when the model has no answer; ``note`` then says why.
    ``goal`` is the largest |error| that counts as agreement, as a fraction; None: not judged alone.
    """

    group: str
    name: str
    unit: str
    expected: float
    modelled: float | None
    source: str
    confidence: Confidence
    note: str = ""
    basis: Basis = Basis.EMERGENT
    kernel: str = ""
    shape: str = ""
    goal: float | None = None

    def __post_init__(self) -> None:
        if not self.expected > 0:
            raise RowError(f"'{self.name}' is expected to be {self.expected:g}, which nothing can "
                           "be compared with")

    @property
    def error(self) -> float | None:
        """(modelled - expected) / expected; None without an answer."""
        return None if self.modelled is None else self.modelled / self.expected - 1

    @property
    def within(self) -> bool | None:
        """Whether the row meets its goal; an answer that is missing does not. None without goal."""
        if self.goal is None:
            return None
        error = self.error
        return error is not None and abs(error) <= self.goal

    def to_dict(self) -> dict[str, Any]:
        """JSON-compatible, ``error`` and ``within`` included."""
        return {**asdict(self), "error": self.error, "within": self.within}
