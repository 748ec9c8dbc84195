"""The proposer that anneals orders of hot traces, on a model first and then on measurements."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from asmevo.codeobject.assembly import Edit
from asmevo.propose.errors import ProposerError
from asmevo.propose.proposal import Direction, Evidence, Feedback, Proposal, Proposals
from asmevo.propose.scheduler.layout import Layout, Order, Scored
from asmevo.propose.scheduler.machine import MachineTimes
from asmevo.propose.scheduler.workshop import DISJOINT, Freedom, Variant, Workshop, hottest
from asmevo.propose.stochastic.annealing import Annealing
from asmevo.propose.stochastic.moves import MOVES

NAME = "stochastic"
DIRECTION = Direction.LATENCY_HIDING
_STRIKES = 3
_ELITE = 6
# Chains to begin with, and proposals until there is one more.
_AT_FIRST, _PATIENCE = 3, 8
# A move costs the model time in proportion to the trace: of longer ones fewer are made.
_LENGTH = 150
_TRACES = 12

State = Mapping[int, Scored]


@dataclass(frozen=True, slots=True)
class _Member:
    """A state of a chain: an order for some traces, and its measured speedup."""

    orders: State
    speedup: float


@dataclass
class _Trust:
    """How far the model was right about one trace: measured gain for each predicted one."""

    predicted: float = 0.0
    measured: float = 0.0
    tries: int = 0
    strikes: int = 0

    @property
    def factor(self) -> float:
        """From a tenth to two: how much its promises are worth."""
        if self.tries < _STRIKES or self.predicted <= 0.0:
            return 1.0
        return min(max(self.measured / self.predicted, 0.1), 2.0)

    def learn(self, predicted: float, measured: float) -> None:
        self.tries += 1
        self.predicted = 0.8 * self.predicted + max(predicted, 0.0)
        self.measured = 0.8 * self.measured + measured


@dataclass
class _Chain:
    """One chain under one freedom."""

    freedom: Freedom
    current: _Member
    elite: list[_Member] = field(default_factory=list)
    reward: float = 1.0
    pulls: int = 0


class StochasticProposer:
    """Simulated annealing and crossover over orders of traces, waits and wait states included.

    A proposal changes one trace of a chain's state, seldom more: ``moves`` legal moves are made on
    the model of one wave and the best order met is proposed; every fourth proposal instead makes a
    few moves that the model need not like, and some recombine the best states measured so far.
    A chain accepts what was measured as annealing does, with a temperature that falls from ``hot``
    (a share of the speedup) over ``length`` proposals. Chains differ in what they take for granted;
    those that have gained more get more turns, and a trace whose promises were not kept gets fewer.
    ``limit`` is the most proposals per call.
    """

    def __init__(self, machine: MachineTimes | None = None, moves: int = 400, hot: float = 0.004,
                 length: int = 300, blind: float = 0.25, mix: float = 0.15,
                 distances: Sequence[float] = (1.0, 1.6), limit: int | None = None) -> None:
        if moves < 1 or length < 1 or not distances or not 0.0 <= blind + mix <= 1.0:
            raise ProposerError("the stochastic proposer needs at least one move, one proposal to "
                                "a chain and one distance, and shares of no more than 1")
        self._machine = machine or MachineTimes()
        self._moves, self._hot, self._length = moves, hot, length
        self._blind, self._mix = blind, mix
        self._distances = tuple(distances)
        self._limit = limit

    def propose(self, evidence: Evidence) -> Proposals:
        """Yield states of chains; deterministic for the same evidence and feedback.

        Nothing where latency hiding is not asked for: an order is nothing else.
        """
        if evidence.directions and DIRECTION not in evidence.directions:
            return
        run = _Run(self, Workshop.of(evidence, self._machine), evidence)
        count = 0
        while self._limit is None or count < self._limit:
            made = run.step()
            if made is None:
                return
            proposal, candidate = made
            count += 1
            run.learn(candidate, (yield proposal))

    def freedoms(self) -> list[Freedom]:
        """What chains may take for granted, the safest that still does much first."""
        found = []
        for distance in self._distances:
            found += [Freedom(True, True, True, distance), Freedom(False, True, True, distance),
                      Freedom(False, False, True, distance)]
        found = [f for pair in zip(found, (replace(f, closed=False) for f in found), strict=True)
                 for f in pair]
        return [*found, Freedom(False, True, False, self._distances[-1]),
                Freedom(False, False, False, self._distances[0])]

    @property
    def settings(self) -> tuple[int, float, int, float, float]:
        """Moves, temperature, length, and the shares of blind and mixed proposals."""
        return self._moves, self._hot, self._length, self._blind, self._mix


@dataclass(frozen=True, slots=True)
class _Candidate:
    chain: _Chain
    orders: State
    changed: tuple[int, ...]
    predicted: float


class _Run:
    """One call: the chains, and what the gates have said."""

    def __init__(self, proposer: StochasticProposer, workshop: Workshop,
                 evidence: Evidence) -> None:
        self._workshop = workshop
        self._evidence = evidence
        (self._moves, self._hot, self._length, self._blind, self._mix) = proposer.settings
        self._rng = random.Random(f"{NAME} {evidence.seed}")  # noqa: S311 - reproducible
        self._seen: set[tuple[Edit, ...]] = {f.edits for f in evidence.failures}
        self._seen.add(())
        self._trust: dict[tuple[Freedom, int], _Trust] = {}
        self._kinds = dict.fromkeys(MOVES, 1.0)
        self._count = 0
        base = _Member({}, evidence.speedup)
        self._chains = [_Chain(f, base) for f in proposer.freedoms()]

    def step(self) -> tuple[Proposal, _Candidate] | None:
        """The next proposal; ``None`` when nothing new was found for long."""
        for _ in range(200):
            chain = self._chain()
            if chain is None:
                return None
            variant = self._workshop.variant(chain.freedom)
            orders, what = self._candidate(chain, variant)
            if orders is None:
                continue
            changed = tuple(k for k in orders if orders[k] is not chain.current.orders.get(k))
            by_start = {m.trace.start: m for m in variant.layouts}
            edits = variant.edits([(by_start[k], s) for k, s in sorted(orders.items())], NAME)
            if edits in self._seen:
                chain.pulls += 1
                chain.reward *= 0.97
                continue
            self._seen.add(edits)
            self._count += 1
            predicted = sum(self._gain(variant, by_start[k], chain.current.orders.get(k), orders[k])
                            for k in changed)
            proposal = Proposal(
                edits, NAME, DIRECTION,
                f"{what} of instructions from {', '.join(map(str, changed))},"
                f" {chain.freedom.describe()}; {len(orders)} traces changed in all",
                DISJOINT if chain.freedom.disjoint else "", NAME)
            return proposal, _Candidate(chain, orders, changed, predicted)
        return None

    def learn(self, candidate: _Candidate, feedback: Feedback | None) -> None:
        """Accept or reject, and correct the model's standing."""
        chain = candidate.chain
        chain.pulls += 1
        if feedback is None or feedback.duplicate:
            return
        if feedback.gate or feedback.speedup is None:
            chain.reward *= 0.9
            for start in candidate.changed:
                trust = self._of(chain.freedom, start)
                trust.strikes += len(candidate.changed) == 1
            return
        gain = math.log(feedback.speedup / chain.current.speedup)
        if len(candidate.changed) == 1:
            self._of(chain.freedom, candidate.changed[0]).learn(candidate.predicted, gain)
        chain.reward = 0.95 * chain.reward + max(100 * gain, 0.0)
        member = _Member(candidate.orders, feedback.speedup)
        chain.elite = sorted([*chain.elite, member], key=lambda m: -m.speedup)[:_ELITE]
        heat = self._hot * max(1 - self._count / self._length, 0.0)
        if gain >= 0 or (heat > 0 and self._rng.random() < math.exp(gain / heat)):
            chain.current = member
        elif self._rng.random() < 0.02 and chain.elite:
            chain.current = chain.elite[0]

    def _of(self, freedom: Freedom, start: int) -> _Trust:
        return self._trust.setdefault((freedom, start), _Trust())

    def _chain(self) -> _Chain | None:
        """Few chains at first; a new one has a turn, then those that gained have more."""
        open_to = _AT_FIRST + self._count // _PATIENCE
        usable = [c for c in self._chains[:open_to] if self._usable(c)]
        if not usable:
            usable = [c for c in self._chains if self._usable(c)]
        if not usable:
            return None
        fresh = [c for c in usable if c.pulls < 1]
        if fresh:
            return fresh[0]
        if self._rng.random() < 0.15:
            return self._rng.choice(usable)
        return self._rng.choices(usable, [max(c.reward, 0.01) for c in usable])[0]

    def _usable(self, chain: _Chain) -> bool:
        variant = self._workshop.variant(chain.freedom)
        if chain.freedom.rename and not variant.is_renamed:
            return False
        return bool(self._open(chain, variant))

    def _open(self, chain: _Chain, variant: Variant) -> list[Layout]:
        return [m for m in hottest(variant.layouts)[:_TRACES]
                if self._of(chain.freedom, m.trace.start).strikes < _STRIKES]

    def _candidate(self, chain: _Chain, variant: Variant) -> tuple[State | None, str]:
        layouts = self._open(chain, variant)
        if not layouts:
            return None, ""
        rng = self._rng
        if chain.pulls == 0:
            # Every trace at once, each as the model likes it best.
            total = sum(m.time for m in layouts)
            orders = {m.trace.start: self._annealed(
                chain, m, int(2 * self._moves * m.time / total)) for m in layouts}
            return orders, "the best order by the model"
        draw = rng.random()
        if draw < self._mix and len(chain.elite) > 1:
            first, second = rng.sample(chain.elite, 2)
            return self._crossed(first.orders, second.orders, layouts), "two fast states mixed"
        layout = rng.choices(layouts, [
            self._of(chain.freedom, m.trace.start).factor
            * math.sqrt(m.score(m.original).cost * m.weight) for m in layouts])[0]
        start = layout.trace.start
        if draw < self._mix + self._blind:
            order = self._order(chain, layout)
            for _ in range(rng.randint(1, 6)):
                order = rng.choice(tuple(MOVES.values()))(layout, order, rng) or order
            return {**chain.current.orders, start: layout.score(order)}, "a few moves at random"
        moves = int(self._moves * rng.choice((0.25, 0.5, 1.0, 2.0)))
        return ({**chain.current.orders, start: self._annealed(chain, layout, moves)},
                f"{moves} moves on the model")

    def _order(self, chain: _Chain, layout: Layout) -> Order:
        known = chain.current.orders.get(layout.trace.start)
        return known.order if known is not None else layout.original

    def _annealed(self, chain: _Chain, layout: Layout, moves: int) -> Scored:
        annealing = Annealing(layout, self._rng, weights=self._kinds)
        moves = max(int(moves * min(1.0, _LENGTH / len(layout.original))), 10)
        found = annealing.run(self._order(chain, layout), moves)
        for name in self._kinds:
            rate = annealing.accepted[name] / max(annealing.proposed[name], 1)
            self._kinds[name] = max(0.9 * self._kinds[name] + rate, 0.2)
        return found

    def _crossed(self, first: State, second: State, layouts: Sequence[Layout]) -> State:
        """For each trace one parent's order, or a child of both."""
        orders: dict[int, Scored] = {}
        for layout in layouts:
            start = layout.trace.start
            parents = [p[start].order for p in (first, second) if start in p]
            if len(parents) == 2 and parents[0] != parents[1] and self._rng.random() < 0.3:
                orders[start] = Annealing(layout, self._rng).evolve(parents, 3, self._moves // 8)
                continue
            parent = self._rng.choice((first, second))
            if start in parent:
                orders[start] = parent[start]
        return orders

    def _gain(self, variant: Variant, layout: Layout, old: Scored | None, new: Scored) -> float:
        before = old.cost if old is not None else layout.score(layout.original).cost
        total = sum(m.score(m.original).cost * m.weight for m in variant.layouts)
        return (before - new.cost) * layout.weight / max(total, 1)

