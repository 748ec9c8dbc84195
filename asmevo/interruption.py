"""Ctrl-C as one word, whatever it interrupts."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_AGAIN_S = 0.02


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C come again shortly where it would be lost or become something else.

    Python can only ignore a `KeyboardInterrupt` in a finaliser or in the callback of a weak
    reference. A signal that arrives during a long collection of garbage is raised in the first
    such callback behind it: half of all attempts to stop a team of workers fell into one of
    SQLAlchemy's. And an extension module that is being loaded makes something else of it: NumPy
    prints a traceback and raises an ImportError. The same goes for a SIGTERM that raises it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # no signal is handled here
        return
    waiting: list[threading.Timer] = []

    def again(number: int) -> None:
        timer = threading.Timer(_AGAIN_S, os.kill, (os.getpid(), number))
        timer.daemon = True
        waiting[:] = [timer]
        timer.start()

    def handler(number: int, frame: FrameType | None) -> None:
        if not _loading(frame):
            signal.default_int_handler(number, frame)
        again(number)

    # Somebody else's handler stays, and so does that of a job in the background, which ignores it.
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if usual:
        signal.signal(signal.SIGINT, handler)
    ignored, sys.unraisablehook = sys.unraisablehook, _hook(sys.unraisablehook, again)
    try:
        yield
    finally:
        sys.unraisablehook = ignored
        for timer in waiting:
            timer.cancel()
        if usual:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _hook(otherwise: Callable[[Any], object],
          again: Callable[[int], None]) -> Callable[[Any], object]:
    def hook(ignored: Any) -> None:
        if ignored.exc_type is not KeyboardInterrupt:
            otherwise(ignored)
        elif signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            again(signal.SIGTERM)
        else:
            again(signal.SIGINT)

    return hook


def _loading(frame: FrameType | None) -> bool:
    """Whether an import statement is being carried out."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False
