"""What leaves a loop, what stays in it, and that results stay what they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from asmevo.isa.hazards import hazards
from asmevo.isa.waits import missing_waits
from asmevo.propose.proposal import Evidence
from asmevo.propose.rule import RuleContext
from asmevo.propose.rules.hoist_invariants import HoistInvariants
from tests.propose.emulated import INPUT, OUTPUT, stored

# s6 rounds add {inside} to v5; v9 is used behind the loop where {behind} says so.
LOOP = """
v_lshlrev_b32_e32 v1, 2, v0
v_mov_b32_e32 v5, 0
v_mov_b32_e32 v20, v0
{front}
again:
{inside}
s_add_i32 s6, s6, -1
s_cmp_gt_i32 s6, 0
s_cbranch_scc1 again
{behind}
global_store_dword v1, v5, {OUTPUT}
s_mov_b32 s30, 0
s_mov_b32 s31, 0
s_endpgm
"""
ADD = "v_add_u32_e32 v5, v5, v9"


def kernel(inside: str, front: str = "", behind: str = "") -> str:
    return LOOP.format(inside=inside, front=front, behind=behind, OUTPUT=OUTPUT)


def moved(kernels: Any, text: str) -> list[str]:
    """Instructions in front of the loop that were not there, after the first proposal, which has
    to keep waits, hazards and what the kernel stores."""
    context: RuleContext = kernels.context(text)
    found = list(HoistInvariants().matches(context))
    if not found:
        return []
    for proposal in found:
        preview = context.preview.apply(proposal.edits)
        assert not missing_waits(preview.program)
        assert not hazards(preview.program)
        before = [x.strip() for x in text.strip().split("\n") if x.strip()]
        after = kernels.edited(text, proposal)
        for rounds in (1, 3):
            scalars = {6: rounds, 7: 5, 8: 0x0F0F0F0F, 9: 0xFF}
            assert np.array_equal(stored(before, scalars), stored(after, scalars))
    after = kernels.edited(text, found[0])
    inside = text.split("again:")[0]
    return [x for x in after[:after.index("again:")] if x not in inside]


@pytest.mark.parametrize(("inside", "expected"), [
    ("v_lshlrev_b32_e32 v9, 3, v0", ["v_lshlrev_b32_e32 v9, 3, v0"]),
    ("v_cvt_f32_u32_e32 v9, v0", ["v_cvt_f32_u32_e32 v9, v0"]),
    ("v_mov_b32_e32 v9, 0x3d372713", ["v_mov_b32_e32 v9, 0x3d372713"]),
    # One after the other, SCC being of no use to anybody.
    ("s_lshl_b32 s10, s7, 2\nv_add_u32_e32 v9, s10, v0",
     ["s_lshl_b32 s10, s7, 2", "v_add_u32_e32 v9, s10, v0"]),
    ("v_cmp_gt_u32_e32 vcc, s7, v0\nv_cndmask_b32_e32 v9, v0, v1, vcc",
     ["v_cmp_gt_u32_e32 vcc, s7, v0", "v_cndmask_b32_e32 v9, v0, v1, vcc"]),
    # The register is used for something else as well: another one takes its place.
    (f"v_mul_u32_u24_e32 v9, v0, v0\n{ADD}\nv_mov_b32_e32 v9, v5",
     ["v_mul_u32_u24_e32 v2, v0, v0"]),
    (f"s_lshl_b32 s10, s7, 2\nv_mov_b32_e32 v9, s10\ns_mov_b32 s10, s6\n{ADD}\nv_mov_b32_e32 v9, "
     "s10", ["s_lshl_b32 s0, s7, 2", "v_mov_b32_e32 v0, s0"]),
])
def test_what_leaves_the_loop(kernels: Any, inside: str, expected: list[str]) -> None:
    assert moved(kernels, kernel(f"{inside}\n{ADD}", "v_mov_b32_e32 v9, 0")) == expected


@pytest.mark.parametrize(("inside", "behind"), [
    (f"v_add_u32_e32 v9, s6, v0\n{ADD}", ""),                      # the counter
    (f"v_add_u32_e32 v9, v5, v0\n{ADD}", ""),                      # of the round before
    (f"{ADD}\nv_mov_b32_e32 v9, v20", ""),                         # the first round has another
    ("v_readfirstlane_b32 s10, v0\nv_add_u32_e32 v5, s10, v5", ""),
    (f"v_mov_b32_dpp v9, v0 row_ror:4 row_mask:0xf bank_mask:0xf\n{ADD}", ""),
    ("s_cmp_eq_u32 s6, 1\ns_cselect_b32 s10, 1, 0\nv_add_u32_e32 v5, s10, v5", ""),
    # A lane that is off keeps what it had, which the end of the kernel stores.
    ("s_mov_b64 s[12:13], exec\ns_mov_b64 exec, s[8:9]\nv_mov_b32_e32 v20, v0\n"
     "s_mov_b64 exec, s[12:13]", "v_add_u32_e32 v5, v5, v20"),
    # Lanes may be on in the loop that are off in front of it.
    (f"s_mov_b64 exec, s[8:9]\nv_lshlrev_b32_e32 v9, 3, v0\n{ADD}", ""),
    # Which lanes a comparison finds depends on EXEC.
    ("s_and_b64 exec, exec, s[8:9]\nv_cmp_gt_u32_e64 s[10:11], s7, v0\n"
     "v_cndmask_b32_e64 v9, v0, v1, s[10:11]\n" + ADD, ""),
])
def test_what_stays(kernels: Any, inside: str, behind: str) -> None:
    front = "v_mov_b32_e32 v9, 1"
    assert moved(kernels, kernel(inside, front, behind)) == []


def test_lanes_that_are_switched_off_do_no_harm(kernels: Any) -> None:
    inside = ("v_cmp_gt_u32_e32 vcc, s6, v0\ns_and_saveexec_b64 s[10:11], vcc\n"
              f"v_lshlrev_b32_e32 v9, 3, v0\n{ADD}\ns_or_b64 exec, exec, s[10:11]")
    assert moved(kernels, kernel(inside)) == ["v_lshlrev_b32_e32 v9, 3, v0"]


def test_in_front_of_a_branch_to_the_loop(kernels: Any) -> None:
    text = kernel(f"v_lshlrev_b32_e32 v9, 3, v0\n{ADD}", "s_branch again\nother:\ns_endpgm")
    assert moved(kernels, text) == ["v_lshlrev_b32_e32 v9, 3, v0"]


def test_two_ways_into_a_loop_leave_it_alone(kernels: Any) -> None:
    text = kernel(f"v_lshlrev_b32_e32 v9, 3, v0\n{ADD}",
                  "s_cmp_eq_u32 s7, 5\ns_cbranch_scc1 again\nv_mov_b32_e32 v5, 1")
    assert moved(kernels, text) == []


def test_behind_a_branch_around_the_loop(kernels: Any) -> None:
    text = kernel(f"v_lshlrev_b32_e32 v9, 3, v0\n{ADD}",
                  "s_cmp_eq_u32 s7, 4\ns_cbranch_scc1 out", "out:")
    context = kernels.context(text)
    (proposal,) = HoistInvariants().matches(context)
    after = kernels.edited(text, proposal)
    at = after.index("v_lshlrev_b32_e32 v9, 3, v0")
    assert (after[at - 1], after[at + 1]) == ("s_cbranch_scc1 out", "again:")
    assert moved(kernels, text) == ["v_lshlrev_b32_e32 v9, 3, v0"]


def test_out_of_two_loops_at_once(kernels: Any) -> None:
    inner = ("s_mov_b32 s11, 2\ninner:\nv_lshlrev_b32_e32 v9, 3, v0\nv_add_u32_e32 v10, s6, v9\n"
             "v_add_u32_e32 v5, v5, v10\ns_add_i32 s11, s11, -1\ns_cmp_gt_i32 s11, 0\n"
             "s_cbranch_scc1 inner")
    text = kernel(inner)
    assert moved(kernels, text) == ["v_lshlrev_b32_e32 v9, 3, v0"]
    after = kernels.first(HoistInvariants(), text)
    assert after[after.index("inner:") - 1] == "v_add_u32_e32 v10, s6, v9"


LOAD = f"s_load_dword s10, {INPUT}, 0x40\ns_waitcnt lgkmcnt(0)\nv_add_u32_e32 v5, s10, v5"


def test_a_load_of_every_round_is_an_assumption(kernels: Any) -> None:
    text = kernel(LOAD)
    assert moved(kernels, text) == [f"s_load_dword s10, {INPUT}, 0x40"]
    (proposal,) = kernels.proposals(HoistInvariants(), text)
    assert "loads again" in proposal.assumption


@pytest.mark.parametrize("inside", [
    f"{LOAD}\nglobal_store_dword v1, v5, {OUTPUT}",
    f"{LOAD}\ns_barrier",
    f"{LOAD}\ns_dcache_inv",
    # Where nothing says that the first round loads.
    f"s_cmp_eq_u32 s6, 1\ns_cbranch_scc1 skip\n{LOAD}\nskip:",
])
def test_loads_that_stay(kernels: Any, inside: str) -> None:
    assert kernels.proposals(HoistInvariants(), kernel(inside)) == []


def test_layer_norm_clears_its_sums_once(layer_norm_evidence: Evidence) -> None:
    context = RuleContext(layer_norm_evidence)
    proposal = next(iter(HoistInvariants().matches(context)))
    assert not proposal.assumption
    after = context.preview.apply(proposal.edits)
    assert len(after.lines) == len(context.lines)
    known = {v.signature for v in (*missing_waits(context.program), *hazards(context.program))}
    assert {v.signature for v in (*missing_waits(after.program), *hazards(after.program))} <= known
