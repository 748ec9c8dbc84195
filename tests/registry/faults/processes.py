"""Forks processes that write to and read from one registry; some of them are killed.

Usage: processes.py storm REGISTRY ORIGINAL SECONDS WRITERS READERS
       processes.py collect REGISTRY ORIGINAL SECONDS WRITERS READERS
       processes.py kill REGISTRY ORIGINAL KILLS SEED COLLECTORS

Forking spares every process the seconds that importing takes; none inherits an open database.
Each writes what it did to ``<REGISTRY>/../reports/<name>.jsonl``, a line each: a write that
returned, and at the end a summary. An exception makes a process end with status 1.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

# The script's own folder is where it finds its neighbour, wherever the tests are.
sys.path.insert(0, str(Path(__file__).parent))

from work import Reader, Subject, Writer  # type: ignore[import-not-found]

from asmevo.registry.registry import Registry
from asmevo.registry.retention.retention import Retention

BUSY_TIMEOUT_S = 30.0
LONGEST_PAUSE_S = 0.004
"""A commit takes about two milliseconds, so that a kill within this hits every part of it."""


def fork(report: Path, work: Callable[[Any], None]) -> int:
    """Run ``work`` in a child process; returns its process id."""
    if pid := os.fork():
        return pid
    status = 1
    try:
        with report.open("ab", buffering=0) as file:
            work(lambda **line: file.write(json.dumps(line).encode() + b"\n"))
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def write(path: str, subject: Subject, worker: int, end: float, report: Any, *,
          first_cycle: int = 0) -> None:
    """Write until ``end``."""
    registry = Registry(path, busy_timeout_s=BUSY_TIMEOUT_S)
    waits: list[float] = []
    before = time.monotonic()
    for done in Writer(registry, subject, worker, first_cycle=first_cycle).steps():
        after = time.monotonic()
        waits.append(after - before)
        report(what=done.what, key=done.key)
        before = time.monotonic()
        if before >= end:
            break
    registry.close()
    report(summary="write", **_figures(waits))


def read(path: str, subject: Subject, seed: int, end: float, report: Any, *,
         collected: bool = False) -> None:
    """Read until ``end``."""
    registry = Registry(path, busy_timeout_s=BUSY_TIMEOUT_S)
    waits: list[float] = []
    kinds: Counter[str] = Counter()
    before = time.monotonic()
    for kind in Reader(registry, subject, seed, collected=collected).steps():
        after = time.monotonic()
        waits.append(after - before)
        kinds[kind] += 1
        before = after
        if before >= end:
            break
    registry.close()
    report(summary="read", kinds=kinds, **_figures(waits))


def collect(path: str, end: float, report: Any) -> None:
    """Remove all that need not be kept until ``end``."""
    registry = Registry(path, busy_timeout_s=BUSY_TIMEOUT_S)
    total: Counter[str] = Counter()
    while time.monotonic() < end:
        done = registry.collect(Retention(rejected_days=0, capture_bytes=0, grace_s=0), apply=True)
        total.update(times=1, runs=done.runs, candidates=done.candidates, blobs=done.blobs,
                     orphans=done.orphans, objects=done.objects, captures=done.captures)
    registry.close()
    report(summary="collect", **total)


def _figures(waits: list[float]) -> dict[str, float]:
    ordered = sorted(waits)
    return {"count": len(ordered), "median_ms": 1e3 * ordered[len(ordered) // 2],
            "p99_ms": 1e3 * ordered[len(ordered) * 99 // 100], "longest_ms": 1e3 * ordered[-1]}


def storm(path: str, subject: Subject, seconds: float, writers: int, readers: int, *,
          collectors: int = 0) -> int:
    """Writers and readers at once; 1 if any of them failed."""
    reports = Path(path).with_name("reports")
    end = time.monotonic() + seconds
    children = [
        fork(reports / f"writer-{n}.jsonl", partial(write, path, subject, n, end))
        for n in range(writers)]
    children += [
        fork(reports / f"reader-{n}.jsonl", partial(
            read, path, subject, n, end, collected=collectors > 0))
        for n in range(readers)]
    children += [fork(reports / f"collector-{n}.jsonl", partial(collect, path, end))
                 for n in range(collectors)]
    statuses = [os.waitpid(child, 0)[1] for child in children]
    return int(any(statuses))


def kill(path: str, subject: Subject, kills: int, seed: int, collectors: int) -> int:
    """Kill one of two writers at a random moment, ``kills`` times, and with it whoever collects.

    Returns 1 if another one failed.
    """
    reports = Path(path).with_name("reports")
    chance = random.Random(seed)
    failed = False
    for number in range(kills):
        victim_report = reports / f"victim-{number}.jsonl"
        first = 100 * number
        victim = fork(victim_report, partial(
            write, path, subject, 0, float("inf"), first_cycle=first))
        other = fork(reports / f"survivor-{number}.jsonl", partial(
            write, path, subject, 1, time.monotonic() + 0.02, first_cycle=first))
        victims = [victim, *(
            fork(reports / f"collector-{number}-{n}.jsonl", partial(collect, path, float("inf")))
            for n in range(collectors))]
        # Wait for some writes first, so that every kind of write is hit; then anywhere in the next.
        wanted = chance.randrange(1, 12)
        deadline = time.monotonic() + 30
        while _lines(victim_report) < wanted and time.monotonic() < deadline:
            time.sleep(0.0002)
        time.sleep(chance.uniform(0, LONGEST_PAUSE_S))
        for process in victims:
            os.kill(process, signal.SIGKILL)
            _, status = os.waitpid(process, 0)
            failed |= not os.WIFSIGNALED(status)
        failed |= os.waitpid(other, 0)[1] != 0
    return int(failed)


def _lines(file: Path) -> int:
    try:
        return file.read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def main() -> int:
    """Run one of the commands."""
    command, path, original, *numbers = sys.argv[1:]
    registry = Registry(path)
    subject = Subject.of(registry.load_object(original))
    registry.close()
    if command in ("storm", "collect"):
        return storm(path, subject, float(numbers[0]), int(numbers[1]), int(numbers[2]),
                     collectors=int(command == "collect"))
    return kill(path, subject, *map(int, numbers))


if __name__ == "__main__":
    sys.exit(main())
