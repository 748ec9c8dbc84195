"""Events survive JSON, and a malformed record is refused by name."""

from __future__ import annotations

import json

import pytest

from asmevo.search.events import (
    KINDS,
    AnyEvent,
    Assigned,
    Attempted,
    Committed,
    Composed,
    Ended,
    Escalated,
    EventError,
    Fault,
    Finished,
    ParentFact,
    Redirected,
    ResourceFact,
    Resumed,
    Started,
    VerdictFact,
    from_json,
)

PARENTS = (ParentFact("run-00001", 1.02, None, "dead-code"), ParentFact("run-00002", 1.01, 3))
EXAMPLES: tuple[AnyEvent, ...] = (
    Started(number=0, run_id="run", kernel="k", original_sha256="0" * 64, tokens=None, cost=1.5,
            resources=ResourceFact(8, 16, 1024), counterexamples=("a" * 64,)),
    Resumed(number=1, seconds=3.25, attempts_used=12),
    Assigned(assignment=1, worker=0, base=0, directions=("latency-hiding",), attempts=16,
             target=1.002, seed=2**63 + 1, policy="best"),
    Attempted(attempt=1, assignment=1, worker=0, base=0, candidate="run-00001", proposer="rules",
              rule="dead-code", direction="simplification", rationale="why \u2713", assumption="",
              fingerprint="ff", verdicts=(VerdictFact("G0", "pass", "ok", "built"),), edits=2,
              windows=((3, 5), (9, 9)), speedup=1 / 3, sha256="1" * 64, took=0.25,
              parents=PARENTS),
    Finished(assignment=1, worker=0, exhausted=True, duplicates=3, busy=1.5, gates=1.25),
    Committed(node=1, parent=0, candidate="run-00001", sha256="1" * 64, speedup=1.1, before=1.0,
              worker=0, proposer="rules", rule="dead-code", direction="simplification",
              rationale="why", windows=((3, 5),), resources=ResourceFact(8, 16, 0)),
    Composed(assignment=2, worker=1, base=0, parts=("a", "b"), kept=("a",), speedup=1.1),
    Redirected(reason="no-progress", action="backtrack", count=60, summary=("s",),
               exhausted=("e",), dry=((0, "latency-hiding"),),
               hopeless=((0, "swap", "G1", "new-hazard", 12),)),
    Escalated(level=1, starts=(0, 3), attempts=32, reason="two redirects without a commit"),
    Fault(assignment=1, worker=0, reason="killed"),
    Ended(why="attempts", attempts=10, duplicates=1, faults=0, commits=2, best=2, speedup=1.2),
)


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: str(event.kind))
def test_an_event_survives_json(event: AnyEvent) -> None:
    assert from_json(json.loads(json.dumps(event.to_json()))) == event


def test_every_kind_has_an_example() -> None:
    assert {type(event) for event in EXAMPLES} == set(KINDS.values())


def test_a_field_of_a_newer_version_is_passed_over() -> None:
    data = EXAMPLES[1].to_json() | {"mood": "good"}
    assert from_json(data) == EXAMPLES[1]


@pytest.mark.parametrize("data", [
    {}, {"kind": "teleported"}, {"kind": "resumed"}, {"kind": "resumed", "attempts_used": "3"},
    EXAMPLES[3].to_json() | {"windows": [[1]]}, EXAMPLES[3].to_json() | {"verdicts": [None]},
    EXAMPLES[3].to_json() | {"windows": 5},
])
def test_a_malformed_record_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(EventError, match=r"kind|malformed"):
        from_json(data)
