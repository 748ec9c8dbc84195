"""Hot windows: small programs whose answer is evident, invariants over random ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.isa.cfg import Cfg
from asmevo.isa.dataflow import liveness
from asmevo.isa.dependence import EdgeKind
from asmevo.isa.hazards import hazards
from asmevo.isa.instruction import Unit
from asmevo.isa.program import Program
from asmevo.isa.registers import mask, names
from asmevo.isa.waits import awaited
from asmevo.profile.hotwindow import HotWindow
from asmevo.profile.profile import InstructionProfile, Profile, StallCause
from asmevo.profile.windows import ProfileError, WindowFinder, basic_blocks, hot_windows

CONF = Path(__file__).parents[2] / "conf" / "profile"

VALU = "v_add_f32_e32 v0, v1, v2"


def program_of(texts: Sequence[str], labels: Sequence[int] = ()) -> Program:
    """The texts as four-byte instructions, and the end of the program behind them."""
    rows = [(4 * i, 4, text) for i, text in enumerate([*texts, "s_endpgm"])]
    return Program.from_disassembly(rows, {4 * i: f"L{i}" for i in labels})


def profile_of(*stalls: int | dict[StallCause, int]) -> Profile:
    return Profile("d", "modelled", "emulator", 0, tuple(
        InstructionProfile(1, s if isinstance(s, dict) else {StallCause.VMCNT: s})
        for s in (*stalls, {})))


def spans(windows: Sequence[HotWindow]) -> list[tuple[int, int]]:
    return [(w.start, w.stop) for w in windows]


def test_blocks_end_at_branches_and_start_at_labels_and_targets() -> None:
    program = program_of(
        [VALU, "s_cbranch_scc0 2", VALU, VALU, VALU, "s_branch -6", VALU], labels=[6])
    assert basic_blocks(program) == ((0, 2), (2, 4), (4, 6), (6, 8))
    assert basic_blocks(Program((), (0,), (), {})) == ()


def test_the_worst_window_comes_first_and_carries_what_precedes_its_stall() -> None:
    program = program_of([VALU] * 20)
    stalls = [0] * 20
    stalls[5], stalls[15] = 10, 90
    windows = hot_windows([profile_of(*stalls)], program, count=5, max_length=4)
    assert spans(windows) == [(12, 16), (2, 6)]
    assert [w.share for w in windows] == [0.9, 0.1]


def test_windows_stay_inside_their_block() -> None:
    program = program_of([VALU] * 10, labels=[4])
    stalls = [0, 0, 0, 50, 50, 0, 0, 0, 0, 0]
    windows = hot_windows([profile_of(*stalls)], program, count=2, max_length=8)
    assert spans(windows) == [(0, 4), (4, 5)]


def test_profiles_add_up_and_the_dominating_cause_is_named() -> None:
    program = program_of([VALU] * 2)
    first = profile_of({StallCause.VMCNT: 6}, {StallCause.UNIT_BUSY: 5})
    second = profile_of({}, {StallCause.UNIT_BUSY: 4, StallCause.NOP: 1})
    (window,) = hot_windows([first, second], program, count=1, max_length=8)
    assert window.cause is StallCause.UNIT_BUSY
    assert window.share == 1.0


def test_register_sets_are_what_comes_in_and_what_changes() -> None:
    program = program_of(["v_mov_b32_e32 v1, v9", "v_add_f32_e32 v2, v1, v3", "s_nop 0"])
    (window,) = hot_windows([profile_of(0, 0, 7)], program, count=1, max_length=8)
    assert window.writes == mask(256 + 1) | mask(256 + 2)
    assert {"v9", "v3"} <= set(names(window.reads).split(", "))
    assert "v1" not in names(window.reads).split(", ")


def test_a_program_without_stalls_has_no_windows() -> None:
    assert hot_windows([profile_of(0, 0)], program_of([VALU] * 2), count=3, max_length=4) == ()
    assert hot_windows([], program_of([VALU]), count=3, max_length=4) == ()


def test_a_profile_of_another_program_is_refused() -> None:
    with pytest.raises(ProfileError, match="covers 4 instructions, the program has 3"):
        hot_windows([profile_of(1, 1, 1)], program_of([VALU] * 2), count=1, max_length=4)


@pytest.mark.parametrize(("count", "length"), [(0, 4), (4, 0), (-1, 4)])
def test_senseless_settings_are_refused(count: int, length: int) -> None:
    with pytest.raises(ProfileError, match="at least 1"):
        WindowFinder(count, length).find(program_of([VALU]), [profile_of(1)])


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.sets(st.integers(0, 39)),
       st.integers(1, 12), st.integers(1, 10))
def test_windows_are_disjoint_sorted_and_inside_blocks(
        stalls: list[int], labels: set[int], count: int, length: int) -> None:
    program = program_of([VALU] * len(stalls), sorted(x for x in labels if x < len(stalls)))
    windows = hot_windows([profile_of(*stalls)], program, count=count, max_length=length)
    assert len(windows) <= count
    assert all(0 < w.stop - w.start <= length for w in windows)
    assert all(stalls[w.stop - 1] > 0 for w in windows)
    assert all(any(a <= w.start and w.stop <= b for a, b in basic_blocks(program))
               for w in windows)
    assert [w.share for w in windows] == sorted((w.share for w in windows), reverse=True)
    covered = [i for w in windows for i in range(w.start, w.stop)]
    assert len(covered) == len(set(covered))
    assert sum(w.share for w in windows) <= 1 + 1e-9
    if count >= len(stalls):
        assert {i for i, s in enumerate(stalls) if s} <= set(covered)


@pytest.mark.parametrize("kernel", ["layer_norm", "i8gemm"])
def test_windows_of_real_kernels_say_what_constrains_them(
        kernel: str, request: pytest.FixtureRequest) -> None:
    program: Program = request.getfixturevalue(kernel)
    stalls = {Unit.WAIT: StallCause.VMCNT, Unit.MFMA: StallCause.UNIT_BUSY,
              Unit.NOP: StallCause.NOP}
    profile = Profile("d", "modelled", "x", 0, tuple(
        InstructionProfile(4, {stalls[i.unit]: 400} if i.unit in stalls else {})
        for i in program.instructions))
    windows = hot_windows([profile], program, count=8, max_length=48)
    live, cfg = liveness(program), Cfg.of(program)
    awaited_by = awaited(program)
    assert len(windows) == 8
    for window in windows:
        inside = range(window.start, window.stop)
        assert window.executions == 4
        assert window.stalled == sum(profile.instructions[k].stalled for k in inside)
        # What the window needs is live in front of it.
        before = 0
        for previous in cfg.previous_indices(window.start):
            before |= live[previous]
        if window.start:
            assert window.live_in & ~before == 0
        assert window.live_out & ~(live[window.stop - 1] & window.writes) == 0
        assert window.live_through & (window.live_in | window.writes) == 0
        assert live[window.stop - 1] & ~(
            window.live_out | window.live_through | window.live_in) == 0
        assert window.pressure <= 512
        assert all(e.producer in inside and e.consumer in inside and e.producer < e.consumer
                   for e in window.edges)
        waits = {(e.producer, e.consumer) for e in window.edges if e.kind is EdgeKind.WAIT}
        assert waits == {(k, w.index) for w in window.waits for k in w.operations
                         if window.start <= k < w.index}
        assert {w.index: w.operations for w in window.waits} == {
            k: awaited_by[k] for k in inside if k in awaited_by}
        broken = {(v.producer, v.consumer) for v in hazards(program)}
        assert all(h.found >= h.needed or (h.producer, h.consumer) in broken
                   for h in window.hazards)


def test_the_default_configuration_builds_a_finder() -> None:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        finder = instantiate(compose("default"))
    assert finder == WindowFinder(count=8, length=48)
