"""Ctrl-C."""

from __future__ import annotations

import importlib
import signal
import sys
import time
from pathlib import Path

import pytest

from asmevo.registry.command.interrupt import interruptible


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
