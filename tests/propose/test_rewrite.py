"""Collected changes become edits that neither overlap nor swallow a label."""

from __future__ import annotations

from typing import Any

from asmevo.propose.rewrite import Rewrite

LOOP = """
    s_mov_b32 s0, 4
    s_mov_b32 s1, 5
    again:
    s_add_u32 s0, s0, 1
    s_cmp_eq_u32 s0, s1
    s_cbranch_scc1 again
    s_endpgm
"""


def _rewrite(kernels: Any) -> Rewrite:
    return Rewrite("kernel", kernels.evidence(LOOP).program)


def test_neighbours_become_one_edit(kernels: Any) -> None:
    rewrite = _rewrite(kernels)
    rewrite.delete((2,))
    rewrite.replace(3, "s_nop 1")
    rewrite.insert(4, "s_nop 2")
    assert [(e.start, e.stop, e.lines) for e in rewrite.edits("r")] == [
        (2, 4, ("s_nop 1", "s_nop 2"))]
    assert rewrite.size == 3


def test_a_label_separates_edits(kernels: Any) -> None:
    rewrite = _rewrite(kernels)
    rewrite.replace(1, "s_nop 1")
    rewrite.replace(2, "s_nop 2")
    assert [(e.start, e.stop) for e in rewrite.edits("r")] == [(1, 2), (2, 3)]


def test_an_insertion_stands_behind_the_label(kernels: Any) -> None:
    rewrite = _rewrite(kernels)
    rewrite.insert(2, "s_nop 1")
    lines = kernels.assembly(LOOP).apply(rewrite.edits("r")).body("kernel").lines
    assert (lines[2].text, lines[2].labels) == ("s_nop 1", ("again",))


def test_permuting_keeps_what_need_not_move(kernels: Any) -> None:
    evidence = kernels.evidence("\n".join(f"s_mov_b32 s{i}, {i}" for i in range(6)) + "\ns_endpgm")
    rewrite = Rewrite("kernel", evidence.program)
    rewrite.permute((0, 3, 1, 2, 4, 5), evidence.lines)
    assert [(e.start, e.stop, e.lines) for e in rewrite.edits("r")] == [
        (1, 1, ("s_mov_b32 s3, 3",)), (3, 4, ())]


def test_permuting_to_the_end_stays_in_front_of_the_next_label(kernels: Any) -> None:
    evidence = kernels.evidence(LOOP)
    rewrite = Rewrite("kernel", evidence.program)
    rewrite.permute((1, 0), evidence.lines)
    lines = kernels.assembly(LOOP).apply(rewrite.edits("r")).body("kernel").lines
    assert [x.text for x in lines[:2]] == ["s_mov_b32 s1, 5", "s_mov_b32 s0, 4"]
    assert lines[2].labels == ("again",)
