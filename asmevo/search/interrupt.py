"""Keeping Ctrl-C, and a polite kill, out of steps that must be done whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back SIGINT and SIGTERM until the block is done, then deliver the last of them.

    Without this, Ctrl-C between the registry's transaction and the controller's own count would
    leave the two disagreeing. Outside the main thread Python delivers no signals, so nothing is
    held back there.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[tuple[int, FrameType | None]] = []
    previous = {
        number: signal.signal(number, lambda number, frame: held.append((number, frame)))
        for number in _SIGNALS
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            # None: a handler that is not Python's own, which cannot be put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
    if held:
        handler = previous[signal.Signals(held[-1][0])]
        if callable(handler):
            handler(*held[-1])
        elif handler is signal.SIG_DFL:
            signal.raise_signal(held[-1][0])
