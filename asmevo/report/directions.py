"""The colours of the lines of attack on a page."""

from __future__ import annotations

from collections.abc import Mapping

from asmevo.propose.proposal import Direction

# Light and dark, of the Okabe-Ito palette as in `asmevo.report.causes`; names stand beside them.
COLOURS: Mapping[str, tuple[str, str]] = {
    Direction.LATENCY_HIDING.value: ("#c77700", "#f0a830"),
    Direction.DEPENDENCY_CHAINS.value: ("#2f6fc4", "#6aa5f2"),
    Direction.REGISTER_PRESSURE.value: ("#a8478f", "#d887c2"),
    Direction.MEMORY_ACCESS.value: ("#12805f", "#3cc79c"),
    Direction.SIMPLIFICATION.value: ("#c9461e", "#f07850"),
}
OTHER = ("#6a7280", "#9aa3ae")


def css_class(direction: str) -> str:
    """The class of a direction's marks; ``other`` for one that is none of the known."""
    return f"d-{direction}" if direction in COLOURS else "d-other"
