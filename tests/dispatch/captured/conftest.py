"""A small capture: two allocations of one segment, one of two, a pointer to a pointer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from asmevo.dispatch.captured.capture import Allocation, Capture, PointerField, Segment
from asmevo.dispatch.captured.folder import DOCUMENT, read_capture, write_capture
from asmevo.dispatch.dispatch import ElementType, Role

OBJECT = b"\x7fELF, as far as a capture is concerned"
X, TABLE, OUT = 0x7F00_0000_0000, 0x7F00_0020_0000, 0x7F00_0040_0000

Change = Callable[[dict[str, Any]], object]


def make_capture(name: str = "m4", **changes: Any) -> Capture:
    table = X.to_bytes(8, "little") + (OUT + 64).to_bytes(8, "little") + bytes(48)
    values: dict[str, Any] = {
        "name": name, "code_object": hashlib.sha256(OBJECT).hexdigest(), "kernel": "k",
        "kernarg": TABLE.to_bytes(8, "little") + (7).to_bytes(8, "little"),
        "grid": (256, 2, 1), "workgroup": (64, 1, 1), "dynamic_lds": 512,
        "allocations": (
            Allocation("x", X, 1024, (Segment(0, bytes(range(256)) * 4, bytes(range(256)) * 4,
                                              Role.INPUT),), ElementType.F32),
            Allocation("table", TABLE, 64, (Segment(0, table, table),)),
            Allocation("out", OUT, 4 * 4096, (
                Segment(0, bytes(128), b"\1" * 128, Role.OUTPUT, True),
                Segment(8192, b"\2" * 256, b"\3" * 256),
            ), ElementType.BF16, order_dependent=True),
        ),
        "pointers": (PointerField(0, 1), PointerField(0, 0, 1), PointerField(8, 2, 1)),
        "origin": "a test",
    }
    return Capture(**{**values, **changes})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A capture on disk, with its code object."""
    path = tmp_path / "captures" / "m4"
    write_capture(make_capture(), path, code_object=OBJECT)
    return path


@pytest.fixture
def changed(folder: Path) -> Callable[[Change], Capture]:
    """Reads the capture after a change to its document."""

    def read_changed(change: Change) -> Capture:
        document = json.loads((folder / DOCUMENT).read_text())
        change(document)
        (folder / DOCUMENT).write_text(json.dumps(document))
        return read_capture(folder)

    return read_changed
