"""Ctrl-C as one word, whatever it interrupts."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_AGAIN_S = 0.02


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C wait until no module is being loaded.

    An extension module makes something else of a `KeyboardInterrupt`: NumPy prints a traceback and
    raises an ImportError.
    """
    if (threading.current_thread() is not threading.main_thread()
            or signal.getsignal(signal.SIGINT) is not signal.default_int_handler):
        yield  # somebody else's handler, or none as of a job in the background
        return
    waiting: list[threading.Timer] = []

    def handler(number: int, frame: FrameType | None) -> None:
        if not _loading(frame):
            signal.default_int_handler(number, frame)
        again = threading.Timer(_AGAIN_S, os.kill, (os.getpid(), signal.SIGINT))
        again.daemon = True
        waiting[:] = [again]
        again.start()

    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        for timer in waiting:
            timer.cancel()
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _loading(frame: FrameType | None) -> bool:
    """Whether an import statement is being carried out."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False
