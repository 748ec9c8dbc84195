"""Waits no stricter and nops no longer than needed."""

from __future__ import annotations

from typing import Any

import pytest

from asmevo.propose.proposal import Evidence
from asmevo.propose.rule import RuleContext
from asmevo.propose.rules.relax_waits import RelaxWaits
from asmevo.propose.rules.trim_nops import TrimNops


def test_a_wait_moves_to_the_first_use(kernels: Any) -> None:
    text = "global_load_dword v1, v[4:5], off\ns_waitcnt vmcnt(0)\nv_mov_b32_e32 v8, 1\n" \
           "v_add_u32_e32 v9, v1, v8\nglobal_store_dword v[2:3], v9, off\ns_endpgm"
    assert kernels.first(RelaxWaits(), text)[1:4] == [
        "v_mov_b32_e32 v8, 1", "s_waitcnt vmcnt(0)", "v_add_u32_e32 v9, v1, v8"]


@pytest.mark.parametrize("cold", [True, False])
def test_no_wait_moves_to_where_no_profile_has_been(kernels: Any, cold: bool) -> None:
    """An edit there cannot be verified."""
    text = ("global_load_dword v1, v[4:5], off\ns_waitcnt vmcnt(0)\ns_cbranch_scc0 end\n"
            "v_add_u32_e32 v9, v1, v1\nglobal_store_dword v[2:3], v9, off\nend:\ns_endpgm")
    context = RuleContext(kernels.evidence(text), cold=frozenset({3, 4} if cold else ()))
    assert any(p.edits for p in RelaxWaits().matches(context)) != cold


READS = "\n".join(f"ds_read_b32 v{10 + k}, v1 offset:{4 * k}" for k in range(4))
SUMS = [f"v_add_f32_e32 v{10 + k}, v{10 + k}, v20" for k in range(4)]


def test_one_wait_becomes_stages(kernels: Any) -> None:
    text = "\n".join((READS, "s_waitcnt lgkmcnt(0)", *SUMS, "s_endpgm"))
    staged = kernels.first(RelaxWaits(), text)[4:]
    assert staged == [
        "s_waitcnt lgkmcnt(3)", SUMS[0], "s_waitcnt lgkmcnt(2)", SUMS[1],
        "s_waitcnt lgkmcnt(1)", SUMS[2], "s_waitcnt lgkmcnt(0)", SUMS[3], "s_endpgm"]


def test_near_stages_merge(kernels: Any) -> None:
    text = "\n".join((READS, "s_waitcnt lgkmcnt(0)", *SUMS, "s_endpgm"))
    merged = kernels.first(RelaxWaits(spans=(1,)), text)[4:]
    assert merged == [
        "s_waitcnt lgkmcnt(2)", *SUMS[:2], "s_waitcnt lgkmcnt(0)", *SUMS[2:], "s_endpgm"]


def test_merging_counts_what_is_issued_in_between(kernels: Any) -> None:
    reads = READS.split("\n")[:3]
    late = "ds_read_b32 v14, v1"
    text = "\n".join((
        *reads, "s_waitcnt lgkmcnt(0)", SUMS[0], late, SUMS[1], SUMS[2], "s_waitcnt lgkmcnt(0)",
        "v_add_f32_e32 v14, v14, v20", "s_endpgm"))
    # The second sum needs a count of two where it stands, with one read issued since the first.
    assert kernels.first(RelaxWaits(spans=(2,)), text)[3:9] == [
        "s_waitcnt lgkmcnt(1)", SUMS[0], late, SUMS[1], "s_waitcnt lgkmcnt(0)", SUMS[2]]


