"""Documents in which a task keeps a table, between markers of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from asmevo.durable import write_atomically
from asmevo.errors import AsmEvoError
from asmevo.failure import printable


class MarkerError(AsmEvoError):
    """A document has no place for the table."""


def markers(name: str) -> tuple[str, str]:
    """What stands before and behind the table called ``name``."""
    return f"<!-- {name}:begin -->", f"<!-- {name}:end -->"


def checked_document(path: Path, name: str) -> str:
    """The text of a document that has the markers once each and in order, else `MarkerError`."""
    document = path.read_bytes().decode("utf-8", "surrogateescape")
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
