"""``keygen``: a pair of keys for signing replacements."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from asmevo.registry.command.output import FOUND, Subparsers


def add(commands: Subparsers, common: argparse.ArgumentParser) -> None:
    """Describe the command to the parser of command lines."""
    keygen = commands.add_parser(
        "keygen", help="make an Ed25519 key that signs replacements",
        description="Writes the private key to FILE, for its owner only, and the public one to "
                    "FILE.pub, whose line goes into the trust lists of those who pull. "
                    "ASMEVO_SIGNING_KEY=FILE makes a search sign what it commits.")
    keygen.add_argument("-o", "--output", required=True, type=Path, metavar="FILE")
    keygen.add_argument("--comment", default="", metavar="TEXT", help="whose key it is")
    keygen.add_argument("--json", action="store_true", help="print JSON for machines")
    keygen.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns its exit status."""
    from asmevo.registry.signing.keys import generate, public_line

    public = generate(arguments.output, arguments.comment)
    if arguments.json:
        print(json.dumps({"schema_version": 1, "public_key": public,
                          "private_file": str(arguments.output),
                          "public_file": f"{arguments.output}.pub"}, indent=2, sort_keys=True))
    else:
        print(public_line(public, arguments.comment))
    return FOUND
