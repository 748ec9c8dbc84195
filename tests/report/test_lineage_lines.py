"""Every node has a line below its parent's, and the path to the best stays at the left."""

from __future__ import annotations

import random

import pytest

from asmevo.report.lineage_lines import lineage_text, lines, path_to
from asmevo.report.search_state import NodeState
from asmevo.search.events import ParentFact


def tree(count: int, seed: int) -> list[NodeState]:
    chance = random.Random(seed)
    nodes = [NodeState(0, None, 1.0, "0" * 64)]
    for number in range(1, count):
        parent = chance.randrange(max(0, number - 3), number)
        nodes.append(NodeState(number, parent, chance.uniform(1.0, 2.0), f"{number:064x}",
                               rule=f"rule-{number}", direction="simplification"))
    return nodes


def parents(drawn: list[str]) -> dict[int, int | None]:
    """What a reader sees: the node above in the same column, or at which a branch starts."""
    above: dict[int, int] = {}
    found: dict[int, int | None] = {}
    for line in drawn:
        mark = max(line.find("●"), line.find("○"))
        number = int(line[mark + 2:].split()[0])
        column = mark // 2
        if line[:mark].endswith("├─"):
            found[number] = above[column - 1]
        else:
            found[number] = above.get(column)
        above[column] = number
    return found


@pytest.mark.parametrize("seed", range(20))
def test_lines_tell_the_tree(seed: int) -> None:
    nodes = tree(25, seed)
    drawn = lineage_text(nodes).plain.splitlines()
    assert parents(drawn) == {node.number: node.parent for node in nodes}
    best = max(nodes, key=lambda node: node.speedup)
    main = path_to(nodes, best)
    at_left = {int(line[2:].split()[0]) for line in drawn if line[0] in "●○"}
    assert main <= at_left


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("limit", [0, 1, 2, 3, 7, 13, 20, 24, 25, 100])
def test_a_limit_keeps_the_best(limit: int, seed: int) -> None:
    nodes = tree(25, seed)
    best = max(nodes, key=lambda node: node.speedup)
    found = lines(nodes, limit)
    assert len(found) <= min(limit, len(nodes))
    if limit:
        assert best.number in {line.node.number for line in found if line.node is not None}
    shown = sum(line.node is not None for line in found)
    if limit >= 3:
        assert shown + sum(line.left_out for line in found) == len(nodes)
        main = path_to(nodes, best)
        drawn = lineage_text(nodes, limit).plain.splitlines()
        if len(main) < limit:  # else the middle of the path is left out
            told = parents([line for line in drawn if line[0] != "…"])
            assert told == {number: nodes[number].parent for number in told}
            assert main <= set(told)


def test_no_nodes() -> None:
    assert lineage_text([]).plain == ""


def test_a_composition_names_its_parts() -> None:
    nodes = tree(2, 0)
    nodes[1].parents = (ParentFact("run-00017", 1.1, None, "hoist-loads"),
                        ParentFact("run-00018", 1.1, 0))
    assert "rule-1 of hoist-loads and candidate 00018 (node 0)" in lineage_text(nodes).plain
