"""``pull``: the best validated replacement of an original, as a file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from asmevo.registry.command.objects import find_object, is_prefix
from asmevo.registry.command.output import FOUND, NOTHING, REFUSED, Subparsers, opened, print_json
from asmevo.registry.errors import PullError, PullRefusal, RegistryError, cannot

if TYPE_CHECKING:
    from asmevo.registry.registry import Registry


def add(commands: Subparsers, common: argparse.ArgumentParser) -> None:
    """Describe the command to the parser of command lines."""
    pull = commands.add_parser("pull", parents=[common],
                               help="write the best validated replacement of an original")
    pull.add_argument("--original", required=True, metavar="SHA256|PATH",
                      help="the original's SHA-256, or the file itself")
    pull.add_argument("-o", "--output", required=True, type=Path, metavar="FILE")
    pull.add_argument("--kernel", metavar="SYMBOL", help="the kernel, if several were improved")
    pull.add_argument("--isa", metavar="NAME", help="refuse anything not built for it, e.g. gfx942")
    pull.add_argument("--allow-modelled", action="store_true",
                      help="accept a speedup that was modelled, not measured on hardware")
    pull.add_argument("--allow-weaker", action="store_true",
                      help="accept what was judged by less than the default gates and inputs")
    pull.add_argument("--force", action="store_true", help="overwrite FILE if it exists")
    pull.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns its exit status."""
    from asmevo.durable import write_atomically
    from asmevo.registry.pull import pull

    output: Path = arguments.output
    if output.is_dir() or (output.exists() and not arguments.force):
        hint = "is a folder" if output.is_dir() else "exists; --force overwrites it"
        raise RegistryError(f"output {output} {hint}")
    registry = opened(arguments)
    try:
        found = pull(registry, original=_original(registry, arguments.original),
                     kernel=arguments.kernel, isa=arguments.isa,
                     allow_modelled=arguments.allow_modelled,
                     allow_weaker=arguments.allow_weaker)
    except PullError as error:
        if arguments.json:
            from asmevo.registry.documents import refusal_document

            print_json(refusal_document(error.code, str(error)))
        print(f"asmevo-registry: {error}", file=sys.stderr)
        return NOTHING if error.code is PullRefusal.NONE else REFUSED
    try:
        write_atomically(output, found.data, overwrite=arguments.force)
    except OSError as error:
        raise cannot("write", output, error) from error
    record = found.record
    if record.weaknesses:
        from asmevo.registry.tables import printable

        print("asmevo-registry: judged by less than the default gates: "
              f"{printable('; '.join(record.weaknesses))}", file=sys.stderr)
    if arguments.json:
        from asmevo.registry.documents import pull_document

        print_json(pull_document(record, str(output)))
    else:
        from asmevo.registry.tables import printable

        print(f"wrote {output}: replacement {record.object_sha256} of kernel "
              f"{printable(record.kernel)}, {record.speedup:.4f}x {record.timing_source} on "
              f"{printable(record.device)}")
    return FOUND


def _original(registry: Registry, text: str) -> str:
    """``text``, or the only stored SHA-256 that it abbreviates when no file has that name."""
    if is_prefix(text) and not Path(text).exists():
        record = find_object(registry, text)
        return text if record is None else record.sha256
    return text
