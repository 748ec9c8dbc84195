"""``sign``: sign replacements that a registry has already."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from asmevo.registry.command.objects import find_object
from asmevo.registry.command.output import FOUND, NOTHING, Subparsers, opened, place, print_json
from asmevo.registry.errors import RegistryError
from asmevo.registry.names import counted, printable
from asmevo.registry.signing.keys import ENVIRONMENT, load_signing_key

if TYPE_CHECKING:
    from asmevo.registry.registry import Registry


def add(commands: Subparsers, common: argparse.ArgumentParser) -> None:
    """Describe the command to the parser of command lines."""
    sign = commands.add_parser(
        "sign", parents=[common], help="sign replacements",
        description="Signs the statements of replacements, after checking that all rows still are "
                    "what they say; all of those that are named, or none.")
    sign.add_argument("sha256", nargs="*", metavar="SHA",
                      help="SHA-256 of a replacement, or its first digits")
    sign.add_argument("--all", action="store_true", help="every replacement of the registry")
    sign.add_argument("--key", metavar="FILE", default=os.environ.get(ENVIRONMENT),
                      help=f"the private key (default: ${ENVIRONMENT})")
    sign.add_argument("--state", action="store_true",
                      help="vouch for what is recorded now of those that nothing states yet, which "
                           "older versions committed; works without a key too")
    sign.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns its exit status."""
    if arguments.all == bool(arguments.sha256):
        raise RegistryError("name the replacements to sign, or say --all")
    if arguments.key is None and not arguments.state:
        raise RegistryError(f"there is no key to sign with: give --key FILE or set {ENVIRONMENT}")
    key = None if arguments.key is None else load_signing_key(arguments.key)
    registry = opened(arguments)
    candidates = _candidates(arguments, registry)
    added = registry.sign(candidates, key, state=arguments.state)
    if arguments.json:
        print_json({"schema_version": 1, "public_key": None if key is None else key.public_key,
                    "replacements": len(candidates), "signed": added})
    elif candidates and key is None:
        print(f"stated {counted(len(candidates), 'replacement')}, without a signature")
    elif candidates and key is not None:
        known = len(candidates) - added
        print(f"signed {counted(added, 'replacement')} with {key.public_key}"
              + (f"; {known} had that signature" if known else ""))
    else:
        print(f"asmevo-registry: no replacements in {printable(place(arguments))}",
              file=sys.stderr)
    return FOUND if candidates else NOTHING


def _candidates(arguments: argparse.Namespace, registry: Registry) -> list[str]:
    """The candidates of the replacements that are named, or of all."""
    prefixes: list[str] = arguments.sha256
    if not prefixes:
        return [r.candidate_id for r in registry.replacements()]
    found: dict[str, None] = {}
    for prefix in prefixes:
        record = find_object(registry, prefix)
        of = () if record is None else registry.replacements(object_sha256=record.sha256)
        if not of:
            raise RegistryError(f"{prefix} is no replacement in {printable(place(arguments))}")
        found |= dict.fromkeys(r.candidate_id for r in of)
    return list(found)
