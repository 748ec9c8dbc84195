"""A roofline as SVG and in words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from asmevo.profile.profile import MemoryLevel
from asmevo.profile.roofline import Ceiling, Roofline
from asmevo.report.causes import LEVELS

_WIDTH, _HEIGHT = 620, 390
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 22, 14, 40
_SHOWN_PART = 0.05  # of all operations, below which a class gets no roof
_NAME = 46    # half the length of a slope's name
_APART = 60  # pixels from which names of points stand beside each other
_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True, slots=True)
class _Axes:
    """Decades of operations a byte and operations a second, to pixels."""

    left: int
    right: int
    low: int
    high: int

    def x(self, intensity: float) -> float:
        part = (math.log10(intensity) - self.left) / (self.right - self.left)
        return _LEFT + part * (_WIDTH - _LEFT - _RIGHT)

    def y(self, rate: float) -> float:
        part = (math.log10(rate) - self.low) / (self.high - self.low)
        return _HEIGHT - _BOTTOM - part * (_HEIGHT - _TOP - _BOTTOM)


def roofline_plot(roofline: Roofline) -> Markup | None:
    """Operations a second over operations a byte, both logarithmic: a slope for the bandwidth of
    each level of memory, a flat roof for each class of operations, and the dispatch over its
    intensity at each level. ``None`` for a dispatch without operations or bytes.
    """
    slopes = [c for c in roofline.ceilings if c.level is not None and c.level in roofline.intensity]
    roofs = [c for c in roofline.ceilings
             if c.unit == "op" and c.work >= _SHOWN_PART * sum(roofline.operations.values())]
    if not slopes or not roofs or roofline.achieved <= 0:
        return None
    axes = _axes(roofline, slopes, roofs)
    drawn = [*_grid(axes), *_slopes(roofline, axes, slopes, roofs), *_roofs(roofline, axes, roofs),
             *_points(roofline, axes)]
    return Markup(  # noqa: S704 - names are escaped where they are drawn
        f'<svg class="roofline" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{escape(caption(roofline))}"><defs><clipPath id="plot"><rect x="{_LEFT}" '
        f'y="{_TOP}" width="{_WIDTH - _LEFT - _RIGHT}" height="{_HEIGHT - _TOP - _BOTTOM}"/>'
        f'</clipPath></defs>{"".join(drawn)}</svg>')


def caption(roofline: Roofline) -> str:
    """Placement and limit in one sentence."""
    if roofline.achieved <= 0:
        return f"No arithmetic is counted; the limit is {limit(roofline)}."
    nearest = [f"{value:.3g} op/B at {LEVELS[level]}"
               for level, value in roofline.intensity.items()]
    return (f"{quantity(roofline.achieved)}op/s of {quantity(roofline.attainable)}op/s attainable "
            f"({100 * roofline.achieved / roofline.attainable:.0f} %)"
            + (f", {nearest[-1]}" if nearest else "") + f"; the limit is {limit(roofline)}.")


def ceiling_name(ceiling: Ceiling) -> str:
    return (ceiling.name if ceiling.level is None
            else f"{LEVELS[ceiling.level]} {ceiling.limit.value}")


def limit(roofline: Roofline) -> str:
    """What holds the dispatch down."""
    if roofline.level is None:
        return roofline.limit.value
    return f"{LEVELS[roofline.level]} {roofline.limit.value}"


def to_dict(roofline: Roofline) -> dict[str, Any]:
    """What ``result.json`` says of it."""
    return {
        "machine": roofline.machine, "limit": roofline.limit.value,
        "level": None if roofline.level is None else roofline.level.value,
        "operations_per_second": roofline.achieved,
        "attainable_operations_per_second": roofline.attainable,
        "operations": {str(kind): count for kind, count in roofline.operations.items()},
        "bytes": {level.value: count for level, count in roofline.bytes.items()},
        "lds_bytes": roofline.lds_bytes,
        "intensity": {level.value: value for level, value in roofline.intensity.items()},
        "utilisation": {ceiling_name(ceiling): ceiling.utilisation
                        for ceiling in roofline.ceilings},
        "evidence": list(roofline.evidence), "caption": caption(roofline),
    }


def quantity(value: float) -> str:
    """With a unit prefix: ``1.63 P``."""
    for factor, prefix in _PREFIXES:
        if value >= factor:
            return f"{value / factor:.3g} {prefix}"
    return f"{value:.3g} "


def _rate(ceiling: Ceiling, roofline: Roofline) -> float:
    """A second, of the whole device."""
    return ceiling.rate * roofline.clock_mhz * 1e6


def _axes(roofline: Roofline, slopes: list[Ceiling], roofs: list[Ceiling]) -> _Axes:
    rates = [_rate(roof, roofline) for roof in roofs]
    top = max(rates)
    ridges = [top / _rate(slope, roofline) for slope in slopes]
    intensities = [value for value in roofline.intensity.values() if value > 0]
    left = math.floor(math.log10(min([*intensities, *ridges]) / 8))
    right = math.ceil(math.log10(max([*intensities, *ridges]) * 2))
    high = math.ceil(math.log10(top * 1.2))
    low = math.floor(math.log10(min(roofline.achieved, *rates) / 2))
    return _Axes(left, max(right, left + 2), min(low, high - 2), high)


def _line(kind: str, x1: float, y1: float, x2: float, y2: float, clip: bool = True) -> str:
    inside = ' clip-path="url(#plot)"' if clip else ""
    return (f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
            f"{inside}/>")


def _text(x: float, y: float, text: str, anchor: str = "start", turn: float = 0.0,
          beside: int = 0) -> str:
    """``beside`` is how far from the point, across the direction in which the text runs."""
    turned = f' transform="rotate({turn:.1f} {x:.1f} {y:.1f})"' if turn else ""
    return (f'<text x="{x:.1f}" y="{y:.1f}" dy="{beside}" text-anchor="{anchor}"{turned}>'
            f"{escape(text)}</text>")


def _grid(axes: _Axes) -> Iterator[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    for decade in range(axes.left, axes.right + 1):
        x = axes.x(10.0 ** decade)
        yield _line("grid", x, _TOP, x, bottom, clip=False)
        yield _text(x, bottom + 15, f"{10.0 ** decade:g}", "middle")
    for decade in range(axes.low, axes.high + 1):
        y = axes.y(10.0 ** decade)
        yield _line("grid", _LEFT, y, right, y, clip=False)
        yield _text(_LEFT - 6, y + 4, quantity(10.0 ** decade), "end")
    yield _line("axis", _LEFT, bottom, right, bottom, clip=False)
    yield _line("axis", _LEFT, _TOP, _LEFT, bottom, clip=False)
    yield _text((_LEFT + right) / 2, _HEIGHT - 8, "operations a byte", "middle")
    yield _text(14, (_TOP + bottom) / 2, "operations a second", "middle", -90)


def _slopes(roofline: Roofline, axes: _Axes, slopes: list[Ceiling],
            roofs: list[Ceiling]) -> Iterator[str]:
    top = max(_rate(roof, roofline) for roof in roofs)
    first = 10.0 ** axes.left
    for number, slope in enumerate(sorted(slopes, key=lambda c: _rate(c, roofline))):
        assert slope.level is not None
        bandwidth = _rate(slope, roofline)
        ridge = top / bandwidth
        start = max(first, 10.0 ** axes.low / bandwidth)
        x1, y1 = axes.x(start), axes.y(start * bandwidth)
        x2, y2 = axes.x(ridge), axes.y(top)
        yield _line("slope", x1, y1, x2, y2)
        angle = math.degrees(math.atan2(y2 - y1, x2 - x1))
        # On alternate sides, since slopes may be near one another, and below the roof.
        at = max(min(x1 + 0.45 * (x2 - x1), x2 - _NAME * math.cos(math.radians(angle))), x1 + 4)
        yield _text(at, y1 + (at - x1) / (x2 - x1) * (y2 - y1),
                    f"{LEVELS[slope.level]} {quantity(bandwidth)}B/s", "middle", angle,
                    beside=-4 if number % 2 else 12)


def _roofs(roofline: Roofline, axes: _Axes, roofs: list[Ceiling]) -> Iterator[str]:
    fastest = max(_rate(slope, roofline) for slope in roofline.ceilings if slope.level is not None)
    for roof in roofs:
        rate = _rate(roof, roofline)
        yield _line("roof", axes.x(rate / fastest), axes.y(rate), _WIDTH - _RIGHT, axes.y(rate))
        yield _text(_WIDTH - _RIGHT - 4, axes.y(rate) - 5,
                    f"{roof.name} {quantity(rate)}op/s", "end")


def _points(roofline: Roofline, axes: _Axes) -> Iterator[str]:
    y = axes.y(roofline.achieved)
    reachable = axes.y(max(roofline.attainable, roofline.achieved))
    groups: list[tuple[float, list[MemoryLevel]]] = []
    for level in sorted(roofline.intensity, key=lambda each: roofline.intensity[each]):
        x = axes.x(roofline.intensity[level])
        yield _line("drop", x, y, x, reachable)
        told = f"{LEVELS[level]}: {roofline.intensity[level]:.3g} op/B, " \
               f"{quantity(roofline.achieved)}op/s"
        yield (f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="5">'
               f"<title>{escape(told)}</title></circle>")
        if groups and x - groups[-1][0] < _APART:
            groups[-1][1].append(level)
        else:
            groups.append((x, [level]))
    for x, levels in groups:
        yield _text(x, y + 18, ", ".join(LEVELS[level] for level in levels), "middle")