def test_scalar_loads_allow_only_zero(kernels: Any) -> None:
    text = "s_load_dword s8, s[0:1], 0x0\ns_load_dword s9, s[0:1], 0x10\ns_waitcnt lgkmcnt(0)\n" \
           "s_add_u32 s10, s8, s8\ns_add_u32 s11, s9, s9\nv_mov_b32_e32 v1, s10\n" \
           "global_store_dword v[2:3], v1, off\ns_endpgm"
    for proposal in kernels.proposals(RelaxWaits(), text):
        waits = [x for x in kernels.edited(text, proposal) if x.startswith("s_waitcnt")]
        assert waits == ["s_waitcnt lgkmcnt(0)"]


def test_the_wait_in_front_of_a_barrier_stays(kernels: Any) -> None:
    text = "ds_write_b32 v1, v2\nv_mov_b32_e32 v8, 1\ns_waitcnt lgkmcnt(0)\ns_barrier\ns_endpgm"
    for proposal in kernels.proposals(RelaxWaits(), text):
        edited = kernels.edited(text, proposal)
        assert edited[edited.index("s_barrier") - 1] == "s_waitcnt lgkmcnt(0)"


def test_waits_around_atomics_stay(kernels: Any) -> None:
    text = "global_store_dword v[2:3], v1, off\ns_waitcnt vmcnt(0)\n" \
           "global_atomic_add v[4:5], v6, off\ns_endpgm"
    assert kernels.first(RelaxWaits(), text) is None


def test_nothing_moves_around_loads_to_lds(kernels: Any) -> None:
    text = "s_mov_b32 m0, 0\nbuffer_load_dword v1, s[0:3], 0 offen lds\ns_waitcnt vmcnt(0)\n" \
           "ds_read_b32 v1, v2\ns_waitcnt lgkmcnt(0)\nglobal_store_dword v[2:3], v1, off\ns_endpgm"
    assert not any("just before" in p.rationale for p in kernels.proposals(RelaxWaits(), text))


def test_the_wait_before_the_end_goes(kernels: Any) -> None:
    text = "global_store_dword v[2:3], v1, off\n" \
           "s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)\ns_endpgm"
    assert kernels.first(RelaxWaits(), text) == text.split("\n")[::2]


def test_a_count_is_loosened_in_place(layer_norm_evidence: Evidence) -> None:
    context = RuleContext(layer_norm_evidence)
    found = [p.rationale for p in RelaxWaits(spans=()).matches(context)]
    # 20 accesses are outstanding there, and the second-oldest load pair of the weights is needed.
    assert any("'s_waitcnt vmcnt(15)' -> s_waitcnt vmcnt(18)" in r for r in found)


@pytest.mark.parametrize(("written", "kept"), [("s_nop 3", "s_nop 1"), ("s_nop 1", None)])
def test_nops_keep_what_the_hazard_needs(kernels: Any, written: str, kept: str | None) -> None:
    text = f"v_add_f32_e32 v4, v1, v1\n{written}\n" \
           "v_add_f32_dpp v1, v4, v4 row_ror:4 row_mask:0xf bank_mask:0xf\n" \
           "global_store_dword v[2:3], v1, off\ns_endpgm"
    edited = kernels.first(TrimNops(), text)
    assert (edited[1] if edited else None) == kept


def test_nops_without_a_hazard_go(kernels: Any) -> None:
    text = "v_mov_b32_e32 v1, 1\ns_nop 7\ns_nop 0\nglobal_store_dword v[2:3], v1, off\ns_endpgm"
    assert kernels.first(TrimNops(), text) == [text.split("\n")[0], *text.split("\n")[3:]]


def test_of_two_nops_one_may_be_needed(kernels: Any) -> None:
    text = "v_add_f32_e32 v4, v1, v1\ns_nop 1\ns_nop 1\n" \
           "v_add_f32_dpp v1, v4, v4 row_ror:4 row_mask:0xf bank_mask:0xf\n" \
           "global_store_dword v[2:3], v1, off\ns_endpgm"
    edited = kernels.first(TrimNops(), text)
    assert sum(int(x[6:]) + 1 for x in edited if x.startswith("s_nop")) == 2
