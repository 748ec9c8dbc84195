"""``list``: the replacements."""

from __future__ import annotations

import argparse

from asmevo.registry.command.output import FOUND, NOTHING, Subparsers, opened, print_json


def add(commands: Subparsers, common: argparse.ArgumentParser) -> None:
    """Describe the command to the parser of command lines."""
    listing = commands.add_parser("list", parents=[common], help="list all replacements")
    listing.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns its exit status."""
    replacements = opened(arguments).replacements()
    if arguments.json:
        from asmevo.registry.documents import list_document

        print_json(list_document(replacements))
    elif replacements:
        from asmevo.registry.tables import console, replacement_table

        out = console()
        out.print(replacement_table(replacements, plain=not out.is_terminal))
    else:
        print(f"no replacements in {arguments.registry}")
    return FOUND if replacements else NOTHING
