"""``stats``: a registry in numbers."""

from __future__ import annotations

import argparse

from asmevo.registry.command.output import FOUND, Subparsers, opened, print_json


def add(commands: Subparsers, common: argparse.ArgumentParser) -> None:
    """Describe the command to the parser of command lines."""
    stats = commands.add_parser(
        "stats", parents=[common], help="show a registry in numbers",
        description="Counts, bytes by kind, attempts by gate and rule, speedups by kernel, and "
                    "what came in when.")
    stats.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns its exit status."""
    found = opened(arguments).statistics()
    if arguments.json:
        from asmevo.registry.browse.documents import statistics_document

        print_json(statistics_document(found))
        return FOUND

    from asmevo.registry.display.statistics import statistics_shown
    from asmevo.registry.display.tables import console, show, width_of

    out = console()
    show(out, *statistics_shown(found, width_of(out)))
    return FOUND
