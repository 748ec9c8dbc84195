"""Matrices that a host reorders so that a wavefront loads its operand in one piece."""

from __future__ import annotations

import numpy as np

from asmevo.operation.operation import Array

_LINE_BYTES = 16  # what a lane loads at once


def in_rows(stored: Array, rows: int, columns: int, tile: int = 16) -> Array:
    """The matrices ``[..., rows, columns]`` of a flat buffer in preshuffled order.

    A tile of ``tile`` rows is stored as lines of 16 bytes: the first line of each of its rows, then
    the second line of each, and so on. ``shuffle_weight(w, (16, 16))`` of AITER's host code makes
    that order, whatever the element size.
    """
    line = _LINE_BYTES // stored.itemsize
    if rows % tile or columns % line:
        raise ValueError(f"{rows} x {columns} elements do not make tiles of {tile} rows by "
                         f"{line} columns")
    tiles = stored.reshape(-1, rows // tile, columns // line, tile, line)
    return np.ascontiguousarray(tiles.swapaxes(2, 3)).reshape(-1, rows, columns)
