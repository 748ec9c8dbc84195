"""Matrix operations, atomics and loads to LDS against published microbenchmarks (PYHIP, MIC)."""

from __future__ import annotations

from collections.abc import Sequence

import asmevo_core
import pytest

from asmevo.profile.profile import StallCause
from tests.device.emulator.test_timing import (
    END,
    LOAD,
    MODEL,
    STORE,
    TRANS,
    TURN,
    VALU,
    P,
    Row,
    Wave,
    cycles,
    fresh,
    one_unit,
    stalled,
    straight,
    time_waves,
)

MFMA = "v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]"
OTHER_MFMA = "v_mfma_f32_16x16x16_f16 a[4:7], v[0:1], v[2:3], a[4:7]"
MFMA_32 = "v_mfma_f32_32x32x8_bf16 a[0:15], v[0:1], v[2:3], a[0:15]"
PACKED = "v_pk_mul_f32 v[4:5], v[6:7], v[8:9]"
TO_LDS = "buffer_load_dword v0, s[0:3], 0 offen lds"
ATOMIC = "global_atomic_pk_add_bf16 v[0:1], v2, off"


def clk_per_round(*waves: Sequence[str]) -> float:
    """clk of one round of the waves' loops on one SIMD; loops start over without cost."""
    def run(rounds: int) -> int:
        program = straight([text for wave in waves for text in wave] + [END])
        rows: list[Row] = []
        first = 0
        for wave in waves:
            body = [(first + i, -1) for i in range(len(wave))]
            end = (len(program) - 1, -1)
            rows.append((0, body * rounds + [end], []))
            rows += [(0, [end], [])] * 3  # on the other SIMDs
            first += len(wave)
        trace = asmevo_core.trace_from_waves(len(rows), rows)
        return MODEL.run(program, trace, one_unit(1), vgprs=32, agprs=16, sgprs=32, lds_bytes=0,
                         workgroup_waves=len(rows)).cycles

    return (run(96) - run(32)) / 64


@pytest.mark.parametrize(("text", "clk"), [
    ("v_mfma_f32_4x4x4_16b_f16 a[0:3], v[0:1], v[2:3], a[0:3]", 8),
    (MFMA, 16),
    ("v_mfma_i32_16x16x32_i8 a[0:3], v[0:1], v[2:3], a[0:3]", 16),
    ("v_mfma_f32_16x16x32_fp8_fp8 a[0:3], v[0:1], v[2:3], a[0:3]", 16),
    (MFMA_32, 32),
    ("v_mfma_f32_32x32x16_fp8_fp8 a[0:15], v[0:1], v[2:3], a[0:15]", 32),
    ("v_mfma_f32_32x32x4_2b_f16 a[0:31], v[0:1], v[2:3], a[0:31]", 64),
    ("v_smfmac_f32_16x16x32_f16 a[0:3], v[0:1], v[2:5], v6", 16),
    ("v_smfmac_f32_32x32x16_f16 a[0:15], v[0:1], v[2:5], v6", 32),
    ("v_mfma_f32_16x16x4_f32 a[0:3], v0, v1, a[0:3]", 32),
    ("v_mfma_f32_32x32x2_f32 a[0:15], v0, v1, a[0:15]", 64),
    ("v_mfma_f64_4x4x4_4b_f64 a[0:1], v[0:1], v[2:3], a[0:1]", 16),
    ("v_mfma_f64_16x16x4_f64 a[0:7], v[0:1], v[2:3], a[0:7]", 32),
])
def test_matrix_operations_follow_one_another_at_the_rate_of_their_shape(
        text: str, clk: int) -> None:
    assert clk_per_round([text]) == clk


@pytest.mark.parametrize(("body", "measured"), [
    ([MFMA, *[VALU] * 3], 16),
    ([MFMA, *[VALU] * 4], 20),
    ([MFMA, TRANS], 20.06),
    ([MFMA, TRANS, TRANS], 36.06),
    ([MFMA, PACKED], 28),
    ([TRANS, VALU], 20),
    ([MFMA, VALU, VALU, VALU, OTHER_MFMA, TRANS], 36.05),
    ([MFMA, OTHER_MFMA, VALU, VALU, VALU, TRANS], 48.05),
    ([PACKED], 4.01),
    ([TRANS], 16.0),
])
def test_what_hides_beside_the_matrix_pipe_of_one_wave(body: list[str], measured: float) -> None:
    assert clk_per_round(body) == pytest.approx(measured, rel=0.05)


@pytest.mark.parametrize(("other", "measured"), [([VALU] * 3, 16), ([VALU] * 4, 20),
                                                 ([PACKED], 21), ([PACKED] * 2, 26)])
