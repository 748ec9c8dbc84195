"""Everything needed to judge candidates of one kernel, and the loop that does it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from asmevo.codeobject.assembly import EditError
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import program
from asmevo.codeobject.roundtrip import round_trip
from asmevo.codeobject.toolchain import Toolchain
from asmevo.gates.baseline import Baseline
from asmevo.gates.harness import Gates
from asmevo.gates.verdict import Gate, Outcome, Verdict
from asmevo.profile.windows import WindowFinder
from asmevo.propose.proposal import Evidence, Feedback, Proposal, Proposer
from asmevo.search.attempt import Assignment, Attempt, fingerprint
from asmevo.search.lineage import Node, Resources


@dataclass
class Workbench:
    """One per process: the baseline with its cached references, the gates and a proposer."""

    baseline: Baseline
    gates: Gates
    toolchain: Toolchain
    proposer: Proposer
    windows: WindowFinder
    _identities: dict[int, str] = field(default_factory=dict, init=False)

    def root(self) -> Node:
        """The lineage's root: the original."""
        original = self.baseline.code_object
        return Node(
            number=0, parent=None, assembly=self.baseline.assembly, code=original.data,
            sha256=original.sha256, speedup=1.0, resources=self._resources(original),
            rationale="the original",
        )

    def evidence(self, assignment: Assignment) -> Evidence:
        """What a proposer is shown of an assignment's base: visible dispatches only."""
        kernel = self.baseline.kernel
        base = assignment.base
        code_object = CodeObject.parse(base.code)
        loaded = self.baseline.device.load(code_object, kernel)
        code = program(code_object, kernel)
        profiles = tuple(
            self.baseline.profile(loaded, index)
            for index in self.baseline.timed_dispatches
        )
        return Evidence(
            kernel=kernel, program=code,
            lines=tuple(line.text for line in base.assembly.body(kernel).lines if line.text),
            windows=self.windows.find(code, profiles), profiles=profiles, speedup=base.speedup,
            failures=assignment.failures, directions=assignment.directions,
            seed=assignment.seed, experience=assignment.experience, rules=assignment.rules,
            insights=assignment.insights, base=base.sha256,
        )

    def explore(self, assignment: Assignment) -> Iterator[Attempt]:
        """Judge proposals until one reaches the target speedup or the attempts are used up."""
        assignment = self._as_built(assignment)
        seen = set(assignment.seen)
        left = assignment.attempts
        proposals = self.proposer.propose(self.evidence(assignment))
        feedback: Feedback | None = None
        while True:
            try:
                proposal = proposals.send(feedback)
            except StopIteration:
                return
            feedback = None
            if assignment.directions and proposal.direction not in assignment.directions:
                continue
            attempt = self._attempt(assignment, proposal, seen)
            if attempt is None:
                feedback = Feedback(proposal, duplicate=True)
                continue
            feedback = _feedback(attempt)
            seen.add(attempt.fingerprint)
            yield attempt
            left -= 1
            reached = attempt.passed and (attempt.speedup or 0.0) >= assignment.target
            if left == 0 or reached:
                proposals.close()
                return

    def _as_built(self, assignment: Assignment) -> Assignment:
        """The assignment with its base's text as its object has it.

        Padding that an alignment directive asks for is instructions of the object which an edited
        text no longer counts right: Triton's kernels with preloaded arguments have some.
        """
        base, kernel = assignment.base, self.baseline.kernel
        code_object = CodeObject.parse(base.code)
        lines = sum(1 for line in base.assembly.body(kernel).lines if line.text)
        if lines == len(program(code_object, kernel)):
            return assignment
        assembly = round_trip(code_object, self.toolchain).assembly
        return replace(assignment, base=replace(base, assembly=assembly))

    def _attempt(
        self, assignment: Assignment, proposal: Proposal, seen: set[str]
    ) -> Attempt | None:
        """Judge one proposal; ``None`` when the very same candidate was judged before."""
        base = assignment.base
        kernel = self.baseline.kernel
        started = time.perf_counter()
        try:
            if proposal.refusal:
                raise EditError(proposal.refusal)
            assembly = base.assembly.apply(proposal.edits)
        except EditError as error:
            verdict = Verdict(Gate.G0, Outcome.FAIL, "edit-refused", str(error))
            mark = fingerprint(base.assembly, kernel) + repr((proposal.edits, proposal.refusal))
            return Attempt(
                assignment.worker, base.number, proposal, mark, base.assembly, (verdict,)
            )
        mark = fingerprint(assembly, kernel)
        if mark in seen:
            return None
        trial, verdicts = self.gates.judge(self.baseline, self.toolchain, assembly=assembly)
        built = trial.code_object
        return Attempt(
            worker=assignment.worker, base=base.number, proposal=proposal, fingerprint=mark,
            assembly=trial.assembly or assembly, verdicts=verdicts,
            code=built.data if built else None, sha256=built.sha256 if built else None,
            speedup=trial.speedup, timings=tuple(trial.timings),
            resources=self._resources(built) if built else None,
            exposed_by=self._identity(trial.exposed_by),
            seconds=time.perf_counter() - started,
        )

    def _identity(self, index: int | None) -> str | None:
        if index is None:
            return None
        if index not in self._identities:
            self._identities[index] = self.baseline.dispatches[index].sha256
        return self._identities[index]

    def _resources(self, code_object: CodeObject) -> Resources:
        descriptor = code_object.kernel(self.baseline.kernel).descriptor
        return Resources(
            vgprs=descriptor.next_free_vgpr, sgprs=descriptor.next_free_sgpr,
            lds_bytes=descriptor.group_segment_fixed_size,
        )


def _feedback(attempt: Attempt) -> Feedback:
    stopped = next((v for v in attempt.verdicts if not v.passed), None)
    if stopped is None:
        return Feedback(attempt.proposal, speedup=attempt.speedup, seconds=attempt.seconds)
    return Feedback(
        attempt.proposal, stopped.gate.value, stopped.code, stopped.reason, attempt.speedup,
        attempt.seconds,
    )
