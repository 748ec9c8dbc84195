"""The C++ cycle model trusts neither table nor trace: hostile ones are refused or simulated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import asmevo_core
import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from hypothesis import given, settings
from hypothesis import strategies as st

from asmevo.device.emulator.timing_result import STALL_CAUSES

CONF = Path(__file__).parents[3] / "conf" / "device"

with initialize_config_dir(str(CONF), version_base="1.3"):
    PARAMETERS = instantiate(compose("emulator").timing).core_parameters()

Row = tuple[int, list[tuple[int, int]], list[tuple[list[int], int, int]]]
CLASSES = list(asmevo_core.IssueClass)
TABLE = [asmevo_core.InstructionTiming(CLASSES[0])] * 2
BYTE = st.integers(0, 255)
INSTRUCTIONS = st.lists(st.builds(
    asmevo_core.InstructionTiming, st.sampled_from(CLASSES), busy=st.integers(4, 65535),
    vmcnt=st.integers(0, 1), lgkmcnt=st.integers(0, 2), wait_vmcnt=BYTE, wait_lgkmcnt=BYTE,
    fetch_debt=st.integers(0, 3),
    access=st.sampled_from(list(asmevo_core.AccessKind)), matrix=st.sampled_from([0, 16, 65535]),
    beside_matrix=st.booleans(), priority=st.sampled_from([0, 1, 3, 255])), min_size=1, max_size=12)
ACCESS = st.tuples(st.lists(st.integers(0, (1 << 57) - 1), max_size=4), st.integers(0, 65535),
                   st.integers(0, (1 << 32) - 1))


def simulate(program: Sequence[object], trace: object) -> Any:
    return asmevo_core.simulate_timing(program, trace, PARAMETERS, slots=1, resident=2)


@pytest.mark.parametrize("row", [
    (0, [(2, -1)], []), (0, [], []), (0, [(0xffffffff, -1)], [])])
def test_a_trace_of_another_program_is_refused(row: Row) -> None:
    trace = asmevo_core.trace_from_waves(1, [row])
    with pytest.raises(ValueError, match="trace"):
        simulate(TABLE, trace)


@pytest.mark.parametrize("access", [1, -3, 1 << 40])
def test_a_trace_cannot_name_an_access_it_does_not_have(access: int) -> None:
    with pytest.raises(ValueError, match="out of range"):
        asmevo_core.trace_from_waves(1, [(0, [(0, access)], [([1], 0, 4)])])


def test_a_line_beyond_the_address_space_is_refused() -> None:
    trace = asmevo_core.trace_from_waves(1, [(0, [(0, 0)], [([(1 << 64) - 1], 0, 4)])])
    with pytest.raises(ValueError, match="beyond the address space"):
        simulate(TABLE, trace)


def test_a_trace_must_hold_whole_workgroups() -> None:
    trace = asmevo_core.trace_from_waves(2, [(0, [(0, -1)], [])] * 3)
    with pytest.raises(ValueError, match="whole workgroups"):
        simulate(TABLE, trace)


def test_a_trace_is_sorted_by_workgroup() -> None:
    trace = asmevo_core.trace_from_waves(2, [(g, [(0, -1)], []) for g in (0, 1, 0, 1)])
    with pytest.raises(ValueError, match="sorted by workgroup"):
        simulate(TABLE, trace)


def test_a_workgroup_larger_than_the_slots_is_refused() -> None:
    trace = asmevo_core.trace_from_waves(5, [(0, [(0, -1)], [])] * 5)
    with pytest.raises(ValueError, match="does not fit"):
        simulate(TABLE, trace)


@settings(max_examples=100, deadline=None)
@given(INSTRUCTIONS, st.integers(1, 4), st.integers(1, 3), st.data())
def test_the_core_ends_on_any_table_and_trace(
        program: list[object], per_group: int, groups: int, data: st.DataObject) -> None:
    """The core trusts neither: whatever passes its checks is simulated to the end."""
    index = st.integers(0, len(program) - 1)
    rows = [(number // per_group,
             data.draw(st.lists(st.tuples(index, st.integers(-2, 0)), min_size=1, max_size=60)),
             [data.draw(ACCESS)])
            for number in range(per_group * groups)]
    trace = asmevo_core.trace_from_waves(per_group, rows)
    result = simulate(program, trace)
    assert int(result.issued.sum()) == sum(len(entries) for _, entries, _ in rows)
    assert result.cycles > 0
    assert result.stalls.shape == (len(STALL_CAUSES), len(program))


@pytest.mark.parametrize("wrong", [{"busy": 3}, {"vmcnt": 2}, {"lgkmcnt": 3}, {"fetch_debt": 4},
                                   {"matrix": 3}, {"priority": 4}])
def test_a_table_outside_the_machine_is_refused(wrong: dict[str, Any]) -> None:
    program = [asmevo_core.InstructionTiming(CLASSES[0], **wrong)]
    trace = asmevo_core.trace_from_waves(1, [(0, [(0, -1)], [])])
    with pytest.raises(ValueError, match=r"instruction|debt"):
        simulate(program, trace)


def test_parameters_outside_the_machine_are_refused() -> None:
    trace = asmevo_core.trace_from_waves(1, [(0, [(0, -1)], [])])
    with pytest.raises(ValueError, match="rate or capacity"):
        asmevo_core.simulate_timing(TABLE, trace, asmevo_core.TimingParameters(), slots=1,
                                    resident=1)
