"""``asmevo-registry``: look into a registry and take replacements out of it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from asmevo.errors import AsmEvoError
from asmevo.registry.command import captures, gc, keygen, listing, log, pull, show, sign
from asmevo.registry.command.output import FOUND, INTERRUPTED, REFUSED

_COMMANDS = (listing, show, log, captures, pull, keygen, sign, gc)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns 0, 1 (nothing found), 2 (bad input or refused) or 130 (Ctrl-C)."""
    arguments = _parser().parse_args(argv)
    try:
        status: int = arguments.command(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of a pipe has left. Keep the interpreter from complaining when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FOUND
    except AsmEvoError as error:
        print(f"asmevo-registry: {error}", file=sys.stderr)
        return REFUSED
    return status


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--registry", type=Path, default=Path("registry"), metavar="PATH",
                        help="folder of the registry (default: ./registry)")
    common.add_argument("--json", action="store_true", help="print JSON for machines")
    parser = argparse.ArgumentParser(
        prog="asmevo-registry", description="Look into a registry of verified faster kernels.",
        epilog="Exit status: 0 found, 1 nothing found, 2 bad input or refused, 130 interrupted.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for module in _COMMANDS:
        module.add(commands, common)
    return parser
