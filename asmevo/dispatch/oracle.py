"""Where dispatches come from: the protocol of all oracles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from asmevo.dispatch.dispatch import Dispatch
from asmevo.dispatch.kernel import Kernel


@runtime_checkable
class Oracle(Protocol):
    """Makes the dispatches on which a kernel is judged."""

    def dispatches(self, kernel: Kernel, symbol: str,
                   metadata: Mapping[str, Any]) -> tuple[Dispatch, ...]:
        """All dispatches of ``kernel``, visible ones first; ``metadata`` is of its ``symbol``.

        Raises `AsmEvoError` for a kernel it has none for.
        """
        ...
