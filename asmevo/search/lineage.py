"""The tree of accepted candidates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from asmevo.codeobject.assembly import Assembly, Edit
from asmevo.propose.proposal import Direction


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
    ``speedup`` is verified over the original. ``assumption`` is what the
    proposer took without proof.
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
