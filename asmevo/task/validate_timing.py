"""The cycle model against figures that others measured on hardware."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from asmevo.device.emulator.emulator import Emulator
from asmevo.durable import write_atomically
from asmevo.report.marked import checked_document, write_between_markers
from asmevo.report.result import Result, Status
from asmevo.report.timing import MARKER, markdown
from asmevo.task.session import ConfigError, Session
from asmevo.validation.row import ValidationRow
from asmevo.validation.section import Equipment, Section
from asmevo.validation.statistics import summaries
from asmevo.validation.targets import Targets, verdicts

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ValidateTiming:
    """Runs the named ``sections`` of ``parts`` and judges their rows by ``targets``.

    Leaves ``rows.jsonl`` (each row as it is made) and ``table.md`` in the run folder, and the table
    in the document called ``readme``, between its markers.
    """

    sections: Sequence[str]
    targets: Mapping[str, float]
    parts: Mapping[str, Section]

    def run(self, session: Session) -> Result:
        started = time.monotonic()
        device = session.device
        if not isinstance(device, Emulator):
            raise ConfigError("task=validate_timing is about the cycle model of an emulator, "
                              f"which '{device.name}' is not")
        chosen, targets = self._chosen(), self._targets()
        readme = None if session.config.readme is None else Path(session.config.readme)
        if readme is not None:
            checked_document(readme, MARKER)

        equipment = Equipment(device, session.toolchain)
        rows: list[ValidationRow] = []
        with (session.folder / "rows.jsonl").open("w", encoding="utf-8") as sink:
            for name, section in chosen.items():
                log.info("section %s", name)
                for row in section.rows(equipment):
                    rows.append(row)
                    sink.write(json.dumps(row.to_dict()) + "\n")
                    sink.flush()
        if not rows:
            raise ConfigError("the sections of task.sections have no row for this device")
        statistics = summaries(rows)
        judged = list(verdicts(rows, statistics, targets))
        details: dict[str, Any] = {
            "sections": list(chosen),
            "targets": [asdict(v) for v in judged],
            "groups": [asdict(s) for s in statistics],
            "rows": [row.to_dict() for row in rows],
            "table": str(session.folder / "table.md"),
        }
        text = markdown(details, device.name)
        write_atomically(session.folder / "table.md", text.encode())
        if readme is not None:
            write_between_markers(readme, MARKER, text)
        return Result(
            task="validate_timing",
            status=Status.MISSED if any(v.met is False for v in judged) else Status.MET,
            timing_source=device.source.value,
            device=device.name,
            folder=str(session.folder),
            wall_seconds=time.monotonic() - started,
            details=details,
        )

    def _targets(self) -> Targets:
        known = {field.name for field in fields(Targets)}
        if wrong := sorted(known ^ set(self.targets)):
            raise ConfigError(f"task.targets must have {' and '.join(sorted(known))}, which "
                              f"'{wrong[0]}' is {'missing from' if wrong[0] in known else 'not'}")
        return Targets(**self.targets)

    def _chosen(self) -> dict[str, Section]:
        unknown = [name for name in self.sections if name not in self.parts]
        if not self.sections:
            raise ConfigError(f"task.sections is empty: it may name {', '.join(self.parts)}")
        if unknown:
            raise ConfigError(f"task.sections names '{unknown[0]}', not some of "
                              f"{', '.join(self.parts)}")
        chosen = {name: self.parts[name] for name in self.sections}
        for name, section in chosen.items():
            if not isinstance(section, Section):
                raise ConfigError(f"task.parts.{name} is not a section of a validation")
        return chosen
