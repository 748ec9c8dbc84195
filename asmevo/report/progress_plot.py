"""How the speedup grew, over attempts or over time, as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from asmevo.failure import printable
from asmevo.report.directions import css_class
from asmevo.report.search_state import NodeState, Point, SearchState

_WIDTH, _HEIGHT = 600, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 20, 14, 42
_MOST = 4000   # candidates drawn
_APART = 26    # pixels from which numbers of nodes stand beside each other


@dataclass(frozen=True, slots=True)
class _Axes:
    last: float
    low: float
    high: float

    def x(self, value: float) -> float:
        return _LEFT + value / self.last * (_WIDTH - _LEFT - _RIGHT)

    def y(self, speedup: float) -> float:
        part = (speedup - self.low) / (self.high - self.low)
        return _HEIGHT - _BOTTOM - min(max(part, 0.0), 1.0) * (_HEIGHT - _TOP - _BOTTOM)


def progress_plot(state: SearchState, over: str) -> Markup:
    """``over`` is ``attempts`` or ``seconds``. Dots are timed candidates, circles commits, and the
    line is the best verified so far. Candidates slower than the axis lie on its edge.
    """
    best = state.best
    if best is None:
        return Markup()
    by_attempt = over == "attempts"

    def at(what: Point | NodeState) -> float:
        return float(what.attempt) if by_attempt else what.seconds

    last = max(float(state.judged + state.duplicates) if by_attempt else state.seconds, 1e-9)
    axes = _Axes(last, *_range(state.points, best.speedup))
    steps = [(0.0, 1.0)]
    for node in state.nodes[1:]:
        if node.speedup > steps[-1][1]:
            steps.append((at(node), node.speedup))
    unit = "attempts" if by_attempt else "seconds"
    told = (f"Best verified speedup over {unit}: from 1 to {best.speedup:.4f}x in "
            f"{state.commits} commits; {len(state.points)} candidates were timed.")
    drawn = [*_grid(axes, unit), *_dots(state.points, axes, at), _staircase(steps, axes, last),
             *_nodes(state.nodes[1:], axes, at)]
    return Markup(  # noqa: S704 - names are escaped where they are drawn
        f'<svg class="plot" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-labelledby="over-{unit} told-{unit}"><title id="over-{unit}">Speedup over {unit}'
        f'</title><desc id="told-{unit}">{escape(told)}</desc>{"".join(drawn)}</svg>')


def ticks(low: float, high: float, about: int) -> list[float]:
    """Round numbers from ``low`` to ``high``."""
    rough = (high - low) / max(about, 1)
    if not rough > 0:
        return [low]
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(n * power for n in (1, 2, 5, 10) if n * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [n * step for n in range(first, math.floor(high / step + 1e-9) + 1)]


def _range(points: Sequence[Point], best: float) -> tuple[float, float]:
    """From a little below the original to a little above the best."""
    gain = max(best - 1.0, 0.005)
    slowest = min((p.speedup for p in points), default=1.0)
    return max(min(slowest, 1.0), 1.0 - 0.6 * gain) - 0.06 * gain, best + 0.12 * gain


def _grid(axes: _Axes, unit: str) -> Iterator[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    steps = ticks(axes.low, axes.high, 5)
    digits = max(2, math.ceil(-math.log10(steps[1] - steps[0]) - 1e-9)) if len(steps) > 1 else 3
    for speedup in steps:
        y = axes.y(speedup)
        kind = "grid one" if abs(speedup - 1) < 1e-9 else "grid"
        yield f'<path class="{kind}" d="M{_LEFT} {y:.1f}H{right}"/>'
        yield _text(_LEFT - 6, y + 4, f"{speedup:.{digits}f}x", "end")
    for value in ticks(0.0, axes.last, 6):
        x = axes.x(value)
        yield f'<path class="grid" d="M{x:.1f} {bottom}v4"/>'
        yield _text(x, bottom + 17, f"{value:,g}", "middle")
    yield f'<path class="axis" d="M{_LEFT} {_TOP}V{bottom}H{right}"/>'
    yield _text((_LEFT + right) / 2, _HEIGHT - 8, unit, "middle")


def _dots(points: Sequence[Point], axes: _Axes, at: object) -> Iterator[str]:
    assert callable(at)
    plain = [p for p in points if p.node is None]
    step = max(math.ceil(len(plain) / _MOST), 1)
    path = "".join(f"M{axes.x(at(p)):.1f} {axes.y(p.speedup):.1f}h0" for p in plain[::step])
    if path:
        yield f'<path class="dots" d="{path}"/>'


def _staircase(steps: Sequence[tuple[float, float]], axes: _Axes, last: float) -> str:
    path = f"M{axes.x(steps[0][0]):.1f} {axes.y(steps[0][1]):.1f}"
    for x, speedup in steps[1:]:
        path += f"H{axes.x(x):.1f}V{axes.y(speedup):.1f}"
    return f'<path class="best" d="{path}H{axes.x(last):.1f}"/>'


def _nodes(nodes: Sequence[NodeState], axes: _Axes, at: object) -> Iterator[str]:
    assert callable(at)
    named = float(-_APART)
    for node in nodes:
        x, y = axes.x(at(node)), axes.y(node.speedup)
        told = (f"node {node.number}: {node.speedup:.4f}x, {printable(node.rule)}, attempt "
                f"{node.attempt}, {node.seconds:.1f} s")
        yield (f'<circle class="commit {css_class(node.direction)}" cx="{x:.1f}" cy="{y:.1f}" '
               f'r="4.5"><title>{escape(told)}</title></circle>')
        if x - named >= _APART:
            named = x
            yield _text(x, y - 9, str(node.number), "middle")


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>')
