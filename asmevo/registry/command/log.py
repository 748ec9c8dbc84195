"""``log``: the lineage of a run."""

from __future__ import annotations

import argparse
import sys

from asmevo.registry.command.output import FOUND, NOTHING, Subparsers, opened, print_json


def add(commands: Subparsers, common: argparse.ArgumentParser) -> None:
    """Describe the command to the parser of command lines."""
    log = commands.add_parser("log", parents=[common], help="show the lineage of a run")
    log.add_argument("--run", metavar="ID", help="the run (default: the newest)")
    log.add_argument("--all", action="store_true", help="every candidate, not commits alone")
    log.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns its exit status."""
    registry = opened(arguments)
    runs = registry.runs()
    run = next((r for r in runs if arguments.run in (None, r.id)), None)
    if run is None:
        which = "runs" if arguments.run is None else f"run '{arguments.run}'"
        print(f"asmevo-registry: no {which} in {arguments.registry}", file=sys.stderr)
        return NOTHING
    candidates = registry.lineage(run.id)
    speedups = {r.candidate_id: r.speedup
                for r in registry.replacements(run_id=run.id, judged=False)}
    if arguments.json:
        from asmevo.registry.documents import log_document

        print_json(log_document(run, candidates, speedups))
        return FOUND

    from asmevo.registry.tables import console, lineage_tree, printable, run_title

    out = console()
    if arguments.all:
        out.print(lineage_tree(run, candidates, speedups))
    else:
        from asmevo.report.registry_log import run_shown

        out.print(run_title(run))
        for part in run_shown(registry, run, candidates):
            out.print(part)
    others = [r.id for r in runs if r is not run]
    if arguments.run is None and others:
        out.print(f"{len(others)} older runs: {printable(', '.join(others[:10]))}", markup=False)
    return FOUND
