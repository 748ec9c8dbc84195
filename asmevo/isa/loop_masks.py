"""Lane masks that loops carry: those that only lose lanes, and those that only gain some.

A loop whose lanes leave one by one keeps its lanes in EXEC, which it narrows from turn to turn, and
those that have left in another mask. What such masks are after any number of turns has one form:
where they start, and what a turn does to them. A lane changes each of them once at most, so that
nothing can be counted with them; masks that turn lanes on and off are not of this kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from asmevo.isa.value_graph import Merge, Node
from asmevo.isa.value_numbers import Numbers, Taint

TURNS = "mask of a loop"
_ALL = 0xFFFFFFFF
_MOST_CARRIED = 16


@dataclass(frozen=True, slots=True)
class Carried:
    """A mask that a loop carries: ``and`` loses lanes, ``or`` gains them.

    ``hole`` stands in the ``updates`` of all masks of the loop for its value before a turn.
    """

    kind: str
    hole: int
    entries: tuple[int, ...]
    updates: tuple[int, ...]


def complemented(number: int, numbers: Numbers) -> int | None:
    """The number of which this one is the complement."""
    constant, terms = numbers.linear(number)
    if constant == _ALL and len(terms) == 1 and terms[0][1] == _ALL:
        return terms[0][0]
    return None


def carried_masks(
    component: Sequence[Node], needs: Callable[[Node], Sequence[Node]],
    form: Callable[[Node, Callable[[Node], int]], int], done: Mapping[Node, int], numbers: Numbers,
) -> dict[Node, int] | None:
    """The numbers of nodes that depend on one another, or ``None`` where they are no such masks;
    the arguments are those of `asmevo.isa.loop_values.counted`."""
    merges = [node for node in component if isinstance(node, Merge)]
    if not 0 < len(merges) <= _MOST_CARRIED:
        return None
    inside = set(component)
    known: dict[Node, int] = {
        node: numbers.atom(("mask hole", k), taint=Taint.PATH) for k, node in enumerate(merges)}
    order = _in_order(component, needs, inside)
    kinds: dict[Node, str] = {}
    values = _evaluated(order, form, done, known)
    for node in merges:
        kind = _kind(node, inside, values, numbers)
        if kind is None:
            return None
        kinds[node] = kind

    def rank(node: Node) -> tuple[str, tuple[int, ...]]:
        return kinds[node], tuple(sorted(done[s] for s in needs(node) if s not in inside))

    # Masks are told by their kind and start, not by where the program has them.
    merges.sort(key=rank)
    for k, node in enumerate(merges):
        known[node] = numbers.atom(("mask hole", kinds[node], k), taint=Taint.PATH)
    values = _evaluated(order, form, done, known)
    carried = []
    parts: set[int] = set()
    for node in merges:
        updates = tuple(sorted({values[s] for s in needs(node) if s in inside} - {known[node]}))
        entries = rank(node)[1]
        parts.update(entries)
        for update in updates:
            leaves = _leaves(update, set(known.values()), numbers)
            if leaves is None:
                return None
            parts.update(leaves)
        carried.append(Carried(kinds[node], known[node], entries, updates))
    loop = tuple(carried)
    made: dict[Node, int] = {
        node: numbers.atom((TURNS, k, loop), sorted(parts), Taint.PATH)
        for k, node in enumerate(merges)}
    return _evaluated(order, form, done, made)


def _in_order(component: Sequence[Node], needs: Callable[[Node], Sequence[Node]],
              inside: set[Node]) -> list[Node]:
    """What is no merge, behind what it is made from."""
    order: list[Node] = []
    seen: set[Node] = {node for node in component if isinstance(node, Merge)}
    for root in component:
        if root in seen:
            continue
        seen.add(root)
        path: list[tuple[Node, Iterator[Node]]] = [(root, iter(needs(root)))]
        while path:
            for need in path[-1][1]:
                if need in inside and need not in seen:
                    seen.add(need)
                    path.append((need, iter(needs(need))))
                    break
            else:
                order.append(path.pop()[0])
    return order


def _evaluated(
    order: Sequence[Node], form: Callable[[Node, Callable[[Node], int]], int],
    done: Mapping[Node, int], known: Mapping[Node, int],
) -> dict[Node, int]:
    values = dict(known)

    def number(node: Node) -> int:
        made = values.get(node)
        return done[node] if made is None else made

    for node in order:
        values[node] = form(node, number)
    return values


def _kind(node: Merge, inside: set[Node], values: Mapping[Node, int], numbers: Numbers
          ) -> str | None:
    kinds = set()
    hole = values[node]
    for source in node.nodes:
        if source not in inside or values[source] == hole:
            continue
        form = numbers.forms[values[source]]
        if form[0] not in ("and", "or") or hole not in form[1:]:
            return None
        kinds.add(str(form[0]))
    return kinds.pop() if len(kinds) == 1 else None


def _leaves(number: int, holes: set[int], numbers: Numbers) -> set[int] | None:
    """What an update is made of but for masks of the loop; none if these are used otherwise."""
    found: set[int] = set()
    seen = {number}
    pending = [number]
    while pending:
        here = pending.pop()
        if here in holes:
            continue
        inner = complemented(here, numbers)
        if inner is None and numbers.forms[here][0] not in ("and", "or"):
            if any(numbers.depends(here, hole) for hole in holes):
                return None
            found.add(here)
            continue
        for part in (inner,) if inner is not None else numbers.parts(here):
            if part not in seen:
                seen.add(part)
                pending.append(part)
    return found
