"""A hot window's dependence graph as SVG: its lines one below the other, an arc for each edge."""

from __future__ import annotations

from markupsafe import Markup, escape

from asmevo.isa.dependence import Edge, EdgeKind
from asmevo.profile.hotwindow import HotWindow
from asmevo.report.annotated import Listing, register_list

_LINE = 17     # pixels from line to line
_ARCS = 150    # pixels for arcs, left of the text
_WIDTH = 640
_CHARACTER = 6.7
_MEANING = {
    EdgeKind.RAW: "needs the result", EdgeKind.WAR: "overwrites an input",
    EdgeKind.WAW: "overwrites the result", EdgeKind.MEMORY: "may access the same memory",
    EdgeKind.FENCE: "may not move across", EdgeKind.WAIT: "waits until it is done",
}


def dependence_graph(window: HotWindow, listing: Listing) -> Markup:
    """Later lines depend on earlier ones; arcs grow to the left with their length."""
    lines = listing.lines[window.start:window.stop]
    height = _LINE * len(lines) + 8
    drawn = [_arc(edge, window.start) for edge in window.edges
             if window.start <= edge.producer < edge.consumer < window.stop]
    room = int((_WIDTH - _ARCS - 8) / _CHARACTER)
    for number, line in enumerate(lines):
        text = f"{line.offset:#06x} {line.text}"
        drawn.append(f'<a href="#i{line.index}"><text x="{_ARCS + 8}" y="{_y(number) + 4}">'
                     f"{escape(text if len(text) <= room else text[:room - 1] + '…')}</text></a>")
    return Markup(  # noqa: S704 - text is escaped above
        f'<svg class="graph" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="Dependence graph of {len(lines)} instructions">{"".join(drawn)}</svg>')


def kinds(window: HotWindow) -> list[tuple[str, str]]:
    """The kinds of edges there are, and what they mean."""
    present = {edge.kind for edge in window.edges}
    return [(kind.value, meaning) for kind, meaning in _MEANING.items() if kind in present]


def _arc(edge: Edge, start: int) -> str:
    first, last = _y(edge.producer - start), _y(edge.consumer - start)
    reach = _ARCS - min(10 + 9 * (edge.consumer - edge.producer) ** 0.75, _ARCS - 6)
    told = f"{edge.kind.value}: {_MEANING[edge.kind]}"
    if edge.registers:
        told += f" {register_list(edge.registers)}"
    return (f'<path class="edge {edge.kind.value}" d="M{_ARCS} {first}C{reach:.0f} {first} '
            f'{reach:.0f} {last} {_ARCS} {last}"><title>{escape(told)}</title></path>')


def _y(number: int) -> int:
    return _LINE * number + _LINE // 2 + 4