def test_what_hides_beside_the_matrix_pipe_of_another_wave(
        other: list[str], measured: float) -> None:
    assert clk_per_round([MFMA], other) == pytest.approx(measured, rel=0.05)


def test_f32_matrix_operations_hide_nothing() -> None:
    text = "v_mfma_f32_16x16x4_f32 a[0:3], v0, v1, a[0:3]"
    assert clk_per_round([text, VALU]) == 32 + 4


def test_what_uses_a_matrix_result_waits_for_it() -> None:
    """The software's wait states are timed; without them the result is waited for."""
    read, other = "v_accvgpr_read_b32 v0, a0", "v_accvgpr_read_b32 v0, a8"
    with_nop = cycles(Wave().run(MFMA, "s_nop 6", read, END))
    assert with_nop == 4 + 7 * 4 + 4 + TURN
    result = time_waves([Wave().run(MFMA, read, END)])
    latency = P.issue.matrix_latency
    assert result.cycles == latency + 4 + TURN
    assert stalled(result, StallCause.DEPENDENCY) == latency - TURN
    assert cycles(Wave().run(MFMA, other, END)) == 16


@pytest.mark.parametrize(("text", "last", "clk"), [
    ("v_mfma_i32_16x16x32_i8 a[{0}:{1}], v[0:1], v[2:3], a[{0}:{1}]", 3, 16),
    ("v_mfma_f32_16x16x16_bf16 v[{0}:{1}], v[0:1], v[2:3], v[{0}:{1}]", 3, 16),
    ("v_mfma_f32_4x4x4_16b_f16 a[{0}:{1}], v[0:1], v[2:3], a[{0}:{1}]", 3, 8),
    ("v_mfma_f32_32x32x8_bf16 a[{0}:{1}], v[0:1], v[2:3], a[{0}:{1}]", 15, 32)])
def test_a_chain_waits_for_results_that_take_longer_than_their_passes(
        text: str, last: int, clk: int) -> None:
    """Small operations of one chain are as far apart as a result takes; several chains hide it."""
    chains = [text.format(16 * (1 + n), 16 * (1 + n) + last) for n in range(4)]
    assert clk_per_round(chains) == 4 * clk
    # The first of a round follows an end of the program: it waits for none.
    assert clk_per_round(chains[:1] * 4) == clk + 3 * max(clk, P.issue.matrix_latency)


def test_a_load_to_lds_takes_eleven_clk_of_the_pipe() -> None:
    line = fresh(2)

    def stream(count: int) -> int:
        waves = [Wave() for _ in range(4)]
        for wave in waves:
            for _ in range(count):
                wave.touch(TO_LDS, line, 256)
            wave.run("s_waitcnt vmcnt(0)", END)
        return time_waves(waves).cycles

    assert (stream(40) - stream(24)) / (16 * 4) == pytest.approx(11, rel=0.05)


def test_a_load_to_lds_is_waited_for_with_vmcnt() -> None:
    wave = Wave().touch(TO_LDS, fresh(), 256).run("s_waitcnt vmcnt(0)", END)
    assert cycles(wave) == P.memory.hbm_latency + 2 * TURN


def test_atomics_run_at_a_quarter_of_the_rate_of_stores() -> None:
    lines = [fresh(2) for _ in range(4)]

    def stream(text: str, count: int) -> int:
        waves = [Wave() for _ in lines]  # one alone would have too few stores on their way
        for wave, own in zip(waves, lines, strict=True):
            for _ in range(count):
                wave.touch(text, own, 256)
            wave.run("s_waitcnt vmcnt(0)", END)
        return time_waves(waves).cycles

    store, atomic = (stream(text, 400) - stream(text, 200)
                     for text in ("global_store_dword v[0:1], v2, off", ATOMIC))
    assert atomic == pytest.approx(4 * store, rel=0.05)


def test_an_atomic_is_done_in_l2() -> None:
    line = fresh()
    touched = Wave().touch(STORE, line, 4).run("s_waitcnt vmcnt(0)")
    atomic = Wave([*touched.steps]).touch(ATOMIC, line, 4).run("s_waitcnt vmcnt(0)", END)
    assert cycles(atomic) - cycles(touched.run(END)) == pytest.approx(
        P.memory.atomic_latency + TURN, abs=TURN)
    # A line that nobody had comes from HBM first.
    cold = cycles(Wave().touch(ATOMIC, fresh(), 4).run("s_waitcnt vmcnt(0)", END))
    missed = P.memory.hbm_latency - P.memory.l2_latency
    assert cold == pytest.approx(missed + P.memory.atomic_latency + 2 * TURN, abs=TURN)


@pytest.mark.parametrize(("text", "latency"), [
    ("s_atomic_inc s0, s[2:3], 0x0 glc", P.memory.atomic_latency),
    ("s_store_dword s0, s[2:3], 0x0", P.memory.store_latency)])
