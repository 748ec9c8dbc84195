"""A small kernel that isolates one published figure, and what to read off its runs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from asmevo.profile.profile import StallCause
from asmevo.validation.row import Basis, Confidence

LINE_BYTES = 128


class Quantity(StrEnum):
    """What a microbenchmark reads off its runs."""

    CLK = "clk"              # of one operation: latency in a dependent chain, else reciprocal rate
    RATIO = "x"              # of that to the same of another body
    BANDWIDTH = "TB/s"       # 10^12 bytes a second, all compute units together
    OUTSTANDING = "loads"    # loads that issued before the first that stood


@dataclass(frozen=True, slots=True)
class Chase:
    """Dependent loads through lines of 128 bytes in random order, ``footprint`` bytes in all.

    ``warm``: every line has been loaded once before time is taken, so that lines are found in the
    smallest cache that holds them all. Otherwise each is touched for the first time.
    """

    footprint: int
    warm: bool = True


@dataclass(frozen=True, slots=True)
class Stream:
    """A launch of one workgroup of four waves a compute unit that moves memory.

    ``size`` is the bytes that one work-item moves in one copy of the body, both ways together,
    ``span`` those it advances in each buffer. v1 is its byte offset, s16 that of all work-items
    together (16 bytes each).
    """

    size: int
    span: int


@dataclass(frozen=True, slots=True)
class Microbenchmark:
    """A loop over copies of ``body`` run by one workgroup, and the figure that it should give.

    Of four waves, one a SIMD, those in ``waves`` run the loop and the rest end at once; with
    ``other``, four more waves, the second of each SIMD, loop over copies of that. ``operations`` of
    what is measured are in one copy of all bodies that share what is measured. ``overhead`` is clk
    of a copy that are not it: the issue of a wait. ``head`` is at the start of the loop, ``setup``
    before it. ``reference`` is the other body of a ratio, ``stall`` what ends OUTSTANDING.
    ``copies`` of the body in a loop, the fewer and the more, where the usual numbers do not fill
    what is measured. ``compute_units`` names the machine that the figure is of, None any.

    s[4:5] and s[6:7] point to two buffers, s[12:15] is the first as a buffer resource, v0 is the
    work-item, v1 4 times that, m0 is 0, s8 counts rounds. Bodies may use v8 to v63, a0 and up, and
    s20 and up.
    """

    name: str
    expected: float
    source: str
    confidence: Confidence
    basis: Basis
    body: tuple[str, ...]
    quantity: Quantity = Quantity.CLK
    operations: int = 1
    overhead: int = 0
    waves: tuple[int, ...] = (0,)
    other: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    head: tuple[str, ...] = ()
    reference: tuple[str, ...] = ()
    chase: Chase | None = None
    stream: Stream | None = None
    stall: StallCause | None = None
    copies: tuple[int, int] | None = None
    compute_units: int | None = None
    note: str = ""
    judged: bool = True
