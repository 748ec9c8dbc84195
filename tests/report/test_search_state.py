"""The state of a search is what its events add up to."""

from __future__ import annotations

from collections import Counter

import pytest

from asmevo.report.search_state import SearchState
from asmevo.search.events import Attempted, Committed, Ended, Fault, Resumed
from tests.report import made_search


@pytest.mark.parametrize("seed", range(4))
def test_counts(seed: int) -> None:
    events = list(made_search.events(200, seed=seed))
    state = SearchState.of(events)
    attempted = [e for e in events if isinstance(e, Attempted)]
    judged = [e for e in attempted if not e.duplicate]
    committed = [e for e in events if isinstance(e, Committed)]
    (ended,) = (e for e in events if isinstance(e, Ended))
    assert state.judged == len(judged)
    assert state.duplicates == len(attempted) - len(judged) == ended.duplicates
    assert state.faults == sum(isinstance(e, Fault) for e in events) == ended.faults
    assert state.used == len(attempted) + state.faults == ended.attempts
    assert state.commits == len(committed) == ended.commits
    assert state.best is not None
    assert (state.best.number, state.best.speedup) == (ended.best, ended.speedup)
    for gate in made_search.GATES:
        last = Counter([v.outcome for v in e.verdicts if v.gate == gate][-1]
                       for e in judged if gate in {v.gate for v in e.verdicts})
        assert state.verdicts[gate] == last
    assert sum(state.reasons.values()) == sum(
        any(v.outcome != "pass" for v in e.verdicts) for e in judged)
    assert sum(record.proposed for record in state.rules.values()) == len(judged)
    assert sum(record.accepted for record in state.proposers.values()) == len(committed)
    assert sum(w.attempts for w in state.workers.values()) == len(judged)
    assert sum(sum(w.rejected.values()) for w in state.workers.values()) == sum(
        state.reasons.values())
    assert len(state.points) == sum(e.speedup is not None for e in judged)
    assert [n.parent for n in state.nodes[1:]] == [e.parent for e in committed]


def test_spending() -> None:
    state = SearchState.of(made_search.events(60, cost=5.0))
    assert state.tokens == 1200 * (state.judged + state.duplicates)
    assert state.cost == pytest.approx(0.013 * (state.judged + state.duplicates))


def test_a_resumed_search_goes_on() -> None:
    events = list(made_search.events(60))
    state = SearchState.of(events)
    assert state.ended is not None
    state.happened(Resumed(attempts_used=60, seconds=state.seconds))
    assert (state.sittings, state.used) == (2, 60)
    assert not state.ended


def test_a_node_that_does_not_fit_is_left_out() -> None:
    events = list(made_search.events(60))
    lost = next(e for e in events if isinstance(e, Committed) and e.node == 2)
    state = SearchState.of(e for e in events if e is not lost)
    assert [n.number for n in state.nodes] == [0, 1]
