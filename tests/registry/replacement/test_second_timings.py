"""A second timing confirms a replacement, or withdraws it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from asmevo.gates.verdict import Gate, Outcome, Verdict
from asmevo.registry import pull
from asmevo.registry.errors import PullError, PullRefusal, RegistryError

if TYPE_CHECKING:
    from tests.registry.conftest import Scene

BACKENDS = ("sqlite", "postgresql")
PASS = Verdict(Gate.G3, Outcome.PASS, "ok", "1.2x", {"speedup": 1.2})
MISSING = Verdict(Gate.G3, Outcome.MISSING, "not-timed", "the device is gone")


def test_a_confirmed_one_is_handed_out(scene: Scene) -> None:
    scene.commit("a", number=1)
    scene.registry.record_second_timing("a", 1.2, PASS, confirmed=True)
    record = pull(scene.registry, original=scene.original.sha256).record
    assert (record.speedup_again, record.withdrawn) == (1.2, False)


@pytest.mark.parametrize(("again", "verdict"), [(0.99, PASS), (None, MISSING)])
def test_one_that_is_not_confirmed_is_withdrawn(
        scene: Scene, again: float | None, verdict: Verdict) -> None:
    scene.commit("a", number=1)
    scene.registry.record_second_timing("a", again, verdict, confirmed=False)
    with pytest.raises(PullError, match="withdrawn") as caught:
        pull(scene.registry, original=scene.original.sha256, allow_modelled=True)
    assert caught.value.code is PullRefusal.WITHDRAWN
    [record] = scene.registry.replacements()
    assert (record.speedup_again, record.withdrawn) == (again, True)


def test_another_one_takes_its_place(scene: Scene) -> None:
    scene.commit("best", number=1, speedup=1.5)
    other = scene.commit("other", number=2, speedup=1.1)
    scene.registry.record_second_timing("best", 1.0, PASS, confirmed=False)
    assert pull(scene.registry, original=scene.original.sha256).record == other


def test_a_later_second_timing_counts(scene: Scene) -> None:
    scene.commit("a", number=1)
    scene.registry.record_second_timing("a", 0.9, PASS, confirmed=False)
    scene.registry.record_second_timing("a", 1.1, PASS, confirmed=True)
    assert pull(scene.registry, original=scene.original.sha256).record.speedup_again == 1.1


def test_what_cannot_be_recorded(scene: Scene) -> None:
    scene.registry.record_candidate(scene.candidate("b"), built=scene.variant(3))
    with pytest.raises(RegistryError, match="not committed"):
        scene.registry.record_second_timing("b", 1.1, PASS, confirmed=True)
    scene.commit("a", number=1)
    for speedup, verdict in ((None, PASS), (1.2, MISSING)):
        with pytest.raises(RegistryError, match="not confirmed by a second timing"):
            scene.registry.record_second_timing("a", speedup, verdict, confirmed=True)
