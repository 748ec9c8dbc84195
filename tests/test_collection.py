"""How often Python looks for reference cycles."""

from __future__ import annotations

import gc
import multiprocessing
import signal

import pytest

from asmevo.collection import seldom_collected
from asmevo.search.processes import serve


def test_what_was_set_comes_back() -> None:
    before = gc.get_threshold()
    seen = []

    def broken() -> None:
        with seldom_collected():
            seen.append((gc.get_threshold(), gc.isenabled()))
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        broken()
    assert seen[0][0] > before
    assert seen[0][1]
    assert gc.get_threshold() == before


def _thresholds() -> None:
    raise EOFError(gc.get_threshold())


def test_a_worker_looks_seldom() -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    before, handler = gc.get_threshold(), signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(EOFError) as seen:
            serve(_thresholds, theirs)  # type: ignore[arg-type]
        assert seen.value.args[0] > before
    finally:
        gc.set_threshold(*before)
        signal.signal(signal.SIGINT, handler)
        ours.close()
        theirs.close()
