"""What loops carry by adding to it: a base, plus steps times how often the loop was run.

Such a value has one form however the loop is written: counted up in a register of its own or made
from a counter by a product, before or after its use, in one step or in several of an unrolled body.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from asmevo.isa.addresses import is_multiple, signed
from asmevo.isa.value_graph import Merge, Node
from asmevo.isa.value_numbers import Numbers

_SIGN = 0x80000000
_MOST_STEPS = 4


def counted(
    component: Sequence[Node], needs: Callable[[Node], Sequence[Node]],
    form: Callable[[Node, Callable[[Node], int]], int], done: Mapping[Node, int], numbers: Numbers,
) -> dict[Node, int] | None:
    """The numbers of nodes that depend on one another, or ``None`` where they are not only added
    to: ``needs`` gives a node's sources, ``form`` its number from theirs, and ``done`` those of
    nodes outside."""
    inside = set(component)
    hole = numbers.atom(("hole",))
    # From a node to one that it is made from, and what is added on the way.
    edges: dict[Node, list[tuple[Node, int]]] = {node: [] for node in component}
    entries: list[tuple[Node, int]] = []
    for node in component:
        sources = set(needs(node))
        within = sources & inside
        if isinstance(node, Merge):
            edges[node] += [(source, numbers.zero) for source in within]
            entries += [(node, done[source]) for source in sources - inside]
            continue
        if len(within) != 1:
            return None
        made = form(node, lambda source: hole if source in inside else done[source])
        rest = dict(numbers.linear(made)[1])
        if rest.pop(hole, 0) != 1 or any(numbers.depends(term, hole) for term in rest):
            return None
        edges[node].append((within.pop(), numbers.add(made, hole, -1)))
    return _solved(component, edges, entries, numbers)


def _solved(
    component: Sequence[Node], edges: Mapping[Node, Sequence[tuple[Node, int]]],
    entries: Sequence[tuple[Node, int]], numbers: Numbers,
) -> dict[Node, int] | None:
    back: dict[Node, list[tuple[Node, int]]] = {node: [] for node in component}
    for node, found in edges.items():
        for source, weight in found:
            back[source].append((node, weight))
    # How far each node is from the first one.
    start = min((node for node, _ in entries), key=component.index, default=component[0])
    distance = {start: numbers.zero}
    pending = [start]
    while pending:
        node = pending.pop()
        for source, weight in edges[node]:
            if source not in distance:
                distance[source] = numbers.add(distance[node], weight, -1, here=True)
                pending.append(source)
        for user, weight in back[node]:
            if user not in distance:
                distance[user] = numbers.add(distance[node], weight, here=True)
                pending.append(user)
    step, others = 0, set()
    for node, found in edges.items():
        for source, weight in found:
            around = numbers.add(numbers.add(distance[source], weight, here=True),
                                 distance[node], -1, here=True)
            value = numbers.value_of(around)
            if value is None:
                others.add(_upwards(around, numbers))
            else:
                step = math.gcd(step, min(value, (1 << 32) - value))
    if len(others) > _MOST_STEPS:
        return None
    bases = set()
    for node, number in entries:
        base = numbers.add(number, distance[node], -1, here=True)
        if step:
            # Whole steps of the base are part of what is counted.
            constant = numbers.linear(base)[0]
            base = numbers.subtract(base, numbers.constant(constant - constant % step))
        bases.add(base)
    total = numbers.merged(_first(bases, step, others, numbers)) if bases else numbers.zero
    if step:
        total = numbers.add(total, numbers.trip(numbers.constant(step)))
    for number in sorted(others):
        total = numbers.add(total, numbers.trip(number))
    if not step and not others:
        return None
    return {node: numbers.add(total, distance[node], here=True) for node in component}


def _first(bases: set[int], step: int, others: set[int], numbers: Numbers) -> set[int]:
    """Where a loop starts, without where another loop has come to from there by turns of it."""
    units = dict(terms[0] for terms in (numbers.linear(other)[1] for other in others)
                 if len(terms) == 1)
    trips = {numbers.trip(term): unit for term, unit in units.items()}
    if step:
        trips[numbers.trip(numbers.constant(1))] = step
    units |= trips

    def is_later(base: int, other: int) -> bool:
        constant, terms = numbers.linear(numbers.add(base, other, -1, here=True))
        return not constant and any(term in trips for term, _ in terms) and all(
            term in units and is_multiple(count, units[term])
            and signed(count) // signed(units[term]) > 0 for term, count in terms)

    return {base for base in bases
            if not any(is_later(base, other) for other in bases if other != base)}


def _upwards(step: int, numbers: Numbers) -> int:
    """A step or its opposite: whether a loop counts up or down does not matter here."""
    _, terms = numbers.linear(step)
    return numbers.subtract(numbers.zero, step) if terms[0][1] & _SIGN else step
