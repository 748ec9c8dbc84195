"""The hot traces of a base under several freedoms, and the edits that put them in other orders."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from asmevo.codeobject.assembly import Edit
from asmevo.isa.instruction import Unit
from asmevo.isa.recent import Recent
from asmevo.isa.waits import Outstanding, outstanding
from asmevo.propose.free_registers import FreeRegisters
from asmevo.propose.preview import Preview
from asmevo.propose.proposal import Evidence
from asmevo.propose.repair import is_clean, repair
from asmevo.propose.rule import RuleContext
from asmevo.propose.scheduler.layout import Layout, Scored
from asmevo.propose.scheduler.machine import MachineTimes
from asmevo.propose.scheduler.order_constraints import stores_before
from asmevo.propose.scheduler.rename import renamed
from asmevo.propose.scheduler.step import Steps
from asmevo.propose.scheduler.trace import Trace, Tracer
from asmevo.propose.scheduler.walk import Walker

DISJOINT = "accesses to different buffers do not overlap"
_SMALLEST = 4
_LEAST_SHARE = 0.003
_ONCE = 120  # executions by 100 waves
_MOST_EDITS = 2048
Chosen = Sequence[tuple[Layout, Scored]]


@dataclass(frozen=True, slots=True)
class Freedom:
    """What a schedule may take for granted, and change besides the order.

    ``rename`` gives values registers of their own, ``disjoint`` lets memory accesses to different
    buffers pass each other, ``joined`` moves instructions over branches that meet again, but not
    where there is code between them that no profile has seen executed if ``closed``, and
    ``distance`` scales the time that vector memory is taken to need.
    """

    rename: bool = False
    disjoint: bool = False
    joined: bool = True
    distance: float = 1.0
    closed: bool = True

    def describe(self) -> str:
        parts = ["across branches that meet again" if self.joined else "within blocks"]
        parts += ["unseen code included"] if self.joined and not self.closed else []
        parts += ["registers of their own for values"] if self.rename else []
        parts += [f"memory {self.distance:g} times as far"] if self.distance != 1.0 else []
        return ", ".join(parts)


class Variant:
    """The layouts of all traces under one freedom."""

    def __init__(self, workshop: Workshop, freedom: Freedom, like: Variant | None) -> None:
        """``like`` is a variant that differs in distance only, if there is one already."""
        self.freedom = freedom
        self._workshop = workshop
        self._base = workshop.context
        self.context = self._base
        self._renamed: Preview | None = None
        self._edits: dict[tuple[object, ...], tuple[Edit, ...]] = {}
        if like is not None:
            self.context, self._renamed = like.context, like._renamed
        elif freedom.rename:
            self.context, self._renamed = workshop.renaming(freedom.joined, self._rename)
        context = self.context
        program = context.program
        traces = ([m.trace for m in like.layouts] if like is not None
                  else self._traces(context))
        known = ({m.trace.start: m.constraints for m in like.layouts} if like is not None else {})
        ground = workshop.ground(context, freedom.distance, traces)
        exposed = stores_before(program, context.cfg)
        self.layouts: tuple[Layout, ...] = tuple(
            layout for trace in traces
            if len((layout := workshop.only(ground, Layout(
                context, trace, ground.steps, ground.walker, ground.entries[trace.start],
                workshop.executions(trace.start), exposed=exposed,
                assume_disjoint=freedom.disjoint,
                seen=workshop.executed if freedom.closed else None,
                # A wave that comes by once has to wait for the code.
                cold=workshop.executions(trace.start) <= _ONCE,
                constraints=known.get(trace.start)))).original) >= _SMALLEST)

    def _traces(self, context: RuleContext) -> list[Trace]:
        return Tracer(
            context.program, context.cfg, live=context.live, fences=context.fences,
            executed=self._workshop.executed, convert=self.freedom.joined,
            joined=self.freedom.joined).traces()

    def _rename(self) -> tuple[RuleContext, Preview | None]:
        base = self._base
        traces = sorted(self._traces(base), key=lambda t: -self._workshop.executions(t.start))
        rewrite = renamed(base, traces, FreeRegisters(
            base.program, cfg=base.cfg, facts=base.effects, states=base.states))
        if rewrite is None:
            return base, None
        preview = base.preview.apply(rewrite.edits("rename"))
        return self._with(preview), preview

    def _with(self, preview: Preview) -> RuleContext:
        """The base's evidence with other names of registers."""
        return RuleContext(replace(
            self._base.evidence, program=preview.program, lines=preview.lines))

    def _renamed_in(self, chosen: Chosen) -> Preview:
        """The base with the new names in some traces only: each trace's are its own affair."""
        rewrite = self._base.rewrite()
        for layout, _ in chosen:
            for index in layout.trace.indices():
                if self.context.lines[index] != self._base.lines[index]:
                    rewrite.replace(index, self.context.lines[index])
        return self._base.preview.apply(rewrite.edits("rename"))

    @property
    def is_renamed(self) -> bool:
        """Whether any register has another name than in the base."""
        return self._renamed is not None

    def edits(self, chosen: Chosen, reason: str) -> tuple[Edit, ...]:
        """Edits of the base that put traces in these orders.

        Empty when nothing changes, or when the result would lack waits, have hazards, or differ in
        code that no profile has seen executed.
        """
        key = (reason, *((layout.trace.start, scored.order) for layout, scored in chosen))
        if key not in self._edits:
            if len(self._edits) >= _MOST_EDITS:
                self._edits.clear()
            self._edits[key] = self._made(chosen, reason)
        return self._edits[key]

    def _made(self, chosen: Chosen, reason: str) -> tuple[Edit, ...]:
        renamed_base = self._renamed_in(chosen) if self._renamed is not None else None
        context = self.context if renamed_base is None else self._with(renamed_base)
        rewrite = context.rewrite()
        for layout, scored in chosen:
            layout.rewrite(rewrite, scored)
        if not rewrite:
            return ()
        preview = repair(context, context.preview.apply(rewrite.edits(reason)))
        if preview.lines == context.lines or not is_clean(context, preview):
            return ()
        if renamed_base is not None:
            if not _shapes(preview) <= _shapes(self._base.preview):
                return ()
            preview = renamed_base.apply(preview.edits(reason))
        if not self._workshop.executes_changes(preview.lines):
            return ()
        return preview.edits(reason)


