"""What ``log`` prints of the steps to a replacement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from asmevo.registry.display.columns import Column, fitted
from asmevo.registry.names import printable

if TYPE_CHECKING:
    from asmevo.registry.browse.ancestry import Step


def steps_shown(steps: Sequence[Step], width: int | None, *,
                edits: bool) -> Iterator[Table | Text]:
    """A line for each step, and its ``edits`` where they are asked for."""
    last = steps[-1].record
    yield Text(f"original {last.original_sha256}")
    yield Text(f"kernel {printable(last.kernel)}")
    yield Text()
    yield fitted(
        (Column("step", right=True), Column("candidate", 14), Column("speedup", right=True),
         Column("gain", right=True), Column("edits", right=True),
         Column("rule", 16, folds=width is not None), Column("direction", 10, dropped=1),
         Column("proposer", dropped=2)),
        [(str(number), step.record.id, _times(step.speedup), _gain(step.gain),
          str(len(step.record.edits)), step.record.rule.replace("+", " + "),
          step.record.direction, step.proposer)
         for number, step in enumerate(steps, start=1)], width).table
    if edits:
        for number, step in enumerate(steps, start=1):
            yield from _edits(number, step)


def _edits(number: int, step: Step) -> Iterator[Text]:
    record = step.record
    yield Text()
    yield Text(f"step {number}: {printable(record.rule)}", "bold")
    if record.rationale:
        yield Text(printable(record.rationale))
    if step.parts:
        yield Text(f"composed of {printable(', '.join(step.parts))}")
    for edit in record.edits:
        lines = len(edit.lines)
        yield Text(f"@ {edit.start}:{edit.stop} of {printable(edit.kernel)}: {lines} "
                   f"line{'' if lines == 1 else 's'} for {edit.stop - edit.start}", "cyan")
        for line in edit.lines:
            yield Text(f"  {printable(line)}")


def _times(speedup: float | None) -> str:
    return "" if speedup is None else f"{speedup:.4f}x"


def _gain(gain: float | None) -> str:
    return "" if gain is None else f"{(gain - 1) * 100:+.2f} %"
