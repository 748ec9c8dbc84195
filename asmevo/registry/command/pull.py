"""``pull``: the best validated replacement of an original, as a file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from asmevo.registry.command.objects import find_object, is_prefix
from asmevo.registry.command.output import FOUND, NOTHING, Subparsers, opened, print_json
from asmevo.registry.command.pulling import (
    DAMAGED,
    NOT_ACCEPTED,
    add_options,
    notes,
    pull_options,
)
from asmevo.registry.errors import PullError, PullRefusal, RegistryError, cannot
from asmevo.registry.names import printable, without_secrets

if TYPE_CHECKING:
    from asmevo.registry.registry import Registry

_EXISTS, _FAILED = "destination-exists", "failed"
"""Codes of what is no refusal of a replacement, with exit status 2."""

_STATUSES = """\
exit status:
  0  FILE is the replacement
  1  there is no replacement: keep the original          no-replacement
  2  bad input, or something cannot be read or written  destination-exists, failed
  3  none is acceptable: keep the original               ambiguous-kernel, no-statement, unsigned,
                                                         untrusted-signature, withdrawn,
                                                         not-confirmed, evidence-incomplete,
                                                         weaker-gates, modelled-only,
                                                         isa-mismatch, interface-mismatch
  4  the registry is damaged or was tampered with:       statement-mismatch, signature-invalid,
     keep the original and tell somebody                 blob-corrupt
With any status but 0 FILE is as it was. The codes on the right are printed with --json.
"""


def add(commands: Subparsers, common: argparse.ArgumentParser) -> None:
    """Describe the command to the parser of command lines."""
    pull = commands.add_parser("pull", parents=[common],
                               help="write the best validated replacement of an original",
                               epilog=_STATUSES,
                               formatter_class=argparse.RawDescriptionHelpFormatter)
    pull.add_argument("--original", required=True, metavar="SHA256|PATH",
                      help="the original's SHA-256, or the file itself")
    pull.add_argument("-o", "--output", required=True, type=Path, metavar="FILE")
    add_options(pull)
    pull.add_argument("--force", action="store_true", help="overwrite FILE if it exists")
    pull.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns its exit status."""
    output: Path = arguments.output
    other = output.exists() and not output.is_file()
    if other or (output.exists() and not arguments.force):
        hint = ("is a folder" if output.is_dir() else
                "is a device, pipe or socket" if other else "exists; --force overwrites it")
        reason = f"output {output} {hint}"
        _tell(arguments, _EXISTS, reason)
        raise RegistryError(reason)
    try:
        return _run(arguments, output)
    except RegistryError as error:
        _tell(arguments, _FAILED, str(error))
        raise


def _run(arguments: argparse.Namespace, output: Path) -> int:
    from asmevo.durable import write_atomically
    from asmevo.registry.delivery.pull import pull

    registry = opened(arguments)
    try:
        found = pull(registry, original=_original(registry, arguments.original),
                     **pull_options(arguments))
    except PullError as error:
        _tell(arguments, error.code, str(error))
        print(f"asmevo-registry: {_shown(str(error))}", file=sys.stderr)
        return _status(error.code)
    try:
        write_atomically(output, found.data, overwrite=arguments.force)
    except OSError as error:
        raise cannot("write", output, error) from error
    record = found.record
    for said in notes(found):
        print(f"asmevo-registry: {_shown(said)}", file=sys.stderr)
    if arguments.json:
        from asmevo.registry.browse.documents import pull_document

        print_json(pull_document(found, str(output)))
    else:
        signed = f", signed by {found.signers[0]}" if found.signers else ""
        print(f"wrote {printable(str(output))}: replacement {record.object_sha256} of kernel "
              f"{_shown(record.kernel)}, {record.speedup:.4f}x {record.timing_source} on "
              f"{_shown(record.device)}{signed}")
    return FOUND


def _tell(arguments: argparse.Namespace, code: str, reason: str) -> None:
    """A refusal as JSON, where that was asked for."""
    if arguments.json:
        from asmevo.registry.browse.documents import refusal_document

        print_json(refusal_document(code, without_secrets(reason)))


def _shown(text: str) -> str:
    """``text`` as it may be printed: it repeats what an untrusted registry says, and URLs."""
    return printable(without_secrets(text))


def _status(code: PullRefusal) -> int:
    if code is PullRefusal.NONE:
        return NOTHING
    return DAMAGED if code.is_damage else NOT_ACCEPTED


def _original(registry: Registry, text: str) -> str:
    """``text``, or the only stored SHA-256 that it abbreviates when no file has that name."""
    if is_prefix(text) and not Path(text).exists():
        record = find_object(registry, text)
        return text if record is None else record.sha256
    return text
