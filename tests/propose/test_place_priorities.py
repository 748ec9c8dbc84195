"""Where a wave's priority is raised, and that there are never more changes of it than before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.isa.hazards import hazards
from asmevo.propose.rules.place_priorities import PlacePriorities
from tests.propose.emulated import OUTPUT, stored

RULE = PlacePriorities(apart=2, smallest=2)
ADDS = PlacePriorities(apart=2, smallest=2, add=True)
UP, DOWN = "s_setprio 1", "s_setprio 0"
WORK = "v_add_u32_e32 v40, v41, v42"
END = "s_endpgm"


def matrix(count: int, first: int = 0) -> list[str]:
    """Independent matrix operations."""
    return [f"v_mfma_f32_4x4x1_16b_f32 v[{4 * k}:{4 * k + 3}], v50, v51, v[{4 * k}:{4 * k + 3}]"
            for k in range(first, first + count)]


def rewritten(kernels: Any, lines: Sequence[str], rule: PlacePriorities = RULE
              ) -> dict[str, list[str]]:
    """The kernels after each proposal, by the first word of its rationale."""
    text = "\n".join(lines)
    return {p.rationale.split()[0 if not p.rationale[0].isdigit() else 1]: kernels.edited(text, p)
            for p in kernels.proposals(rule, text)}


def test_a_pair_moves_to_the_ends_of_the_run_that_it_overlaps(kernels: Any) -> None:
    run = matrix(4)
    found = rewritten(kernels, [*run[:1], UP, WORK, *run[1:3], DOWN, *run[3:], WORK, END])
    assert found["raised"] == [UP, run[0], WORK, *run[1:], DOWN, WORK, END]


def test_a_pair_around_other_work_moves_to_the_nearest_run(kernels: Any) -> None:
    near, far = matrix(2), matrix(2, 2)
    lines = [*far, *[WORK] * 5, *near, WORK, UP, WORK, WORK, DOWN, END]
    assert rewritten(kernels, lines)["raised"] == [
        *far, *[WORK] * 5, UP, *near, DOWN, *[WORK] * 3, END]


def test_a_level_that_is_set_already_is_not_set_again(kernels: Any) -> None:
    # A wave starts at 0; of two in a row the first sets nothing.
    lines = [DOWN, WORK, DOWN, UP, WORK, "s_cbranch_scc1 over", UP, WORK, "over:", UP, WORK, END]
    assert rewritten(kernels, lines)["s_setprio"] == [
        WORK, UP, WORK, "s_cbranch_scc1 over", WORK, "over:", WORK, END]


@pytest.mark.parametrize("lines", [
    [UP, WORK, END],
    ["s_cbranch_scc1 over", UP, WORK, "over:", DOWN, WORK, END],
    [UP, WORK, "again:", DOWN, WORK, UP, "s_cbranch_scc1 again", END],
])
def test_what_changes_the_level_on_some_way_is_not_useless(kernels: Any, lines: list[str]) -> None:
    assert "s_setprio" not in rewritten(kernels, lines)


def test_settings_of_several_blocks_go_to_the_largest_runs(kernels: Any) -> None:
    small, large = matrix(2), matrix(3, 2)
    lines = [UP, "s_cbranch_scc1 over", *small, WORK, WORK, WORK, "over:", *large, "s_nop 4",
             DOWN, WORK, END]
    assert rewritten(kernels, lines)["the"] == [
        "s_cbranch_scc1 over", *small, WORK, WORK, WORK, "over:", UP, *large, DOWN, "s_nop 4",
        WORK, END]


def test_runs_get_pairs_of_their_own_only_when_asked_to(kernels: Any) -> None:
    lines = [WORK, *matrix(2), *[WORK] * 4, *matrix(2, 2), END]
    assert rewritten(kernels, lines) == {}
    proposals = kernels.proposals(ADDS, "\n".join(lines))
    assert kernels.edited("\n".join(lines), proposals[0]) == [
        WORK, UP, *matrix(2), DOWN, *[WORK] * 4, UP, *matrix(2, 2), DOWN, END]
    assert [sum(line == UP for line in kernels.edited("\n".join(lines), p)) for p in proposals] == [
        2, 1, 1]


def test_few_or_scattered_matrix_operations_are_no_run(kernels: Any) -> None:
    one, two = matrix(2)
    assert kernels.proposals(ADDS, "\n".join([one, WORK, WORK, WORK, two, END])) == []


_LINES = st.lists(st.sampled_from([*matrix(4), UP, DOWN, "s_setprio 2", WORK,
                                   "v_add_u32_e32 v50, v41, v50", "v_mov_b32_e32 v0, v50"]),
                  min_size=2, max_size=16)
_FRAME = """
v_lshlrev_b32_e32 v60, 2, v0
v_cvt_f32_u32_e32 v50, v0
v_mov_b32_e32 v51, 2.0
{clear}
{first}
s_cmp_eq_u32 s6, 1
s_cbranch_scc1 over
{second}
over:
s_nop 7
s_nop 7
{stores}
s_endpgm
"""


@settings(max_examples=40, deadline=None)
@given(first=_LINES, second=_LINES)
def test_results_and_hazards_stay(kernels: Any, first: list[str], second: list[str]) -> None:
    registers = [*range(16), 40, 41, 42]
    text = _FRAME.format(
        clear="\n".join(f"v_mov_b32_e32 v{k}, {k % 16}" for k in [*range(1, 16), 40, 41, 42]),
        first="\n".join(first), second="\n".join(second),
        stores="\n".join(f"global_store_dword v60, v{k}, {OUTPUT} offset:{128 * n}"
                         for n, k in enumerate(registers)))
    context = kernels.context(text)
    before = [x.strip() for x in text.strip().split("\n") if x.strip()]
    known = {v.signature for v in hazards(context.program)}
    counts = Counter(x for x in before if x.startswith("s_setprio"))
    for proposal in RULE.matches(context):
        assert not proposal.assumption
        after = context.preview.apply(proposal.edits)
        assert {v.signature for v in hazards(after.program)} <= known
        lines = kernels.edited(text, proposal)
        assert Counter(x for x in lines if x.startswith("s_setprio")) <= counts
        for scalars in ({6: 0}, {6: 1}):
            assert np.array_equal(stored(before, scalars), stored(lines, scalars)), lines
