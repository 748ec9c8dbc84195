"""Recoverable cycles: kernels small enough to schedule by hand, bounds on real ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.isa.instruction import Unit
from asmevo.isa.program import Program
from asmevo.profile.analysis import Analysis
from asmevo.profile.profile import InstructionProfile, Profile, StallCause, WaveProfile
from asmevo.profile.recoverable import recoverable

LOAD = "global_load_dword v{}, v[10:11], off"
ARRIVED = "s_waitcnt vmcnt(0)"
FREE = "v_mov_b32_e32 v{}, 0"
Assemble = Callable[..., Program]
Stalls = Mapping[int, Mapping[StallCause, int]]


def profile(program: Program, stalls: Stalls, *, issued: int = 1,
            waves: Sequence[WaveProfile] = ()) -> Profile:
    return Profile("d", "modelled", "x", 1000, tuple(
        InstructionProfile(issued, dict(stalls.get(k, {}))) for k in range(len(program))),
        waves=tuple(waves))


def gains(program: Program, stalls: Stalls, **options: Any) -> dict[int, float]:
    found = recoverable(Analysis(program), profile(program, stalls, **options))
    return {k: clk for k, clk in enumerate(found) if clk}


def test_a_wait_is_hidden_by_as_much_independent_work_as_there_is(assemble: Assemble) -> None:
    texts = [LOAD.format(0), ARRIVED, "v_add_u32_e32 v1, v0, v0"]
    texts += [FREE.format(k) for k in range(20, 30)]
    program = assemble(texts)
    assert gains(program, {1: {StallCause.VMCNT: 400}}) == {1: 40.0}
    assert gains(program, {1: {StallCause.VMCNT: 4000}}, issued=10) == {1: 400.0}


def test_a_wait_that_everything_depends_on_is_not_recoverable(assemble: Assemble) -> None:
    program = assemble([LOAD.format(0), ARRIVED, "v_add_u32_e32 v1, v0, v0",
                        "v_add_u32_e32 v1, v1, v0", "v_add_u32_e32 v1, v1, v0"])
    assert gains(program, {1: {StallCause.VMCNT: 400}}) == {}


def test_two_loads_in_a_row_can_overlap_but_one_latency_stays(assemble: Assemble) -> None:
    program = assemble([LOAD.format(0), ARRIVED, "v_add_u32_e32 v1, v0, v0",
                        LOAD.format(2), ARRIVED, "v_add_u32_e32 v3, v2, v2"])
    found = gains(program, {k: {StallCause.VMCNT: 400} for k in (1, 4)})
    assert set(found) == {1, 4}
    assert 400 <= sum(found.values()) <= 420  # one latency, give or take a few turns


def test_work_already_between_load_and_wait_is_no_help(assemble: Assemble) -> None:
    texts = [LOAD.format(0), *(FREE.format(k) for k in range(20, 30)), ARRIVED,
             "v_add_u32_e32 v1, v0, v0"]
    assert gains(assemble(texts), {11: {StallCause.VMCNT: 400}}) == {}


def test_data_from_an_earlier_block_comes_when_it_comes(assemble: Assemble) -> None:
    program = assemble([LOAD.format(0), FREE.format(5), ARRIVED, FREE.format(6),
                        "v_add_u32_e32 v1, v0, v0", "v_add_u32_e32 v1, v1, v0"], labels=[2])
    assert gains(program, {2: {StallCause.VMCNT: 400}}) == {2: 4.0}


def test_a_load_of_the_previous_round_can_move_within_its_loop(assemble: Assemble) -> None:
    body = [ARRIVED, "v_add_u32_e32 v1, v0, v1", *(FREE.format(k) for k in range(20, 40)),
            LOAD.format(0), "s_cmp_lg_u32 s0, s1", "s_cbranch_scc1 -25"]
    program = assemble([LOAD.format(0), *body], labels=[1])
    found = gains(program, {1: {StallCause.VMCNT: 4000}}, issued=10)
    assert set(found) == {1}
    assert 0 < found[1] <= 10 * 20 * 4


def test_a_saturated_pipe_is_not_recoverable_one_beside_others_is(assemble: Assemble) -> None:
    exponentials = [f"v_exp_f32_e32 v{k}, v{k + 50}" for k in range(4)]
    stalls = {k: {StallCause.UNIT_BUSY: 12} for k in range(1, 4)}
    assert gains(assemble(exponentials), stalls) == {}
    beside = assemble([*exponentials, *(f"s_mov_b32 s{k}, 0" for k in range(12))])
    assert gains(beside, stalls) == {1: 12.0, 2: 12.0, 3: 12.0}
    # What other waves' exponentials need of the pipe cannot be had.
    others = [WaveProfile(0, 0, slot, 0, slot, 0, 100, 17) for slot in range(2)]
    assert gains(beside, stalls, waves=others) == {}


def test_wait_states_give_way_to_work_or_are_needed_by_nobody(assemble: Assemble) -> None:
    # A VALU write of an SGPR needs 5 wait states before vector memory reads it
    # (LLVM GCNHazardRecognizer, VmemSgprWaitStates).
    needed = ["v_readfirstlane_b32 s4, v9", "s_nop 4",
              "buffer_load_dword v0, off, s[4:7], 0"]
    stalls = {1: {StallCause.NOP: 16}}
    assert gains(assemble(needed), stalls) == {}
    filled = assemble([*needed, *(FREE.format(k) for k in range(20, 23))])
    assert gains(filled, stalls) == {1: 12.0}
    assert gains(assemble([FREE.format(1), "s_nop 4", FREE.format(2)]), stalls) == {1: 16.0}


def test_only_misaligned_instructions_recover_fetch_stalls(assemble: Assemble) -> None:
    wide = "v_add3_u32 v1, v2, v3, v4"
    program = assemble([FREE.format(0), wide, wide, FREE.format(0), wide], wide=[1, 2, 4])
    assert [program.offsets[k] % 8 for k in (1, 2, 4)] == [4, 4, 0]
    stalls = {k: {StallCause.FETCH: 10} for k in (0, 1, 4)}
    assert gains(program, stalls, issued=10) == {1: 10.0}
    assert gains(program, {1: {StallCause.FETCH: 5000}}, issued=10) == {1: 40.0}


def test_only_the_imbalance_of_a_barrier_counts(assemble: Assemble) -> None:
    program = assemble([FREE.format(0), "s_barrier", FREE.format(1), "s_barrier"])
    stalls = {1: {StallCause.BARRIER: 90}, 3: {StallCause.BARRIER: 30}}
    waits = (50, 10, 50, 10)
    waves = [WaveProfile(0, k, 0, k // 2, k % 2, 0, 100, 5, {StallCause.BARRIER: clk})
             for k, clk in enumerate(waits)]
    assert gains(program, stalls) == {}
    found = gains(program, {k: {c: 4 * clk for c, clk in s.items()} for k, s in stalls.items()},
                  issued=4, waves=waves)
    # 80 of the 120 clk that the four waves wait.
    assert found == {1: pytest.approx(4 * 60.0), 3: pytest.approx(4 * 20.0)}


def test_slots_and_unknown_causes_are_no_matter_of_order(assemble: Assemble) -> None:
    program = assemble([FREE.format(k) for k in range(9)])
    assert gains(program, {4: {StallCause.OCCUPANCY: 99}, 5: {StallCause.OTHER: 99}}) == {}


def test_nothing_is_claimed_without_issue_counts(assemble: Assemble) -> None:
    program = assemble([LOAD.format(0), ARRIVED, *(FREE.format(k) for k in range(20, 30))])
    assert gains(program, {1: {StallCause.VMCNT: 400}}, issued=0) == {}


@pytest.mark.parametrize("kernel", ["layer_norm", "i8gemm"])
def test_no_real_instruction_recovers_more_than_it_stalled(
        kernel: str, request: pytest.FixtureRequest) -> None:
    program: Program = request.getfixturevalue(kernel)
    analysis = Analysis(program)
    causes = {Unit.WAIT: StallCause.VMCNT, Unit.NOP: StallCause.NOP, Unit.MFMA:
              StallCause.UNIT_BUSY, Unit.VALU: StallCause.DEPENDENCY, Unit.BARRIER:
              StallCause.BARRIER, Unit.LDS: StallCause.UNIT_BUSY}

    @settings(max_examples=15, deadline=None)
    @given(st.randoms(use_true_random=False))
    def check(random: Any) -> None:
        stalls = {k: {causes[i.unit]: random.choice([0, 4, 40, 4000])}
                  for k, i in enumerate(program.instructions) if i.unit in causes}
        made = profile(program, stalls, issued=random.choice([1, 7]))
        found = recoverable(analysis, made)
        assert all(0.0 <= clk <= instruction.stalled + 1e-6
                   for clk, instruction in zip(found, made.instructions, strict=True))

    check()
