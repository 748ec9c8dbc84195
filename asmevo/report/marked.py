"""Documents in which a task keeps a table, between markers of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from asmevo.durable import write_atomically
from asmevo.errors import AsmEvoError
from asmevo.failure import printable


class MarkerError(AsmEvoError):
    """A document has no place for the table, or is none."""


def markers(name: str) -> tuple[str, str]:
    """What stands before and behind the table called ``name``."""
    return f"<!-- {name}:begin -->", f"<!-- {name}:end -->"


def checked_document(path: Path, name: str) -> str:
    """The text of a document that has the markers once each and in order, else `MarkerError`.

    Also raised, as a sentence about ``readme=``, where it cannot be read or may not be written: a
    task asks before it works for hours.
    """
    try:
        document = path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise MarkerError(f"cannot read readme='{path}': {error.strerror}") from error
    if not os.access(path, os.W_OK):
        raise MarkerError(f"readme='{path}' is read-only")
    begin, end = markers(name)
    if document.count(begin) != 1 or document.count(end) != 1 or (
            document.index(begin) > document.index(end)):
        raise MarkerError(f"'{path}' does not have '{begin}' and '{end}' once each, in this order")
    return document


def write_between_markers(path: Path, name: str, text: str) -> None:
    """Replace what stands between the markers of ``name`` in a document, and nothing else."""
    document = checked_document(path, name)
    begin, end = markers(name)
    head, _, rest = document.partition(begin)
    _, _, tail = rest.partition(end)
    write_atomically(path, f"{head}{begin}\n{text}{end}{tail}".encode("utf-8", "surrogateescape"))


def markdown_line(cells: Sequence[str]) -> str:
    """One line of a Markdown table. Names and reasons may come from hostile files."""
    safe = (printable(c).replace("|", "\\|").replace("<", "&lt;") for c in cells)
    return "| " + " | ".join(safe) + " |"
