"""``show``: anything stored, what it rests on and where it comes from."""

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
from asmevo.registry.names import printable

if TYPE_CHECKING:
    from asmevo.registry.catalog.identities import Identity
    from asmevo.registry.registry import Registry


def add(commands: Subparsers, common: argparse.ArgumentParser) -> None:
    """Describe the command to the parser of command lines."""
    show = commands.add_parser(
        "show", parents=[common], help="show anything stored, with its evidence and provenance",
        description="Show an object (an original or a replacement), a candidate, a run, a "
                    "dispatch or a capture.")
    show.add_argument("id", metavar="ID", help="its SHA-256 or id, or the first 6 or more "
                                               "characters of that")
    show.add_argument("--config", action="store_true",
                      help="print the whole configuration of the run, and nothing else")
    show.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns its exit status."""
    registry = opened(arguments)
    identity = named(registry, arguments.id)
    if identity is None:
        print(f"asmevo-registry: no {printable(arguments.id[:80])} in "
              f"{printable(place(arguments))}", file=sys.stderr)
        return NOTHING
    if arguments.config:
        return _print_config(registry, identity)
    from asmevo.registry.browse.shown import shown

    found = shown(registry, identity)
    if arguments.json:
        print_json(found.document())
        return FOUND

    from asmevo.registry.display.details import details
    from asmevo.registry.display.tables import console, width_of
    from asmevo.registry.display.tables import show as show_parts

    out = console()
    show_parts(out, *details(found, width_of(out)))
    return FOUND


def _print_config(registry: Registry, identity: Identity) -> int:
    """The text as it was recorded: it can be given to ``python -m asmevo --config-dir``."""
    from asmevo.registry.catalog.identities import Kind
    from asmevo.registry.errors import RegistryError

    if identity.kind is Kind.RUN:
        run_id = identity.id
    elif identity.kind is Kind.CANDIDATE:
        run_id = registry.candidate(identity.id).run_id
    else:
        made = registry.replacements(object_sha256=identity.id)
        if not made:
            raise RegistryError(f"{identity.kind} {identity.id} was made by no run: --config is "
                                "for a run, a candidate or a replacement")
        run_id = made[0].run_id
    text = registry.load_text(registry.run(run_id).config_sha256)
    # Line by line: what a hostile blob does to a terminal must not happen.
    for line in text.splitlines():
        print(printable(line))
    return FOUND
