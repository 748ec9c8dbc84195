"""A search that is killed anywhere goes on as if nothing had happened."""

from __future__ import annotations

import pytest

from asmevo.search.events import AnyEvent, Attempted, Ended, Resumed
from asmevo.search.planner import TeamPlanner
from asmevo.search.supervision import Thresholds
from tests.search.fakes import FakeBench, controller, facts, lineage_of, root, state
from tests.search.memory_journal import MemoryJournal
from tests.search.resuming import Dying, Killed, restore

THRESHOLDS = Thresholds(no_progress=8, window=8, hypothesis=3, redirects=1)


def new(journal: MemoryJournal, attempts: int = 80):  # type: ignore[no-untyped-def]
    bench = FakeBench(costs=(200,) * 15, floor=197, clashes=((0, 5), (3, 8)), steps=(1, 2, 12),
                      limit=25)
    return controller(
        bench, journal=journal, planner=TeamPlanner(attempts_per_worker=5), workers=3,
        of=state(root(bench.costs), attempts=attempts, seed=3, thresholds=THRESHOLDS))


def plain(events: tuple[AnyEvent, ...]) -> list[dict[str, object]]:
    return facts([e for e in events if not isinstance(e, Resumed)])


WHOLE = MemoryJournal()
WHOLE_RUN = new(WHOLE)
WHY = WHOLE_RUN.run()


def test_the_run_has_something_of_everything() -> None:
    kinds = {event.kind for event in WHOLE.events}
    assert kinds >= {"started", "assigned", "attempted", "committed", "finished", "composed",
                     "redirected", "escalated", "ended"}
    assert WHY == "attempts"


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("after", range(1, len(WHOLE.events), 7))
def test_killed_and_resumed_it_is_the_same_run(after: int, before: bool) -> None:
    """Whichever event is the last durable one, before or after it was acted upon."""
    journal: MemoryJournal = Dying(after, before=before)
    with pytest.raises(Killed):
        new(journal).run()
    resumed = MemoryJournal(list(journal.entries))
    made = new(resumed)
    assert made.run(restore(made, resumed)) == WHY
    assert plain(resumed.events) == plain(WHOLE.events)
    assert lineage_of(made) == lineage_of(WHOLE_RUN)
    assert made.state.budget.used == WHOLE_RUN.state.budget.used == 80
    assert made.state.tally == WHOLE_RUN.state.tally or _close(made, WHOLE_RUN)


def _close(made, whole) -> bool:  # type: ignore[no-untyped-def]
    """Equal but for what clocks say."""
    ours, theirs = made.state.tally, whole.state.tally
    return bool(
        (ours.attempts, ours.duplicates, ours.commits, ours.verdicts, ours.tried)
        == (theirs.attempts, theirs.duplicates, theirs.commits, theirs.verdicts, theirs.tried))


def test_killed_again_and_again() -> None:
    journal = MemoryJournal()
    for stop in range(5, 200, 11):
        dying = Dying(stop, before=stop % 2 == 0)
        dying.entries = list(journal.entries)
        made = new(dying)
        earlier = restore(made, dying)
        try:
            made.run(earlier)
        except Killed:
            journal.entries = list(dying.entries)
            continue
        journal.entries = list(dying.entries)
        break
    assert isinstance(journal.events[-1], Ended)
    assert lineage_of(made) == lineage_of(WHOLE_RUN)
    attempted = [e.attempt for e in journal.events if isinstance(e, Attempted)]
    assert attempted == list(range(1, 81))


def test_seconds_are_counted_over_all_sittings() -> None:
    journal = MemoryJournal()
    made = new(journal, attempts=10)
    made.run()
    again = new(MemoryJournal(list(journal.entries)), attempts=20)
    restore(again, journal)
    again.run(earlier=500.0)
    assert again.state.budget.elapsed >= 500.0
    last = again.journal.events[-1]
    assert last.seconds >= 500.0


def test_a_larger_budget_goes_on_where_the_smaller_one_ended() -> None:
    journal = MemoryJournal()
    made = new(journal, attempts=30)
    assert made.run() == "attempts"
    resumed = MemoryJournal(list(journal.entries))
    again = new(resumed, attempts=80)
    restore(again, resumed)
    assert again.run() == "attempts"
    attempted = [e for e in resumed.events if isinstance(e, Attempted)]
    assert [e.attempt for e in attempted] == list(range(1, 81))
    marks = [e.fingerprint for e in attempted if not e.duplicate]
    assert len(marks) == len(set(marks))


def test_events_of_another_order_are_refused() -> None:
    made = new(MemoryJournal())
    with pytest.raises(ValueError, match="is not number 0"):
        made.state.apply(WHOLE.events[1])
