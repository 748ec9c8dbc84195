"""``proposals.jsonl``: what a run tried, in its order, so that it can be repeated.

A line is a JSON object. ``base`` is the SHA-256 of the object that the edits apply to; ``edits``,
``rule``, ``direction``, ``rationale``, ``assumption``, ``proposer`` and ``refusal`` are those of
the `Proposal`; ``sha256`` is what the candidate was built to, if it was. ``composed`` marks what no
proposer made: verified candidates put together, which a search does again by itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from asmevo.codeobject.assembly import Edit
from asmevo.propose.errors import ProposerError
from asmevo.propose.proposal import Direction, Proposal

NAME = "proposals.jsonl"
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


def read_recording(path: Path) -> Iterator[Recorded]:
    """The attempts of a recording in their order.

    A last line without its end, as a killed run leaves one, is left out. Raises `ProposerError`
    that names the line which is none of a recording.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ProposerError(f"cannot read the recording '{path}': {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ProposerError(f"'{path}' is no recording: it is not UTF-8 text") from error
    lines = text.split("\n")
    for number, line in enumerate(lines[:-1], start=1):
        try:
            yield _recorded(json.loads(line))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ProposerError(
                f"line {number} of '{path}' is no attempt of a recorded run ({_why(error)})"
            ) from error


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