@dataclass(frozen=True, slots=True)
class _Ground:
    """What traces of one program cost and wait for, whatever may be done to their order."""

    steps: Steps
    walker: Walker
    entries: Mapping[int, Sequence[Outstanding]]


class Workshop:
    """Everything about one base that schedules of it share, whoever makes them.

    ``rankings`` are orders of a layout that are made without chance, the cheapest first.
    """

    def __init__(self, evidence: Evidence, machine: MachineTimes) -> None:
        self.evidence = evidence
        self.machine = machine
        self.context = RuleContext(evidence)
        self.rankings: dict[Layout, list[Scored]] = {}
        self._variants: dict[Freedom, Variant] = {}
        self._renamings: dict[bool, tuple[RuleContext, Preview | None]] = {}
        self._grounds: dict[tuple[object, ...], _Ground] = {}
        self._layouts: dict[tuple[object, ...], Layout] = {}

    @staticmethod
    def of(evidence: Evidence, machine: MachineTimes) -> Workshop:
        """The workshop of a base that was worked on not long ago, or a new one.

        Of the evidence it looks at the base and its profiles alone, which are the same for every
        assignment on one base: what is known changes no answer, but how long it takes.
        """
        recent = _recent.setdefault(machine, Recent(_MOST_BASES))
        return recent.get(lambda: Workshop(evidence, machine), evidence.program, evidence.lines,
                          evidence.profiles)

    def renaming(self, joined: bool, make: Callable[[], tuple[RuleContext, Preview | None]]
                 ) -> tuple[RuleContext, Preview | None]:
        """The base with other names of registers, made once for one way to cut traces."""
        if joined not in self._renamings:
            self._renamings[joined] = make()
        return self._renamings[joined]

    def ground(self, context: RuleContext, distance: float, traces: Sequence[Trace]) -> _Ground:
        """What is common to all that may be done to some traces, looked up once."""
        paths = tuple(tuple(t.indices()) for t in traces)
        key = (context, distance, paths)
        if key not in self._grounds:
            program = context.program
            barriers = [i for i, x in enumerate(program.instructions) if x.unit is Unit.BARRIER]
            entries = outstanding(program, [*(t.start for t in traces), *barriers])
            self._grounds[key] = _Ground(
                Steps(program, context.evidence.profiles, self.machine, distance, paths),
                Walker(program, self.machine, frozenset(
                    (o.index, b) for b in barriers for o in entries[b])),
                entries)
        return self._grounds[key]

    def only(self, ground: _Ground, layout: Layout) -> Layout:
        """The layout, or an equal one that there is already: many freedoms come to the same."""
        key = (ground.steps, layout.trace.items, layout.trace.loops,
               tuple(map(frozenset, layout.constraints.before)))
        return self._layouts.setdefault(key, layout)

    @cached_property
    def executed(self) -> frozenset[int]:
        """Instructions that a profile has seen; all when there is no profile."""
        count = len(self.evidence.program)
        if not self.evidence.profiles:
            return frozenset(range(count))
        return frozenset(
            i for i in range(count)
            if any(p.instructions[i].issued for p in self.evidence.profiles))

    def executions(self, index: int) -> int:
        """How often an instruction was executed, over all profiles alike."""
        if not self.evidence.profiles:
            return 1
        total = 0.0
        for profile in self.evidence.profiles:
            waves = max(len(profile.waves), 1)
            total += profile.instructions[index].issued / waves
        return max(round(100 * total / len(self.evidence.profiles)), 1)

    def variant(self, freedom: Freedom) -> Variant:
        """The traces under a freedom, made once."""
        if freedom not in self._variants:
            like = next((v for f, v in self._variants.items()
                         if replace(f, distance=freedom.distance) == freedom), None)
            self._variants[freedom] = Variant(self, freedom, like)
        return self._variants[freedom]

    def executes_changes(self, lines: Sequence[str]) -> bool:
        """Whether all text that differs from the base was executed there.

        Nothing speaks for an edit of other code.
        """
        if len(self.executed) == len(self.evidence.lines):
            return True
        old = self.evidence.lines
        head = 0
        while head < min(len(old), len(lines)) and old[head] == lines[head]:
            head += 1
        tail = 0
        while tail < min(len(old), len(lines)) - head and old[-1 - tail] == lines[-1 - tail]:
            tail += 1
        matcher = difflib.SequenceMatcher(
            None, old[head:len(old) - tail], lines[head:len(lines) - tail], autojunk=False)
        executed = self.executed
        last = len(old) - 1
        return all(
            min(index, last) in executed
            for tag, start, stop, _, _ in matcher.get_opcodes() if tag != "equal"
            for index in range(head + start, head + max(stop, start + 1)))


# A worker goes back and forth between few bases, and a large kernel's takes some 100 MB.
_MOST_BASES = 3
_recent: dict[MachineTimes, Recent[Workshop]] = {}


def _shapes(preview: Preview) -> set[tuple[str, str, str]]:
    """Missing waits and hazards but for the names of registers."""
    return {v.shape for v in (*preview.missing, *preview.hazards)}


def hottest(layouts: Iterable[Layout]) -> list[Layout]:
    """Layouts by the time that is spent in them, most first, but for those that hardly matter."""
    ranked = sorted(layouts, key=lambda m: (-m.time, m.trace.start))
    total = sum(m.time for m in ranked)
    return [m for m in ranked if m.time >= _LEAST_SHARE * total]
