"""Kernel times that AITER's tuner and benchmarks measured on MI308X and MI300X.

The table is data/tuned_gfx942.csv: facts from files of the public repository ROCm/aiter (column
``source``), of the tuner's results those of assembly kernels. Its tuner runs a kernel 101 times
with as many copies of its arguments as fit (``run_perftest`` in aiter/test_common.py), so that
caches hold nothing of use at the start, drops outliers and gives the mean of the profiler's device
time over everything that one call launches: clearing an output counts.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from asmevo.errors import AsmEvoError

_COLUMNS = ("family", "kernel", "compute_units", "shape", "microseconds", "source")
_SIZE = re.compile(r"([A-Z]+)=([1-9][0-9]*)")


class TunedTableError(AsmEvoError):
    """A line of the table is not a measurement."""


@dataclass(frozen=True, slots=True)
class TunedRow:
    """One measured time of ``kernel``, named as its code object is, without what mangling adds.

    ``sizes`` are those that `shape` names: of a product M, N, K and the S workgroups that share the
    depth; of a mixture of experts T tokens, D model and I inner dimension, E experts, K of them for
    a token; of attention B batches, S queries, T keys, H heads and R of them to a head of keys.
    """

    family: str
    kernel: str
    compute_units: int
    shape: str
    microseconds: float
    source: str

    @property
    def sizes(self) -> Mapping[str, int]:
        return {name: int(value) for name, value in _SIZE.findall(self.shape)}


def tuned_rows() -> tuple[TunedRow, ...]:
    """All measurements, each line of the table one."""
    text = files("asmevo.validation").joinpath("data/tuned_gfx942.csv").read_text("utf-8")
    return read_rows(text)


def read_rows(text: str) -> tuple[TunedRow, ...]:
    """The rows of a table. Raises `TunedTableError` naming the line that is wrong."""
    lines = csv.reader(io.StringIO(text))
    head = next(lines, [])
    if tuple(head) != _COLUMNS:
        raise TunedTableError(f"the table's columns are {', '.join(head)}, not "
                              f"{', '.join(_COLUMNS)}")
    return tuple(_row(line, lines.line_num) for line in lines)


def _row(line: Sequence[str], number: int) -> TunedRow:
    if len(line) != len(_COLUMNS):
        raise TunedTableError(f"line {number} has {len(line)} columns, not {len(_COLUMNS)}")
    family, kernel, units, shape, microseconds, source = line
    for column, value in zip(_COLUMNS, line, strict=True):
        if not value:
            raise TunedTableError(f"line {number} has no {column}")
    if not units.isdecimal() or int(units) < 1:
        raise TunedTableError(f"line {number}: '{units}' compute units")
    sizes = shape.split(" ")
    names = [size.partition("=")[0] for size in sizes]
    if not all(_SIZE.fullmatch(size) for size in sizes) or len(set(names)) < len(names):
        raise TunedTableError(f"line {number}: the shape '{shape}' is not a list of sizes")
    try:
        measured = float(microseconds)
    except ValueError:
        measured = math.nan
    if not (math.isfinite(measured) and measured > 0):
        raise TunedTableError(f"line {number}: the time '{microseconds}' is not one")
    return TunedRow(family, kernel, int(units), shape, measured, source)


def at_most(rows: Iterable[TunedRow], count: int) -> list[TunedRow]:
    """At most ``count`` rows of each family on each machine, spread evenly over its times."""
    groups: dict[tuple[str, int], list[TunedRow]] = {}
    for row in rows:
        groups.setdefault((row.family, row.compute_units), []).append(row)
    chosen = []
    for members in groups.values():
        ordered = sorted(members, key=lambda row: (row.microseconds, row.kernel, row.shape))
        taken = min(count, len(ordered))
        # The middle of each of `taken` equal parts.
        chosen += [ordered[(2 * part + 1) * len(ordered) // (2 * taken)] for part in range(taken)]
    return chosen
