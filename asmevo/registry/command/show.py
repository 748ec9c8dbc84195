"""``show``: one object, its replacements and its evidence."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from asmevo.registry.command.objects import find_object
from asmevo.registry.command.output import FOUND, NOTHING, Subparsers, opened, print_json
from asmevo.registry.errors import BlobError, BlobMissingError

if TYPE_CHECKING:
    from asmevo.registry.registry import Registry


def add(commands: Subparsers, common: argparse.ArgumentParser) -> None:
    """Describe the command to the parser of command lines."""
    show = commands.add_parser("show", parents=[common],
                               help="show an object, its replacements and its evidence")
    show.add_argument("sha256", metavar="SHA", help="SHA-256 of an object, or its first digits")
    show.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns its exit status."""
    registry = opened(arguments)
    record = find_object(registry, arguments.sha256)
    if record is None:
        print(f"asmevo-registry: no object {arguments.sha256} in {arguments.registry}",
              file=sys.stderr)
        return NOTHING
    content = _content_state(registry, record.sha256)
    recovered = registry.recovered(record.sha256)
    replacements = registry.replacements(original_sha256=record.sha256)
    replaces = [(r, registry.candidate(r.candidate_id))
                for r in registry.replacements(object_sha256=record.sha256)]
    if arguments.json:
        from asmevo.registry.documents import show_document

        print_json(show_document(record, content, recovered, replacements, replaces))
        return FOUND

    from asmevo.registry import tables

    out = tables.console()
    plain = not out.is_terminal
    out.print(tables.object_table(record, content, recovered))
    if replacements:
        out.print("\nreplacements of this object")
        out.print(tables.replacement_table(replacements, plain=plain))
    for replacement, candidate in replaces:
        out.print("\nthis object is a replacement")
        out.print(tables.replacement_table([replacement], plain=plain))
        out.print(tables.judgement_table(replacement))
        out.print(tables.evidence_table(candidate, plain=plain))
        out.print(tables.timing_table(candidate, plain=plain))
    return FOUND


def _content_state(registry: Registry, sha256: str) -> str:
    try:
        registry.load_object(sha256)
    except BlobMissingError:
        return "missing"
    except BlobError:
        return "corrupt"
    return "verified"
