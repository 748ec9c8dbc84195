"""Several searches in one table."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from omegaconf import ListConfig

from asmevo.durable import write_atomically
from asmevo.report.comparison import (
    MARKER,
    load_results,
    markdown,
    summarise,
    to_dict,
    to_json,
)
from asmevo.report.marked import checked_document, write_between_markers
from asmevo.report.result import Result, Status
from asmevo.task.session import ConfigError, Session


@dataclass(frozen=True)
class Compare:
    """Reads the ``result.json`` of every search in the folders that ``runs`` names.

    ``groups`` are patterns of kernel names, by the name of what gets totals of its own. Leaves
    ``table.md`` and ``comparison.json`` in the run folder, and the table in the document called
    ``readme``, between its markers.
    """

    groups: Any = None

    def __post_init__(self) -> None:
        if self.groups is not None and not (isinstance(self.groups, Mapping) and all(
                isinstance(each, str) for pair in self.groups.items() for each in pair)):
            raise ConfigError("task.groups must have patterns of kernel names by the groups' names")

    def run(self, session: Session) -> Result:
        started = time.monotonic()
        places = _places(session.config.runs)
        readme = None if session.config.readme is None else Path(session.config.readme)
        if readme is not None:
            checked_document(readme, MARKER)
        summary = summarise(load_results(places), self.groups)
        table, document = session.folder / "table.md", session.folder / "comparison.json"
        text = markdown(summary)
        write_atomically(table, text.encode())
        write_atomically(document, to_json(summary).encode())
        if readme is not None:
            write_between_markers(readme, MARKER, text)
        return Result(
            task="compare", status=Status.COMPARED, attempts=summary.totals.attempts,
            commits=summary.totals.commits, folder=str(session.folder),
            wall_seconds=time.monotonic() - started,
            details={"comparison": to_dict(summary), "table": str(table), "json": str(document)},
        )


def _places(runs: object) -> tuple[Path, ...]:
    listed = list(runs) if isinstance(runs, ListConfig) else [runs]
    if not listed or not all(isinstance(place, str) and place for place in listed):
        raise ConfigError("task=compare needs runs=<run folder, or a list of them>")
    return tuple(Path(place).expanduser() for place in cast("list[str]", listed))
