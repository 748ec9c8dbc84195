"""What inference could not find out, and what to declare instead."""

from __future__ import annotations

from collections.abc import Sequence

from asmevo.errors import AsmEvoError


class InferenceError(AsmEvoError):
    """A launch cannot be inferred. ``declare`` are the YAML keys that would say what is missing,
    and ``draft`` is such a YAML with what is known, empty where nothing is.
    """

    draft = ""

    def __init__(self, reason: str, declare: Sequence[str]) -> None:
        self.reason = reason
        self.declare = tuple(declare)
        super().__init__(f"{reason}; declare in the kernel's YAML: {', '.join(self.declare)}")
