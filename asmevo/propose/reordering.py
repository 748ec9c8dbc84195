"""Stretches of code in another order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from asmevo.propose.barrier_waits import guard_barriers
from asmevo.propose.preview import Preview
from asmevo.propose.repair import is_clean, repair
from asmevo.propose.rule import RuleContext


def reordered(context: RuleContext, rule: str, span: int,
              orders: Iterable[tuple[range, Sequence[int]]]) -> Preview | None:
    """The kernel with the instructions of some ranges in these orders; what an order leaves out,
    waits and ``s_nop``, is placed anew, waits fewer than ``span`` instructions apart as one.

    ``None`` where all stays as it is, or cannot be repaired.
    """
    rewrite = context.rewrite()
    for place, order in orders:
        if list(order) != sorted(order):
            rewrite.delete(set(place) - set(order))
            rewrite.permute(order, context.lines)
    if not rewrite:
        return None
    preview = repair(context, context.preview.apply(rewrite.edits(rule)), span)
    preview = guard_barriers(context.preview, preview)
    return preview if is_clean(context, preview) else None
