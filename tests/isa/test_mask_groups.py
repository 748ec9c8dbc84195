"""Stretches of code for some lanes whose bodies lie out of line."""

from __future__ import annotations

from asmevo.isa.cfg import Cfg
from asmevo.isa.mask_groups import MaskGroup, mask_groups
from asmevo.isa.program import Program

# Two stretches; the first one's body is at the end, with the beginning of the second one behind it.
OUT_OF_LINE = """
s_and_saveexec_b64 s[8:9], s[2:3]
s_cbranch_execnz 6
s_or_b64 exec, exec, s[8:9]
s_and_saveexec_b64 s[8:9], s[4:5]
s_cbranch_execz 1
v_mov_b32_e32 v2, v1
s_or_b64 exec, exec, s[8:9]
s_endpgm
v_mov_b32_e32 v1, v0
s_or_b64 exec, exec, s[8:9]
s_and_saveexec_b64 s[8:9], s[4:5]
s_cbranch_execnz 65529
s_branch 65529
"""


def groups(text: str) -> tuple[MaskGroup, ...]:
    rows = [(4 * k, 4, line) for k, line in enumerate(text.strip().splitlines())]
    program = Program.from_disassembly(rows, {})
    return mask_groups(program, Cfg.of(program))


def test_a_body_out_of_line_belongs_to_both_ends() -> None:
    first, second = sorted(groups(OUT_OF_LINE), key=lambda g: min(g.joins))
    assert first == MaskGroup(frozenset({0}), frozenset({2, 9}), frozenset({1, 8}))
    assert second == MaskGroup(frozenset({3, 10}), frozenset({6}), frozenset({4, 5, 11, 12}))


def test_lanes_that_are_switched_on_twice_are_in_no_group() -> None:
    """The second time, lanes come back that were switched off in between."""
    once = """
s_and_saveexec_b64 s[8:9], s[2:3]
v_mov_b32_e32 v1, v0
s_or_b64 exec, exec, s[8:9]
s_endpgm
"""
    assert len(groups(once)) == 1
    assert groups(once.replace(
        "s_endpgm", "s_and_b64 exec, exec, s[6:7]\ns_or_b64 exec, exec, s[8:9]\ns_endpgm")) == ()


def test_a_mask_from_elsewhere_is_in_no_group() -> None:
    assert not any(6 in g.joins for g in groups(OUT_OF_LINE.replace(
        "s_and_saveexec_b64 s[8:9], s[4:5]\ns_cbranch_execnz 65529",
        "s_mov_b64 s[8:9], -1\ns_cbranch_execnz 65529")))
