"""``log``: lineages, of a run, of an original across runs, of one replacement."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from asmevo.registry.command.named import named
from asmevo.registry.command.output import (
    FOUND,
    NOTHING,
    Subparsers,
    opened,
    place,
    print_json,
)
from asmevo.registry.errors import RegistryError
from asmevo.registry.names import printable

if TYPE_CHECKING:
    from rich.console import Console

    from asmevo.registry.records import CandidateRecord, RunRecord
    from asmevo.registry.registry import Registry


def add(commands: Subparsers, common: argparse.ArgumentParser) -> None:
    """Describe the command to the parser of command lines."""
    log = commands.add_parser(
        "log", parents=[common], help="show how replacements came about",
        description="Show the lineage of a run (without ID of the newest), of an original over "
                    "all runs, or the steps from an original to a replacement or a candidate.")
    log.add_argument("id", metavar="ID", nargs="?",
                     help="a run, an object or a candidate, or its first 6 or more characters")
    log.add_argument("--run", metavar="ID", help="the same for a run")
    log.add_argument("--all", action="store_true", help="every candidate, not commits alone")
    log.add_argument("--edits", action="store_true",
                     help="the edits of each step to a replacement, with their lines")
    log.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns its exit status."""
    from asmevo.registry.catalog.identities import Kind

    registry = opened(arguments)
    if arguments.id is not None and arguments.run is not None:
        raise RegistryError("give an identity or --run, not both")
    if arguments.run is not None:
        kinds: tuple[Kind, ...] = (Kind.RUN,)
    else:
        kinds = (Kind.RUN, Kind.OBJECT, Kind.CANDIDATE)
    wanted: str | None = arguments.run if arguments.id is None else arguments.id
    if wanted is None:
        newest = registry.runs()
        if not newest:
            return _nothing(arguments, "no runs")
        return _run(arguments, registry, newest[0], older=len(newest) - 1)
    identity = named(registry, wanted, *kinds)
    if identity is None:
        of = "run " if arguments.run is not None else ""
        return _nothing(arguments, f"no {of}{printable(wanted[:80])}")
    if identity.kind is Kind.RUN:
        return _run(arguments, registry, registry.run(identity.id))
    if identity.kind is Kind.CANDIDATE:
        return _ancestry(arguments, registry, identity.id)
    made = registry.replacements(object_sha256=identity.id)
    if made:
        return _ancestry(arguments, registry, made[0].candidate_id)
    return _original(arguments, registry, identity.id)


def _nothing(arguments: argparse.Namespace, what: str) -> int:
    print(f"asmevo-registry: {what} in {printable(place(arguments))}", file=sys.stderr)
    return NOTHING


def _run(arguments: argparse.Namespace, registry: Registry, run: RunRecord, *,
         older: int = 0) -> int:
    candidates = registry.lineage(run.id)
    if arguments.json:
        from asmevo.registry.browse.documents import log_document

        print_json(log_document(run, candidates, _speedups(registry, run)))
        return FOUND

    from asmevo.registry.display.tables import console

    out = console()
    _show_run(out, registry, run, candidates, every=arguments.all)
    if older:
        out.print(f"{older:,} older run{'s' if older > 1 else ''}: asmevo-registry log RUN",
                  style="dim")
    return FOUND


def _show_run(out: Console, registry: Registry, run: RunRecord,
              candidates: tuple[CandidateRecord, ...], *, every: bool) -> None:
    from asmevo.registry.display.tables import lineage_tree, run_title, show

    if every:
        show(out, lineage_tree(run, candidates, _speedups(registry, run)))
        return
    from asmevo.report.registry_log import run_shown

    show(out, run_title(run), *run_shown(registry, run, candidates))


def _original(arguments: argparse.Namespace, registry: Registry, sha256: str) -> int:
    runs = registry.runs(original_sha256=sha256)
    if not runs:
        return _nothing(arguments, f"no run of object {sha256}")
    if arguments.json:
        from asmevo.registry.browse.documents import lineages_document

        print_json(lineages_document(
            sha256, [(run, registry.lineage(run.id), _speedups(registry, run))
                     for run in runs]))
        return FOUND

    from asmevo.registry.display.tables import console, show

    out = console()
    for number, run in enumerate(runs):
        if number:
            show(out, "")
        _show_run(out, registry, run, registry.lineage(run.id), every=arguments.all)
    return FOUND


def _ancestry(arguments: argparse.Namespace, registry: Registry, candidate_id: str) -> int:
    from asmevo.registry.browse.ancestry import ancestry

    steps = ancestry(registry, candidate_id)
    if arguments.json:
        from asmevo.registry.browse.documents import ancestry_document

        print_json(ancestry_document(steps))
        return FOUND

    from asmevo.registry.display.steps import steps_shown
    from asmevo.registry.display.tables import console, show, width_of

    out = console()
    show(out, *steps_shown(steps, width_of(out), edits=arguments.edits))
    return FOUND


def _speedups(registry: Registry, run: RunRecord) -> dict[str, float]:
    return {r.candidate_id: r.speedup for r in registry.replacements(run_id=run.id)}
