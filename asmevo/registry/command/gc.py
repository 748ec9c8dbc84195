"""``gc``: remove what need not be kept."""

from __future__ import annotations

import argparse
import dataclasses
import math
import re
from typing import TYPE_CHECKING

from asmevo.registry.command.output import FOUND, Subparsers, opened, print_json
from asmevo.registry.names import counted

if TYPE_CHECKING:
    from rich.table import Table

    from asmevo.registry.retention.retention import Collected

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def add(commands: Subparsers, common: argparse.ArgumentParser) -> None:
    """Describe the command to the parser of command lines."""
    gc = commands.add_parser(
        "gc", parents=[common], help="show what need not be kept, or remove it",
        description="Show what need not be kept. What a replacement's evidence needs is always "
                    "kept, and so are originals, runs, counterexamples and held-out captures.")
    gc.add_argument("--apply", action="store_true", help="remove it")
    gc.add_argument("--rejected-days", type=_days, default=30.0, metavar="DAYS|never",
                    help="drop rejected candidates and search events of runs that ended so many "
                         "days ago; such a run cannot be resumed (default: 30)")
    gc.add_argument("--capture-bytes", type=_bytes, metavar="SIZE",
                    help="drop the oldest captures until all describe this much, e.g. 20G "
                         "(default: keep all)")
    gc.add_argument("--grace-hours", type=_hours, default=24.0, metavar="HOURS",
                    help="keep blobs that nothing names for so long (default: 24)")
    gc.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns its exit status."""
    from asmevo.registry.retention.retention import Retention

    done = opened(arguments).collect(
        Retention(rejected_days=arguments.rejected_days, capture_bytes=arguments.capture_bytes,
                  grace_s=arguments.grace_hours * 3600),
        apply=arguments.apply)
    if arguments.json:
        print_json({"schema_version": 1, "applied": arguments.apply, **dataclasses.asdict(done)})
        return FOUND
    from asmevo.registry.display.tables import console, show, width_of

    out = console()
    show(out, _table(done, width_of(out), apply=arguments.apply))
    if done.busy:
        print(f"{counted(len(done.busy), 'run')} being worked on, of which all is kept: "
              f"{', '.join(done.busy)}")
    if arguments.capture_bytes is not None and done.capture_bytes_kept > arguments.capture_bytes:
        print(f"captures still describe {_size(done.capture_bytes_kept)}: the rest are "
              "counterexamples, held out or timed")
    if not arguments.apply:
        print("nothing was removed; --apply removes it")
    return FOUND


def _table(done: Collected, width: int | None, *, apply: bool) -> Table:
    from asmevo.registry.display.columns import Column, fitted

    rows = (
        ("runs that can no longer be resumed", done.runs, None),
        ("rejected candidates", done.candidates, None),
        ("events of searches", done.events, None),
        ("objects of rejected candidates", done.objects, None),
        ("captures", done.captures, done.capture_bytes),
        ("blobs", done.blobs, done.blob_bytes),
        ("  that nothing named before", done.orphans, done.orphan_bytes),
        ("unfinished files", done.unfinished, done.unfinished_bytes),
        ("blobs that stay", None, done.blob_bytes_kept),
    )
    return fitted(
        (Column("removed" if apply else "would be removed", 20), Column("number", right=True),
         Column("bytes", right=True)),
        [(what, "" if number is None else f"{number:,}", "" if size is None else _size(size))
         for what, number, size in rows], width).table


def _size(size: int) -> str:
    from rich.filesize import decimal

    return decimal(size)  # as stats and verify tell sizes


def _days(text: str) -> float | None:
    return None if text == "never" else _number(text)


def _hours(text: str) -> float:
    return _number(text)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1e5:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number of that kind")
    return value


def _bytes(text: str) -> int:
    match = re.fullmatch(r"(\d{1,15})([KMGT]?)(?:i?B)?", text, re.ASCII)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a size, such as 500M or 20G")
    return int(match[1]) * _UNITS[match[2]]
