"""Inputs that exposed wrong candidates: kept in the registry, used by later runs of the kernel."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from asmevo.device.recorder import Recorder
from asmevo.dispatch.captured.replay import replay
from asmevo.dispatch.dispatch import Dispatch
from asmevo.errors import AsmEvoError
from asmevo.gates.baseline import Baseline
from asmevo.registry.records import CaptureReason
from asmevo.registry.registry import Registry

log = logging.getLogger(__name__)

_PREFIX = "counterexample-"


def known(registry: Registry, original_sha256: str, kernel: str) -> tuple[str, ...]:
    """The identities of a kernel's counterexamples, oldest first."""
    return tuple(record.sha256 for record in registry.captures(original_sha256, kernel)
                 if record.reason is CaptureReason.COUNTEREXAMPLE)


def joined(dispatches: Sequence[Dispatch], registry: Registry, wanted: Collection[str],
           original_sha256: str, kernel: str, metadata: Mapping[str, Any]) -> tuple[Dispatch, ...]:
    """The ``dispatches`` of an oracle, and behind them the ``wanted`` counterexamples.

    Those that the oracle has anyway are left out. The others are held out: a proposer should not
    fit a candidate to them, and they are no shapes to be timed. What they recorded of the original
    does not bind it: it may run on another device now.
    """
    if not wanted:
        return tuple(dispatches)
    present = {dispatch.sha256 for dispatch in dispatches}
    found = []
    for record in registry.captures(original_sha256, kernel):
        if record.sha256 in wanted and record.dispatch_sha256 not in present:
            dispatch = replay(registry.load_capture(record.sha256), metadata, held_out=True)
            found.append(replace(dispatch, name=f"{_PREFIX}{record.sha256[:12]}", recorded=None))
    return (*dispatches, *found)


def used(dispatches: Sequence[Dispatch]) -> list[str]:
    """The names of those that are counterexamples."""
    return [dispatch.name for dispatch in dispatches if dispatch.name.startswith(_PREFIX)]


class Keeper:
    """Keeps what exposes candidates of one search; ``kept`` and ``refused`` are dispatch names."""

    def __init__(self, registry: Registry, baseline: Baseline,
                 dispatches: Mapping[str, Dispatch]) -> None:
        """``dispatches`` are the baseline's by their SHA-256."""
        self.kept: list[str] = []
        self.refused: list[str] = []
        self._registry = registry
        kernel = baseline.code_object.kernel(baseline.kernel)
        self._recorder = Recorder(baseline.loaded, kernel.metadata, baseline.code_object.sha256,
                                  baseline.device.name)
        self._dispatches = dispatches
        self._seen = {
            record.dispatch_sha256
            for record in registry.captures(baseline.code_object.sha256, baseline.kernel)
            if record.reason is CaptureReason.COUNTEREXAMPLE}

    def keep(self, dispatch_sha256: str) -> None:
        """Keep a dispatch of the baseline, once.

        What cannot be kept costs the search nothing: it is named in ``refused``.
        """
        dispatch = self._dispatches.get(dispatch_sha256)
        if dispatch is None or dispatch_sha256 in self._seen:
            return
        self._seen.add(dispatch_sha256)
        if dispatch.name.startswith(_PREFIX):
            return
        try:
            capture = self._recorder.record(dispatch)
            identity = self._registry.record_counterexample(capture, dispatch_sha256)
        except AsmEvoError as error:
            log.warning("counterexample '%s' is not kept: %s", dispatch.name, error)
            identity = None
        (self.refused if identity is None else self.kept).append(dispatch.name)
