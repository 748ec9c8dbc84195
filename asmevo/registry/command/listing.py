"""``list``: the replacements."""

from __future__ import annotations

import argparse
import math
import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from asmevo.registry.command.output import (
    FOUND,
    NOTHING,
    Subparsers,
    opened,
    place,
    print_json,
)
from asmevo.registry.errors import RegistryError, cannot
from asmevo.registry.names import printable

if TYPE_CHECKING:
    from asmevo.registry.replacement.selection import Selected, Selection

ON_A_TERMINAL = 50
"""Lines shown there unless ``--limit`` says otherwise; files and pipes get all."""

_AGO = re.compile(r"(\d{1,6})([hdw])", re.ASCII)
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_HEX = frozenset("0123456789abcdef")


def add(commands: Subparsers, common: argparse.ArgumentParser) -> None:
    """Describe the command to the parser of command lines."""
    listing = commands.add_parser(
        "list", parents=[common], help="list replacements",
        description="List replacements; filters are joined by and.")
    listing.add_argument("--original", metavar="SHA|PATH",
                         help="of this object: a file, or the first digits of its SHA-256")
    listing.add_argument("--kernel", default="", metavar="TEXT",
                         help="whose symbol contains this, in whatever case")
    listing.add_argument("--device", default="", metavar="TEXT",
                         help="timed on a device whose name contains this")
    listing.add_argument("--source", choices=("measured", "modelled"),
                         help="by where the speedup comes from")
    listing.add_argument("--status", choices=("committed", "confirmed", "withdrawn", "weaker"),
                         help="timed again in a fresh process: not yet, confirmed, or withdrawn; "
                              "weaker: judged by less than the default gates")
    listing.add_argument("--min-speedup", type=_speedup, metavar="X", help="at least so fast")
    listing.add_argument("--since", type=_since, metavar="TIME",
                         help="committed since: 2026-11-30, 2026-11-30T14:00 (UTC), 12h, 7d, 4w")
    listing.add_argument("--sort", choices=("original", "kernel", "speedup", "date"),
                         default="original",
                         help="what comes first (default: by original and kernel the best)")
    listing.add_argument("--limit", type=_limit, metavar="N",
                         help=f"so many at most, 0 for all (default: {ON_A_TERMINAL} on a "
                              "terminal, else all)")
    listing.add_argument("--wide", action="store_true", help="names and SHA-256 in full")
    listing.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns its exit status."""
    registry = opened(arguments)
    limit: int | None = arguments.limit
    if limit is None and not arguments.json and sys.stdout.isatty():
        limit = ON_A_TERMINAL
    found = registry.catalog.select(_selection(arguments, limit or None))
    signatures = registry.catalog.signatures([r.candidate_id for r in found.records])
    signers = {candidate: tuple(s.public_key for s in of if s.current)
               for candidate, of in signatures.items()}
    if arguments.json:
        from asmevo.registry.browse.documents import list_document

        print_json(list_document(found.records, found.total, signers))
    elif found.records:
        _show(found, signers, wide=arguments.wide)
    else:
        print(f"no replacements{_that(arguments)} in {printable(place(arguments))}")
    return FOUND if found.records else NOTHING


def _show(found: Selected, signers: dict[str, tuple[str, ...]], *, wide: bool) -> None:
    from asmevo.registry.display.tables import console, replacement_table, show, width_of

    out = console(wide=wide)
    shown = replacement_table(found.records, width=width_of(out), wide=wide, signers=signers)
    show(out, shown.table)
    if more := found.total - len(found.records):
        out.print(f"{more:,} more: --limit 0 lists all", style="dim")
    if shown.left_out:
        out.print(f"no room for {', '.join(shown.left_out)}: --wide shows all", style="dim")


def _that(arguments: argparse.Namespace) -> str:
    filters = ("original", "kernel", "device", "source", "status", "min_speedup", "since")
    given = any(getattr(arguments, name) not in (None, "") for name in filters)
    return " that these options ask for" if given else ""


def _selection(arguments: argparse.Namespace, limit: int | None) -> Selection:
    from asmevo.registry.records import ReplacementStatus
    from asmevo.registry.replacement.selection import Order, Selection

    return Selection(
        original=_original(arguments.original), kernel=arguments.kernel, device=arguments.device,
        source=arguments.source,
        status=None if arguments.status is None else ReplacementStatus(arguments.status),
        min_speedup=arguments.min_speedup, since=arguments.since, order=Order(arguments.sort),
        limit=limit)


def _original(text: str | None) -> str:
    """The digits that ``--original`` gives, or those of the file that it names."""
    if text is None:
        return ""
    path = Path(text)
    digits = text.lower()
    if "\0" not in text and not path.is_file() and 1 <= len(digits) <= 64 and (
            not set(digits) - _HEX):
        return digits
    import hashlib

    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise cannot("read original", path, error) from error
    except ValueError as error:  # a NUL in the path
        raise RegistryError("the original is neither a SHA-256 nor a path") from error


def _speedup(text: str) -> float:
    try:
        value = float(text.removesuffix("x"))
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a speedup such as 1.05")
    return value


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number of lines")
    return int(text)


def _since(text: str) -> datetime:
    if match := _AGO.fullmatch(text):
        try:
            return datetime.now(UTC) - timedelta(**{_UNITS[match[2]]: int(match[1])})
        except OverflowError:
            return datetime.min.replace(tzinfo=UTC)
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is no time such as 2026-11-30, 2026-11-30T14:00 or 7d") from None
    return given if given.tzinfo is not None else given.replace(tzinfo=UTC)
