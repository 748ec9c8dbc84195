"""Gives an edited kernel the waits and hazard distances that its new order needs."""

from __future__ import annotations

from asmevo.propose.preview import Preview
from asmevo.propose.rewrite import Rewrite
from asmevo.propose.rule import RuleContext
from asmevo.propose.waits import lower_waits, place_waits

_LONGEST_NOP = 16


def repair(context: RuleContext, preview: Preview, span: int = 0) -> Preview:
    """The preview with neither missing waits nor hazards that the base does not have.

    Existing waits stay where they are and get lower counts where that is enough. What still lacks a
    wait gets one right before its first use, merged with others within ``span`` instructions.
    """
    return separate(context, place_waits(context, lower_waits(context, preview), span))


def separate(context: RuleContext, preview: Preview) -> Preview:
    """Put ``s_nop`` between producers and consumers that an edit brought too close together."""
    for _ in range(4):
        needed: dict[int, int] = {}
        for violation in context.new_hazards(preview):
            gap = violation.needed - violation.found
            needed[violation.consumer] = max(needed.get(violation.consumer, 0), gap)
        if not needed:
            break
        rewrite = Rewrite(preview.kernel, preview.program)
        for consumer, states in needed.items():
            if 0 < states <= _LONGEST_NOP:
                rewrite.insert(consumer, f"s_nop {states - 1}")
        if not rewrite:
            break
        preview = preview.apply(rewrite.edits("hazards"))
    return preview


def is_clean(context: RuleContext, preview: Preview) -> bool:
    """No missing wait and no hazard that the base does not have."""
    return not context.new_missing(preview) and not context.new_hazards(preview)
