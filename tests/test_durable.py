"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from asmevo.durable import new_file, write_atomically


def test_a_pipe_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="device, pipe or socket"):
        write_atomically(tmp_path / "pipe", b"data")
    with pytest.raises(OSError, match="device, pipe or socket"), \
            new_file(tmp_path / "pipe", overwrite=True) as file:
        file.write(b"data")
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]
    assert (tmp_path / "pipe").is_fifo()
