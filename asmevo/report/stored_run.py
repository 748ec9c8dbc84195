"""Everything that is stored of one search: run folder and registry, nothing computed anew."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import program
from asmevo.errors import AsmEvoError
from asmevo.isa.program import Program
from asmevo.registry.records import RunRecord
from asmevo.registry.registry import Registry
from asmevo.report import version_profile
from asmevo.report.comparison import find_results, load_result, overrides
from asmevo.report.search_state import Bounds, SearchState
from asmevo.report.stored_events import budget_of, stored_events
from asmevo.report.version_profile import VersionProfile
from asmevo.search.eventlog import NAME, read_log
from asmevo.search.events import AnyEvent, Started


class StoredRunError(AsmEvoError):
    """There is no such run, or it is no search."""


@dataclass
class StoredRun:
    """One search. ``result`` is what ``result.json`` says; ``missing`` names in sentences what the
    stores do not have.
    """

    result: Mapping[str, Any]
    state: SearchState
    folder: Path | None = None
    record: RunRecord | None = None
    config: str = ""
    overrides: tuple[str, ...] = ()
    original: Program | None = None
    winner: Program | None = None
    profiles: Mapping[str, VersionProfile] = field(default_factory=dict)
    again: Mapping[str, Any] | None = None
    missing: list[str] = field(default_factory=list)


def load_run(place: str, registry: Registry, runs: Path) -> StoredRun:
    """``place`` is a run folder, or the id of a run in ``registry`` whose folder, if it is still
    there, lies somewhere in ``runs``. Raises `StoredRunError`.
    """
    folder = Path(place).expanduser()
    if (folder / NAME).is_file() and not (folder / "result.json").is_file():
        return _killed(folder, registry)
    if folder.is_dir() or folder.name == "result.json":
        found = find_results(folder)
        if len(found) > 1:
            raise StoredRunError(f"'{place}' holds {len(found)} runs; name one of them")
        result = load_result(found[0])
        if result.get("run_id") is None and (found[0].parent / NAME).is_file():
            return _killed(found[0].parent, registry)
        if result.get("task") != "optimize":
            raise StoredRunError(f"'{place}' is a run of task={result.get('task')}, not a search")
        return from_folder(result, found[0].parent, registry)
    if "/" in place:
        raise StoredRunError(f"there is no run folder '{place}'")
    record = registry.run(place)
    if record.task != "optimize":
        raise StoredRunError(f"run '{place}' is of task={record.task}, not a search")
    for path in sorted(runs.rglob("result.json")) if runs.is_dir() else ():
        try:
            result = load_result(path)
        except AsmEvoError:
            continue
        if result.get("run_id") == place:
            return from_folder(result, path.parent, registry)
    return _loaded(None, None, record, registry)


def _killed(folder: Path, registry: Registry) -> StoredRun:
    """A run that left its events and no result."""
    first = next(iter(read_log(folder / NAME)), None)
    if not isinstance(first, Started):
        raise StoredRunError(f"'{folder}' holds neither a result nor the events of a search")
    return _loaded(None, folder, registry.run(first.run_id), registry)


def from_folder(result: Mapping[str, Any], folder: Path, registry: Registry) -> StoredRun:
    """The run that left ``result`` in ``folder``. Its registry is used where that is still there,
    else ``registry``."""
    own = result.get("registry")
    if own and Path(own) != registry.path and Path(own).is_dir():
        registry = Registry(own)
    record = None
    if result.get("run_id"):
        try:
            record = registry.run(str(result["run_id"]))
        except AsmEvoError:
            record = None
    return _loaded(result, folder, record, registry)


def _loaded(result: Mapping[str, Any] | None, folder: Path | None, record: RunRecord | None,
            registry: Registry) -> StoredRun:
    missing: list[str] = []
    if folder is None:
        missing.append("The run folder is gone: no profiles, no second timing.")
    elif result is None:
        missing.append("The run left no result: it was killed, or is still going on.")
    if record is None:
        missing.append("The registry does not know the run: no configuration, no toolchain.")
    config = _config(folder, record, registry, missing)
    state = SearchState.of(_events(folder, record, registry, missing))
    if folder is not None and (bounds := _bounds(folder)) is not None:
        state.bounds = bounds
    if result is None:
        assert record is not None
        result = _made_result(record, state, registry)
    run = StoredRun(result, state, folder, record, config,
                    () if folder is None else overrides(folder), missing=missing)
    symbol = str(result.get("symbol") or "")
    run.original = _program(result.get("original_sha256"), symbol, registry, missing)
    if result.get("replacement_sha256"):
        run.winner = _program(result["replacement_sha256"], symbol, registry, missing)
    if folder is not None:
        run.profiles = _profiles(folder, run, missing)
        run.again = _again(folder)
    return run


def _config(folder: Path | None, record: RunRecord | None, registry: Registry,
            missing: list[str]) -> str:
    if record is not None:
        try:
            return registry.load_text(record.config_sha256)
        except AsmEvoError as error:
            missing.append(f"The configuration cannot be read: {error}.")
    file = None if folder is None else folder / ".hydra" / "config.yaml"
    return file.read_text(encoding="utf-8") if file is not None and file.is_file() else ""


def _bounds(folder: Path) -> Bounds | None:
    """Those of the last sitting, whose folder this is."""
    file = folder / ".hydra" / "config.yaml"
    budget = budget_of(file.read_text(encoding="utf-8")) if file.is_file() else {}
    try:
        return None if not budget else Bounds(
            int(budget["attempts"]), float(budget["seconds"]), budget.get("tokens"),
            budget.get("cost"))
    except (KeyError, TypeError, ValueError):
        return None


def _events(folder: Path | None, record: RunRecord | None, registry: Registry,
            missing: list[str]) -> Iterable[AnyEvent]:
    """From the log of the folder, else from the registry."""
    log = None if folder is None else folder / NAME
    if log is not None and log.is_file():
        try:
            return read_log(log)
        except (AsmEvoError, OSError, ValueError) as error:
            missing.append(f"The log of events cannot be read: {error}.")
    if record is None:
        missing.append("There is no log of events: no lineage, no attempts.")
        return ()
    events = stored_events(registry, record)
    if not registry.search_events(record.id):
        missing.append(
            "The run is of a version without a log of events: what the registry knows of the "
            "candidates is shown. Repeats, faults and redirects are not in it.")
    return events


def _program(sha256: Any, symbol: str, registry: Registry, missing: list[str]) -> Program | None:
    if not sha256:
        return None
    try:
        return program(CodeObject.parse(registry.load_object(str(sha256))), symbol)
    except AsmEvoError as error:
        missing.append(f"Object {str(sha256)[:10]} cannot be shown: {error}.")
        return None


def _profiles(folder: Path, run: StoredRun, missing: list[str]) -> dict[str, VersionProfile]:
    """Those that fit the objects."""
    try:
        found = version_profile.read(folder)
    except version_profile.StoredProfileError as error:
        missing.append(f"The profiles cannot be shown: {error}.")
        return {}
    if not found:
        missing.append("The run left no profiles: no hot windows, no stalls in the listing.")
    for name, code, key in (
            (version_profile.ORIGINAL, run.original, "original_sha256"),
            (version_profile.WINNER, run.winner, "replacement_sha256")):
        profile = found.get(name)
        if profile is not None and (code is None or len(profile.stalls) != len(code)
                                    or profile.sha256 != run.result.get(key)):
            missing.append(f"The profile of the {name} is of another object.")
            del found[name]
    return found


def _again(folder: Path) -> Mapping[str, Any] | None:
    try:
        loaded = json.loads((folder / "measured_again.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return loaded if isinstance(loaded, dict) else None


def _made_result(record: RunRecord, state: SearchState, registry: Registry) -> dict[str, Any]:
    """What ``result.json`` would have said, as far as the registry knows it."""
    best = state.best
    symbol = next((candidate.kernel for candidate in registry.lineage(record.id)), None)
    return {
        "task": "optimize", "status": record.status.value, "error": None,
        "kernel": state.started.kernel if state.started else None,
        "symbol": symbol,
        "original_sha256": best and state.nodes[0].sha256,
        "replacement_sha256": best.sha256 if best and best.number else None,
        "speedup": best.speedup if best else None, "speedup_again": None,
        "timing_source": record.device_source, "device": record.device,
        "attempts": state.judged, "duplicates": 0, "commits": state.commits, "timings": [],
        "stopped": None, "run_id": record.id, "registry": str(registry.path), "folder": None,
        "wall_seconds": state.seconds, "counterexamples": {},
    }
