"""What a rule is, and the analyses of one kernel that all rules share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

from asmevo.codeobject.assembly import Edit
from asmevo.isa import ordering
from asmevo.isa.cfg import Block, Cfg
from asmevo.isa.dataflow import ENTRY, defined_before_use, liveness, reaching_definitions
from asmevo.isa.dependence import Dependences
from asmevo.isa.effects import Effects, State, effects, machine_states
from asmevo.isa.program import Program
from asmevo.isa.registers import ALL_VGPR_MASK, EVERYTHING, VGPR0, mask
from asmevo.isa.violation import Violation
from asmevo.propose.free_registers import FreeRegisters
from asmevo.propose.lane_liveness import LaneLiveness
from asmevo.propose.preview import Preview
from asmevo.propose.proposal import Direction, Evidence, Proposal
from asmevo.propose.rewrite import Rewrite


class _Base:
    """What everything in a context comes from; the same objects make the same base."""

    def __init__(self, evidence: Evidence) -> None:
        self._parts = (evidence.program, evidence.windows, evidence.profiles)
        sources = {profile.source for profile in evidence.profiles}
        self.is_modelled = bool(sources) and sources <= {"modelled", "static"}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Base) and all(
            mine is theirs for mine, theirs in zip(self._parts, other._parts, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(map(id, self._parts)))


class RuleContext:
    """Evidence with the analyses that rules need, each computed at most once."""

    def __init__(self, evidence: Evidence, cold: frozenset[int] | None = None,
                 base: _Base | None = None) -> None:
        self.evidence = evidence
        self._cold = cold
        self._base = base or _Base(evidence)
        self.kernel = evidence.kernel
        self.program: Program = evidence.program
        self.lines = evidence.lines
        self.preview = Preview.of(evidence.kernel, evidence.program, evidence.lines)
        self._dependences: dict[tuple[int, int, bool], Dependences] = {}

    def after(self, edits: Sequence[Edit]) -> RuleContext:
        """The context of the kernel that these edits make: windows keep their weight, no more."""
        preview = self.preview.apply(edits)
        windows = tuple(
            replace(w, start=preview.positions[w.start], stop=preview.positions[w.stop],
                    edges=(), waits=(), hazards=())
            for w in self.evidence.windows
            if 0 <= w.start <= w.stop <= len(self.lines)
        )
        cold = frozenset(
            index for index, origin in enumerate(preview.origins) if origin in self.cold)
        return RuleContext(replace(
            self.evidence, program=preview.program, lines=preview.lines, windows=windows,
            profiles=()), cold, self._base)

    @cached_property
    def identity(self) -> Hashable:
        """Equal for contexts in which no rule can see a difference."""
        program = self.program
        windows = tuple((w.start, w.stop, w.share, w.stalled) for w in self.evidence.windows)
        return (self._base, self._cold, self.lines, program.offsets, program.targets,
                tuple(program.labels.items()), program.isa, program.entry, windows)

    @property
    def is_modelled(self) -> bool:
        """Whether all that is known of the kernel's time comes from models."""
        return self._base.is_modelled

    @cached_property
    def cfg(self) -> Cfg:
        return self.preview.cfg

    @cached_property
    def states(self) -> tuple[State, ...]:
        """Per instruction, the machine state that may hold before it."""
        return machine_states(self.program, self.cfg)

    @cached_property
    def effects(self) -> tuple[Effects, ...]:
        return effects(self.program, self.cfg)

    @cached_property
    def live(self) -> tuple[int, ...]:
        """Per instruction, the registers that are live behind it."""
        return liveness(self.program)

    @cached_property
    def free(self) -> FreeRegisters:
        """Registers that an edit may take without losing occupancy."""
        return FreeRegisters(self.program, cfg=self.cfg, facts=self.effects, states=self.states)

    @property
    def lanes(self) -> LaneLiveness:
        """Per instruction, what a lane that is on may still read."""
        return self.free.lanes

    @cached_property
    def labelled(self) -> frozenset[int]:
        """Instructions that control may reach other than from the one before."""
        return ordering.labelled(self.program)

    @cached_property
    def indexed(self) -> frozenset[int]:
        """Instructions whose operands may not be the registers they name, or that may not run."""
        return ordering.indexed(self.program, self.states)

    @cached_property
    def fences(self) -> frozenset[int]:
        """Instructions that nothing may be moved across."""
        return ordering.fences(self.program, self.states)

    @cached_property
    def guards(self) -> frozenset[int]:
        """Waits that may order memory between waves or workgroups: rules leave them alone."""
        return ordering.guards(self.program)

    @cached_property
    def kept_waits(self) -> frozenset[int]:
        """Waits that whoever reorders instructions leaves where they are: nothing crosses them."""
        return self.guards | ordering.lds_waits(self.program)

    def is_partly_written(self, index: int, registers: int) -> bool:
        """Whether an instruction reads registers that one path to it writes and another does not.

        No other operation can read them in its place: G1 knows reads of undefined registers by
        the operation ("new-undefined-read"), whether or not that path is ever taken.
        """
        undefined = self._undefined.get(index, 0) & registers
        return bool(undefined) and reaching_definitions(
            self.program, index, undefined) != (ENTRY,)

    @cached_property
    def _undefined(self) -> dict[int, int]:
        """Per instruction, vector registers that it reads and that some path never wrote; v0 is
        given (the work-item)."""
        given = EVERYTHING & ~ALL_VGPR_MASK | mask(VGPR0)
        return {v.consumer: v.registers for v in defined_before_use(self.program, given)}

    def dependences(self, start: int, stop: int, *, assume_disjoint: bool) -> Dependences:
        """What must keep its order among the instructions ``start`` to ``stop`` (exclusive)."""
        key = (start, stop, assume_disjoint)
        if key not in self._dependences:
            self._dependences[key] = Dependences(
                self.program, start, stop, fences=self.fences | self.kept_waits,
                guards=self.guards, assume_disjoint=assume_disjoint)
        return self._dependences[key]

    @cached_property
    def cold(self) -> frozenset[int]:
        """Instructions that no profiled dispatch executes: an edit of them could not be verified.
        """
        if self._cold is not None:
            return self._cold
        profiles = self.evidence.profiles
        counts = [p.instructions for p in profiles if len(p.instructions) == len(self.lines)]
        if not counts:
            return frozenset()
        return frozenset(
            index for index in range(len(self.lines))
            if not any(profile[index].issued for profile in counts))

    def rounds(self, block: Block) -> float | None:
        """How often a loop that is one block is run each time it is entered, if profiles tell."""
        profiles = [p.instructions for p in self.evidence.profiles
                    if len(p.instructions) == len(self.lines)]
        inside = sum(p[block.start].issued for p in profiles)
        entered = sum(p[block.start - 1].issued for p in profiles) if block.start else 0
        return inside / entered if inside and entered else None

    @cached_property
    def weights(self) -> tuple[float, ...]:
        """Per instruction, the share of all stalled cycles of the hot windows around it."""
        out = [0.0] * len(self.lines)
        for window in self.evidence.windows:
            for index in range(max(window.start, 0), min(window.stop, len(out))):
                out[index] = max(out[index], window.share)
        return tuple(out)

    def weight(self, indices: Iterable[int]) -> float:
        """The largest hot-window share among some instructions."""
        return max((self.weights[i] for i in indices), default=0.0)

    def by_weight(self, candidates: Iterable[tuple[tuple[int, ...], Proposal]]) -> list[Proposal]:
        """Proposals of which each touches some instructions: hottest first, then by address."""
        ranked = sorted(candidates, key=lambda c: (-self.weight(c[0]), c[0]))
        return [proposal for _, proposal in ranked]

    def new_missing(self, preview: Preview) -> list[Violation]:
        """Missing waits of a preview that the context's kernel does not have."""
        return _surplus(preview.missing, self.preview.missing)

    def new_hazards(self, preview: Preview) -> list[Violation]:
        """Hazards of a preview that the context's kernel does not have."""
        return _surplus(preview.hazards, self.preview.hazards)

    def rewrite(self) -> Rewrite:
        return Rewrite(self.kernel, self.program)


def _surplus(found: Iterable[Violation], accepted: Iterable[Violation]) -> list[Violation]:
    left = Counter(v.signature for v in accepted)
    out: list[Violation] = []
    for violation in found:
        if left[violation.signature] > 0:
            left[violation.signature] -= 1
        else:
            out.append(violation)
    return out


class Rule(ABC):
    """One transformation and where it applies.

    A rule need not be right: the gates decide. It says in each rationale why it applies, and in
    the assumption what it relies on without a proof.
    """

    name: ClassVar[str]
    direction: ClassVar[Direction]

    @abstractmethod
    def matches(self, context: RuleContext) -> Iterator[Proposal]:
        """Proposals for the context's kernel: first everything at once, then parts of it."""

    def proposal(
        self, changes: Rewrite | Preview, rationale: str, assumption: str = "",
    ) -> Proposal:
        """A proposal of this rule."""
        return Proposal(
            changes.edits(self.name), self.name, self.direction, rationale, assumption)
