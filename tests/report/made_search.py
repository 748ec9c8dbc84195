"""A search made up here, event by event, whose counts are known."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from asmevo.search.events import (
    AnyEvent,
    Assigned,
    Attempted,
    Committed,
    Composed,
    Ended,
    Escalated,
    Fault,
    Finished,
    ParentFact,
    Redirected,
    ResourceFact,
    Started,
    VerdictFact,
)

DIRECTIONS = ("latency-hiding", "dependency-chains", "register-pressure", "memory-access",
              "simplification")
RULES = ("hoist-loads", "relax-waits", "schedule-blocks", "split-accumulators", "fuse-dpp")
GATES = ("G0", "G1", "G2", "G3", "G4")
REASONS = {"G0": "assembler-error", "G1": "new-hazard", "G2": "max-abs", "G3": "too-variable",
           "G4": "not-better"}


def sha(number: int) -> str:
    return f"{number:064x}"


def verdicts(stopped: str | None) -> tuple[VerdictFact, ...]:
    """Passes up to the gate that says no, which G2 does at its second repeat."""
    found: list[VerdictFact] = []
    for gate in GATES:
        if gate == stopped:
            if gate == "G2":
                found.append(VerdictFact(gate, "pass", "ok", "equal"))
            found.append(VerdictFact(gate, "fail", REASONS[gate], f"{gate} said no"))
            break
        found.append(VerdictFact(gate, "pass", "ok", f"{gate} said yes"))
    return tuple(found)


def events(attempts: int = 60, workers: int = 4, seed: int = 0, *, tokens: int | None = None,
           cost: float | None = None, name: str = "layer_norm") -> Iterator[AnyEvent]:
    """All events of a search; every fourth candidate or so is stopped by each gate."""
    return (replace(event, number=number)
            for number, event in enumerate(_events(attempts, workers, seed, tokens, cost, name)))


def _events(attempts: int, workers: int, seed: int, tokens: int | None, cost: float | None,
            name: str) -> Iterator[AnyEvent]:
    chance = random.Random(seed)
    priced = tokens is not None or cost is not None
    yield Started(run_id="run-1", kernel=name, original_sha256=sha(0), device="emulator:test",
                  timing_source="modelled", workers=workers, executor="processes",
                  attempts=attempts, budget_seconds=900.0, tokens=tokens, cost=cost,
                  resources=ResourceFact(64, 40, 1024))
    speedups, clock, duplicates, faults = [1.0], 0.0, 0, 0
    for attempt in range(1, attempts + 1):
        worker, clock = attempt % workers, clock + chance.uniform(0.1, 0.9)
        base = max(len(speedups) - 1 - chance.choice([0, 0, 0, 1, 2]), 0)
        direction = DIRECTIONS[worker % 5]
        if attempt <= workers or attempt % 10 == 0:
            yield Assigned(seconds=clock, assignment=attempt, worker=worker, base=base,
                           directions=(direction,), attempts=10, target=max(speedups), seed=attempt)
        if attempt % 29 == 0:
            faults += 1
            yield Fault(seconds=clock, assignment=attempt, worker=worker, reason="killed (SIGKILL)")
            continue
        stopped: str | None = chance.choice([*GATES, "G4", "G4", "G2", None])
        if attempt == 5:
            stopped = None
        node = len(speedups) if stopped is None else None
        speedup = None if stopped in ("G0", "G1", "G2", "G3") else (
            max(speedups) * chance.uniform(1.003, 1.03) if stopped is None
            else max(speedups) * chance.uniform(0.95, 1.0))
        parents = (ParentFact("run-1-00001", 1.02, None, "dead-code"), ParentFact("x", 1.01, 1)
                   ) if stopped is None and len(speedups) == 4 else ()
        duplicate = attempt % 13 == 0
        duplicates += duplicate
        yield Attempted(
            seconds=clock, attempt=attempt, assignment=attempt, worker=worker, base=base,
            candidate="" if duplicate else f"run-1-{attempt:05d}", proposer="rules",
            rule=chance.choice(RULES), direction=direction, rationale=f"because of {name}",
            assumption="", fingerprint=f"{attempt:x}", verdicts=verdicts(stopped), edits=3,
            windows=((attempt, attempt + 4), (attempt + 9, attempt + 12)), speedup=speedup,
            sha256=sha(attempt), took=0.3, duplicate=duplicate,
            node=None if duplicate else node, tokens=1200 if priced else 0,
            cost=0.013 if priced else 0.0, parents=parents)
        if node is not None and speedup is not None and not duplicate:
            yield Committed(
                seconds=clock, node=node, parent=base, candidate=f"run-1-{attempt:05d}",
                sha256=sha(attempt), speedup=speedup, before=max(speedups), worker=worker,
                proposer="rules", rule="hoist-loads", direction=direction,
                rationale=f"because of {name}", resources=ResourceFact(64 - node, 40, 1024),
                windows=((attempt, attempt + 4),), parents=parents)
            speedups.append(speedup)
        if attempt == 17:
            yield Redirected(seconds=clock, reason="no-progress", action="backtrack", count=12,
                             summary=("12 attempts on node 2 brought nothing",),
                             exhausted=("latency-hiding on node 2",))
        if attempt == 31:
            yield Escalated(seconds=clock, level=1, starts=(0, 2), attempts=20)
        if attempt == 40:
            yield Composed(seconds=clock, assignment=attempt, worker=worker, base=1,
                           parts=("a", "b", "c"), kept=("a", "b"), speedup=max(speedups),
                           node=len(speedups) - 1)
            yield Composed(seconds=clock, assignment=attempt, worker=worker, base=1,
                           parts=("a", "b"), kept=(), speedup=1.0)
    for worker in range(workers):
        yield Finished(seconds=clock, assignment=worker, worker=worker, exhausted=False,
                       duplicates=2, blocked=1, busy=clock, gates=clock * 0.97)
    best = max(range(len(speedups)), key=lambda n: speedups[n])
    yield Ended(seconds=clock, why="attempts", attempts=attempts, duplicates=duplicates,
                faults=faults, commits=len(speedups) - 1, best=best, speedup=max(speedups))
