"""Keeping Ctrl-C out of steps that must be done whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back SIGINT until the block is done, then deliver it.

    Without this, Ctrl-C between the registry's transaction and the controller's own count would
    leave the two disagreeing. Outside the main thread Python delivers no signals, so nothing is
    held back there.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[tuple[int, FrameType | None]] = []
    previous = signal.signal(signal.SIGINT, lambda number, frame: held.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
    if held and callable(previous):
        previous(*held[-1])
