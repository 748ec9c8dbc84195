"""What is simulated of a launch: XCDs and compute units, and the workgroups that they run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from asmevo.device.emulator.sampling import Sample, Sampling
from asmevo.device.emulator.settings import SettingError
from tests.device.emulator.test_timing import MODEL

MI300X = MODEL.parameters.machine
SMALL = replace(MI300X, xcds=4, compute_units_per_xcd=20)


def test_a_single_workgroup_is_all_there_is() -> None:
    assert Sampling().samples((1, 1, 1), MI300X, seed=0) == [Sample(0, 1, (0,), 1, 1)]


def test_a_small_launch_is_simulated_as_a_whole() -> None:
    samples = Sampling(whole=50).samples((50, 1, 1), MI300X, seed=0)
    assert sorted(w for sample in samples for w in sample.workgroups) == list(range(50))
    assert [sample.units for sample in samples] == [7 if s.xcd < 2 else 6 for s in samples]
    assert len(Sampling(whole=49).samples((50, 1, 1), MI300X, seed=0)) == 2


def test_an_xcd_that_is_simulated_whole_runs_every_eighth_workgroup() -> None:
    (sample,) = Sampling(xcds=1, units=38).samples((10, 61, 1), MI300X, seed=0)
    assert sample == Sample(0, 38, tuple(range(0, 610, 8)), 38, 304)


def test_units_left_out_leave_their_workgroups_out() -> None:
    for seed in range(5):
        (sample,) = Sampling(xcds=1, units=3).samples((640, 1, 1), MI300X, seed=seed)
        of_xcd = [workgroup // 8 for workgroup in sample.workgroups]
        units = {index % 38 for index in of_xcd}
        assert len(units) == 3
        assert 0 in units
        assert of_xcd == sorted(i for i in range(80) if i % 38 in units)
        # The core deals the first workgroups to its units in turn: each gets its own.
        assert [index % 38 for index in of_xcd[:3]] == sorted(units)


def test_how_many_units_are_busy() -> None:
    (sample,) = Sampling(xcds=1, units=2, whole=0).samples((30, 1, 1), SMALL, seed=0)
    assert (sample.busy_units_of_xcd, sample.busy_units) == (8, 30)
    (sample,) = Sampling(xcds=1, units=2).samples((81, 1, 1), SMALL, seed=0)
    assert (sample.busy_units_of_xcd, sample.busy_units) == (20, 80)


def test_which_parts_are_simulated_depends_on_the_seed() -> None:
    chosen = [Sampling(xcds=2, units=4).samples((3040, 1, 1), MI300X, seed=s) for s in range(8)]
    assert all(samples[0].xcd == 0 and len(samples) == 2 for samples in chosen)
    assert len({samples[1].xcd for samples in chosen}) > 2
    assert len({samples[0].workgroups for samples in chosen}) > 4


@pytest.mark.parametrize("wrong", [{"xcds": 0}, {"units": 1.5}, {"units": True}, {"whole": -1}])
def test_a_wrong_setting_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(SettingError, match="must be an integer of at least"):
        Sampling(**wrong)
