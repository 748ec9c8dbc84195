"""The lineage as lines of text, root first; the path to the best node stays at the left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.text import Text

from asmevo.failure import printable
from asmevo.report.search_state import NodeState
from asmevo.search.events import ParentFact

_BEST, _PATH, _SIDE = "bold green", "", "dim"


@dataclass(frozen=True, slots=True)
class Line:
    """A node behind the strokes that join it with its parent, or so many nodes left out."""

    prefix: str
    node: NodeState | None = None
    left_out: int = 0


def path_to(nodes: Sequence[NodeState], node: NodeState) -> frozenset[int]:
    """Numbers of the nodes from the root to ``node``."""
    path: set[int] = set()
    at: NodeState | None = node
    while at is not None and at.number not in path:
        path.add(at.number)
        at = None if at.parent is None else nodes[at.parent]
    return frozenset(path)


def children_of(nodes: Sequence[NodeState]) -> Mapping[int, tuple[NodeState, ...]]:
    """Each node's children, the one that goes on to the best (else the last) at the end."""
    best = max(nodes, key=lambda node: (node.speedup, -node.number))
    main = path_to(nodes, best)
    children: dict[int, list[NodeState]] = {node.number: [] for node in nodes}
    for node in nodes:
        if node.parent is not None:
            children[node.parent].append(node)
    return {number: tuple(sorted(below, key=lambda node: (node.number in main, node.number)))
            for number, below in children.items()}


def lines(nodes: Sequence[NodeState], limit: int | None = None) -> list[Line]:
    """At most ``limit`` lines. Nodes off the path to the best go first, then the middle of it."""
    if not nodes:
        return []
    every = list(_lines(nodes))
    if limit is None or len(every) <= limit:
        return every
    if limit < 1:
        return []
    best = max(nodes, key=lambda node: (node.speedup, -node.number))
    main = path_to(nodes, best)
    path = [line for line in every if _on(line, main)]
    if len(path) < limit:
        return _without_oldest(every, main, limit)
    if limit < 3:
        return path[-limit:]
    kept = limit - 2
    return [path[0], Line("", None, len(every) - 1 - kept), *path[-kept:]]


def _without_oldest(every: Sequence[Line], main: frozenset[int], limit: int) -> list[Line]:
    """The path, with as many of the newest branches as there is room for."""
    blocks: list[list[Line]] = []
    behind = False
    for line in every:
        on_path = _on(line, main)
        if on_path or (line.prefix == "├─" and not behind) or (not line.prefix and not behind):
            blocks.append([])
        # What goes on from the best node is one branch up to its end.
        behind = behind or (not line.prefix and not on_path)
        blocks[-1].append(line)
    left_out = 0
    for block in list(blocks):
        if len(every) - left_out < limit:
            break
        if not _on(block[0], main):
            blocks.remove(block)
            left_out += len(block)
    return [*(line for block in blocks for line in block), Line("", None, left_out)]


def _on(line: Line, path: frozenset[int]) -> bool:
    return line.node is not None and line.node.number in path


def _lines(nodes: Sequence[NodeState]) -> Iterator[Line]:
    children = children_of(nodes)
    pending: list[tuple[NodeState, str, str]] = [(nodes[0], "", "")]
    while pending:
        node, prefix, joint = pending.pop()
        yield Line(prefix + joint, node)
        below = prefix + {"": "", "├─": "│ "}[joint]
        *sides, last = children[node.number] or (None,)
        # The last one goes on in the same column. A stack: it is pushed first.
        if last is not None:
            pending.append((last, below, ""))
        pending.extend((side, below, "├─") for side in reversed(sides) if side is not None)


def text(line: Line, best: int, main: frozenset[int]) -> Text:
    """One line for a terminal."""
    if line.node is None:
        return Text(f"{line.prefix}… {line.left_out} more", "dim")
    node = line.node
    style = _BEST if node.number == best else _PATH if node.number in main else _SIDE
    drawn = Text()  # whose own style would be that of all that is appended
    drawn.append(line.prefix, "dim")
    drawn.append("● " if node.number in main else "○ ", style)
    drawn.append(f"{node.number} ", style)
    drawn.append(f"{node.speedup:.4f}x " if node.number else "", style)
    drawn.append(described(node), style)
    return drawn


def described(node: NodeState) -> str:
    """What made it, in a few words."""
    if not node.number:
        return "original"
    made = printable(node.rule) or "?"
    if node.parents:
        made += f" of {' and '.join(map(_part, node.parents))}"
    return made + (f" ({printable(node.direction)})" if node.direction else "")


def _part(parent: ParentFact) -> str:
    """A part of a composition: ids of candidates are long and differ in their last digits."""
    name = printable(parent.rule) or f"candidate {printable(parent.candidate[-5:])}"
    return name if parent.node is None else f"{name} (node {parent.node})"


def lineage_text(nodes: Sequence[NodeState], limit: int | None = None) -> Text:
    """The tree for a terminal; lines are cut at its width, never folded."""
    if not nodes:
        return Text()
    best = max(nodes, key=lambda node: (node.speedup, -node.number))
    main = path_to(nodes, best)
    return Text("\n", no_wrap=True, overflow="ellipsis").join(
        text(line, best.number, main) for line in lines(nodes, limit))
