"""What values are made of."""

from __future__ import annotations


class Taint:
    """What a value may depend on: bits of plain numbers, as operations of enumerations are slow."""

    KERNARG = 1
    WORKGROUP = 2
    WORK_ITEM = 4
    MEMORY = 8
    LDS = 16
    HARDWARE = 32
    UNDEFINED = 64
    # The path: which of several values it is, or how often a loop was run.
    PATH = 128
