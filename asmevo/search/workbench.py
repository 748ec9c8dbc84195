"""Everything needed to judge candidates of one kernel."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace

from asmevo.codeobject.assembly import Assembly, Edit
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import program
from asmevo.codeobject.errors import RebuildError
from asmevo.codeobject.roundtrip import round_trip
from asmevo.codeobject.toolchain import Toolchain
from asmevo.gates.baseline import Baseline
from asmevo.gates.harness import Gates
from asmevo.gates.trial import Trial
from asmevo.isa.program import Program
from asmevo.profile.hotwindow import HotWindow
from asmevo.profile.profile import Profile
from asmevo.profile.windows import WindowFinder
from asmevo.propose.proposal import (
    Evidence,
    Proposal,
    Proposals,
    Proposer,
    Spender,
    Spending,
)
from asmevo.search.attempt import Assignment, Attempt, Finish
from asmevo.search.explore import explore
from asmevo.search.lineage import Node, Resources

_REMEMBERED = 8


@dataclass(frozen=True)
class _Seen:
    """What is known of a base: its program, profiles and hot windows, and its text as built."""

    program: Program
    assembly: Assembly
    lines: tuple[str, ...]
    profiles: tuple[Profile, ...]
    windows: tuple[HotWindow, ...]


@dataclass
class Workbench:
    """One per process: the baseline with its cached references, the gates and a proposer.

    What a proposer is shown of a base is worked out once and kept for the bases used last.
    """

    baseline: Baseline
    gates: Gates
    toolchain: Toolchain
    proposer: Proposer
    windows: WindowFinder
    _identities: dict[int, str] = field(default_factory=dict, init=False)
    _bases: OrderedDict[tuple[int, str], _Seen] = field(default_factory=OrderedDict, init=False)

    @property
    def kernel(self) -> str:
        return self.baseline.kernel

    @property
    def proposer_name(self) -> str:
        return type(self.proposer).__name__.removesuffix("Proposer").lower()

    @property
    def spent(self) -> Spending:
        return self.proposer.spent if isinstance(self.proposer, Spender) else Spending()

    def root(self) -> Node:
        """The lineage's root: the original."""
        original = self.baseline.code_object
        return Node(
            number=0, parent=None, assembly=self.baseline.assembly, code=original.data,
            sha256=original.sha256, speedup=1.0, resources=self.resources(original),
            rationale="the original",
        )

    def explore(self, assignment: Assignment) -> Generator[Attempt, None, Finish]:
        return explore(self, assignment)

    def evidence(self, assignment: Assignment) -> Evidence:
        """What a proposer is shown of an assignment's base: visible dispatches only."""
        base = self._base(assignment.base)
        return Evidence(
            kernel=self.kernel, program=base.program, lines=base.lines, windows=base.windows,
            profiles=base.profiles, speedup=assignment.base.speedup,
            failures=assignment.failures, directions=assignment.directions,
            seed=assignment.seed, experience=assignment.experience, rules=assignment.rules,
            insights=assignment.insights, base=assignment.base.sha256,
            original=self.baseline.code_object.sha256,
        )

    def prepared(self, assignment: Assignment) -> Assignment:
        """The assignment with its base's text as its object has it.

        Padding that an alignment directive asks for is instructions of the object which an edited
        text no longer counts right: Triton's kernels with preloaded arguments have some.
        """
        assembly = self._base(assignment.base).assembly
        if assembly is assignment.base.assembly:
            return assignment
        return replace(assignment, base=replace(assignment.base, assembly=assembly))

    def propose(self, assignment: Assignment) -> Proposals:
        return self.proposer.propose(self.evidence(assignment))

    def judge(self, assignment: Assignment, proposal: Proposal, assembly: Assembly,
              mark: str) -> Attempt:
        """Send one candidate through G0 to G3."""
        started = time.perf_counter()
        trial, verdicts = self.gates.judge(
            self.baseline, self.toolchain, assembly=assembly, worth=assignment.target)
        seconds = time.perf_counter() - started
        built = trial.code_object
        passed = all(verdict.passed for verdict in verdicts)
        return Attempt(
            worker=assignment.worker, base=assignment.base.number, proposal=proposal,
            fingerprint=mark, verdicts=verdicts,
            assembly=(trial.assembly or assembly) if passed else None,
            code=built.data if built else None, sha256=built.sha256 if built else None,
            speedup=trial.speedup, timings=tuple(trial.timings),
            resources=self.resources(built) if built else None,
            exposed_by=self._identity(trial.exposed_by), seconds=seconds,
        )

    def resources(self, code_object: CodeObject) -> Resources:
        """What the kernel's descriptor in an object allocates."""
        descriptor = code_object.kernel(self.kernel).descriptor
        return Resources(
            vgprs=descriptor.next_free_vgpr, sgprs=descriptor.next_free_sgpr,
            lds_bytes=descriptor.group_segment_fixed_size,
        )

    def as_built(self, node: Node) -> Node:
        """The node with its text as its object has it; see `prepared`."""
        assembly = self._as_built(node, program(CodeObject.parse(node.code), self.kernel))
        return node if assembly is node.assembly else replace(node, assembly=assembly)

    def rebuilt(self, base: Node, edits: Sequence[Edit]) -> tuple[Assembly, bytes]:
        """What edits make of a base, by G0 alone: the text and the object.

        Raises `AsmEvoError` when it does not build.
        """
        trial = Trial(self.baseline, self.toolchain, assembly=base.assembly.apply(edits))
        verdict = self.gates.assemble.judge(trial, 0)
        if not verdict.passed or trial.assembly is None or trial.code_object is None:
            raise RebuildError(f"node {base.number}'s child does not build: {verdict.reason}")
        return trial.assembly, trial.code_object.data

    def _as_built(self, node: Node, code: Program) -> Assembly:
        lines = sum(1 for line in node.assembly.body(self.kernel).lines if line.text)
        if lines == len(code):
            return node.assembly
        return round_trip(CodeObject.parse(node.code), self.toolchain).assembly

    def _base(self, node: Node) -> _Seen:
        key = (node.number, node.sha256)
        if key in self._bases:
            self._bases.move_to_end(key)
            return self._bases[key]
        code_object = CodeObject.parse(node.code)
        code = program(code_object, self.kernel)
        assembly = self._as_built(node, code)
        loaded = self.baseline.device.load(code_object, self.kernel)
        profiles = tuple(
            self.baseline.profile(loaded, index) for index in self.baseline.timed_dispatches)
        self._bases[key] = _Seen(
            code, assembly,
            tuple(line.text for line in assembly.body(self.kernel).lines if line.text),
            profiles, self.windows.find(code, profiles))
        if len(self._bases) > _REMEMBERED:
            self._bases.popitem(last=False)
        return self._bases[key]

    def _identity(self, index: int | None) -> str | None:
        if index is None:
            return None
        if index not in self._identities:
            self._identities[index] = self.baseline.dispatches[index].sha256
        return self._identities[index]
