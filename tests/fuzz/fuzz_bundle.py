"""Coverage-guided fuzzing of the container readers; see README.md beside this file."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["asmevo.bundle", "asmevo.codeobject", "zipfile"]):
    from asmevo.bundle.errors import BundleError
    from asmevo.bundle.listing import list_objects

DIRECTORY = tempfile.TemporaryDirectory(prefix="asmevo-fuzz-")
SAMPLE = Path(DIRECTORY.name) / "sample"


def read_everything(data: bytes) -> None:
    """Anything but a `BundleError` that comes out of here is a defect."""
    SAMPLE.write_bytes(data)
    try:
        for listed in list_objects(SAMPLE):
            assert listed.refused is None or "\n" not in listed.refused
    except BundleError:
        pass


if __name__ == "__main__":
    atheris.Setup(sys.argv, read_everything)
    atheris.Fuzz()
