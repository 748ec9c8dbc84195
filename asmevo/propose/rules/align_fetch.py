"""Widens encodings so that eight-byte instructions start on eight-byte boundaries."""

from __future__ import annotations

from collections.abc import Iterator

from asmevo.isa.errors import ParseError, UnknownInstructionError
from asmevo.isa.parse import parse
from asmevo.propose.proposal import Direction, Proposal
from asmevo.propose.rule import Rule, RuleContext

_SHORT, _LONG = 4, 8
# Operations without a 64-bit encoding, or whose 64-bit encoding means something else.
_ONLY_SHORT = frozenset({
    "v_nop", "v_swap_b32", "v_clrexcp", "v_fmaak_f32", "v_fmamk_f32", "v_fmaak_f16", "v_fmamk_f16",
    "v_madak_f32", "v_madmk_f32", "v_madak_f16", "v_madmk_f16", "v_screen_partition_4se_b32",
    "v_pk_fmac_f16",
})
# One promotion costs nothing to issue, but fewer is better among equals.
_PREFERENCE = 1e-3


class AlignFetch(Rule):
    """An eight-byte instruction at an address that is four modulo eight takes an extra cycle.

    Encoding an earlier four-byte instruction in eight bytes moves what follows. The choice with the
    fewest misaligned instructions over the whole kernel is found by dynamic programming.
    """

    name = "align-fetch"
    direction = Direction.MEMORY_ACCESS

    def matches(self, context: RuleContext) -> Iterator[Proposal]:
        before, after, promoted = _plan(context)
        if after >= before or not promoted:
            return
        rewrite = context.rewrite()
        for index, text in promoted.items():
            rewrite.replace(index, text)
        yield self.proposal(
            rewrite,
            f"{len(promoted)} wider encoding(s) leave {after} instead of {before} eight-byte"
            " instructions off an eight-byte boundary")


def _plan(context: RuleContext) -> tuple[int, int, dict[int, str]]:
    """Misaligned instructions before and after, and the new text of what to encode in 8 bytes."""
    program = context.program
    # Violations that the kernel already has are known by their text, which must not change.
    violating = {
        index for v in (*context.preview.missing, *context.preview.hazards)
        for index in (v.producer, v.consumer)
    }
    wide = {
        index: text for index in range(len(program))
        if index not in violating and index not in context.cold
        and (text := _promoted(context, index)) is not None
    }
    # best[parity] = (cost, misaligned so far) with the next instruction at 4 * parity modulo 8.
    best: list[tuple[float, int] | None] = [None, None]
    start = program.offsets[0] % _LONG // _SHORT
    best[start] = (0.0, 0)
    choices: list[dict[int, tuple[int, bool]]] = []
    before = 0
    for index in range(len(program)):
        size = program.offsets[index + 1] - program.offsets[index]
        before += size == _LONG and program.offsets[index] % _LONG == _SHORT
        following: list[tuple[float, int] | None] = [None, None]
        choice: dict[int, tuple[int, bool]] = {}
        for parity, reached in enumerate(best):
            if reached is None:
                continue
            for promote in (False, True) if index in wide else (False,):
                is_long = promote or size == _LONG
                misaligned = int(is_long and parity == 1)
                cost = reached[0] + misaligned + (_PREFERENCE if promote else 0.0)
                now = parity if is_long else 1 - parity
                known = following[now]
                if known is None or cost < known[0]:
                    following[now] = (cost, reached[1] + misaligned)
                    choice[now] = (parity, promote)
        best = following
        choices.append(choice)
    final = min((b[0], p) for p, b in enumerate(best) if b is not None)[1]
    reached = best[final]
    assert reached is not None
    promoted: dict[int, str] = {}
    parity = final
    for index in range(len(program) - 1, -1, -1):
        parity, promote = choices[index][parity]
        if promote:
            promoted[index] = wide[index]
    return before, reached[1], promoted


def _promoted(context: RuleContext, index: int) -> str | None:
    """The text of a four-byte vector instruction in its 64-bit encoding."""
    i = context.program.instructions[index]
    size = context.program.offsets[index + 1] - context.program.offsets[index]
    if i.encoding != "e32" or size != _SHORT or i.op in _ONLY_SHORT:
        return None
    text = i.text.replace("_e32", "_e64", 1)
    try:
        parse(text)
    except (ParseError, UnknownInstructionError):
        return None
    return text
