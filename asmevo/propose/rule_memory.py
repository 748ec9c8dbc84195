"""What rules said about kernels that they were asked about not long ago."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator

from asmevo.propose.proposal import Proposal
from asmevo.propose.rule import Rule, RuleContext

# Instructions of all the kernels that are kept with their analyses: some 200 MB. Combinations on a
# kernel of 4,500 come to 100,000, and where not all are kept, all are worked out anew each time.
_MOST = 150_000


class _Stream:
    """Proposals of a rule, each made when it is first asked for."""

    def __init__(self, source: Iterator[Proposal]) -> None:
        self._source = source
        self._made: list[Proposal] = []

    def __iter__(self) -> Iterator[Proposal]:
        position = 0
        while True:
            while position < len(self._made):
                yield self._made[position]
                position += 1
            following = next(self._source, None)
            if following is None:
                return
            self._made.append(following)


class RuleMemory:
    """Answers of rules by kernel and what is known of its run.

    A rule looks at its context alone, which is the same for every assignment on one base, and the
    same kernel comes out of many combinations of rules: with the memory each is worked out once.
    It changes no answer.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, tuple[RuleContext, dict[Rule, _Stream]]] = OrderedDict()
        self._size = 0

    def __reduce__(self) -> tuple[type[RuleMemory], tuple[()]]:
        """A process that a proposer is sent to begins anew: half-made answers cannot go along."""
        return RuleMemory, ()

    def matches(self, rule: Rule, context: RuleContext) -> Iterator[Proposal]:
        """What ``rule.matches(context)`` yields."""
        key = context.identity
        if key not in self._known:
            self._known[key] = (context, {})
            self._size += len(context.lines)
            while self._size > _MOST and len(self._known) > 1:
                _, (dropped, _) = self._known.popitem(last=False)
                self._size -= len(dropped.lines)
        self._known.move_to_end(key)
        first, streams = self._known[key]
        if rule not in streams:
            streams[rule] = _Stream(rule.matches(first))
        return iter(streams[rule])
