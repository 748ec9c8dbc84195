"""Hot windows: small programs whose answer is evident, invariants over random ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.isa.program import Program
from asmevo.isa.registers import mask, names
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


def test_the_default_configuration_builds_a_finder() -> None:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        finder = instantiate(compose("default"))
    assert finder == WindowFinder(count=8, length=48)
