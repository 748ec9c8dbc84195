"""What proposers and rules came to over several searches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_MOST = 40
# Rules of a candidate are named with this between them (`asmevo.propose.rules_proposer`).
_JOIN = "+"
SEVERAL = "several rules at once"


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Of a proposer or rule: candidates, those that passed G0 to G3, commits, the logarithm of
    what these gained over all searches, seconds of judging, and in how many searches it committed.
    """

    name: str
    proposed: int = 0
    passed: int = 0
    accepted: int = 0
    gain: float = 0.0
    seconds: float = 0.0
    kernels: int = 0

    @property
    def share(self) -> float | None:
        return self.accepted / self.proposed if self.proposed else None


def several_as_one(records: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Records by rule, those of candidates to which several rules were applied added up in one:
    there are as many of those as there are sets of rules.
    """
    out: dict[str, dict[str, Any]] = {}
    for name, record in records.items():
        if _JOIN not in str(name):
            out[str(name)] = dict(record)
            continue
        total = out.setdefault(SEVERAL, {})
        for key, value in record.items():
            total[key] = total.get(key, 0) + _number(value)
    return out


def added_up(results: Sequence[Mapping[str, Any]], key: str) -> tuple[Acceptance, ...]:
    """``key`` is ``proposers`` or ``rules`` of ``result.json``; those that gained most first."""
    sums: dict[str, dict[str, float]] = {}
    for result in results:
        records = result.get(key)
        found = several_as_one(records) if isinstance(records, Mapping) else {}
        for name, record in found.items():
            total = sums.setdefault(name, dict.fromkeys(
                ("proposed", "passed", "accepted", "gain", "seconds", "kernels"), 0.0))
            for field in total:
                total[field] += _number(record.get(field))
            total["kernels"] += _number(record.get("accepted")) > 0
    return tuple(sorted(
        (Acceptance(name, int(t["proposed"]), int(t["passed"]), int(t["accepted"]), t["gain"],
                    t["seconds"], int(t["kernels"])) for name, t in sums.items()),
        key=lambda each: (-each.gain, -each.accepted, -each.proposed, each.name)))


def _number(value: object) -> float:
    """Whole numbers stay such."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0
    return value


def columns(title: str) -> tuple[str, ...]:
    """Headings of `lines`; a name that ends in ``>`` is of numbers."""
    return (title, "proposed>", "passed>", "committed>", "accepted>", "kernels>", "gain>")


def lines(found: Sequence[Acceptance], runs: int) -> Iterator[tuple[str, ...]]:
    """One line for each; the gain is the mean over ``runs`` searches."""
    for each in found[:_MOST]:
        gain = math.expm1(each.gain / max(runs, 1))
        yield (each.name, f"{each.proposed:,}", f"{each.passed:,}", f"{each.accepted:,}",
               "-" if each.share is None else f"{100 * each.share:.1f} %", f"{each.kernels:,}",
               f"+{100 * gain:.2f} %" if each.gain > 0 else "")
