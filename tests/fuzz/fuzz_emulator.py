"""Random launches of the emulator; see README.md beside this file.

The C++ core gives atheris no coverage, so this is a generator more than a search. Its oracles are
the core's sanitizers (build as `.ci/sanitize` does) and that two threads do what one does.
"""

from __future__ import annotations

import sys

import atheris
import numpy as np

from tests.device.emulator.random_launch import draw


def launch(data: bytes) -> None:
    # The fuzzer likes short inputs; programs want long ones.
    if len(data) < 900:
        data += np.random.default_rng(list(data)).bytes(900 - len(data))
    drawn = draw(data)
    alone = drawn.run(1)
    assert drawn.run(2) == alone
    drawn.run(1, traced=True)
    drawn.run(1, checked=True)


if __name__ == "__main__":
    atheris.Setup(sys.argv, launch)
    atheris.Fuzz()
