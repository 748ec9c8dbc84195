"""Local moves between orders of a trace, each of which keeps every dependence."""

from __future__ import annotations

import random
from collections.abc import Callable

from asmevo.propose.scheduler.layout import Layout, Order

Move = Callable[[Layout, Order, random.Random], Order | None]


def hoist(layout: Layout, order: Order, place: int, target: int) -> Order:
    """Put the item at ``place`` at ``target`` in front of it, with what it depends on."""
    before = layout.constraints.before
    taken = [order[place]]
    needed = set(before[order[place]])
    left: list[int] = []
    for k in reversed(order[target:place]):
        if k in needed:
            taken.append(k)
            needed |= before[k]
        else:
            left.append(k)
    return (*order[:target], *reversed(taken), *reversed(left), *order[place + 1:])


def sink(layout: Layout, order: Order, place: int, target: int) -> Order:
    """Put the item at ``place`` behind the one at ``target``, with what depends on it."""
    before = layout.constraints.before
    taken = [order[place]]
    held = {order[place]}
    left: list[int] = []
    for k in order[place + 1:target + 1]:
        if before[k] & held:
            taken.append(k)
            held.add(k)
        else:
            left.append(k)
    return (*order[:place], *left, *taken, *order[target + 1:])


def _distance(rng: random.Random, longest: int) -> int:
    """Short ways often, long ones now and then."""
    return max(1, min(longest, int(longest ** rng.random())))


def up(layout: Layout, order: Order, rng: random.Random) -> Order | None:
    """An item moves up, and takes along what it needs."""
    place = rng.randrange(1, len(order))
    return hoist(layout, order, place, place - _distance(rng, place))


def down(layout: Layout, order: Order, rng: random.Random) -> Order | None:
    """An item moves down, and takes along what needs it."""
    place = rng.randrange(len(order) - 1)
    return sink(layout, order, place, place + _distance(rng, len(order) - 1 - place))


def memory(layout: Layout, order: Order, rng: random.Random) -> Order | None:
    """A load moves up, or a store down."""
    places = [p for p, k in enumerate(order)
              if any(s.vm or s.lds or s.scalar for s in layout.steps[k])]
    if not places:
        return None
    place = rng.choice(places)
    if rng.random() < 0.7 and place:
        return hoist(layout, order, place, place - _distance(rng, place))
    if place < len(order) - 1:
        return sink(layout, order, place, place + _distance(rng, len(order) - 1 - place))
    return None


def swap(layout: Layout, order: Order, rng: random.Random) -> Order | None:
    """Two neighbours change places."""
    place = rng.randrange(len(order) - 1)
    first, second = order[place], order[place + 1]
    if first in layout.constraints.before[second]:
        return None
    return (*order[:place], second, first, *order[place + 2:])


def run(layout: Layout, order: Order, rng: random.Random) -> Order | None:
    """A run of neighbours moves up or down as a whole, as far as it can."""
    length = rng.randrange(2, 9)
    if len(order) <= length + 1:
        return None
    start = rng.randrange(len(order) - length)
    block = order[start:start + length]
    before = layout.constraints.before
    needed: set[int] = set()
    for k in block:
        needed |= before[k]
    limit = start - _distance(rng, start) if start else 0
    top = start
    while top > limit and order[top - 1] not in needed:
        top -= 1
    if top < start:
        return (*order[:top], *block, *order[top:start], *order[start + length:])
    held = set(block)
    stop = start + length
    limit = min(len(order), stop + _distance(rng, len(order) - stop))
    bottom = stop
    while bottom < limit and not before[order[bottom]] & held:
        bottom += 1
    if bottom == stop:
        return None
    return (*order[:start], *order[stop:bottom], *block, *order[bottom:])


MOVES: dict[str, Move] = {"up": up, "down": down, "memory": memory, "swap": swap, "run": run}


def crossed(layout: Layout, first: Order, second: Order, rng: random.Random) -> Order:
    """A child of two orders: up to some item as in the first, then as in the second.

    What the first has put in front keeps its place; the rest follows in the second's order, which
    keeps every dependence that either keeps.
    """
    cut = rng.randrange(1, len(first))
    head = first[:cut]
    taken = set(head)
    return (*head, *(k for k in second if k not in taken))
