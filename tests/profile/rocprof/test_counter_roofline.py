"""Rooflines from counters, with one limit each."""

from __future__ import annotations

from pathlib import Path

import pytest

from asmevo.profile.arithmetic import Number, OperationClass
from asmevo.profile.errors import ProfileError
from asmevo.profile.profile import MemoryLevel
from asmevo.profile.rocprof.counter_roofline import counter_roofline, kernel_counters
from asmevo.profile.rocprof.measured import read_recording
from asmevo.profile.roofline import Limit
from tests.profile.machines import ROUND

HERE = Path(__file__).parent


@pytest.mark.parametrize("file", ["counter_collection.csv", "results.json"])
def test_counters_of_a_recording(file: str) -> None:
    recording = read_recording([HERE / file])
    counters, nanoseconds = kernel_counters(recording, "scale(float*, float)")
    assert counters == {"SQ_WAVES": 16.0, "GRBM_GUI_ACTIVE": 120_000.0}
    assert nanoseconds == 10_000
    with pytest.raises(ProfileError, match="no counters of 'other'"):
        kernel_counters(recording, "other")


def test_matrix_operations_at_their_ceiling() -> None:
    # 1 us of 10 compute units at 1000 MHz: 2048 f16 operations a clk and unit at most.
    most = 2048 * 10 * 1000
    found = counter_roofline(
        {"SQ_INSTS_VALU_MFMA_MOPS_F16": 0.8 * most / 512, "SQ_VALU_MFMA_BUSY_CYCLES": 32_000},
        1000.0, ROUND, dispatch="d")
    assert found.operations == {OperationClass(Number.F16, True): pytest.approx(0.8 * most)}
    assert found.limit is Limit.MFMA
    assert [c.utilisation for c in found.ceilings] == [pytest.approx(0.8), pytest.approx(0.8)]
    assert found.achieved == pytest.approx(0.8 * most * 1e6)


def test_traffic_beyond_l2_counts_against_hbm() -> None:
    # HBM moves 128 bytes a clk of 1 ns, whatever the core clock.
    for clock in (500, 1000):
        found = counter_roofline({"FETCH_SIZE": 100.0, "WRITE_SIZE": 12.5}, 1000.0, ROUND,
                                 dispatch="d", clock_mhz=clock)
        assert (found.limit, found.level) == (Limit.BANDWIDTH, MemoryLevel.HBM)
        assert found.ceilings[0].utilisation == pytest.approx(0.9)


def test_vector_issue_lds_and_latency() -> None:
    busy = counter_roofline({"SQ_ACTIVE_INST_VALU": 9000.0, "SQ_INSTS_VALU_FMA_F32": 100.0},
                            1000.0, ROUND, dispatch="d")
    assert busy.limit is Limit.ISSUE
    assert busy.operations == {OperationClass(Number.F32, False): 100 * 128}
    lds = counter_roofline({"SQ_LDS_IDX_ACTIVE": 7000.0}, 1000.0, ROUND, dispatch="d")
    assert lds.limit is Limit.LDS
    idle = counter_roofline({"SQ_LDS_IDX_ACTIVE": 70.0}, 1000.0, ROUND, dispatch="d")
    assert idle.limit is Limit.LATENCY


def test_counters_that_say_nothing_are_refused() -> None:
    with pytest.raises(ProfileError, match="no counter of d says what limits it"):
        counter_roofline({"SQ_WAVES": 3.0}, 1000.0, ROUND, dispatch="d")
    with pytest.raises(ProfileError, match="no duration"):
        counter_roofline({"SQ_WAVES": 3.0}, 0.0, ROUND, dispatch="d")
