"""What processes write to one registry, and what any reader of it may rely on.

All content follows from the name of a record (``w3-17-s``: writer 3, cycle 17, kind s), so that
whoever reads it back can tell a complete record from a torn or foreign one.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from asmevo.codeobject.assembly import Edit
from asmevo.codeobject.container import CodeObject
from asmevo.device.device import Timing, TimingSource
from asmevo.dispatch.captured.capture import Allocation, Capture, Segment
from asmevo.dispatch.dispatch import Dispatch, ElementType, Pointer, Region, Role
from asmevo.gates.verdict import Gate, Outcome, Verdict
from asmevo.registry.delivery.pull import pull
from asmevo.registry.judgement import Judgement
from asmevo.registry.records import CandidateRecord, CandidateStatus, RunStatus
from asmevo.registry.registry import Registry

STRICT = Judgement(
    cosine=0.9999, max_abs=1e-3, repeats=3, precision_slack=0.05, sanitize=True, extra_ops=(),
    epsilon=0.002, k=0.85, s_floor=1.0, dispatch_floor=0.98, replaced=(), oracle="declared",
    dispatches=8, held_out=2, families=("normal", "wide"), operation=None)
GATES = (Gate.G0, Gate.G1, Gate.G2, Gate.G2, Gate.G2, Gate.G3, Gate.G4)
DEVICE = "gfx942:test"
CYCLES_A_RUN = 2
KINDS = "rvsd"
"""Kinds of candidates: rejected, but a parent of what follows; verified and then committed;
recorded and committed at once; rejected and of no further use, all of the same text and bytes."""


@dataclass(frozen=True)
class Acknowledged:
    """A write that returned: ``what`` was recorded under ``key``."""

    what: str
    key: str


@dataclass(frozen=True)
class Subject:
    """The original that everybody works on."""

    original: CodeObject
    kernel: str

    @classmethod
    def of(cls, data: bytes) -> Subject:
        original = CodeObject.parse(data)
        return cls(original, original.kernels[0].symbol)

    def built(self, name: str) -> bytes:
        """The bytes of the object of a candidate: the original but for its last instruction."""
        worker, cycle, kind = parts(name)
        text = self.original.section(".text")
        data = bytearray(self.original.data)
        end = text.offset + text.size
        number = 0xFF000000 if kind == "d" else (
            (worker + 1) << 24 | cycle << 2 | KINDS.index(kind))
        data[end - 4:end] = number.to_bytes(4, "little")
        return bytes(data)

    def dispatch(self, worker: int, cycle: int) -> Dispatch:
        """One of two regions; the first is the same in all of them."""
        regions = (
            Region("x", 0x10000, bytes(4096), Role.INPUT, ElementType.BF16),
            Region("y", 0x20000, f"{worker} {cycle} ".encode() * 64, Role.OUTPUT, ElementType.F32),
        )
        return Dispatch(f"w{worker}-{cycle}", self.kernel, bytes(16), (1, 1, 1), (64, 1, 1),
                        regions, (Pointer(0, 0), Pointer(8, 1)))

    def capture(self, worker: int, cycle: int) -> Capture:
        memory = f"capture {worker} {cycle} ".encode() * 64
        return Capture(
            name=f"w{worker}-{cycle}", code_object=self.original.sha256, kernel=self.kernel,
            kernarg=bytes(16), grid=(64, 1, 1), workgroup=(64, 1, 1), dynamic_lds=0,
            allocations=(Allocation("x", 0x10000, len(memory), (
                Segment(0, memory, bytes(len(memory)), Role.OUTPUT),), ElementType.U8),),
            pointers=(), origin="a test")


def parts(name: str) -> tuple[int, int, str]:
    """Writer, cycle and kind of a candidate."""
    worker, cycle, kind = name.split("-")
    return int(worker[1:]), int(cycle), kind


def text_of(name: str) -> str:
    """The assembly of a candidate."""
    return "; the same\n" if name.endswith("d") else f"; {name}\n" * 50


def samples_of(name: str) -> tuple[float, ...]:
    worker, cycle, _ = parts(name)
    return (worker + 1.0, cycle + 1.0, 10.25)


def speedup_of(name: str) -> float:
    worker, cycle, kind = parts(name)
    return 1 + (cycle % 97) / 100 + worker / 1000 + KINDS.index(kind) / 10_000


class Writer:
    """Records runs, candidates, commits and whatever belongs to them, for ever."""

    def __init__(self, registry: Registry, subject: Subject, worker: int, *,
                 first_cycle: int = 0) -> None:
        self._registry = registry
        self._subject = subject
        self._worker = worker
        self._first = first_cycle
        self._events = 0

    def steps(self) -> Iterator[Acknowledged]:
        """Each step is one write; it is yielded once it has returned."""
        registry, subject, worker = self._registry, self._subject, self._worker
        run_id = ""
        cycle = self._first
        while True:
            if not run_id or cycle % CYCLES_A_RUN == 0:
                if run_id:
                    registry.finish_run(run_id, RunStatus.COMPLETED)
                    yield Acknowledged("finished", run_id)
                run_id = registry.start_run(
                    task="optimize", config=f"worker: {worker}\n", seed=worker,
                    toolchain={"assembler": "22.1"}, device=DEVICE, device_source="measured")
                self._events = 0
                yield Acknowledged("run", run_id)
                registry.record_original(subject.original, "again")
            dispatch = subject.dispatch(worker, cycle)
            registry.record_dispatches([dispatch])
            yield Acknowledged("dispatch", dispatch.sha256)
            yield from self._candidates(run_id, cycle, dispatch.sha256)
            if cycle % 2 == 0:
                capture = subject.capture(worker, cycle)
                yield Acknowledged("capture", registry.record_capture(capture))
                if cycle % 4 == 0 and registry.record_counterexample(capture, dispatch.sha256):
                    yield Acknowledged("counterexample", dispatch.sha256)
            cycle += 1

    def _candidates(self, run_id: str, cycle: int, dispatch: str) -> Iterator[Acknowledged]:
        registry, worker = self._registry, self._worker
        rejected, verified, searched, dropped = (f"w{worker}-{cycle}-{kind}" for kind in KINDS)
        registry.record_candidate(self._candidate(rejected, run_id, dispatch, None),
                                  assembly=text_of(rejected))
        yield Acknowledged("candidate", rejected)
        registry.record_candidate(self._candidate(verified, run_id, dispatch, rejected),
                                  assembly=text_of(verified), built=self._built(verified))
        yield Acknowledged("candidate", verified)
        registry.commit_replacement(verified, speedup_of(verified), STRICT)
        yield Acknowledged("commit", verified)
        registry.record_second_timing(
            verified, speedup_of(verified), Verdict(Gate.G4, Outcome.PASS, "ok", "again"),
            confirmed=True)
        yield Acknowledged("second timing", verified)
        registry.record_search(
            run_id, self._two_events(searched),
            candidate=self._candidate(searched, run_id, dispatch, verified),
            assembly=text_of(searched), built=self._built(searched),
            speedup=speedup_of(searched), judged=STRICT)
        yield Acknowledged("candidate", searched)
        yield Acknowledged("commit", searched)
        registry.record_candidate(self._candidate(dropped, run_id, dispatch, verified),
                                  assembly=text_of(dropped), built=self._built(dropped))
        yield Acknowledged("dropped", dropped)
        registry.record_search(run_id, self._two_events(""))
        yield Acknowledged("events", f"{run_id} {self._events}")

    def _two_events(self, candidate: str) -> list[dict[str, str | int]]:
        self._events += 2
        return [{"number": self._events - 2, "kind": "proposed", "candidate": candidate},
                {"number": self._events - 1, "kind": "judged", "candidate": candidate}]

    def _built(self, name: str) -> CodeObject:
        return CodeObject.parse(self._subject.built(name))

    def _candidate(self, name: str, run_id: str, dispatch: str,
                   parent: str | None) -> CandidateRecord:
        rejected = name[-1] in "rd"
        verdicts = [Verdict(gate, Outcome.PASS, "ok", "", {"of": name}) for gate in GATES]
        if rejected:
            verdicts[-1] = Verdict(Gate.G4, Outcome.FAIL, "slower", "", {"of": name})
        return CandidateRecord(
            id=name, run_id=run_id, original_sha256=self._subject.original.sha256,
            kernel=self._subject.kernel, edits=(Edit(self._subject.kernel, 3, 5, (), name),),
            rule="rule", direction="simplification", rationale=name, parent_id=parent,
            status=CandidateStatus.REJECTED if rejected else CandidateStatus.VERIFIED,
            verdicts=tuple(verdicts),
            timings=(Timing(dispatch, samples_of(name), TimingSource.MEASURED, DEVICE),))


class Reader:
    """Reads what is there and raises `AssertionError` at the first record that is not whole."""

    def __init__(self, registry: Registry, subject: Subject, seed: int, *,
                 collected: bool = False) -> None:
        """``collected``: captures may be gone between finding and reading them."""
        self._registry = registry
        self._collected = collected
        self._subject = subject
        self._random = random.Random(seed)

    def steps(self) -> Iterator[str]:
        """Each step is one kind of reading; its name is yielded."""
        actions = (self.listing, self.pulling, self.objects, self.lineage, self.captures,
                   self.events)
        while True:
            for action in actions:
                action()
                yield action.__name__

    def listing(self) -> None:
        for record in self._registry.replacements(original_sha256=self._subject.original.sha256):
            assert record.judgement == STRICT, record
            assert record.speedup == speedup_of(record.candidate_id), record
            assert not record.withdrawn, record
            assert record.speedup_again in (None, record.speedup), record

    def pulling(self) -> None:
        if not self._registry.replacements():
            return
        pulled = pull(self._registry, original=self._subject.original.sha256,
                      kernel=self._subject.kernel, device=self._subject.original.target.isa)
        assert pulled.data == self._subject.built(pulled.record.candidate_id), pulled.record

    def objects(self) -> None:
        if records := self._registry.replacements():
            record = self._random.choice(records)
            data = self._registry.load_object(record.object_sha256)
            assert hashlib.sha256(data).hexdigest() == record.object_sha256
            assert data == self._subject.built(record.candidate_id), record
            known = self._registry.code_object(record.object_sha256)
            assert known is not None, record
            assert known.size == len(data), record

    def lineage(self) -> None:
        if not (runs := self._registry.runs()):
            return
        run = self._random.choice(runs)
        self._registry.load_text(run.config_sha256)
        for candidate in self._registry.lineage(run.id):
            if candidate.id.endswith("d"):
                continue  # gc may have been there since
            check_candidate(self._registry, candidate)

    def captures(self) -> None:
        if self._collected:
            return
        if records := self._registry.captures(self._subject.original.sha256):
            record = self._random.choice(records)
            capture = self._registry.load_capture(record.sha256)
            worker, cycle = record.name[1:].split("-")
            assert capture == self._subject.capture(int(worker), int(cycle)), record

    def events(self) -> None:
        if not (searches := self._registry.searches()):
            return
        run, _ = self._random.choice(searches)
        events = self._registry.search_events(run.id)
        assert len(events) % 2 == 0, f"half a transaction of run {run.id}"
        for name in {str(event["candidate"]) for event in events} - {""}:
            check_candidate(self._registry, self._registry.candidate(name))


def check_candidate(registry: Registry, candidate: CandidateRecord) -> None:
    """All parts of a candidate are there and are its own."""
    name = candidate.id
    assert [v.gate for v in candidate.verdicts] == list(GATES), name
    assert all(v.evidence == {"of": name} for v in candidate.verdicts), name
    assert [t.samples_us for t in candidate.timings] == [samples_of(name)], name
    assert candidate.rationale == name
    assert candidate.assembly_sha256 is not None, name
    assert registry.load_text(candidate.assembly_sha256) == text_of(name), name
    assert registry.load_dispatch(candidate.timings[0].dispatch).kernel == candidate.kernel
    if name[-1] in "rd":
        assert candidate.status is CandidateStatus.REJECTED, name
    elif name.endswith("s"):
        assert candidate.status is CandidateStatus.COMMITTED, name
    assert (candidate.object_sha256 is None) == name.endswith("r"), name


def lost(registry: Registry, subject: Subject, acknowledged: Iterable[Acknowledged], *,
         collected: bool = False) -> list[str]:
    """The writes that had returned and are not there; ``collected`` if gc had its way."""
    runs = {run.id: run for run in registry.runs()}
    committed = {record.candidate_id: record for record in registry.replacements()}
    captures = {record.sha256: record for record in registry.captures()}
    examples = {record.dispatch_sha256 for record in captures.values()}
    candidates = {c.id for run_id in runs for c in registry.lineage(run_id)}
    events = {run_id: len(registry.search_events(run_id)) for run_id in runs}

    def is_there(done: Acknowledged) -> bool:
        match done.what:
            case "run":
                return done.key in runs
            case "finished":
                return runs[done.key].finished is not None
            case "dispatch":
                return registry.load_dispatch(done.key).sha256 == done.key
            case "candidate":
                return done.key in candidates
            case "dropped":
                return collected or done.key in candidates
            case "commit":
                return registry.load_object(
                    committed[done.key].object_sha256) == subject.built(done.key)
            case "second timing":
                return committed[done.key].speedup_again == committed[done.key].speedup
            case "capture":
                if collected and done.key not in captures:
                    return True
                return registry.load_capture(done.key).code_object == subject.original.sha256
            case "counterexample":
                return done.key in examples
            case "events":
                run_id, count = done.key.split()
                if collected and runs[run_id].finished is not None:
                    return events[run_id] in (0, 2 * CYCLES_A_RUN * 2)
                return events[run_id] >= int(count)
        raise ValueError(done.what)

    return [f"{done.what} {done.key}" for done in acknowledged if not is_there(done)]
