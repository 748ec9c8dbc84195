"""How names and numbers are told."""

from __future__ import annotations

import pytest

from asmevo.registry.names import counted


@pytest.mark.parametrize(("number", "told"), [
    (0, "0 blobs"), (1, "1 blob"), (2, "2 blobs"), (1234, "1,234 blobs")])
def test_one_is_not_many(number: int, told: str) -> None:
    assert counted(number, "blob") == told
