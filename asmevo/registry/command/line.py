"""``asmevo-registry``: look into a registry and take replacements out of it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from asmevo.errors import AsmEvoError
from asmevo.interruption import interruptible
from asmevo.registry.command import (
    captures,
    deploy,
    diff,
    exporting,
    gc,
    importing,
    keygen,
    listing,
    log,
    pull,
    push,
    show,
    sign,
    stats,
    verify,
)
from asmevo.registry.command.output import FOUND, INTERRUPTED, REFUSED, add_common, complete
from asmevo.registry.names import printable, without_secrets

_COMMANDS = (
    listing, show, log, diff, stats, captures, pull, keygen, sign, exporting, importing, push,
    verify, deploy, gc,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns 0, 1 (nothing found), 2 (bad input or refused) or 130 (Ctrl-C)."""
    arguments = _parser().parse_args(argv)
    complete(arguments)
    try:
        with interruptible():
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
        print(f"asmevo-registry: {printable(without_secrets(str(error)))}", file=sys.stderr)
        return REFUSED
    return status


class _Parser(argparse.ArgumentParser):
    """A mistake is one sentence, which never repeats a password that was given."""

    def __init__(self, **options: Any) -> None:
        # An option that is added later must not change what a script means.
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        told = printable(without_secrets(message))
        self.exit(REFUSED, f"asmevo-registry: {told}; see {self.prog} --help\n")


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    add_common(common)
    parser = _Parser(
        prog="asmevo-registry", description="Look into a registry of verified faster kernels.",
        epilog="Exit status: 0 found, 1 nothing found, 2 bad input or refused, 130 interrupted; "
               "those of pull are in its own help.",
        parents=[common])
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for module in _COMMANDS:
        module.add(commands, common)
    return parser
