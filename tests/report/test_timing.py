"""At 80 columns the table of a validation has room for its figures; reasons stand below it."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from asmevo.report.details import details_shown
from asmevo.report.result import Result, Status
from asmevo.report.timing import tables, unanswered

_GROUP = "microbenchmarks of parameters"
_NOTE = "the launch would take more than 60 s of host time, which task.parts.tuned.seconds allows"


def row(name: str, modelled: float | None) -> dict[str, Any]:
    return {"group": _GROUP, "name": name, "expected": 12.5, "modelled": modelled,
            "unit": "us", "error": None if modelled is None else 0.01, "within": True,
            "basis": "emergent", "source": "AITER", "confidence": "M",
            "note": _NOTE if modelled is None else ""}


def details(count: int) -> dict[str, Any]:
    return {"targets": [], "groups": [{
        "group": _GROUP, "rows": count, "answered": 1, "median": 0.1,
        "p90": 0.2, "worst": 0.3, "overall": 0.91, "within_kernel": 0.9, "kernels": 12,
        "within_shape": 0.8, "shapes": 11}],
        "rows": [row("gemm 1", 12.6), *(row(f"gemm {n}", None) for n in range(2, count + 1))]}


def shown(content: dict[str, Any], width: int) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None)
    for part in details_shown(Result("validate_timing", Status.MET, details=content)):
        console.print(part)
    return out.getvalue()


def test_reasons_stand_below_the_table() -> None:
    text = shown(details(7), 80)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.startswith("gemm ") and " us " in line for line in lines) == 7
    for line in lines:
        if line.startswith("gemm 2 "):
            assert line.split()[2:4] == ["12.5", "-"]
    together = " ".join(text.split())
    assert together.count(_NOTE) == 1
    assert "gemm 2, gemm 3, gemm 4, gemm 5 and 2 more" in together
    assert "1 of 7" in text
    assert any(line.startswith("microbenchmarks") and "1 of 7" in line for line in lines)


def test_documents_keep_the_note_in_its_column() -> None:
    (*_, (_, headings, rows)) = tables(details(2))
    assert headings.split(",")[-1] == "note"
    assert [cells[-1] for cells in rows] == ["", _NOTE]
    assert list(unanswered(details(1))) == []
