"""The lineage as SVG: root at the top, the path to the best node at the left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup, escape

from asmevo.failure import printable
from asmevo.report.directions import css_class
from asmevo.report.lineage_lines import described, lines, path_to
from asmevo.report.search_state import NodeState

_ROW, _LANE, _LEFT, _TOP = 24, 20, 16, 16
_CHARACTER = 7.2   # pixels of the widest usual letter at 12 px
_LONGEST = 140
_MOST = 400        # nodes drawn


def lineage_svg(nodes: Sequence[NodeState]) -> Markup:
    """Each node in a line of its own with speedup and what made it; the rationale is its title.

    A dashed line joins a composition with its other parent.
    """
    if not nodes:
        return Markup()
    best = max(nodes, key=lambda node: (node.speedup, -node.number))
    main = path_to(nodes, best)
    places: dict[int, tuple[float, float]] = {}
    drawn: list[str] = []
    texts: list[str] = []
    shown = lines(nodes, _MOST)
    lanes = max(len(line.prefix) // 2 for line in shown)
    widest = 0
    for row, line in enumerate(shown):
        x, y = _LEFT + _LANE * (len(line.prefix) // 2), _TOP + _ROW * row
        if line.node is None:
            texts.append(_text(x, y, f"… {line.left_out} more", "faint"))
            continue
        node = line.node
        places[node.number] = (x, y)
        label = _label(node)
        widest = max(widest, len(label))
        drawn += _edges(node, places, main)
        kind = "best" if node is best else "path" if node.number in main else "side"
        texts.append(
            f'<g class="node {kind}"><title>{escape(_told(node))}</title>'
            f'<circle class="{css_class(node.direction)}" cx="{x}" cy="{y}" r="6"/>'
            + _text(_LEFT + _LANE * (lanes + 1), y, label, kind) + "</g>")
    width = _LEFT + _LANE * (lanes + 1) + int(_CHARACTER * widest) + 8
    height = _TOP * 2 + _ROW * (len(shown) - 1)
    told = (f"{len(nodes)} nodes; the best is node {best.number} with {best.speedup:.4f}x, "
            f"{len(main) - 1} steps from the original")
    return Markup(  # noqa: S704 - escaped where it is drawn
        f'<svg class="lineage" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" aria-labelledby="lineage-name lineage-told">'
        f'<title id="lineage-name">Lineage</title><desc id="lineage-told">{escape(told)}</desc>'
        f'{"".join(drawn)}{"".join(texts)}</svg>')


def _edges(node: NodeState, places: dict[int, tuple[float, float]],
           main: frozenset[int]) -> Iterator[str]:
    x, y = places[node.number]
    if node.parent is not None and node.parent in places:
        kind = "edge path" if node.number in main else "edge"
        yield _curve(kind, places[node.parent], (x, y))
    for parent in node.parents:
        if parent.node is not None and parent.node != node.parent and parent.node in places:
            yield _curve("edge other", places[parent.node], (x, y))


def _curve(kind: str, start: tuple[float, float], end: tuple[float, float]) -> str:
    (x1, y1), (x2, y2) = start, end
    if x1 == x2 and "other" not in kind:
        return f'<path class="{kind}" d="M{x1} {y1}V{y2}"/>'
    bend = 14 if "other" in kind else 0
    return (f'<path class="{kind}" d="M{x1} {y1}C{x1 - bend} {y1 + _ROW * 0.6:.0f} '
            f'{x2 - bend} {y2 - _ROW * 0.6:.0f} {x2} {y2}"/>')


def _label(node: NodeState) -> str:
    if not node.number:
        label = "0  original"
    else:
        label = f"{node.number}  {node.speedup:.4f}x  {described(node)}, attempt {node.attempt}"
    if node.tried:
        label += f", {node.tried} tried from it"
    return label if len(label) <= _LONGEST else label[:_LONGEST - 1] + "…"


def _told(node: NodeState) -> str:
    told = f"node {node.number}, {node.speedup:.4f}x: {printable(node.rationale)}"
    return told + (f" (assuming {printable(node.assumption)})" if node.assumption else "")


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x}" y="{y + 4}">{escape(text)}</text>'
