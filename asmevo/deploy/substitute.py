"""What is put in a place, and where it comes from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Substitute:
    """A verified replacement of one code object.

    ``speedup`` is latency of the original over that of the replacement; ``timing_source`` says
    whether it was ``measured`` on hardware or ``modelled``, on ``device``. ``statement_sha256``
    names the registry's signed statement about it, where there is one.
    """

    original_sha256: str
    data: bytes = field(repr=False)
    kernel: str
    speedup: float
    timing_source: str
    device: str
    statement_sha256: str | None = None

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()
