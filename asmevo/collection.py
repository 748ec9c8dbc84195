"""How often Python looks for reference cycles."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

# A search makes thousands of small objects for each candidate, nearly none of which is part of a
# cycle, beside caches of a million that live for long: with Python's own thresholds (700, 10, 10),
# looking through these took 8 to 15 % of a worker's time.
_SELDOM = (50_000, 20, 20)


def collect_seldom() -> None:
    """Look for cycles less often from now on in this process."""
    gc.set_threshold(*_SELDOM)


@contextlib.contextmanager
def seldom_collected() -> Iterator[None]:
    """Look for cycles less often for a while."""
    before = gc.get_threshold()
    collect_seldom()
    try:
        yield
    finally:
        gc.set_threshold(*before)
