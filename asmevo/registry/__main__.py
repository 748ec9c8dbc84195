"""``asmevo-registry``: look into a registry and take replacements out of it."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asmevo.errors import AsmEvoError
from asmevo.registry.errors import (
    BlobError,
    BlobMissingError,
    PullError,
    PullRefusal,
    RegistryError,
    cannot,
)

if TYPE_CHECKING:
    from asmevo.registry.records import ObjectRecord
    from asmevo.registry.registry import Registry

FOUND, NOTHING, REFUSED, INTERRUPTED = 0, 1, 2, 130
MIN_PREFIX = 6


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

    listing = commands.add_parser("list", parents=[common], help="list all replacements")
    listing.set_defaults(command=_list)

    show = commands.add_parser("show", parents=[common],
                               help="show an object, its replacements and its evidence")
    show.add_argument("sha256", metavar="SHA", help="SHA-256 of an object, or its first digits")
    show.set_defaults(command=_show)

    log = commands.add_parser("log", parents=[common], help="show the lineage of a run")
    log.add_argument("--run", metavar="ID", help="the run (default: the newest)")
    log.add_argument("--all", action="store_true", help="every candidate, not commits alone")
    log.set_defaults(command=_log)

    captures = commands.add_parser("captures", parents=[common],
                                   help="list captured dispatches, or write one as a folder")
    captures.add_argument("sha256", metavar="SHA", nargs="?",
                          help="identity of a capture, or its first digits")
    captures.add_argument("-o", "--output", type=Path, metavar="FOLDER",
                          help="where to write the capture, with its code object")
    captures.set_defaults(command=_captures)

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
    pull.set_defaults(command=_pull)
    return parser


def _open(arguments: argparse.Namespace) -> Registry:
    from asmevo.registry.registry import Registry

    return Registry(arguments.registry)


def _list(arguments: argparse.Namespace) -> int:
    replacements = _open(arguments).replacements()
    if arguments.json:
        from asmevo.registry.documents import list_document

        _print_json(list_document(replacements))
    elif replacements:
        from asmevo.registry.tables import console, replacement_table

        out = console()
        out.print(replacement_table(replacements, plain=not out.is_terminal))
    else:
        print(f"no replacements in {arguments.registry}")
    return FOUND if replacements else NOTHING


def _show(arguments: argparse.Namespace) -> int:
    registry = _open(arguments)
    record = _find_object(registry, arguments.sha256)
    if record is None:
        print(f"asmevo-registry: no object {arguments.sha256} in {arguments.registry}",
              file=sys.stderr)
        return NOTHING
    content = _content_state(registry, record.sha256)
    recovered = registry.recovered(record.sha256)
    replacements = registry.replacements(original_sha256=record.sha256)
    replaces = [(r, registry.candidate(r.candidate_id))
                for r in registry.replacements(object_sha256=record.sha256)]
    if arguments.json:
        from asmevo.registry.documents import show_document

        _print_json(show_document(record, content, recovered, replacements, replaces))
        return FOUND

    from asmevo.registry import tables

    out = tables.console()
    plain = not out.is_terminal
    out.print(tables.object_table(record, content, recovered))
    if replacements:
        out.print("\nreplacements of this object")
        out.print(tables.replacement_table(replacements, plain=plain))
    for replacement, candidate in replaces:
        out.print("\nthis object is a replacement")
        out.print(tables.replacement_table([replacement], plain=plain))
        out.print(tables.judgement_table(replacement))
        out.print(tables.evidence_table(candidate, plain=plain))
        out.print(tables.timing_table(candidate, plain=plain))
    return FOUND


def _log(arguments: argparse.Namespace) -> int:
    registry = _open(arguments)
    runs = registry.runs()
    run = next((r for r in runs if arguments.run in (None, r.id)), None)
    if run is None:
        which = "runs" if arguments.run is None else f"run '{arguments.run}'"
        print(f"asmevo-registry: no {which} in {arguments.registry}", file=sys.stderr)
        return NOTHING
    candidates = registry.lineage(run.id)
    speedups = {r.candidate_id: r.speedup for r in registry.replacements()
                if r.run_id == run.id}
    if arguments.json:
        from asmevo.registry.documents import log_document

        _print_json(log_document(run, candidates, speedups))
        return FOUND

    from asmevo.registry.tables import console, lineage_tree, printable, run_title

    out = console()
    if arguments.all:
        out.print(lineage_tree(run, candidates, speedups))
    else:
        from asmevo.report.registry_log import run_shown

        out.print(run_title(run))
        for part in run_shown(registry, run, candidates):
            out.print(part)
    others = [r.id for r in runs if r is not run]
    if arguments.run is None and others:
        out.print(f"{len(others)} older runs: {printable(', '.join(others[:10]))}", markup=False)
    return FOUND


def _captures(arguments: argparse.Namespace) -> int:
    registry = _open(arguments)
    prefix: str = (arguments.sha256 or "").lower()
    if prefix and not _is_prefix(prefix):
        raise RegistryError(f"{prefix[:80]!r} is not a SHA-256 or its first {MIN_PREFIX} or more "
                            "digits")
    found = tuple(r for r in registry.captures() if r.sha256.startswith(prefix))
    if arguments.output is not None:
        if len(found) != 1 or not prefix:
            raise RegistryError(f"--output needs the identity of one capture; {len(found)} "
                                "captures are meant")
        from asmevo.dispatch.captured.folder import write_capture

        capture = registry.load_capture(found[0].sha256)
        write_capture(capture, arguments.output,
                      code_object=registry.load_object(capture.code_object))
    if arguments.json:
        from asmevo.registry.documents import captures_document

        _print_json(captures_document(found))
    elif found:
        from asmevo.registry.tables import capture_table, console

        out = console()
        out.print(capture_table(found, plain=not out.is_terminal))
    else:
        print(f"no captures in {arguments.registry}")
    return FOUND if found else NOTHING


def _pull(arguments: argparse.Namespace) -> int:
    from asmevo.durable import write_atomically
    from asmevo.registry.pull import pull

    output: Path = arguments.output
    if output.is_dir() or (output.exists() and not arguments.force):
        hint = "is a folder" if output.is_dir() else "exists; --force overwrites it"
        raise RegistryError(f"output {output} {hint}")
    registry = _open(arguments)
    try:
        found = pull(registry, original=_original(registry, arguments.original),
                     kernel=arguments.kernel, isa=arguments.isa,
                     allow_modelled=arguments.allow_modelled,
                     allow_weaker=arguments.allow_weaker)
    except PullError as error:
        if arguments.json:
            from asmevo.registry.documents import refusal_document

            _print_json(refusal_document(error.code, str(error)))
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

        _print_json(pull_document(record, str(output)))
    else:
        from asmevo.registry.tables import printable

        print(f"wrote {output}: replacement {record.object_sha256} of kernel "
              f"{printable(record.kernel)}, {record.speedup:.4f}x {record.timing_source} on "
              f"{printable(record.device)}")
    return FOUND


def _original(registry: Registry, text: str) -> str:
    """``text``, or the only stored SHA-256 that it abbreviates when no file has that name."""
    if _is_prefix(text) and not Path(text).exists():
        record = _find_object(registry, text)
        return text if record is None else record.sha256
    return text


def _find_object(registry: Registry, prefix: str) -> ObjectRecord | None:
    if not _is_prefix(prefix):
        raise RegistryError(f"{prefix[:80]!r} is not a SHA-256 or its first {MIN_PREFIX} or more "
                            "digits")
    found = registry.find_objects(prefix)
    if len(found) > 1:
        raise RegistryError(f"{len(found)} objects have a SHA-256 that starts with {prefix}")
    return found[0] if found else None


def _is_prefix(text: str) -> bool:
    return MIN_PREFIX <= len(text) <= 64 and not set(text.lower()) - set("0123456789abcdef")


def _content_state(registry: Registry, sha256: str) -> str:
    try:
        registry.load_object(sha256)
    except BlobMissingError:
        return "missing"
    except BlobError:
        return "corrupt"
    return "verified"


def _print_json(document: dict[str, Any]) -> None:
    print(json.dumps(document, indent=2, sort_keys=True, allow_nan=False))


if __name__ == "__main__":
    sys.exit(main())
