"""Which folder of the registry may import which: one way only, also for types and lazy imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import asmevo.registry

ROOT = Path(asmevo.registry.__file__).parent
PACKAGE = "asmevo.registry."


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE):
            yield str(node.module).removeprefix(PACKAGE).partition(".")[0]


def test_dependencies_point_one_way() -> None:
    needs: dict[str, set[str]] = {}
    for path in ROOT.rglob("*.py"):
        own = path.relative_to(ROOT).with_suffix("").parts[0]
        if own != "__init__":  # what the package itself offers it imports only when it is asked
            needs.setdefault(own, set()).update(name for name in imported(path) if name != own)
    order = list(TopologicalSorter(needs).static_order())  # CycleError names the folders
    assert order.index("database") < order.index("rows") < order.index("registry")
    assert order.index("registry") < order.index("delivery") < order.index("command")
