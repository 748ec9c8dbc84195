"""How often control took each edge, as far as block counts determine it."""

from __future__ import annotations

from collections.abc import Sequence

from asmevo.isa.cfg import Cfg

Edge = tuple[int, int]


def edge_counts(cfg: Cfg, executions: Sequence[int]) -> dict[Edge, int]:
    """Counts of edges between blocks, from those of the blocks.

    What enters a block leaves it. Where one edge of a block is left unknown, its count follows,
    which is repeated as long as it helps; edges that stay unknown are not in the result, nor are
    those that come out negative, as they may for samples.
    """
    known: dict[Edge, int] = {}
    ends: list[tuple[int, list[Edge]]] = []
    for number in cfg.order:
        block = cfg.blocks[number]
        if block.successors:
            ends.append((executions[number], [(number, s) for s in block.successors]))
        before = [(p, number) for p in block.predecessors if cfg.reachable(cfg.blocks[p].start)]
        if before and number != cfg.entry:
            ends.append((executions[number], before))
    changed = True
    while changed:
        changed = False
        for count, edges in ends:
            left = [edge for edge in edges if edge not in known]
            if len(left) == 1:
                known[left[0]] = count - sum(known[e] for e in edges if e in known)
                changed = True
    return {edge: count for edge, count in known.items() if count >= 0}
