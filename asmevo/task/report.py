"""The page of a search that was run before."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from asmevo.report.result import Result, Status
from asmevo.report.stored_run import load_run
from asmevo.task.output import check_output, write_output
from asmevo.task.search_report import write_page
from asmevo.task.session import ConfigError, Session


@dataclass(frozen=True)
class Report:
    """Makes ``report.html`` from what is stored of the search that ``run`` names.

    ``run`` is a run folder or the id of a run in the registry. The page goes into that folder, or
    into this run's where it is gone; ``output`` gets a copy.
    """

    def run(self, session: Session) -> Result:
        started = time.monotonic()
        place, output = session.config.run, session.config.output
        if not place:
            raise ConfigError("task=report needs run=<run folder, or id of a run>")
        if output is not None:
            check_output(output, [])
        found = load_run(str(place), session.registry, _runs(session.folder))
        page = write_page(found, found.folder or session.folder)
        if output is not None:
            write_output(output, page.read_bytes(), [])
        result = found.result
        return Result(
            task="report", status=Status.REPORTED, kernel=result.get("kernel"),
            symbol=result.get("symbol"), original_sha256=result.get("original_sha256"),
            replacement_sha256=result.get("replacement_sha256"), run_id=result.get("run_id"),
            folder=str(session.folder), wall_seconds=time.monotonic() - started,
            details={"page": str(page), "missing": list(found.missing)},
        )


def _runs(folder: Path) -> Path:
    """Where run folders lie, this run's among them: ``runs/`` by default."""
    return next((parent for parent in folder.parents if parent.name == "runs"), folder.parent)