def test_scalar_stores_and_atomics_reach_l2(text: str, latency: int) -> None:
    line = fresh()
    touched = Wave().touch(STORE, line, 4).run("s_waitcnt vmcnt(0)")
    scalar = Wave([*touched.steps]).touch(text, line, 4).run("s_waitcnt lgkmcnt(0)", END)
    assert cycles(scalar) - cycles(touched.run(END)) == pytest.approx(latency + TURN, abs=TURN)


def test_a_flat_access_raises_both_counters() -> None:
    flat = Wave().touch("flat_load_dword v0, v[2:3]", fresh(), 256)
    for wait in ("s_waitcnt vmcnt(0)", "s_waitcnt lgkmcnt(0)"):
        wave = Wave([*flat.steps]).run(wait, END)
        assert cycles(wave) == P.memory.hbm_latency + 2 * TURN


def test_invalidating_the_vector_cache_costs_its_hits() -> None:
    line = fresh()
    first = Wave().touch(LOAD, line, 128).run("s_waitcnt vmcnt(0)", "buffer_inv sc1")
    again = Wave([*first.steps]).touch(LOAD, line, 128).run("s_waitcnt vmcnt(0)", END)
    assert cycles(again) - cycles(first.run(END)) == pytest.approx(
        P.memory.l2_latency + TURN, abs=P.memory.vl1d_latency)
    assert cycles(again) > P.memory.hbm_latency + P.memory.l2_latency


def test_a_wave_of_higher_priority_goes_first() -> None:
    program = straight(["s_setprio 3", *[VALU] * 40, END])
    low = [(i, -1) for i in range(1, 42)]
    high = [(i, -1) for i in range(42)]
    idle = [(41, -1)]
    trace = asmevo_core.trace_from_waves(
        5, [(0, rows, []) for rows in (low, idle, idle, idle, high)])
    result = MODEL.run(program, trace, one_unit(1), vgprs=32, agprs=0, sgprs=32, lds_bytes=0,
                       workgroup_waves=5)
    assert result.cycles == 80 * 4 + TURN
    # All of the waiting is the low wave's: the high one issues every turn once it has its priority.
    assert int(result.stalls.sum()) == pytest.approx(40 * 4, abs=8)


def test_what_vskip_skips_costs_a_turn_and_no_unit() -> None:
    program = straight([MFMA_32, LOAD, TRANS, END])
    trace = asmevo_core.trace_from_waves(1, [(0, [(0, -2), (1, -2), (2, -2), (3, -1)], [])])
    result = MODEL.run(program, trace, one_unit(1), vgprs=32, agprs=16, sgprs=32, lds_bytes=0,
                       workgroup_waves=1)
    assert result.cycles == 4 * TURN


def test_sleep_costs_64_clk_a_unit() -> None:
    assert cycles(Wave().run("s_sleep 3", END)) == 3 * 64 + TURN


def test_a_call_costs_a_taken_branch() -> None:
    program = straight(["s_swappc_b64 s[0:1], s[2:3]", END, VALU, "s_setpc_b64 s[0:1]"])
    trace = asmevo_core.trace_from_waves(1, [(0, [(i, -1) for i in (0, 2, 3, 1)], [])])
    result = MODEL.run(program, trace, one_unit(1), vgprs=32, agprs=0, sgprs=32, lds_bytes=0,
                       workgroup_waves=1)
    assert result.cycles == 2 * P.issue.branch_taken + 4 + TURN


@pytest.mark.parametrize("text", [
    "s_memtime s[0:1]", "buffer_wbl2 sc1", "s_dcache_wb", "s_dcache_inv", "ds_add_u32 v0, v1",
    "ds_bpermute_b32 v0, v1, v2", "ds_swizzle_b32 v0, v1 offset:0", "ds_append v0",
    "ds_read_addtid_b32 v0", "ds_read_b96 v[0:2], v4", "scratch_load_dword v0, v1, off",
    "scratch_store_dword off, v1, s0", "buffer_atomic_add v0, v1, s[0:3], 0 offen",
    "global_load_lds_dword v[0:1], off", "flat_atomic_add v[2:3], v1",
])
def test_has_a_timing(text: str) -> None:
    program = straight([text, "s_waitcnt vmcnt(0) lgkmcnt(0)", END])
    trace = asmevo_core.trace_from_waves(1, [(0, [(0, -1), (1, -1), (2, -1)], [])])
    result = MODEL.run(program, trace, one_unit(1), vgprs=32, agprs=0, sgprs=32, lds_bytes=0,
                       workgroup_waves=1)
    assert result.cycles >= P.memory.sl1d_latency
