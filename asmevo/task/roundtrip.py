"""The round-trip gate over whole collections of code objects."""

from __future__ import annotations

import functools
import json
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from omegaconf import ListConfig, OmegaConf

from asmevo.bundle.find import FoundObject
from asmevo.codeobject.disassemble import disassembler_version
from asmevo.codeobject.errors import SourceError
from asmevo.codeobject.toolchain import Toolchain
from asmevo.durable import write_atomically
from asmevo.report.marked import checked_document, write_between_markers
from asmevo.report.result import Result, Status
from asmevo.report.roundtrip import MARKER, markdown
from asmevo.report.terminal import Bar
from asmevo.task.corpus import Entry, Outcome, check_all
from asmevo.task.session import ConfigError, Session
from asmevo.task.source import corpus_name, everything


@dataclass(frozen=True)
class RoundTrip:
    """Sends every object of every place in ``source`` through the gate, ``jobs`` at a time.

    Leaves ``objects.jsonl`` (each object as it is done) and ``table.md`` in the run folder, and the
    table in the document called ``readme``, between its markers.
    """

    def run(self, session: Session) -> Result:
        started = time.monotonic()
        places = _places(session.config.source)
        jobs = _jobs(session.config.jobs)
        readme = None if session.config.readme is None else Path(session.config.readme)
        if readme is not None:
            checked_document(readme, MARKER)
        found = [(corpus_name(place), each) for place in places for each in everything(place)]
        if not found:
            raise SourceError(f"there are no AMDGPU code objects in '{', '.join(places)}'")
        versions = {**session.toolchain.versions(), "disassembler": disassembler_version()}

        outcomes: list[Outcome] = []
        with (session.folder / "objects.jsonl").open("w", encoding="utf-8") as log, \
                Bar("round trip", len(found)) as bar:
            for outcome in check_all(map(_entry, found), _toolchain_factory(session),
                                     min(jobs, len(found))):
                outcomes.append(outcome)
                log.write(json.dumps(asdict(outcome)) + "\n")
                bar.advance(0 if outcome.identical else 1)
        outcomes.sort(key=lambda o: (o.corpus, o.architecture or "", o.name))

        folders = _folders(outcomes)
        exceptions = [
            {"corpus": o.corpus, "name": o.name, "architecture": o.architecture,
             "reason": o.reason}
            for o in outcomes if not o.identical
        ]
        table = markdown(folders, exceptions, versions)
        write_atomically(session.folder / "table.md", table.encode())
        if readme is not None:
            write_between_markers(readme, MARKER, table)
        return Result(
            task="roundtrip",
            status=Status.DIFFERENT if exceptions else Status.IDENTICAL,
            folder=str(session.folder),
            wall_seconds=time.monotonic() - started,
            details={
                "sources": list(places),
                "total": len(outcomes),
                "identical": len(outcomes) - len(exceptions),
                "instructions": sum(o.instructions for o in outcomes),
                "fallbacks": sum(o.fallbacks for o in outcomes),
                "annotations": sum(o.annotations for o in outcomes),
                "jobs": jobs,
                "peak_memory_bytes": max(o.peak_memory for o in outcomes),
                "versions": versions,
                "folders": folders,
                "exceptions": exceptions,
                "table": str(session.folder / "table.md"),
            },
        )


def _places(source: object) -> tuple[str, ...]:
    listed = list(source) if isinstance(source, ListConfig) else [source]
    if source is None or not listed:
        raise ConfigError("task=roundtrip needs source=<directory, archive, wheel or installed "
                          "Python package>")
    if not all(isinstance(place, str) and place for place in listed):
        raise ConfigError("source has to be a name or a list of names")
    return tuple(cast("list[str]", listed))


def _jobs(jobs: int | None) -> int:
    if jobs is None:
        return len(os.sched_getaffinity(0))
    if not 1 <= jobs <= 1024:
        raise ConfigError(f"jobs={jobs} is not a number of processes from 1 to 1024")
    return jobs


def _entry(found: tuple[str, FoundObject]) -> Entry:
    corpus, each = found
    try:
        return Entry(corpus, each.name, each.read())
    except SourceError as error:
        return Entry(corpus, each.name, None, str(error))


def _folders(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    total = Counter((o.corpus, o.architecture, o.folder) for o in outcomes)
    same = Counter((o.corpus, o.architecture, o.folder) for o in outcomes if o.identical)
    return [
        {"corpus": corpus, "architecture": architecture, "folder": folder,
         "total": count, "identical": same[corpus, architecture, folder]}
        for (corpus, architecture, folder), count in sorted(
            total.items(), key=lambda item: (item[0][0], item[0][1] or "", item[0][2]))
    ]


def _toolchain_factory(session: Session) -> functools.partial[Toolchain]:
    """Makes an equal toolchain in another process, from the plain configuration."""
    plain = OmegaConf.to_container(session.config, resolve=True)
    return functools.partial(_toolchain, cast(Mapping[str, Any], plain), str(session.folder))


def _toolchain(config: Mapping[str, Any], folder: str) -> Toolchain:
    return Session(OmegaConf.create(dict(config)), Path(folder)).toolchain
