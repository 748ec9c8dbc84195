"""Loads move up, and blocks are reordered, only as far as dependences allow."""

from __future__ import annotations

from typing import Any

import pytest

from asmevo.propose.proposal import Evidence
from asmevo.propose.rule import Rule, RuleContext
from asmevo.propose.rules.hoist_loads import HoistLoads
from asmevo.propose.rules.schedule_blocks import ScheduleBlocks

LOAD = "buffer_load_dword v1, v2, s[4:7], 0 offen"
USE = "buffer_store_dword v1, v3, s[8:11], 0 offen\ns_endpgm"


def _places(kernels: Any, rule: Rule, text: str, line: str, *, bold: bool = False) -> set[int]:
    """Where an instruction stands in the kernels that a rule proposes."""
    return {
        kernels.edited(text, p).index(line) for p in kernels.proposals(rule, text)
        if p.edits and (bold or not p.assumption)
    }


def test_a_load_moves_in_front_of_independent_work(kernels: Any) -> None:
    text = f"v_mov_b32_e32 v8, 1\nv_mov_b32_e32 v9, 1\n{LOAD}\ns_waitcnt vmcnt(0)\n{USE}"
    assert 0 in _places(kernels, HoistLoads(), text, LOAD)


def test_its_address_moves_with_it(kernels: Any) -> None:
    text = f"v_mov_b32_e32 v8, 1\nv_mov_b32_e32 v2, 1\n{LOAD}\ns_waitcnt vmcnt(0)\n{USE}"
    assert kernels.first(HoistLoads(), text)[:3] == [
        "v_mov_b32_e32 v2, 1", LOAD, "v_mov_b32_e32 v8, 1"]


@pytest.mark.parametrize("before", [
    "v_mov_b32_e32 v8, v1",              # reads what the load overwrites
    "v_mov_b32_e32 v1, v8",              # the load must win
    "v_add_u32_e32 v2, 4, v2",           # the address
    "s_mov_b32 s5, 0",                   # the resource
    "s_mov_b64 exec, 3",                 # which lanes load
    "s_barrier",
    "buffer_store_dword v8, v2, s[4:7], 0 offen",
    "buffer_atomic_add v8, v2, s[12:15], 0 offen",
    "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 3",
])
def test_what_a_load_may_not_cross(kernels: Any, before: str) -> None:
    text = f"{before}\n{LOAD}\ns_waitcnt vmcnt(0)\n{USE}"
    for rule in (HoistLoads(), ScheduleBlocks()):
        assert _places(kernels, rule, text, LOAD) <= {1}


def test_another_buffer_is_crossed_by_assumption_only(kernels: Any) -> None:
    text = f"buffer_store_dword v8, v2, s[12:15], 0 offen\n{LOAD}\ns_waitcnt vmcnt(0)\n{USE}"
    for rule in (HoistLoads(), ScheduleBlocks()):
        assert _places(kernels, rule, text, LOAD) <= {1}
        assert 0 in _places(kernels, rule, text, LOAD, bold=True)


def test_one_buffer_at_overlapping_offsets_is_never_crossed(kernels: Any) -> None:
    store = "buffer_store_dwordx2 v[8:9], v2, s[4:7], 0 offen offset:4"
    for offset, places in ((8, {1}), (12, {0, 1})):
        load = f"{LOAD} offset:{offset}"
        text = f"{store}\n{load}\ns_waitcnt vmcnt(0)\n{USE}"
        assert _places(kernels, HoistLoads(), text, load, bold=True) <= places


def test_crossing_a_wait_raises_its_count(kernels: Any) -> None:
    text = f"buffer_load_dword v8, v2, s[4:7], 0 offen\ns_waitcnt vmcnt(0)\n" \
           f"v_add_u32_e32 v8, 1, v8\n{LOAD}\ns_waitcnt vmcnt(0)\nv_add_u32_e32 v1, v1, v8\n{USE}"
    edited = kernels.first(HoistLoads(), text)
    assert edited[:4] == [
        "buffer_load_dword v8, v2, s[4:7], 0 offen", LOAD, "s_waitcnt vmcnt(1)",
        "v_add_u32_e32 v8, 1, v8"]


def test_nothing_leaves_its_block(kernels: Any) -> None:
    text = f"v_mov_b32_e32 v8, 1\nagain:\n{LOAD}\ns_waitcnt vmcnt(0)\n" \
           f"s_cmp_eq_u32 s2, 0\ns_cbranch_scc1 again\n{USE}"
    for rule in (HoistLoads(), ScheduleBlocks(smallest=1)):
        for proposal in kernels.proposals(rule, text):
            edited = kernels.edited(text, proposal)
            assert edited[1] == "again:"
            assert edited.index(LOAD) < edited.index("s_cbranch_scc1 again")


def test_scheduling_fills_wait_states(kernels: Any) -> None:
    text = "v_add_f32_e32 v4, v1, v1\ns_nop 1\n" \
           "v_add_f32_dpp v1, v4, v4 row_ror:4 row_mask:0xf bank_mask:0xf\n" \
           "v_add_u32_e32 v8, 1, v8\nv_add_u32_e32 v9, 1, v9\n" \
           f"v_add3_u32 v1, v1, v8, v9\n{USE}"
    edited = kernels.first(ScheduleBlocks(), text)
    assert not any(x.startswith("s_nop") for x in edited)
    assert sorted(edited) == sorted(x for x in text.split("\n") if not x.startswith("s_nop"))


def test_every_order_respects_the_dependences(layer_norm_evidence: Evidence) -> None:
    context = RuleContext(layer_norm_evidence)
    for block in context.cfg.blocks:
        graph = context.dependences(block.start, block.end, assume_disjoint=False)
        for index in range(block.start, block.end):
            assert all(block.start <= p < index for p in graph.predecessors[index])
