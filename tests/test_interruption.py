"""Ctrl-C."""

from __future__ import annotations

import importlib
import signal
import sys
import time
import weakref
from pathlib import Path

import pytest

from asmevo.interruption import interruptible


def test_a_module_is_loaded_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "asmevo_slow_module.py").write_text(
        "import signal\nsignal.raise_signal(signal.SIGINT)\nloaded = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def load() -> None:
        with interruptible():
            importlib.import_module("asmevo_slow_module")
            time.sleep(30)

    with pytest.raises(KeyboardInterrupt):
        load()
    assert sys.modules.pop("asmevo_slow_module").loaded  # gone if its import was interrupted
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_at_once_otherwise() -> None:
    with pytest.raises(KeyboardInterrupt), interruptible():
        signal.raise_signal(signal.SIGINT)


def test_a_handler_of_somebody_else_stays() -> None:
    def theirs(number: int, frame: object) -> None: ...

    before = signal.signal(signal.SIGINT, theirs)
    try:
        with interruptible():
            assert signal.getsignal(signal.SIGINT) is theirs
    finally:
        signal.signal(signal.SIGINT, before)


class Referred:
    """What a weak reference can be made to."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_comes_again_where_python_can_only_ignore_it(
        number: signal.Signals, capsys: pytest.CaptureFixture[str]) -> None:
    def terminate(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, terminate)
    reached = []

    def interrupt() -> None:
        with interruptible():
            target = Referred()
            reference = weakref.ref(target, lambda _: signal.raise_signal(number))
            del target
            reached.append(reference() is None)
            time.sleep(30)

    try:
        with pytest.raises(KeyboardInterrupt):
            interrupt()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert reached == [True]
    assert "ignored" not in capsys.readouterr().err


def test_other_exceptions_that_python_ignores_are_told(
        monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda ignored: told.append(ignored.exc_type))
    with interruptible():
        target = Referred()
        reference = weakref.ref(target, lambda _: [][0])
        del target
        assert reference() is None
    assert told == [IndexError]
