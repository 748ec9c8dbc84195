"""Computations that reach no store, no branch and no other wave."""

from __future__ import annotations

from typing import Any

from asmevo.propose.proposal import Evidence
from asmevo.propose.rule import RuleContext
from asmevo.propose.rules.dead_code import DeadCode
from asmevo.propose.usefulness import useless

STORE = "global_store_dword v[2:3], v1, off\ns_endpgm"


def test_a_chain_goes_as_a_whole(kernels: Any) -> None:
    text = "v_mov_b32_e32 v5, 1\nv_add_u32_e32 v6, 1, v5\nv_add_u32_e32 v7, v6, v6\n" + STORE
    assert kernels.first(DeadCode(), text) == STORE.split("\n")


def test_an_accumulator_that_feeds_only_itself(kernels: Any) -> None:
    text = "again:\nv_add_f32_e32 v9, v9, v1\ns_cmp_eq_u32 s2, 0\ns_cbranch_scc1 again\n" + STORE
    assert "v_add_f32_e32 v9, v9, v1" not in kernels.first(DeadCode(), text)


def test_used_on_one_path_only_is_used(kernels: Any) -> None:
    text = "v_mov_b32_e32 v1, 1\ns_cmp_eq_u32 s2, 0\ns_cbranch_scc1 there\nv_mov_b32_e32 v1, 2\n" \
           "there:\n" + STORE
    assert kernels.proposals(DeadCode(), text) == []


def test_a_narrowed_exec_keeps_the_old_lanes(kernels: Any) -> None:
    narrowed = "v_mov_b32_e32 v1, 1\ns_mov_b64 exec, 15\nv_mov_b32_e32 v1, 2\n" + STORE
    assert kernels.proposals(DeadCode(), narrowed) == []
    full = narrowed.replace("s_mov_b64 exec, 15\n", "")
    assert "v_mov_b32_e32 v1, 1" not in kernels.first(DeadCode(), full)


def test_a_masked_shuffle_keeps_the_old_value(kernels: Any) -> None:
    text = "v_mov_b32_e32 v1, 1\nv_mov_b32_dpp v1, v4 row_shr:4 row_mask:0xf bank_mask:0xf\n"
    assert kernels.proposals(DeadCode(), text + STORE) == []


def test_scc_counts_as_a_result(kernels: Any) -> None:
    text = "s_add_u32 s4, s4, s5\ns_cbranch_scc1 there\nv_mov_b32_e32 v1, 2\nthere:\n" + STORE
    assert kernels.proposals(DeadCode(), text) == []


def test_removing_a_load_lowers_later_counts(kernels: Any) -> None:
    text = "global_load_dword v1, v[4:5], off\nglobal_load_dword v9, v[6:7], off\n" \
           "s_waitcnt vmcnt(1)\n" + STORE
    assert kernels.first(DeadCode(), text) == [
        "global_load_dword v1, v[4:5], off", "s_waitcnt vmcnt(0)", *STORE.split("\n")]


def test_removal_restores_wait_states(kernels: Any) -> None:
    text = "v_add_f32_e32 v4, v1, v1\nv_mov_b32_e32 v8, v1\nv_mov_b32_e32 v9, v1\n" \
           "v_add_f32_dpp v1, v4, v4 row_ror:4 row_mask:0xf bank_mask:0xf\n" + STORE
    assert kernels.first(DeadCode(), text)[1] == "s_nop 1"


def test_stores_barriers_and_clocks_stay(kernels: Any) -> None:
    text = "s_memtime s[4:5]\ns_barrier\nds_write_b32 v1, v2\n" \
           "s_waitcnt lgkmcnt(0)\nds_read_b32 v1, v4\ns_waitcnt lgkmcnt(0)\n" + STORE
    assert kernels.proposals(DeadCode(), text) == []


LDS = """
    ds_write_b32 v4, v5
    ds_write_b32 v4, v6 offset:1024
    s_waitcnt lgkmcnt(0)
    s_barrier
    ds_read_b32 v9, v7
    ds_read_b32 v1, v7 offset:1024
    s_waitcnt lgkmcnt(0)
    global_store_dword v[2:3], v1, off
    s_endpgm
"""


def test_lds_stores_that_nothing_seems_to_read(kernels: Any) -> None:
    bold, careful, *_ = kernels.proposals(DeadCode(), LDS)
    assert "ds_write_b32 v4, v5" not in kernels.edited(LDS, bold)
    assert "ds_write_b32 v4, v6 offset:1024" in kernels.edited(LDS, bold)
    assert "constant offsets" in bold.assumption
    assert "ds_write_b32 v4, v5" in kernels.edited(LDS, careful)
    assert careful.assumption == ""


def test_lds_stores_stay_where_addresses_are_not_plain(kernels: Any) -> None:
    for other in ("ds_read2_b32 v[20:21], v7 offset1:1", "ds_add_u32 v4, v5",
                  "ds_read_b32 v20, v7 offset:512"):
        user = f"{other}\ns_waitcnt lgkmcnt(0)\nglobal_store_dword v[2:3], v20, off"
        text = LDS.replace("s_barrier", f"s_barrier\n{user}")
        assert all(not p.assumption for p in kernels.proposals(DeadCode(), text)), other


def test_layer_norm_computes_a_mean_that_nothing_uses(layer_norm_evidence: Evidence) -> None:
    context = RuleContext(layer_norm_evidence)
    bold, careful, *parts = DeadCode().matches(context)
    removed = [len(context.program) - len(context.preview.apply(p.edits).program)
               for p in (bold, careful)]
    # The reduction tree behind the LDS; with it, both rows' sums in front of the LDS.
    assert removed[0] >= 80
    assert removed[1] >= 40
    assert len(parts) > 10
    dead = {context.lines[i] for i in useless(context)}
    assert "v_mul_f32_e32 v12, v16, v222" in dead
    assert "ds_read_b32 v16, v220" in dead
    assert "ds_read_b32 v32, v220 offset:1024" not in dead
