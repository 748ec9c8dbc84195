"""Proposes what a recorded run proposed, so that it can be repeated without what it took."""

from __future__ import annotations

import logging
from pathlib import Path

from asmevo.propose.errors import ProposerError
from asmevo.propose.proposal import Evidence, Proposals
from asmevo.propose.recording import MOST_BYTES, NAME, Recorded, read_recording

log = logging.getLogger(__name__)


class ReplayProposer:
    """Yields the recorded proposals for the evidence's base, in the order they were tried.

    ``transcript`` is the ``proposals.jsonl`` of a run, or its run folder. With the configuration of
    that run otherwise, on the emulator, the same lineage comes out. Nothing is spent. On a
    candidate that is built to something else than was recorded nothing is proposed, with a warning.
    Raises `ProposerError` when there is no transcript, it cannot be read, or it is of another
    kernel.
    """

    def __init__(self, transcript: str | None, most_bytes: int = MOST_BYTES) -> None:
        if not transcript:
            raise ProposerError(
                "proposer=replay needs proposer.transcript=<the folder of a run>")
        if isinstance(most_bytes, bool) or not isinstance(most_bytes, int) or most_bytes < 1:
            raise ProposerError(
                f"proposer.most_bytes must be a whole number above 0, not {most_bytes!r}")
        self._most_bytes = most_bytes
        path = Path(transcript).expanduser()
        self._path = path / NAME if path.is_dir() else path
        self._by_base: dict[str, list[Recorded]] | None = None
        self._built: set[str] = set()
        self._warned: set[str] = set()

    def prepare(self, folder: Path) -> None:
        """Read the recording."""
        self._read()

    def propose(self, evidence: Evidence) -> Proposals:
        """Yield what was tried on this base along the wanted directions."""
        by_base = self._read()
        if evidence.base not in by_base and evidence.base not in self._built:
            if evidence.original in ("", evidence.base):
                raise ProposerError(f"'{self._path}' records no attempt on the object "
                                    f"{evidence.base}: it is of another kernel")
            if evidence.base not in self._warned:
                self._warned.add(evidence.base)
                log.warning(
                    "a candidate is built to %s, which '%s' does not have: another toolchain made "
                    "its candidates, or it was changed; nothing is replayed on that one",
                    evidence.base, self._path)
        for recorded in by_base.get(evidence.base, ()):
            wanted = evidence.directions
            if not wanted or recorded.proposal.direction in wanted:
                yield recorded.proposal

    def _read(self) -> dict[str, list[Recorded]]:
        # Read when first used: making the component of a configuration touches no file.
        if self._by_base is None:
            by_base: dict[str, list[Recorded]] = {}
            for recorded in read_recording(self._path, self._most_bytes):
                attempts = by_base.setdefault(recorded.base, [])
                if not recorded.composed:
                    attempts.append(recorded)
                if recorded.sha256 is not None:
                    self._built.add(recorded.sha256)
            if not by_base:
                raise ProposerError(f"'{self._path}' records no attempt")
            self._by_base = by_base
        return self._by_base
