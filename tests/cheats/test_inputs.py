"""Inputs that ask for nothing (B12)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from asmevo.gates.baseline import OracleError
from asmevo.task.session import Session


@pytest.mark.parametrize(
    ("overrides", "word"),
    [
        (("kernel=aiter_topksoftmax", "kernel.scalars.0.value=0"), "unwritten"),
        (("kernel.scalars.0.value=nan",), "never anything but"),
    ],
)
def test_a_vacuous_oracle_is_refused(
    configure: Callable[..., Session], overrides: tuple[str, ...], word: str
) -> None:
    """The original writes nothing, or nothing but NaN: any kernel would equal it."""
    session = configure(*overrides)
    with pytest.raises(OracleError, match=word):
        session.baseline.self_check(session.gates.tolerance)
