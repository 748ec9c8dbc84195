"""Strides that fit rows whose length only the code knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from asmevo.dispatch.inferred.argument import Use
from asmevo.dispatch.inferred.probing import Launched, Prober, RefusedLaunch, first_sizes

_MOST_FACTOR = 512


def with_strides(prober: Prober, launch: Launched, axes: Sequence[int]) -> Launched:
    """Strides so large that rows do not overlap: until no more bytes are written.

    First those within a workgroup become as small as they can, which closes gaps: strides are in
    elements of one kernel and in bytes of another. ``axes`` are those of the grid that the kernel
    knows of. Raises `RefusedLaunch` where ``launch`` is none.
    """
    strides = [s.name for s in prober.scalars if s.use is Use.STRIDE]
    if not strides:
        return launch
    launch = _closed(prober, launch)
    x, y, z = (2 if axis in axes else 1 for axis in range(3))
    rows = replace(launch, grid=(x, y, z))
    try:
        current = prober.touched(rows, first_sizes(prober.pointers), exact=False)
    except RefusedLaunch:
        rows = launch
        current = prober.touched(rows, first_sizes(prober.pointers), exact=False)
    for name in strides:
        factor, tried = 1, launch
        while factor < _MOST_FACTOR:
            factor *= 2
            tried = with_scalar(tried, name, 2 * int(tried.scalars[name]))
            try:
                larger = prober.touched(replace(tried, grid=rows.grid), current.extents,
                                        exact=False)
            except RefusedLaunch:
                break
            if larger.written_bytes <= current.written_bytes:
                break
            launch, current = tried, larger
    return launch


def _closed(prober: Prober, launch: Launched) -> Launched:
    """The smallest strides with which one workgroup still writes as many bytes."""
    wanted = prober.touched(launch, first_sizes(prober.pointers), exact=False)
    for scalar in prober.scalars:
        if not scalar.addresses or scalar.use is Use.UNUSED:
            continue
        tried, smallest = launch, None
        while smallest is None and int(tried.scalars[scalar.name]) > 1:
            smaller = with_scalar(tried, scalar.name, int(tried.scalars[scalar.name]) // 2)
            try:
                found = prober.touched(smaller, wanted.extents, exact=False)
            except RefusedLaunch:
                break
            if found.written_bytes < wanted.written_bytes:
                smallest = tried
            tried = smaller
        launch = smallest or launch
    return launch


def with_scalar(launch: Launched, name: str, value: int) -> Launched:
    return replace(launch, scalars={**launch.scalars, name: value})
