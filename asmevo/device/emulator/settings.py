"""What the emulator may be told, checked before a launch trips over it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable

from asmevo.errors import AsmEvoError

_MAX_THREADS = 256  # what the core takes
_MAX_BUDGET = (1 << 63) - 1
_MAX_SECONDS = 10**9


class SettingError(AsmEvoError):
    """A setting of the device that it cannot have; the sentence names it and what it may be."""


def thread_count(threads: object) -> int:
    """Host threads of a launch; ``auto`` is one for each CPU that this process may use."""
    if threads == "auto":
        return min(len(os.sched_getaffinity(0)), _MAX_THREADS)
    return _whole("threads", threads, _MAX_THREADS, " or auto")


def instruction_budget(budget: object) -> int:
    """Wave-instructions of one launch."""
    return _whole("instruction_budget", budget, _MAX_BUDGET)


def watchdog_seconds(seconds: object) -> float:
    """Host time of one launch; 0 is no limit."""
    if (isinstance(seconds, bool) or not isinstance(seconds, int | float)
            or not 0 <= seconds <= _MAX_SECONDS or math.isnan(seconds)):
        raise SettingError(f"device.watchdog_seconds must be a number from 0 (no limit) to "
                           f"{_MAX_SECONDS}, not {_shown(seconds)}")
    return float(seconds)


def one_of(name: str, given: object, choices: Iterable[str]) -> str:
    """A setting that is one of a few words."""
    known = [str(choice) for choice in choices]
    if given not in known:
        raise SettingError(f"device.{name} must be one of {', '.join(known)}, not {_shown(given)}")
    return str(given)


def _whole(name: str, given: object, largest: int, alternative: str = "") -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= largest:
        raise SettingError(f"device.{name} must be a whole number from 1 to {largest}"
                           f"{alternative}, not {_shown(given)}")
    return given


def _shown(given: object) -> str:
    return f"'{given}'" if isinstance(given, str) else "null" if given is None else str(given)
