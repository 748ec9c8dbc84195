"""Stored assembly text as functions: enough of it to compare two versions.

The text is what recovery writes, or a candidate's edit of it: one statement a line, instructions
and data behind a tab, labels in front of the line's first column.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from asmevo.registry.errors import RegistryError

_MOST_BYTES = 1 << 28
_LABEL = re.compile(r"([A-Za-z_.$][\w.$@]*):$")
_FUNCTION = re.compile(r"\t\.type\s+(\S+?)\s*,\s*@function$")
_KERNEL = re.compile(r"\t\.amdhsa_kernel\s+(\S+)$")
_DIRECTIVE = re.compile(r"\t\.amdhsa_(\w+)\s+(.*)$")
_DATA = (".long", ".quad", ".byte", ".short")
_WORD = re.compile(r"[A-Za-z_.$][\w.$@]*")


@dataclass(slots=True)
class Function:
    """A kernel or device function: its instructions without labels, and the label in front of
    each. ``directives`` are the settings of a kernel's descriptor by name."""

    symbol: str
    lines: list[str] = field(default_factory=list)
    labels: dict[int, str] = field(default_factory=dict)
    directives: dict[str, str] = field(default_factory=dict)


def functions(text: str) -> Mapping[str, Function]:
    """The functions of a text by symbol, in order. Raises `RegistryError`."""
    if len(text) > _MOST_BYTES:
        raise RegistryError("the assembly is too long to be compared")
    rows = text.split("\n")
    found = {match[1]: Function(match[1]) for row in rows if (match := _FUNCTION.match(row))}
    at: Function | None = None
    kernel: Function | None = None
    for row in rows:
        if match := _LABEL.match(row):
            at = found.get(match[1], at)
            if at is not None and match[1] != at.symbol:
                at.labels[len(at.lines)] = match[1]
        elif not row.startswith("\t"):
            continue
        elif match := _KERNEL.match(row):
            kernel = found.get(match[1])
        elif row.startswith("\t.end_amdhsa_kernel"):
            kernel = None
        elif (match := _DIRECTIVE.match(row)) and kernel is not None:
            kernel.directives[match[1]] = match[2].strip()
        elif row.startswith(("\t.section", "\t.text", "\t.size")):
            at = None
        elif at is not None:
            statement = row.strip()
            if not statement.startswith(".") or statement.startswith(_DATA):
                at.lines.append(statement)
    return found


def comparable(old: Function, new: Function) -> tuple[list[str], list[str]]:
    """The lines of both with labels that mean the same.

    An edit keeps the names of labels, so that they say more than their numbers; those of a text
    that was recovered by itself come from addresses, and only their order means anything.
    """
    names = set(old.labels.values()), set(new.labels.values())
    if 2 * len(names[0] & names[1]) >= len(names[0] | names[1]):
        return old.lines, new.lines
    return _numbered(old), _numbered(new)


def _numbered(function: Function) -> list[str]:
    numbers = {name: f"L{number}" for number, name in enumerate(function.labels.values())}
    return [_WORD.sub(lambda word: numbers.get(word[0], word[0]), line)
            for line in function.lines]
