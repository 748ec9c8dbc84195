"""What every command shares: exit statuses, the registry that is meant, JSON for machines."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from asmevo.registry.registry import Registry

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

FOUND, NOTHING, REFUSED, INTERRUPTED = 0, 1, 2, 130


def opened(arguments: argparse.Namespace) -> Registry:
    """The registry of ``--registry``; it is opened by its first use."""
    from asmevo.registry.registry import Registry

    return Registry(arguments.registry)


def print_json(document: dict[str, Any]) -> None:
    """Print a document for machines."""
    print(json.dumps(document, indent=2, sort_keys=True, allow_nan=False))
