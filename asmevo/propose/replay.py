"""Proposes what a recorded run proposed, so that it can be repeated without what it took."""

from __future__ import annotations

from pathlib import Path

from asmevo.propose.errors import ProposerError
from asmevo.propose.proposal import Evidence, Proposals
from asmevo.propose.recording import NAME, Recorded, read_recording


class ReplayProposer:
    """Yields the recorded proposals for the evidence's base, in the order they were tried.

    ``transcript`` is the ``proposals.jsonl`` of a run, or its run folder. With the configuration of
    that run otherwise, on the emulator, the same lineage comes out. Nothing is spent. Raises
    `ProposerError` when there is no transcript, it cannot be read, or a base occurs that the
    recorded run never had.
    """

    def __init__(self, transcript: str | None) -> None:
        if not transcript:
            raise ProposerError(
                "proposer=replay needs proposer.transcript=<the folder of a run>")
        path = Path(transcript).expanduser()
        self._path = path / NAME if path.is_dir() else path
        self._by_base: dict[str, list[Recorded]] | None = None
        self._built: set[str] = set()

    def prepare(self, folder: Path) -> None:
        """Read the recording."""
        self._read()

    def propose(self, evidence: Evidence) -> Proposals:
        """Yield what was tried on this base along the wanted directions."""
        by_base = self._read()
        if evidence.base not in by_base and evidence.base not in self._built:
            raise ProposerError(
                f"'{self._path}' records no attempt on the object {evidence.base}: it is of another"
                " kernel, or its candidates were built by another toolchain")
        for recorded in by_base.get(evidence.base, ()):
            wanted = evidence.directions
            if not wanted or recorded.proposal.direction in wanted:
                yield recorded.proposal

    def _read(self) -> dict[str, list[Recorded]]:
        # Read when first used: making the component of a configuration touches no file.
        if self._by_base is None:
            self._by_base = {}
            for recorded in read_recording(self._path):
                attempts = self._by_base.setdefault(recorded.base, [])
                if not recorded.composed:
                    attempts.append(recorded)
                if recorded.sha256 is not None:
                    self._built.add(recorded.sha256)
            if not self._by_base:
                raise ProposerError(f"'{self._path}' records no attempt")
        return self._by_base
