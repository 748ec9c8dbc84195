"""``diff``: what differs in the assembly of two versions."""

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
    from asmevo.registry.catalog.identities import Identity
    from asmevo.registry.registry import Registry

_MOST_CONTEXT = 1_000_000


def add(commands: Subparsers, common: argparse.ArgumentParser) -> None:
    """Describe the command to the parser of command lines."""
    diff = commands.add_parser(
        "diff", parents=[common], help="compare the assembly of two objects or candidates",
        description="Compare the assembly of two objects or candidates, or of one with its "
                    "original. Lines that moved are told from removed and added ones. Where a "
                    "text is not stored it is recovered, or edited, again.")
    diff.add_argument("a", metavar="A", help="an object or a candidate, or its first 6 or more "
                                             "characters")
    diff.add_argument("b", metavar="B", nargs="?", help="the other one (default: A is compared "
                                                        "with its original)")
    diff.add_argument("--parent", action="store_true",
                      help="compare A with the candidate that it was made from")
    diff.add_argument("--kernel", metavar="SYMBOL", help="only this function")
    diff.add_argument("--context", type=_context, default=3, metavar="N",
                      help="unchanged lines around the others (default: 3)")
    diff.add_argument("--stat", action="store_true", help="only the summary")
    diff.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns its exit status."""
    from asmevo.registry.catalog.identities import Kind

    registry = opened(arguments)
    given = []
    for text in filter(None, (arguments.a, arguments.b)):
        identity = named(registry, text, Kind.OBJECT, Kind.CANDIDATE)
        if identity is None:
            print(f"asmevo-registry: no object or candidate {printable(text[:80])} in "
                  f"{printable(place(arguments))}", file=sys.stderr)
            return NOTHING
        given.append(identity)
    if len(given) == 2 and arguments.parent:
        raise RegistryError("--parent compares one candidate with what it was made from, not two")
    if len(given) == 1:
        given.insert(0, _before(registry, given[0], parent=arguments.parent))
    from asmevo.registry.browse.comparison import compare

    found = compare(registry, given[0], given[1], arguments.kernel)
    if arguments.json:
        print_json(found.document())
        return FOUND

    from asmevo.registry.display.diff import diff_shown
    from asmevo.registry.display.tables import console, show, width_of

    out = console()
    show(out, *diff_shown(found, width_of(out), context=arguments.context,
                          summary=arguments.stat))
    return FOUND


def _before(registry: Registry, identity: Identity, *, parent: bool) -> Identity:
    """The original of a replacement or a candidate, or the parent of one."""
    from asmevo.registry.catalog.identities import Identity, Kind

    if identity.kind is Kind.CANDIDATE:
        record = registry.candidate(identity.id)
    else:
        made = registry.replacements(object_sha256=identity.id)
        if not made:
            raise RegistryError(f"object {identity.id} is no replacement: name what it is to be "
                                "compared with")
        record = registry.candidate(made[0].candidate_id)
    if parent and record.parent_id is not None:
        return Identity(Kind.CANDIDATE, record.parent_id)
    return Identity(Kind.OBJECT, record.original_sha256)


def _context(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= _MOST_CONTEXT):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number of lines")
    return int(text)
