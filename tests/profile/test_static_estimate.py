"""The estimate from code alone: small kernels by hand, real ones end to end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from asmevo.isa.program import Program
from asmevo.profile.profile import MemoryLevel, StallCause
from asmevo.profile.static_estimate import static_estimate
from asmevo.profile.windows import hot_windows
from tests.profile.machines import ROUND

Assemble = Callable[..., Program]


def test_loops_weigh_ten_times_and_unreachable_code_nothing(assemble: Assemble) -> None:
    program = assemble([
        "s_mov_b32 s0, 0", "s_add_u32 s0, s0, 1", "s_mov_b32 s1, 0", "s_add_u32 s1, s1, 1",
        "s_cbranch_scc0 -2", "s_cbranch_scc0 -5", "s_branch 1", "s_mov_b32 s9, 0"])
    profile = static_estimate(program, ROUND)
    assert [i.issued for i in profile.instructions] == [1, 10, 10, 100, 100, 10, 1, 0, 1]
    assert (profile.source, profile.device) == ("static", "round")


def test_a_wait_costs_what_is_left_of_the_latency(assemble: Assemble) -> None:
    load = "global_load_dword v0, v[10:11], off"
    program = assemble([load, "v_mov_b32_e32 v1, 0", "v_mov_b32_e32 v2, 0", "s_waitcnt vmcnt(0)"])
    near = static_estimate(program, ROUND, level=MemoryLevel.L1)
    far = static_estimate(program, ROUND, level=MemoryLevel.HBM)
    assert near.instructions[3].stalls == {StallCause.VMCNT: 100 - 12}
    assert far.instructions[3].stalls == {StallCause.VMCNT: 900 - 12}
    lds = assemble(["ds_read_b128 v[0:3], v9", "s_waitcnt lgkmcnt(0)"])
    # 64 lanes x 16 bytes at 64 bytes a clk for a pair of SIMDs, behind 50 clk.
    assert static_estimate(lds, ROUND).instructions[1].stalls == {
        StallCause.LGKMCNT: 50 + 16 - 4}


def test_a_load_of_the_previous_round_has_had_the_rest_of_it(assemble: Assemble) -> None:
    program = assemble(["s_mov_b32 s0, 0", "s_waitcnt vmcnt(0)", "v_mov_b32_e32 v1, v0",
                        "global_load_dword v0, v[10:11], off", *["v_mov_b32_e32 v2, 0"] * 10,
                        "s_cbranch_scc1 -14"], labels=[1])
    waited = static_estimate(program, ROUND).instructions[1].stalls
    # 11 turns and a taken branch between the load and the next round's wait.
    assert waited == {StallCause.VMCNT: 10 * (300 - 11 * 4 - 32)}


def test_busy_pipes_wait_states_branches_and_fetch(assemble: Assemble) -> None:
    program = assemble(
        ["v_exp_f32_e32 v0, v1", "v_exp_f32_e32 v2, v3", "s_nop 4", "v_add3_u32 v1, v2, v3, v4",
         "s_barrier", "s_cbranch_scc1 0"], wide=[3])
    stalls = [i.stalls for i in static_estimate(program, ROUND).instructions]
    assert stalls[:6] == [
        {}, {StallCause.UNIT_BUSY: 12}, {StallCause.NOP: 16}, {StallCause.FETCH: 1},
        {StallCause.BARRIER: 4}, {StallCause.FETCH: 4}]


@pytest.mark.parametrize("kernel", ["layer_norm", "i8gemm"])
def test_real_kernels_have_windows_where_they_loop(
        kernel: str, request: pytest.FixtureRequest) -> None:
    program: Program = request.getfixturevalue(kernel)
    profile = static_estimate(program, ROUND)
    assert profile.cycles == sum(4 * i.issued + i.stalled for i in profile.instructions)
    windows = hot_windows([profile], program, count=8, max_length=48)
    assert len(windows) == 8
    assert windows[0].loop_depth >= 1
    assert windows[0].recoverable > 0
    assert sum(w.share for w in windows) > 0.5
