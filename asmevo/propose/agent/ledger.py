"""What a model's answers cost."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from asmevo.propose.errors import ProposerError
from asmevo.propose.proposal import NOTHING_SPENT, Spending

_DATED = re.compile(r"-\d{8}$")
_MILLION = 1_000_000


class Usage(Protocol):
    """The counts of one answer, as the SDK gives them; cached tokens are no part of the input's."""

    @property
    def input_tokens(self) -> int: ...

    @property
    def output_tokens(self) -> int: ...

    @property
    def cache_creation_input_tokens(self) -> int | None: ...

    @property
    def cache_read_input_tokens(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class Prices:
    """USD for a million tokens of each kind."""

    input: float
    output: float
    cache_write: float
    cache_read: float

    @staticmethod
    def of(model: str, table: Mapping[str, Mapping[str, float]]) -> Prices:
        """The prices of a model; a dated name (``...-20251001``) has those of the undated one.

        Raises `ProposerError` when the table does not have them: a cost that is not known cannot be
        bounded.
        """
        row = table.get(model) or table.get(_DATED.sub("", model))
        if row is None:
            raise ProposerError(
                f"what the model '{model}' costs is not known; give '+proposer.prices.{model}="
                "{input: .., output: .., cache_write: .., cache_read: ..}' in USD per million "
                "tokens"
            )
        names = Prices.__dataclass_fields__
        if set(row) != set(names) or any(
                isinstance(v, bool) or not isinstance(v, int | float) or not v >= 0
                for v in row.values()):
            raise ProposerError(
                f"proposer.prices.{model} must give {', '.join(names)} in USD per million tokens")
        return Prices(**{name: float(row[name]) for name in names})

    def cost(self, usage: Usage) -> float:
        return (
            usage.input_tokens * self.input + usage.output_tokens * self.output
            + (usage.cache_creation_input_tokens or 0) * self.cache_write
            + (usage.cache_read_input_tokens or 0) * self.cache_read
        ) / _MILLION


def context(usage: Usage) -> int:
    """How many tokens a request and its answer had together: what the next one starts with."""
    return (usage.input_tokens + (usage.cache_creation_input_tokens or 0)
            + (usage.cache_read_input_tokens or 0) + usage.output_tokens)


@dataclass
class Ledger:
    """Adds up what is spent."""

    prices: Prices
    total: Spending = NOTHING_SPENT

    def add(self, usage: Usage) -> Spending:
        spent = Spending(context(usage), self.prices.cost(usage))
        self.total += spent
        return spent
