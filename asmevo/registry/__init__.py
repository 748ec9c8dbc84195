"""The artifact registry: SQLite rows and content-addressed blobs.

`pull` hands out a verified replacement; a deployment script needs nothing else::

    from asmevo.registry import PullError, pull

    found = pull("/srv/registry", original="layer_norm.co", device="gfx942:sramecc+:xnack-")

Importing this package, also for these names, loads neither SQLAlchemy nor NumPy, so that a
deployment script starts quickly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asmevo.registry.errors import PullError, PullRefusal

if TYPE_CHECKING:
    from asmevo.registry.delivery.pull import Policy, Replacement, Skipped, pull

__all__ = ["Policy", "PullError", "PullRefusal", "Replacement", "Skipped", "pull"]


def __getattr__(name: str) -> object:
    if name in __all__:
        from asmevo.registry.delivery import pull as module

        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
