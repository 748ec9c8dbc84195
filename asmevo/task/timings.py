"""What ``result.json`` says of each timed dispatch of a search."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from asmevo.dispatch.dispatch import Dispatch
from asmevo.registry.registry import Registry

MEASURED_AGAIN = "measured_again.json"


def dispatch_timings(registry: Registry, run_id: str, dispatches: Sequence[Dispatch],
                     winner: str | None, folder: Path) -> list[dict[str, Any]]:
    """Original and winner (its SHA-256) on each timed dispatch, in the search and again.

    Figures that are not known are ``None``: without a winner only the original was timed.
    """
    names = {dispatch.sha256: dispatch.name for dispatch in dispatches}
    again = _again(folder) if winner is not None else {}
    found = {} if winner is None else _winner(registry, run_id, winner)
    entries: dict[str, dict[str, Any]] = {}
    # Each sitting of a resumed run timed the original.
    for timing in registry.baseline(run_id):
        name = names.get(timing.dispatch, timing.dispatch)
        replacement = found.get(timing.dispatch)
        second = again.get(name, {})
        entries.setdefault(timing.dispatch, {
            "dispatch": name, "dispatch_sha256": timing.dispatch,
            "original_us": timing.median_us, "replacement_us": replacement,
            "speedup": None if not replacement else timing.median_us / replacement,
            "again_original_us": second.get("original_us"),
            "again_us": second.get("candidate_us"), "again_speedup": second.get("speedup"),
        })
    return list(entries.values())


def _winner(registry: Registry, run_id: str, sha256: str) -> dict[str, float]:
    """Medians by dispatch."""
    for replacement in registry.replacements(object_sha256=sha256):
        if replacement.run_id == run_id:
            candidate = registry.candidate(replacement.candidate_id)
            return {timing.dispatch: timing.median_us for timing in candidate.timings}
    return {}


def _again(folder: Path) -> Mapping[str, Mapping[str, Any]]:
    """Figures of the second timing by name of dispatch; none when there was none."""
    try:
        evidence = json.loads((folder / MEASURED_AGAIN).read_text(encoding="utf-8"))["evidence"]
    except FileNotFoundError:
        return {}
    return {entry["dispatch"]: entry for entry in evidence.get("dispatches", ())}
