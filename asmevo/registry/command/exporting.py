"""``export``: replacements and all their evidence as one signed file."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from asmevo.durable import new_file
from asmevo.registry.command.output import FOUND, Subparsers, opened, print_json
from asmevo.registry.errors import RegistryError, cannot
from asmevo.registry.names import counted, printable, without_secrets

if TYPE_CHECKING:
    from asmevo.registry.parcel.gather import Selection

STANDARD = "-"
"""A file that is standard input or output."""


def add(commands: Subparsers, common: argparse.ArgumentParser) -> None:
    """Describe the command to the parser of command lines."""
    export = commands.add_parser(
        "export", parents=[common], help="write replacements with all their evidence as one file",
        description="Writes replacements and everything that their evidence rests on as one "
                    "bundle file, signed as a whole where there is a key. The same content gives "
                    "the same bytes.")
    export.add_argument("-o", "--output", required=True, metavar="FILE",
                        help="the file, or - for standard output")
    export.add_argument("--force", action="store_true", help="overwrite FILE if it exists")
    add_selection(export)
    export.add_argument("--key", metavar="FILE", default=os.environ.get("ASMEVO_SIGNING_KEY"),
                        help="the private key to sign with (default: $ASMEVO_SIGNING_KEY)")
    export.add_argument("--unsigned", action="store_true",
                        help="sign nothing, whatever key there is")
    export.set_defaults(command=run)


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Options that say which replacements are meant."""
    for name, what in (("original", "SHA256"), ("kernel", "SYMBOL"), ("run", "ID"),
                       ("candidate", "ID")):
        parser.add_argument(f"--{name}", action="append", default=[], metavar=what,
                            help=f"only those of that {name}; may be repeated")
    parser.add_argument("--withdrawn", action="store_true",
                        help="also those that a second timing did not confirm")


def selection(arguments: argparse.Namespace) -> Selection:
    """Which replacements are meant."""
    from asmevo.registry.parcel.gather import Selection

    return Selection(originals=[text.lower() for text in arguments.original],
                     kernels=arguments.kernel, runs=arguments.run,
                     candidates=arguments.candidate, withdrawn=arguments.withdrawn)


@contextmanager
def refusals(*, json: bool) -> Iterator[None]:
    """Print the code of a refusal for machines; its sentence is printed in any case."""
    from asmevo.registry.parcel.errors import ParcelError

    try:
        yield
    except ParcelError as error:
        if json:
            from asmevo.registry.browse.documents import refusal_document

            print_json(refusal_document(error.code, without_secrets(str(error))))
        raise


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns its exit status."""
    with refusals(json=arguments.json):
        return _run(arguments)


def _run(arguments: argparse.Namespace) -> int:
    from asmevo.registry.parcel.export import export
    from asmevo.registry.signing.keys import load_signing_key

    to_standard = arguments.output == STANDARD
    if to_standard and arguments.json:
        raise RegistryError("--json and -o - would both write to standard output")
    unsigned = arguments.unsigned or arguments.key is None
    key = None if unsigned else load_signing_key(arguments.key)
    registry = opened(arguments)
    if to_standard:
        export(registry, sys.stdout.buffer, selection(arguments), key=key)
        sys.stdout.buffer.flush()
        return FOUND
    output = Path(arguments.output)
    other = output.exists() and not output.is_file()
    if other or (output.exists() and not arguments.force):
        hint = ("is a folder" if output.is_dir() else
                "is a device, pipe or socket" if other else "exists; --force overwrites it")
        raise RegistryError(f"output {output} {hint}")
    try:
        with new_file(output, overwrite=arguments.force) as file:
            made = export(registry, file, selection(arguments), key=key)
            size = file.tell()
    except OSError as error:
        raise cannot("write", output, error) from error
    if arguments.json:
        print_json({"schema_version": 1, "file": str(output), "size": size,
                    "replacements": made.replacements, "rows": dict(made.rows),
                    "blobs": made.blobs, "public_key": made.signer})
    else:
        from rich.filesize import decimal

        print(f"wrote {printable(str(output))}: {counted(made.replacements, 'replacement')}, "
              f"{counted(sum(made.rows.values()), 'record')} and {counted(made.blobs, 'blob')} in "
              f"{decimal(size)}, "
              + (f"signed by {made.signer}" if made.signer else "not signed"))
    return FOUND
