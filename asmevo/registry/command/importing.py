"""``import``: take a bundle file into a registry."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from asmevo.registry.command.exporting import STANDARD, refusals
from asmevo.registry.command.output import FOUND, Subparsers, opened, print_json
from asmevo.registry.errors import RegistryError, cannot
from asmevo.registry.names import counted

if TYPE_CHECKING:
    from asmevo.registry.parcel.load import Received


def add(commands: Subparsers, common: argparse.ArgumentParser) -> None:
    """Describe the command to the parser of command lines."""
    load = commands.add_parser(
        "import", parents=[common], help="take a bundle file into the registry",
        description="Checks everything in a bundle file, its signature first, and takes all of it "
                    "into the registry or nothing. What the registry has already stays; to repeat "
                    "it changes nothing.")
    load.add_argument("file", metavar="FILE", help="the file, or - for standard input")
    load.add_argument("--trust", metavar="FILE",
                      help="demand a signature by one of these keys (default: "
                           "$ASMEVO_TRUSTED_KEYS, else ~/.config/asmevo/trusted_keys if it exists)")
    load.add_argument("--max-gib", type=float, default=64.0, metavar="GIB",
                      help="refuse more uncompressed contents than that (default: 64)")
    load.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns its exit status."""
    with refusals(json=arguments.json):
        return _run(arguments)


def _run(arguments: argparse.Namespace) -> int:
    from asmevo.registry.parcel.load import load
    from asmevo.registry.signing.trust import find_trust

    registry = opened(arguments)
    trust = find_trust(arguments.trust, *registry.folders)
    if not 0 <= arguments.max_gib <= 1 << 30:  # false for what is no number, too
        raise RegistryError(f"--max-gib is a number from 0 to {1 << 30}")
    max_bytes = int(arguments.max_gib * (1 << 30))
    if arguments.file == STANDARD:
        received = load(registry, sys.stdin.buffer, trust=trust, max_bytes=max_bytes)
    else:
        try:
            with Path(arguments.file).open("rb") as file:
                received = load(registry, file, trust=trust, max_bytes=max_bytes)
        except OSError as error:
            raise cannot("read", Path(arguments.file), error) from error
    if trust is None:
        who = ("is not signed" if received.signer is None else
               f"is signed by {received.signer}")
        print(f"asmevo-registry: the bundle {who}; there is no trust list to compare that with",
              file=sys.stderr)
    report(received, json=arguments.json)
    return FOUND


def report(received: Received, *, json: bool) -> None:
    """Print what came and what of it was new."""
    if json:
        print_json({"schema_version": 1, "replacements": received.replacements,
                    "blobs": received.blobs, "added": dict(received.added),
                    "public_key": received.signer})
        return
    added = sum(received.added.values())
    new = received.added.get("replacement", 0)
    came = f"{counted(received.replacements, 'replacement')} came"
    print(f"{came}, {new:,} new: {counted(added, 'record')} added" if added else
          f"{came}, all of it was there already")
