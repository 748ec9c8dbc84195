"""The table of a corpus run: for a terminal, for a file, and in the README."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from asmevo.failure import printable
from asmevo.report.marked import markdown_line

MARKER = "roundtrip"

_HEADINGS = ("corpus", "architecture", "folder", "objects", "identical", "exceptions")
_FIRST_NUMBER = 3

# So many folders of one object each side by side, as a cache has them, become one row.
_MANY = 4

Folder = Mapping[str, object]


def folder_table(folders: Sequence[Folder]) -> Table:
    """Objects by corpus, architecture and folder; without the corpus when there is only one."""
    first = 0 if len({f["corpus"] for f in folders}) > 1 else 1
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for number, heading in enumerate(_HEADINGS):
        if number >= first:
            table.add_column(heading, justify="right" if number >= _FIRST_NUMBER else "left",
                             overflow="fold")
    for row in _rows(folders):
        cells = row[:-3] if first == 0 else ((row[1] or row[0]), *row[2:-3])
        table.add_row(*(Text(printable(cell)) for cell in (*cells, *row[-3:])))
    return table


def markdown(folders: Sequence[Folder], exceptions: Sequence[Mapping[str, object]],
             versions: Mapping[str, str]) -> str:
    """The table, every reason for an exception with its count, and the tools, as Markdown."""
    rule = ["---" if n < _FIRST_NUMBER else "---:" for n in range(len(_HEADINGS))]
    lines = [markdown_line(row) for row in (_HEADINGS, rule, *_rows(folders))]
    lines.append("")
    if exceptions:
        lines += ["What does not round-trip:", ""]
        lines += [markdown_line(row) for row in (
            ("reason", "architecture", "objects", "for example"), ("---", "---", "---:", "---"))]
        lines += [markdown_line((*row, f"`{name}`")) for *row, name in reasons(exceptions)]
    else:
        lines.append("Every object comes back byte for byte.")
    lines += ["", "Made with " + "; ".join(f"{k} {v}" for k, v in sorted(versions.items())) + "."]
    return "\n".join(lines) + "\n"


def reasons(exceptions: Sequence[Mapping[str, object]]) -> list[tuple[str, str, str, str]]:
    """Reason, architecture, number of objects and one of their names; most objects first."""
    groups: dict[tuple[str, str], list[str]] = {}
    for exception in exceptions:
        key = (str(exception["reason"]), str(exception["architecture"] or "unknown"))
        groups.setdefault(key, []).append(str(exception["name"]))
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return [(reason, architecture, f"{len(names):,}", names[0])
            for (reason, architecture), names in ordered]


def _rows(folders: Sequence[Folder]) -> list[tuple[str, ...]]:
    rows = [
        (str(f["corpus"]), str(f["architecture"] or "unknown"), str(f["folder"] or "."),
         *_counts(_number(f["total"]), _number(f["identical"])))
        for f in _collapsed(folders)
    ]
    total = sum(_number(f["total"]) for f in folders)
    same = sum(_number(f["identical"]) for f in folders)
    return [*rows, ("all", "", "", *_counts(total, same))]


def _collapsed(folders: Sequence[Folder]) -> list[Folder]:
    """Folders in order, with many of one object each in the same parent as ``parent/*``."""
    single: dict[tuple[object, object, str], list[Folder]] = {}
    for folder in folders:
        if folder["total"] == 1 and folder["folder"]:
            single.setdefault(_siblings(folder), []).append(folder)
    rows: list[Folder] = []
    for folder in folders:
        siblings = single.get(_siblings(folder), []) if folder["total"] == 1 else []
        if len(siblings) < _MANY:
            rows.append(folder)
        elif folder is siblings[0]:
            parent = _siblings(folder)[2]
            rows.append({
                **folder, "folder": f"{parent}/*" if parent else "*", "total": len(siblings),
                "identical": sum(_number(s["identical"]) for s in siblings)})
    return rows


def _siblings(folder: Folder) -> tuple[object, object, str]:
    return folder["corpus"], folder["architecture"], str(folder["folder"]).rpartition("/")[0]


def _counts(total: int, identical: int) -> tuple[str, str, str]:
    return f"{total:,}", f"{identical:,}", f"{total - identical:,}"


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value
