"""A code object as text that a person can edit."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, fields
from typing import Any

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.edited import header
from asmevo.codeobject.roundtrip import RoundTripReport, round_trip
from asmevo.durable import write_atomically
from asmevo.report.result import Result, Status
from asmevo.task.output import write_output
from asmevo.task.session import Session
from asmevo.task.source import named, stem


@dataclass(frozen=True)
class Recover:
    """Writes ``<name>.s`` and the round-trip report ``roundtrip.json``; ``output`` gets a copy.

    The text is written even when the object does not come back identical (the status says so), for
    reading; it cannot be rebuilt then.
    """

    def run(self, session: Session) -> Result:
        started = time.monotonic()
        source = named(session)
        code_object = CodeObject.parse(source.read())
        report = round_trip(code_object, session.toolchain)
        text = header(source.describe(), code_object.sha256) + report.assembly.text()
        assembly = session.folder / f"{stem(source)}.s"
        written = session.folder / "roundtrip.json"
        facts = as_facts(report)
        write_atomically(assembly, text.encode())
        write_atomically(written, (json.dumps(facts, indent=2) + "\n").encode())
        output = session.config.output
        if output is not None:
            write_output(output, text.encode(), [session.config.source])
        kernels = [kernel.symbol for kernel in code_object.kernels]
        return Result(
            task="recover",
            status=Status.IDENTICAL if report.identical else Status.DIFFERENT,
            symbol=kernels[0] if len(kernels) == 1 else None,
            original_sha256=code_object.sha256,
            folder=str(session.folder),
            wall_seconds=time.monotonic() - started,
            details={
                "source": source.describe(),
                "kernels": kernels,
                "assembly": str(assembly),
                "report": str(written),
                "output": output,
                "round_trip": facts,
            },
        )


def as_facts(report: RoundTripReport) -> dict[str, Any]:
    """A round-trip report without the text."""
    values = {f.name: getattr(report, f.name) for f in fields(report) if f.name != "assembly"}
    return {**values, "masks": list(report.masks), "versions": dict(report.versions)}
