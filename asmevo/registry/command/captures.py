"""``captures``: captured dispatches."""

from __future__ import annotations

import argparse
from pathlib import Path

from asmevo.registry.command.objects import MIN_PREFIX, is_prefix
from asmevo.registry.command.output import (
    FOUND,
    NOTHING,
    Subparsers,
    opened,
    place,
    print_json,
)
from asmevo.registry.errors import RegistryError
from asmevo.registry.names import counted, printable


def add(commands: Subparsers, common: argparse.ArgumentParser) -> None:
    """Describe the command to the parser of command lines."""
    captures = commands.add_parser("captures", parents=[common],
                                   help="list captured dispatches, or write one as a folder")
    captures.add_argument("sha256", metavar="SHA", nargs="?",
                          help="identity of a capture, or its first digits")
    captures.add_argument("-o", "--output", type=Path, metavar="FOLDER",
                          help="where to write the capture, with its code object")
    captures.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns its exit status."""
    registry = opened(arguments)
    prefix: str = (arguments.sha256 or "").lower()
    if prefix and not is_prefix(prefix):
        raise RegistryError(f"{prefix[:80]!r} is not a SHA-256 or its first {MIN_PREFIX} or more "
                            "digits")
    found = tuple(r for r in registry.captures() if r.sha256.startswith(prefix))
    if arguments.output is not None:
        if len(found) != 1 or not prefix:
            raise RegistryError(f"--output needs the identity of one capture; "
                                f"{counted(len(found), 'capture')} would be meant")
        from asmevo.dispatch.captured.folder import write_capture

        capture = registry.load_capture(found[0].sha256)
        write_capture(capture, arguments.output,
                      code_object=registry.load_object(capture.code_object))
    if arguments.json:
        from asmevo.registry.browse.documents import captures_document

        print_json(captures_document(found))
    elif found:
        from asmevo.registry.display.tables import capture_table, console, show, width_of

        out = console()
        show(out, capture_table(found, width=width_of(out)).table)
    else:
        print(f"no captures in {printable(place(arguments))}")
    return FOUND if found else NOTHING
