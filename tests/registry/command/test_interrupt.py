"""Ctrl-C."""

from __future__ import annotations

import signal

import pytest

from asmevo.registry.command.interrupt import interruptible


def test_what_an_extension_makes_of_it_is_still_an_interrupt() -> None:
    def load() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("numpy._core.umath failed to import") from None

    with pytest.raises(KeyboardInterrupt), interruptible():
        load()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_errors_stay() -> None:
    with pytest.raises(ImportError), interruptible():
        raise ImportError("none of that name")
