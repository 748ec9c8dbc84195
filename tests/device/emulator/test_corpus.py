"""Every gfx942 object of AITER becomes a program of the emulator, or says by name why not."""

from __future__ import annotations

from importlib.metadata import files
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from asmevo.codeobject.container import CodeObject
from asmevo.device.device import UnsupportedError
from asmevo.device.emulator.emulator import Emulator

if TYPE_CHECKING:
    from asmevo.device.emulator.timing import TimingModel


@pytest.mark.corpus
def test_every_object_loads() -> None:
    objects = [Path(str(f.locate())) for f in files("amd-aiter") or ()
               if "/hsa/gfx942/" in str(f) and f.suffix == ".co"]
    assert len(objects) > 1000
    emulator = Emulator("test", cast("TimingModel", None))
    refused = {}
    for path in objects:
        code = CodeObject.parse(path.read_bytes())
        try:
            emulator.load(code, code.kernels[0].symbol)
        except UnsupportedError as refusal:
            refused[path.name] = str(refusal)
    assert refused == {}
