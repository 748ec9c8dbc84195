"""The roofline's picture has the dispatch where its numbers put it."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from asmevo.profile.arithmetic import Number, OperationClass
from asmevo.profile.profile import MemoryLevel
from asmevo.profile.roofline import Ceiling, Limit, Roofline
from asmevo.report.roofline_plot import caption, ceiling_name, quantity, roofline_plot, to_dict

BF16 = OperationClass(Number.BF16, True)
# 1 GHz: 100 Top/s of matrix operations, 4 TB/s of HBM, 20 TB/s of L2; 10 us.
CEILINGS = (
    Ceiling("hbm bandwidth", Limit.BANDWIDTH, "B", 3.6e7, 4000.0, 0.9, MemoryLevel.HBM),
    Ceiling("bf16 MFMA rate", Limit.MFMA, "op", 3.6e8, 100_000.0, 0.36),
    Ceiling("l2 bandwidth", Limit.BANDWIDTH, "B", 7.2e7, 20000.0, 0.36, MemoryLevel.L2),
)
PLACED = Roofline(
    "M2", "m", 1000, 10_000, {BF16: 3.6e8}, {MemoryLevel.L2: 7.2e7, MemoryLevel.HBM: 3.6e7}, 0.0,
    {MemoryLevel.L2: 5.0, MemoryLevel.HBM: 10.0}, 3.6e13, 4e13, CEILINGS, Limit.BANDWIDTH,
    MemoryLevel.HBM, ("hbm bandwidth used 90.0%",))


def test_points_lie_below_their_slopes_by_the_busy_share() -> None:
    """On logarithmic axes, distances are quotients: a decade has the same length everywhere."""
    drawn = str(roofline_plot(PLACED))
    decades = [float(y) for y in re.findall(
        r'class="grid" x1="62.0" y1="([\d.]+)" x2="[\d.]+" y2="\1"', drawn)]
    decade = decades[0] - decades[1]
    points = {name: (float(x), float(y)) for x, y, name in re.findall(
        r'cx="([\d.]+)" cy="([\d.]+)" r="5"><title>(\w+):', drawn)}
    assert points.keys() == {"L2", "HBM"}
    slopes = re.findall(
        r'class="slope" x1="([\d.]+)" y1="([\d.]+)" x2="([\d.]+)" y2="([\d.]+)"', drawn)
    lines = sorted((tuple(map(float, slope)) for slope in slopes), key=lambda s: s[2])
    for (x1, y1, x2, y2), name, share in zip(lines, ("L2", "HBM"), (0.36, 0.9), strict=True):
        x, y = points[name]
        on_slope = y1 + (x - x1) / (x2 - x1) * (y2 - y1)
        assert (y - on_slope) / decade == pytest.approx(-math.log10(share), abs=0.01)
    (roof,) = re.findall(r'class="roof" x1="[\d.]+" y1="([\d.]+)"', drawn)
    assert (points["HBM"][1] - float(roof)) / decade == pytest.approx(-math.log10(0.36), abs=0.01)


def test_the_caption_names_placement_and_limit() -> None:
    assert caption(PLACED) == ("36 Top/s of 40 Top/s attainable (90 %), 10 op/B at HBM; the limit "
                               "is HBM bandwidth.")
    waiting = replace(PLACED, limit=Limit.LATENCY, level=None, achieved=0.0, attainable=0.0)
    assert caption(waiting) == "No arithmetic is counted; the limit is latency."
    assert [ceiling_name(c) for c in CEILINGS] == [
        "HBM bandwidth", "bf16 MFMA rate", "L2 bandwidth"]
    assert to_dict(PLACED)["utilisation"] == {
        "HBM bandwidth": 0.9, "bf16 MFMA rate": 0.36, "L2 bandwidth": 0.36}


def test_without_operations_or_bytes_there_is_no_picture() -> None:
    assert roofline_plot(replace(PLACED, achieved=0.0)) is None
    assert roofline_plot(replace(PLACED, intensity={})) is None
    assert roofline_plot(replace(PLACED, ceilings=CEILINGS[:1])) is None


def test_hostile_names_are_escaped() -> None:
    odd = (*CEILINGS[::2], replace(CEILINGS[1], name="<script>&"))
    drawn = str(roofline_plot(replace(PLACED, ceilings=odd)))
    assert "<script" not in drawn
    assert "&lt;script&gt;&amp;" in drawn


@pytest.mark.parametrize(("value", "text"), [
    (1.634e15, "1.63 P"), (9.5e11, "950 G"), (1000.0, "1 k"), (12.0, "12 ")])
def test_quantities(value: float, text: str) -> None:
    assert quantity(value) == text
