"""A page that says how near every kernel comes to its reference, from the results of a sweep.

``python -m asmevo.report.proof SWEEP_FOLDER`` prints the table in Markdown.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from asmevo.errors import AsmEvoError

_HEADER = (
    "| kernel | dispatches | buffer | elements | max abs | max rel | cosine | unequal | status |\n"
    "|---|--:|---|--:|--:|--:|--:|--:|---|")


class ProofError(AsmEvoError):
    """A folder that holds no results."""


def results(folder: Path) -> list[dict[str, Any]]:
    """The results of ``task=run`` anywhere under ``folder``, by kernel name.

    Raises `ProofError` when there is none, or one that cannot be read.
    """
    found = []
    for path in sorted(folder.rglob("result.json")):
        try:
            result = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise ProofError(f"cannot read '{path}': {error}") from None
        if isinstance(result, dict) and result.get("task") == "run":
            found.append(result)
    if not found:
        raise ProofError(f"there is no result.json of task=run under '{folder}'")
    return sorted(found, key=lambda r: str(r.get("kernel")))


def table(found: Iterable[Mapping[str, Any]]) -> str:
    """One row for each buffer that a kernel's reference knows: the worst over its dispatches."""
    return "\n".join([_HEADER, *(row for result in found for row in _rows(result))])


def _rows(result: Mapping[str, Any]) -> Iterator[str]:
    if not result["details"]:
        yield f"| {result['kernel']} | | | | | | | | {result['status']}: {result['error']} |"
        return
    launches = result["details"]["launches"]
    compared: dict[str, list[Mapping[str, Any]]] = {}
    elements: dict[str, str] = {}
    for launch in launches:
        for buffer in launch["buffers"]:
            if buffer["accuracy"] is not None:
                compared.setdefault(buffer["name"], []).append(buffer["accuracy"])
                elements[buffer["name"]] = buffer["element"]
    name, count, status = result["kernel"], str(len(launches)), result["status"]
    for buffer_name, accuracies in compared.items():
        total = sum(a["elements"] for a in accuracies)
        yield (
            f"| {name} | {count} | {buffer_name} ({elements[buffer_name]}) | {total} "
            f"| {max(a['max_abs'] for a in accuracies):.2g} "
            f"| {max(a['max_rel'] for a in accuracies):.2g} "
            f"| {min(a['cosine'] for a in accuracies):.7f} "
            f"| {sum(a['unequal'] for a in accuracies)} | {status} |")
        name = count = status = ""


def main(arguments: Sequence[str]) -> int:
    """Print the table of one folder."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m asmevo.report.proof SWEEP_FOLDER\n")
        return 2
    try:
        found = results(Path(arguments[0]))
    except ProofError as error:
        sys.stderr.write(f"asmevo: {error}\n")
        return 2
    sys.stdout.write(table(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
