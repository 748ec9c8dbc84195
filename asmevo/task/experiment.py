"""A search for each of many kernels, and one table of what they came to."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from asmevo.durable import write_atomically
from asmevo.report.comparison import Summary, markdown, summarise, to_dict, to_json
from asmevo.report.marked import checked_document, write_between_markers
from asmevo.report.result import Result, Status
from asmevo.report.terminal import Bar
from asmevo.task.search_process import ENDED, Found, Job, searched
from asmevo.task.session import ConfigError, Session

_SEARCH = {"_target_": "asmevo.task.optimize.Optimize"}
# What a search does not get from the experiment's configuration
_OWN = ("task", "kernel", "readme", "jobs")
# Of a search's settings: whether it goes on with a run that was interrupted
_RESUMPTION = ("resume",)


@dataclass(frozen=True)
class Experiment:
    """Searches for a replacement of every kernel of ``suites``, each in a process of its own.

    ``suites`` are kernels, options of the group ``kernel`` with what is overridden in each, by the
    name of the suite, which gets totals of its own; ``only`` names some of them. ``jobs`` of the
    configuration run at a time, one by default. A search that fails, or takes ``slack_seconds``
    more than its budget, is named in the table and stops nothing else. In a run folder that is
    given again (``hydra.run.dir``) the searches that ended are kept, unless their configuration is
    another now. Leaves ``table.md`` and ``comparison.json`` there, and the table in the document
    called ``readme``, between the markers called ``marker``.
    """

    suites: Mapping[str, Mapping[str, Mapping[str, Any] | None]]
    marker: str
    only: Sequence[str] = ()
    slack_seconds: float = 900.0

    def __post_init__(self) -> None:
        if not self.slack_seconds > 0:
            raise ConfigError(f"task.slack_seconds must be above 0, not {self.slack_seconds}")
        names = [name for members in self.suites.values() for name in members]
        if unknown := [name for name in self.only if name not in names]:
            raise ConfigError(f"task.only names {unknown[0]!r}, not some of {', '.join(names)}")

    def run(self, session: Session) -> Result:
        started = time.monotonic()
        config = session.config
        readme = None if config.readme is None else Path(config.readme)
        if readme is not None:
            checked_document(readme, self.marker)
        session.registry.check_writable()
        workers = 1 if config.jobs is None else int(config.jobs)
        if workers < 1:
            raise ConfigError(f"jobs must be at least 1, not {workers}")
        jobs = list(self._jobs(session))
        seconds = float(config.search.budget.seconds) + self.slack_seconds
        found: dict[str, Found] = {}
        with Bar("kernels", len(jobs)) as bar, closing(searched(jobs, workers, seconds)) as results:
            for job, result in results:
                found[job.name] = result
                bar.advance(result["status"] not in ENDED)
                # After each, so that there is a table when the rest is interrupted.
                summary = self._summary(jobs, found)
                text = _write(session.folder, summary)
        if readme is not None:
            write_between_markers(readme, self.marker, text)
        failed = len(summary.unfinished)
        return Result(
            task="experiment", status=Status.INCOMPLETE if failed else Status.COMPARED,
            error=f"{failed} of {len(jobs)} searches did not end" if failed else None,
            timing_source=session.device.source.value, device=session.device.name,
            attempts=summary.totals.attempts, commits=summary.totals.commits,
            registry=str(session.registry.path), folder=str(session.folder),
            wall_seconds=time.monotonic() - started,
            details={"comparison": to_dict(summary), "table": str(session.folder / "table.md"),
                     "json": str(session.folder / "comparison.json")},
        )

    def _jobs(self, session: Session) -> Iterator[Job]:
        shared = {str(key): value for key, value in session.config.items() if key not in _OWN}
        shared["search"] = {key: value for key, value in session.config.search.items()
                            if key not in _RESUMPTION}
        resumption = tuple(f"++search.{key}={session.config.search[key]}" for key in _RESUMPTION
                           if key in session.config.search)
        for members in self.suites.values():
            for name, overrides in members.items():
                if not self.only or name in self.only:
                    # The kernel's own configuration is composed where it is searched.
                    search = OmegaConf.create({
                        "defaults": [{"kernel": name}, "_self_"], **shared, "task": _SEARCH,
                        "kernel": dict(overrides or {}), "readme": None, "jobs": None})
                    yield Job(name, OmegaConf.to_yaml(search), session.folder / name, resumption)

    def _summary(self, jobs: Sequence[Job], found: Mapping[str, Found]) -> Summary:
        """Of the kernels that there are results of, as they are called here: what a result calls
        them may tell one of a family."""
        rows = [{**found[job.name], "kernel": job.name} for job in jobs if job.name in found]
        groups = {suite: tuple(members) for suite, members in self.suites.items()}
        return summarise(rows, groups if len(groups) > 1 else None)


def _write(folder: Path, summary: Summary) -> str:
    text = markdown(summary)
    write_atomically(folder / "table.md", text.encode())
    write_atomically(folder / "comparison.json", to_json(summary).encode())
    return text
