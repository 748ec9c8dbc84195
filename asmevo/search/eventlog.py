"""``events.jsonl``: the events of a search in its run folder, one JSON object a line."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from asmevo.search.events import AnyEvent, Committed, Ended, Started, from_json

NAME = "events.jsonl"


def read_log(path: Path) -> tuple[AnyEvent, ...]:
    """The events of a log. A torn last line, of a run that was killed, does not count.

    Raises `EventError` for any other line that is none, and `OSError`.
    """
    return _parsed(path.read_bytes())[0]


def _parsed(data: bytes) -> tuple[tuple[AnyEvent, ...], int]:
    """The events of complete lines, and how many bytes those are."""
    whole = data.rfind(b"\n") + 1
    events = tuple(from_json(json.loads(line)) for line in data[:whole].splitlines())
    return events, whole


class EventLog:
    """Appends events to a log; what it held when it was opened stays, but for a torn last line.

    ``past`` are the events that the log has to begin with: those of earlier sittings of a run. What
    of them it lacks is added. Every event is handed to the operating system at once, and is on disk
    with the next start, commit or end; the registry has each of them for certain.
    """

    def __init__(self, path: Path, past: Sequence[AnyEvent] = ()) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            known, whole = _parsed(path.read_bytes())
            if known != tuple(past[:len(known)]):
                # Another run's: a folder is used again.
                known, whole = (), 0
            os.ftruncate(self._descriptor, whole)
            self.write(past[len(known):])
        except BaseException:
            self.close()
            raise

    def write(self, events: Sequence[AnyEvent]) -> None:
        if not events:
            return
        lines = "".join(json.dumps(event.to_json(), allow_nan=False) + "\n" for event in events)
        view = memoryview(lines.encode())
        while view:
            view = view[os.write(self._descriptor, view):]
        if any(isinstance(event, Started | Committed | Ended) for event in events):
            os.fsync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()
