"""What every command shares: exit statuses, the registry that is meant, JSON for machines."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from asmevo.registry.errors import RegistryError
from asmevo.registry.names import without_secrets

if TYPE_CHECKING:
    from asmevo.registry.registry import Registry

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

FOUND, NOTHING, REFUSED, INTERRUPTED = 0, 1, 2, 130

DEFAULT = "registry"
"""The folder that is meant where neither ``--registry`` nor `REGISTRY_VARIABLE` names one."""
REGISTRY_VARIABLE, BLOBS_VARIABLE = "ASMEVO_REGISTRY", "ASMEVO_BLOBS"


def add_common(parser: argparse.ArgumentParser) -> None:
    """The options that every command takes, before its name or behind it."""
    # No defaults: those of a command would undo what was given in front of its name.
    parser.add_argument(
        "--registry", default=argparse.SUPPRESS, metavar="PATH|URL",
        help=f"folder of the registry, or the URL of its database "
             f"(default: ${REGISTRY_VARIABLE}, else ./{DEFAULT})")
    parser.add_argument(
        "--blobs", default=argparse.SUPPRESS, metavar="PATH|URL",
        help=f"folder or URL of the blobs, if they are not in the registry's folder "
             f"(default: ${BLOBS_VARIABLE})")
    parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS,
                        help="print JSON for machines")


def complete(arguments: argparse.Namespace) -> None:
    """Fill in what was not given."""
    environment = os.environ
    if not hasattr(arguments, "registry"):
        arguments.registry = environment.get(REGISTRY_VARIABLE) or DEFAULT
    if not hasattr(arguments, "blobs"):
        arguments.blobs = environment.get(BLOBS_VARIABLE) or None
    if not hasattr(arguments, "json"):
        arguments.json = False


def opened(arguments: argparse.Namespace) -> Registry:
    """The registry of ``--registry`` and ``--blobs``; it is opened by its first use.

    Raises `RegistryError` when they do not say where everything is.
    """
    from asmevo.registry.registry import Registry

    given, blobs = str(arguments.registry), arguments.blobs
    if "://" not in given:
        return Registry(Path(given), blobs_url=blobs)
    if blobs is None:
        raise RegistryError(
            f"--registry is the URL of a database: --blobs (or {BLOBS_VARIABLE}) has to say where "
            "its blobs are, as a folder or a URL")
    return Registry(Path(DEFAULT), given, blobs)


def place(arguments: argparse.Namespace) -> str:
    """The registry that is meant, for a sentence: without passwords."""
    return without_secrets(str(arguments.registry))


def print_json(document: dict[str, Any]) -> None:
    """Print a document for machines.

    Raises `RegistryError` for an infinity or NaN, which columns of numbers can hold as well.
    """
    try:
        text = json.dumps(document, indent=2, sort_keys=True, allow_nan=False)
    except ValueError as error:
        raise RegistryError("a record holds a number that is not finite; verify says which"
                            ) from error
    print(text)
