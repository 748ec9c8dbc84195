"""``proposals.jsonl``: what a run tried, in its order, so that it can be repeated.

A line is a JSON object. ``base`` is the SHA-256 of the object that the edits apply to; ``edits``,
``rule``, ``direction``, ``rationale``, ``assumption``, ``proposer`` and ``refusal`` are those of
the `Proposal`; ``sha256`` is what the candidate was built to, if it was. ``composed`` marks what no
proposer made: verified candidates put together, which a search does again by itself.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from asmevo.codeobject.assembly import Edit
from asmevo.propose.errors import ProposerError
from asmevo.propose.proposal import Direction, Proposal

NAME = "proposals.jsonl"
MOST_BYTES = 256 << 20
"""Of a recording that is read; one of a thousand attempts has about a megabyte."""

_TEXTS = ("rule", "rationale", "assumption", "proposer", "refusal")


@dataclass(frozen=True, slots=True)
class Recorded:
    """One attempt of a run: the object that was edited, how, and what was built."""

    base: str
    proposal: Proposal
    sha256: str | None = None
    composed: bool = False

    def to_json(self) -> dict[str, Any]:
        proposal = self.proposal
        return {
            "base": self.base,
            "sha256": self.sha256,
            "composed": self.composed,
            "direction": proposal.direction.value,
            **{name: getattr(proposal, name) for name in _TEXTS},
            "edits": [
                {"kernel": e.kernel, "start": e.start, "stop": e.stop, "lines": list(e.lines),
                 "reason": e.reason}
                for e in proposal.edits
            ],
        }


class Recording:
    """Writes a recording, one attempt at a time."""

    def __init__(self, path: Path) -> None:
        self._file: TextIO = path.open("w", encoding="utf-8")

    def add(self, recorded: Recorded) -> None:
        # Handed to the operating system at once: a killed run can be repeated up to there.
        self._file.write(json.dumps(recorded.to_json()) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def read_recording(path: Path, most_bytes: int = MOST_BYTES) -> Iterator[Recorded]:
    """The attempts of a recording in their order, read line by line.

    A last line without its end, as a killed run leaves one, is left out. Raises `ProposerError`
    that names the line which is none of a recording, and for anything but a regular file of at
    most ``most_bytes``.
    """
    try:
        # Without waiting: opening a pipe would, for somebody who writes.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ProposerError(f"'{path}' is no recording: it is no regular file")
            yield from _attempts(file, path, most_bytes)
    except OSError as error:
        raise ProposerError(f"cannot read the recording '{path}': {error.strerror}") from error
    except ValueError as error:  # a NUL in the path
        raise ProposerError(f"{str(path)!r} is no path of a recording") from error


def _attempts(file: BinaryIO, path: Path, most_bytes: int) -> Iterator[Recorded]:
    left, number = most_bytes, 0
    while line := file.readline(left + 1):
        number += 1
        left -= len(line)
        # A file that grows while it is read is bounded as well.
        if left < 0:
            raise ProposerError(f"the recording '{path}' has more than {most_bytes} bytes "
                                "(proposer.most_bytes)")
        if not line.endswith(b"\n"):
            return
        try:
            recorded = _recorded(json.loads(line.decode()))
        except UnicodeDecodeError as error:
            raise ProposerError(f"'{path}' is no recording: it is not UTF-8 text") from error
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ProposerError(
                f"line {number} of '{path}' is no attempt of a recorded run ({_why(error)})"
            ) from error
        yield recorded


def _recorded(record: Mapping[str, Any]) -> Recorded:
    edits = tuple(
        Edit(_typed(e, "kernel", str), _typed(e, "start", int), _typed(e, "stop", int),
             _lines(e), _typed(e, "reason", str))
        for e in _typed(record, "edits", list)
    )
    texts = {name: _typed(record, name, str) for name in _TEXTS}
    return Recorded(
        _typed(record, "base", str),
        Proposal(edits=edits, direction=Direction(_typed(record, "direction", str)), **texts),
        None if record["sha256"] is None else _typed(record, "sha256", str),
        bool(record["composed"]),
    )


def _lines(edit: Mapping[str, Any]) -> tuple[str, ...]:
    lines = _typed(edit, "lines", list)
    if not all(isinstance(line, str) for line in lines):
        raise TypeError("'lines' holds something other than text")
    return tuple(lines)


def _typed(record: Mapping[str, Any], name: str, kind: type) -> Any:
    value = record[name]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"'{name}' is no {kind.__name__}")
    return value


def _why(error: Exception) -> str:
    return f"it lacks {error}" if isinstance(error, KeyError) else str(error)
