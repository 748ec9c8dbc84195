"""Everything that was said to a model and by it, as lines of JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


class Transcript:
    """Appends events to a file; without a path it forgets them.

    Several worker processes may append to one file: each event is one write. ``call`` numbers the
    calls of ``propose`` in a process; together with ``worker`` (its process id) it tells
    conversations apart. There is no key in it: headers are not recorded.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.call = 0

    def add(self, event: str, **facts: Any) -> None:
        if self.path is None:
            return
        record: Mapping[str, Any] = {
            "time": datetime.now(UTC).isoformat(), "worker": os.getpid(), "call": self.call,
            "event": event, **facts}
        data = (json.dumps(record, ensure_ascii=True) + "\n").encode()
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            while data:
                data = data[os.write(descriptor, data):]
        finally:
            os.close(descriptor)
