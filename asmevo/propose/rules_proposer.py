"""The deterministic proposer: a list of rules, alone and in combination."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice

from asmevo.codeobject.assembly import Edit
from asmevo.propose.errors import ProposerError
from asmevo.propose.preview import Preview
from asmevo.propose.proposal import Direction, Evidence, Proposal, Proposals
from asmevo.propose.rule import Rule, RuleContext
from asmevo.propose.rule_memory import RuleMemory
from asmevo.propose.rule_order import RuleOrder

_Key = tuple[tuple[int, int, tuple[str, ...]], ...]
_JOIN = "+"
# The gate that refuses a kind of edit whatever it gains, and how often before a rule gives up.
_STATIC = "G1"
_MOST_REFUSED = 3
# Added to each rule's expected gain per second where they take turns: nobody is left out.
_LEAST_TURN = 0.0002


class RulesProposer:
    """Applies rules to the base and yields what they find, most promising first.

    First come each rule's whole-kernel proposals, the one first of which most is to be expected
    (`RuleOrder`); then combinations, in which each rule looks at the kernel that the rules before
    it in the list left, with and without those that rest on an assumption; then the rules'
    individual proposals in turns, each rule's hottest first: who is next is drawn by what is to be
    expected, too.

    ``directions`` (names of `Direction`) restricts the rules for good, ``evidence.directions`` for
    one call; ``limit`` is the most proposals per call. ``expected`` are gains by rule's name that
    were measured elsewhere, natural logarithms a proposal. ``seed`` decides in which order rules
    take turns. ``proposed`` counts proposals per rule.
    Raises `ProposerError` for an unknown direction, a rule given twice or a limit below one.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        directions: Sequence[str] | None = None,
        seed: int = 0,
        limit: int | None = None,
        expected: Mapping[str, float] | None = None,
    ) -> None:
        known = {str(d) for d in Direction}
        for direction in directions or ():
            if direction not in known:
                raise ProposerError(
                    f"'{direction}' is no direction; there are {', '.join(sorted(known))}")
        names = [rule.name for rule in rules]
        if len(set(names)) < len(names):
            raise ProposerError(f"a rule is listed twice among {', '.join(names)}")
        if limit is not None and limit < 1:
            raise ProposerError(f"a limit of {limit} proposals leaves none")
        unknown = sorted(set(expected or ()) - set(names))
        if unknown:
            raise ProposerError(f"no rule is called '{unknown[0]}', of which gains are expected")
        self._expected = dict(expected or {})
        self._rules = [r for r in rules if directions is None or str(r.direction) in directions]
        self._seed = seed
        self._limit = limit
        self._memory = RuleMemory()
        self.proposed: Counter[str] = Counter()

    def propose(self, evidence: Evidence) -> Proposals:
        """Yield proposals without repeating one or any of ``evidence.failures``.

        A rule whose proposals the static gate refuses again and again is left alone for the rest of
        the call.
        """
        seen: set[_Key] = {_key(f.edits) for f in evidence.failures}
        seen.add(())
        refused = Counter(f.rule for f in evidence.failures if f.gate == _STATIC)
        order = RuleOrder(self._expected, evidence)
        for proposal in islice(
                self._fresh(self._ordered(evidence, order, refused), seen), self._limit):
            self.proposed[proposal.rule] += 1
            feedback = yield proposal
            if feedback is not None:
                order.learn(proposal.rule, feedback)
            if feedback is not None and feedback.gate == _STATIC:
                refused[proposal.rule] += 1
            elif feedback is not None and feedback.speedup is not None:
                del refused[proposal.rule]

    def _fresh(self, proposals: Iterable[Proposal], seen: set[_Key]) -> Iterator[Proposal]:
        for proposal in proposals:
            key = _key(proposal.edits)
            if key not in seen:
                seen.add(key)
                yield proposal

    def _ordered(self, evidence: Evidence, order: RuleOrder, refused: Counter[str]
                 ) -> Iterator[Proposal]:
        context = RuleContext(evidence)
        wanted = evidence.directions
        rules = tuple(r for r in self._rules if not wanted or r.direction in wanted)
        streams = {rule: self._memory.matches(rule, context) for rule in rules}
        # What finds nothing in the base is not asked again in every combination.
        useful: set[Rule] = set()
        for rule in sorted(rules, key=order.rate, reverse=True):
            for proposal in islice(streams[rule], 1):
                useful.add(rule)
                yield proposal
        yield from self._combinations(
            context, tuple(r for r in rules if r in useful and not refused[r.name]))
        turns = random.Random(self._seed)  # noqa: S311 - reproducible, not secret
        while streams:
            left = list(streams)
            (rule,) = turns.choices(left, [_LEAST_TURN + order.rate(r) for r in left])
            if refused[rule.name] >= _MOST_REFUSED:
                del streams[rule]
                continue
            following = next(streams[rule], None)
            if following is None:
                del streams[rule]
            else:
                yield following

    def _combinations(
        self, context: RuleContext, everything: tuple[Rule, ...]
    ) -> Iterator[Proposal]:
        """All rules, all but one, and ever shorter beginnings of the list."""
        sequences = [everything]
        sequences += [everything[:k] + everything[k + 1:] for k in range(len(everything))]
        sequences += [everything[:k] for k in range(len(everything) - 1, 1, -1)]
        # Nor is an assumption made again that a gate has refuted.
        refuted = {failure.rule for failure in context.evidence.failures}
        empty = _Combination(self._memory, context)
        done: dict[bool, dict[tuple[Rule, ...], _Combination]] = {
            careful: {(): empty} for careful in (True, False)}
        for sequence in dict.fromkeys(sequences):
            for careful, known in done.items():
                for length in range(1, len(sequence) + 1):
                    rules = sequence[:length]
                    if rules not in known:
                        rule = rules[-1]
                        known[rules] = known[rules[:-1]].then(
                            rule, careful or rule.name in refuted)
                if len(known[sequence].used) > 1:
                    yield known[sequence].proposal()


class _Combination:
    """Rules' proposals applied one after the other, and the kernel they leave."""

    def __init__(self, memory: RuleMemory, start: RuleContext,
                 before: _Combination | None = None, last: Proposal | None = None) -> None:
        self._memory, self._start = memory, start
        self._before, self._last = before, last
        self.used: tuple[Proposal, ...] = (*before.used, last) if before and last else ()

    @cached_property
    def context(self) -> RuleContext:
        if self._before is None or self._last is None:
            return self._start
        return self._before.context.after(self._last.edits)

    @property
    def preview(self) -> Preview:
        preview = self._start.preview
        for proposal in self.used:
            preview = preview.apply(proposal.edits)
        return preview

    def then(self, rule: Rule, careful: bool) -> _Combination:
        """Add a rule's first proposal; ``careful`` takes none that rests on an assumption."""
        for proposal in self._memory.matches(rule, self.context):
            if proposal.edits and not (careful and proposal.assumption):
                return _Combination(self._memory, self._start, self, proposal)
        return self

    def proposal(self) -> Proposal:
        name = _JOIN.join(p.rule for p in self.used)
        return Proposal(
            self.preview.edits(name),
            name,
            self.used[0].direction,
            "in sequence: " + "; ".join(p.rationale.partition(":")[0] for p in self.used),
            "; ".join(dict.fromkeys(p.assumption for p in self.used if p.assumption)),
        )


def _key(edits: Iterable[Edit]) -> _Key:
    return tuple(sorted((e.start, e.stop, e.lines) for e in edits))
