"""The emulator refuses settings that it cannot have, in one sentence that names them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from asmevo.device.emulator.emulator import Emulator, MatrixSums
from asmevo.device.emulator.settings import SettingError


@pytest.mark.parametrize(("name", "values"), [
    ("threads", ["x", -3, 0, 1.5, None, True, 10**9, []]),
    ("instruction_budget", ["x", -1, 0, 1e99, None, 1 << 64, False]),
    ("watchdog_seconds", ["x", -1, math.nan, math.inf, None, True]),
    ("matrix_sums", ["foo", None, 3, []]),
    ("timing", ["x", 5]),
])
def test_a_wrong_setting_is_named(name: str, values: list[Any]) -> None:
    for value in values:
        given: dict[str, Any] = {"timing": None, name: value}
        with pytest.raises(SettingError, match=rf"^device\.{name} must be") as caught:
            Emulator("e", **given)
        assert "\n" not in str(caught.value)


def test_choices_are_listed() -> None:
    with pytest.raises(SettingError, match="one of sequential, cdna3, not 'foo'"):
        Emulator("e", None, matrix_sums="foo")


def test_what_settings_may_be() -> None:
    emulator = Emulator("e", None, instruction_budget=1, threads="auto", watchdog_seconds=0,
                        matrix_sums="cdna3")
    assert emulator.threads >= 1
    assert emulator.matrix_sums is MatrixSums.CDNA3
