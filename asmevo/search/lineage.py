"""The tree of accepted candidates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from asmevo.codeobject.assembly import Assembly, Edit
from asmevo.propose.proposal import Direction
from asmevo.search.events import ParentFact


@dataclass(frozen=True, slots=True)
class Resources:
    """Registers a kernel's descriptor allocates, and its static LDS in bytes."""

    vgprs: int
    sgprs: int
    lds_bytes: int


@dataclass(frozen=True, slots=True)
class Node:
    """A verified state of the kernel. The root is the original: no parent, speedup 1.

    ``code`` are the bytes of the built object, ``edits`` lead from the parent to this node, and
    ``speedup`` is verified over the original. ``assumption`` is what the proposer took without
    proof. ``candidate`` is its id in the registry, and ``parents`` the two verified candidates of
    which a composition was made.
    """

    number: int
    parent: int | None
    assembly: Assembly
    code: bytes
    sha256: str
    speedup: float
    resources: Resources
    edits: tuple[Edit, ...] = ()
    rule: str = ""
    direction: Direction | None = None
    rationale: str = ""
    assumption: str = ""
    proposer: str = ""
    candidate: str = ""
    parents: tuple[ParentFact, ...] = ()

    @property
    def windows(self) -> tuple[tuple[int, int], ...]:
        """The changed instructions of the parent."""
        return windows_of(self.edits)


class Lineage:
    """Nodes in the order they were committed. Node numbers are positions in that order."""

    def __init__(self, root: Node) -> None:
        if root.number != 0 or root.parent is not None:
            raise ValueError("a lineage starts with node 0, which has no parent")
        self._nodes = [root]

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes)

    def __getitem__(self, number: int) -> Node:
        return self._nodes[number]

    @property
    def root(self) -> Node:
        return self._nodes[0]

    @property
    def best(self) -> Node:
        """The fastest node; the earliest of equals."""
        return max(self._nodes, key=lambda node: (node.speedup, -node.number))

    def add(self, node: Node) -> None:
        """Append a committed node, whose parent must be present."""
        if node.number != len(self._nodes):
            raise ValueError(f"node {node.number} would not be number {len(self._nodes)}")
        if node.parent is None or not 0 <= node.parent < node.number:
            raise ValueError(f"node {node.number} has no parent in the lineage")
        self._nodes.append(node)

    def path(self, node: Node) -> tuple[Node, ...]:
        """From the root to ``node``."""
        steps = [node]
        while steps[-1].parent is not None:
            steps.append(self._nodes[steps[-1].parent])
        return tuple(reversed(steps))


def windows_of(edits: tuple[Edit, ...], gap: int = 8) -> tuple[tuple[int, int], ...]:
    """The instructions that edits change, as ``(start, stop)``; near ones are one window."""
    windows: list[tuple[int, int]] = []
    for start, stop in sorted((edit.start, edit.stop) for edit in edits):
        if windows and start - windows[-1][1] <= gap:
            windows[-1] = (windows[-1][0], max(windows[-1][1], stop))
        else:
            windows.append((start, stop))
    return tuple(windows)


def exported(lineage: Lineage) -> list[dict[str, Any]]:
    """The tree as ``lineage.json`` has it: a list of nodes in the order of commits.

    Of each node: ``number``, ``parent`` (null for the root), ``sha256`` of its object,
    ``candidate`` (its id in the registry), ``speedup`` over the original, ``rule``, ``proposer``,
    ``direction`` (null for the root and where it is none), ``rationale``, ``assumption``,
    ``resources`` (``vgprs``, ``sgprs``, ``lds_bytes``), ``windows`` (``[start, stop]`` of changed
    instructions of the parent), ``edits`` (``kernel``, ``start``, ``stop``, ``lines``, ``reason``)
    that lead from the parent to it, and ``parents``, of a composition: the two verified candidates
    that it was made of (``candidate``, ``speedup``, ``node`` or null, ``rule``). Fields are only
    ever added.
    """
    return [
        {
            "number": node.number, "parent": node.parent, "sha256": node.sha256,
            "candidate": node.candidate, "speedup": node.speedup, "rule": node.rule,
            "proposer": node.proposer,
            "direction": node.direction.value if node.direction else None,
            "rationale": node.rationale, "assumption": node.assumption,
            "resources": asdict(node.resources),
            "windows": [list(window) for window in node.windows],
            "edits": [asdict(edit) for edit in node.edits],
            "parents": [asdict(parent) for parent in node.parents],
        }
        for node in lineage
    ]
