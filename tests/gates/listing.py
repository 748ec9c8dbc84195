"""Programs as tests write them."""

from __future__ import annotations

from asmevo.isa.program import Program


def written(text: str) -> Program:
    rows: list[tuple[int, int, str]] = []
    labels: dict[int, str] = {}
    for line in (line.strip() for line in text.strip().splitlines()):
        if line.endswith(":"):
            labels[4 * len(rows)] = line[:-1]
        else:
            rows.append((4 * len(rows), 4, line))
    return Program.from_disassembly(rows, labels)
