from __future__ import annotations

import os
import signal
import threading

import pytest

from asmevo.search.interrupt import uninterrupted


def test_ctrl_c_is_delivered_after_the_block() -> None:
    steps = []
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - what runs before the raise is the point
        with uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
            steps.append("first")
            steps.append("second")
        steps.append("not reached")
    assert steps == ["first", "second"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_nothing_happens_without_a_signal() -> None:
    with uninterrupted():
        pass


def test_an_error_inside_restores_the_handler() -> None:
    with pytest.raises(ValueError, match="inside"), uninterrupted():
        raise ValueError("inside")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_threads_are_left_alone() -> None:
    done = []

    def work() -> None:
        with uninterrupted():
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]


def test_a_polite_kill_is_held_back_as_well() -> None:
    steps = []

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        with pytest.raises(KeyboardInterrupt), uninterrupted():  # noqa: PT012
            with uninterrupted():
                os.kill(os.getpid(), signal.SIGTERM)
                steps.append("inner")
            steps.append("outer")
        assert steps == ["inner", "outer"]
        assert signal.getsignal(signal.SIGTERM) is stop
    finally:
        signal.signal(signal.SIGTERM, before)
