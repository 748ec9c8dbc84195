"""Programs and control flow graphs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from asmevo.isa.cfg import Cfg
from asmevo.isa.errors import ControlFlowError
from asmevo.isa.parse import ParseError
from asmevo.isa.program import Program

Write = Callable[[str], Program]

NESTED = """
    s_mov_b32 s0, 4
    outer:
    s_mov_b32 s1, 4
    inner:
    s_sub_u32 s1, s1, 1
    s_cmp_eq_u32 s1, 0
    s_cbranch_scc0 inner
    s_sub_u32 s0, s0, 1
    s_cbranch_scc0 outer
    s_endpgm
    s_nop 0
"""


def test_branch_targets_by_label_and_by_word_offset() -> None:
    rows = [(0, 8, "v_mov_b32_e32 v0, 0x12345678"), (8, 4, "s_cbranch_scc1 65533"),
            (12, 4, "s_branch skip"), (16, 4, "s_nop 0"), (20, 4, "s_endpgm")]
    program = Program.from_disassembly(rows, {20: "skip"})
    assert program.targets == (None, 0, 4, None, None)
    assert program.offsets == (0, 8, 12, 16, 20, 24)
    assert program.labels == {4: "skip"}


@pytest.mark.parametrize("rows", [
    [(0, 4, "s_branch 1"), (4, 4, "s_endpgm")], [(0, 4, "s_branch 65530"), (4, 4, "s_endpgm")],
    [(0, 4, "s_branch nowhere"), (4, 4, "s_endpgm")],
    [(0, 4, "s_branch 1"), (4, 8, "v_mov_b32_e32 v0, 0x12345678"), (12, 4, "s_endpgm")],
    [(0, 8, "s_nop 0"), (4, 4, "s_endpgm")], [(0, 5, "s_endpgm")]])
def test_impossible_listings_are_refused(rows: list[tuple[int, int, str]]) -> None:
    with pytest.raises(ParseError):
        Program.from_disassembly(rows, {})


def test_nested_loops(write: Write) -> None:
    cfg = Cfg.of(write(NESTED))
    assert [(b.start, b.end) for b in cfg.blocks] == [
        (0, 1), (1, 2), (2, 5), (5, 7), (7, 8), (8, 9)]
    assert cfg.blocks[2].successors == (3, 2)
    assert cfg.blocks[2].predecessors == (1, 2)
    outer, inner = cfg.loops()
    assert (outer.header, outer.latches, outer.blocks) == (1, (3,), frozenset({1, 2, 3}))
    assert (inner.header, inner.latches, inner.blocks) == (2, (2,), frozenset({2}))
    assert cfg.reachable(7)
    assert not cfg.reachable(8)
    assert cfg.next_indices(4) == (5, 2)
    assert cfg.previous_indices(2) == (1, 4)
    assert cfg.order == (0, 1, 2, 3, 4)


def test_dominators_of_a_diamond(write: Write) -> None:
    cfg = Cfg.of(write("""
        s_cbranch_scc0 left
        s_nop 0
        s_branch join
        left:
        s_nop 1
        join:
        s_endpgm
    """))
    assert cfg.dominators() == {0: 0, 1: 0, 2: 0, 3: 0}
    assert cfg.loops() == ()


@pytest.mark.parametrize(("text", "message"), [
    ("s_setpc_b64 s[0:1]\n s_endpgm", "run time"), ("s_nop 0", "past the last"),
    ("start:\n s_nop 0\n s_cbranch_scc0 start", "past the last"), ("", "no instructions")])
def test_unknowable_control_flow_is_refused(write: Write, text: str, message: str) -> None:
    with pytest.raises(ControlFlowError, match=message):
        Cfg.of(write(text))


def test_production_kernels_have_the_loops_they_have(kernel: Callable[[str], Program]) -> None:
    layer_norm = Cfg.of(kernel("layer_norm.co"))
    assert [len(loop.blocks) for loop in layer_norm.loops()] == [2]
    assert Cfg.of(kernel("topksoftmax/topksoftmax_4x128x8.co")).loops() == ()
