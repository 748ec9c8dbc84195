"""What a search leaves to be read: profiles of original and winner, and ``report.html``."""

from __future__ import annotations

import logging
from dataclasses import asdict
from pathlib import Path

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import program
from asmevo.durable import write_atomically
from asmevo.errors import AsmEvoError
from asmevo.report import version_profile
from asmevo.report.result import Result
from asmevo.report.search_page import FILE, search_page
from asmevo.report.stored_run import StoredRun, from_folder
from asmevo.report.version_profile import ORIGINAL, WINNER, VersionProfile
from asmevo.task.session import Session

log = logging.getLogger(__name__)


def leave_report(session: Session, result: Result, winner: bytes | None) -> Path | None:
    """Profiles and the page in the run folder; ``None`` and a warning where that fails.

    ``winner`` are the best node's bytes. A search is worth more than the page about it: nothing
    that goes wrong here ends the run.
    """
    try:
        version_profile.write(session.folder, dict(_profiles(session, winner)))
    except (AsmEvoError, OSError) as error:
        log.warning("there are no profiles for the report: %s", error)
    try:
        run = from_folder(asdict(result), session.folder, session.registry)
        return write_page(run, session.folder)
    except Exception as error:
        log.warning("the report was not written: %s; python -m asmevo task=report run=%s tries "
                    "again", error, session.folder, exc_info=not isinstance(error, AsmEvoError))
        return None


def write_page(run: StoredRun, folder: Path) -> Path:
    """Write ``report.html`` into ``folder``, whole or not at all."""
    path = folder / FILE
    write_atomically(path, search_page(run).encode("utf-8", "replace"))
    return path


def _profiles(session: Session, winner: bytes | None) -> list[tuple[str, VersionProfile]]:
    """Original and winner on the visible dispatch that takes the original longest."""
    baseline = session.baseline
    index = max(baseline.timed_dispatches, key=baseline.instructions, default=None)
    if index is None:
        return []
    found = []
    for name, data in ((ORIGINAL, baseline.code_object.data), (WINNER, winner)):
        if data is None:
            continue
        code_object = CodeObject.parse(data)
        loaded = baseline.device.load(code_object, baseline.kernel)
        profile = baseline.profile(loaded, index)
        code = program(code_object, baseline.kernel)
        windows = session.windows.find(code, [profile])
        found.append((name, VersionProfile.of(code_object.sha256, profile, windows)))
    return found
