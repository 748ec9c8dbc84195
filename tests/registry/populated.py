"""A registry in which every table has rows, as a search leaves it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from asmevo.codeobject.assembly import Edit
from asmevo.codeobject.container import CodeObject
from asmevo.device.device import Timing, TimingSource
from asmevo.gates.verdict import Gate, Outcome, Verdict
from asmevo.registry.records import CandidateRecord, CandidateStatus, RunStatus
from asmevo.registry.registry import Registry
from asmevo.registry.signing.keys import generate
from tests.dispatch.captured.conftest import make_capture
from tests.registry.conftest import ALL_PASS, STRICT, make_dispatch, variant


@dataclass
class Populated:
    """Of ``parent`` the ``child`` was made, which was timed again; ``rejected`` is no replacement.

    ``lone`` is a replacement of another run that has nothing to do with them.
    """

    registry: Registry
    original: CodeObject
    kernel: str
    run_id: str
    key: Path
    parent: str = "parent"
    child: str = "child"
    rejected: str = "rejected"
    lone: str = "lone"


def populate(path: Path, original: CodeObject, key: Path) -> Populated:
    """Fill the registry in ``path``; its replacements are signed with a key made as ``key``."""
    generate(key)
    registry = Registry(path, busy_timeout_s=5, signing_key=key)
    kernel = original.kernels[0].symbol
    variants = {n: CodeObject.parse(variant(original.data, n)) for n in (1, 2, 3)}
    seen, held = make_dispatch(kernel), make_dispatch(kernel, name="held", held_out=True, fill=2)
    registry.record_original(original, "amd-aiter")
    registry.record_recovered(original.sha256, "; recovered\n", {"identical": True}, {"as": "22"})
    registry.record_dispatches([seen, held])
    capture = make_capture(code_object=original.sha256, kernel=kernel)
    registry.record_capture(capture)
    exposed = registry.record_counterexample(replace(capture, dynamic_lds=16), seen.sha256)
    run_id = _start(registry, 1)
    registry.record_baseline(run_id, original.sha256, [_timing(seen.sha256, 12.5)])

    def candidate(name: str, run_id: str, **changes: Any) -> CandidateRecord:
        verdicts = tuple(Verdict(g, Outcome.PASS, "ok", "fine", {"cosine": 1.0}) for g in ALL_PASS)
        return replace(CandidateRecord(
            id=name, run_id=run_id, original_sha256=original.sha256, kernel=kernel,
            edits=(Edit(kernel, 3, 5, ("s_nop 0",), "shorter wait"),), rule="nop-trim",
            direction="latency-hiding", rationale="fewer wait states",
            status=CandidateStatus.VERIFIED, verdicts=verdicts,
            timings=(_timing(seen.sha256, 10.5), _timing(seen.sha256, 10.5))), **changes)

    numbers = iter(range(100))

    def event(kind: str, **data: Any) -> dict[str, Any]:
        return {"number": next(numbers), "kind": kind, **data}

    registry.record_search(run_id, [event("started", run_id=run_id, counterexamples=[exposed])])
    registry.record_search(
        run_id, [event("attempted", candidate="parent"), event("committed", candidate="parent")],
        candidate=candidate("parent", run_id), assembly="; parent\n", built=variants[1],
        speedup=1.1, judged=STRICT)
    failed = Verdict(Gate.G2, Outcome.FAIL, "mismatch", "output y differs", {"at": [3]})
    registry.record_search(
        run_id, [event("attempted", candidate="rejected")],
        candidate=candidate("rejected", run_id, parent_id="parent", verdicts=(failed,), timings=(),
                            status=CandidateStatus.REJECTED))
    registry.record_search(
        run_id, [event("attempted", candidate="child"), event("committed", candidate="child")],
        candidate=candidate("child", run_id, parent_id="parent"), assembly="; child\n",
        built=variants[2], speedup=1.2, judged=STRICT)
    registry.record_search(run_id, [event("ended", why="exhausted")])
    registry.finish_run(run_id, RunStatus.COMPLETED)
    registry.record_second_timing("child", 1.19, Verdict(Gate.G3, Outcome.PASS, "ok", "again"),
                                  confirmed=True)
    other = _start(registry, 2)
    registry.record_candidate(candidate("lone", other), assembly="; lone\n",
                              built=variants[3])
    registry.commit_replacement("lone", 1.05, STRICT)
    return Populated(registry, original, kernel, run_id, key)


@contextmanager
def bystander(path: Path) -> Iterator[Registry]:
    """Another registry."""
    registry = Registry(path, busy_timeout_s=5)
    try:
        yield registry
    finally:
        registry.close()


def _start(registry: Registry, seed: int) -> str:
    return registry.start_run(task="optimize", config=f"seed: {seed}\n", seed=seed,
                              toolchain={"assembler": "22.1"}, device="device-measured",
                              device_source="measured")


def _timing(dispatch: str, microseconds: float) -> Timing:
    return Timing(dispatch, (microseconds, microseconds + 0.25), TimingSource.MEASURED,
                  "device-measured", 3)
