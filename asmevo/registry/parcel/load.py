"""Taking replacements and their evidence into a registry, from a file or from another registry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, cast

from asmevo.registry.audit.stream import is_intact
from asmevo.registry.database.models import Table
from asmevo.registry.errors import RegistryError, StatementError
from asmevo.registry.parcel.errors import ParcelError, ParcelFault
from asmevo.registry.parcel.export import staged
from asmevo.registry.parcel.format import ParcelReader
from asmevo.registry.parcel.gather import Selection
from asmevo.registry.parcel.merge import merge
from asmevo.registry.parcel.stage import Stage, new_stage
from asmevo.registry.signing.statement import Blobs, check_statements

if TYPE_CHECKING:
    from asmevo.registry.registry import Registry
    from asmevo.registry.signing.trust import TrustList

MOST_BYTES = 64 << 30
"""Bytes of all blobs of a bundle, uncompressed, unless more are allowed."""


@dataclass(frozen=True, slots=True)
class Received:
    """What came, and what of it was new; ``added`` counts rows by table."""

    replacements: int
    blobs: int
    added: Mapping[str, int]
    signer: str | None = None


class _UndoneError(Exception):
    """Leaves a transaction that was only a trial."""


def load(registry: Registry, source: BinaryIO, *, trust: TrustList | None = None,
         max_bytes: int = MOST_BYTES) -> Received:
    """Take everything in a bundle file into a registry, or nothing; to repeat it changes nothing.

    With a trust list the bundle must be signed by one of its keys. Its records are checked against
    one another, against the registry and, once the blobs are stored, against these, before the
    first is written, all in one transaction. A bundle that is refused leaves no row, at most
    blobs that nothing refers to. Raises `ParcelError`; `RegistryError` where the registry cannot be
    written, `OSError` for ``source``.
    """
    parcel = ParcelReader(source)
    _check_signer(parcel.signer, trust)
    with new_stage() as stage:
        for line in parcel.lines():
            stage.add_line(line)
        stage.flush()
        if stage.count() != dict(parcel.head.rows) or len(stage.blobs) != parcel.head.blobs:
            raise ParcelError(ParcelFault.DAMAGED,
                              "the bundle does not hold as many records as its head promises")
        if not parcel.head.rows.get("replacement"):
            raise ParcelError(ParcelFault.NOTHING, "the bundle holds no replacement")
        if registry.database.exists():
            _rehearse(registry, stage)
        left = max_bytes
        for sha256 in stage.blobs:
            left -= _take(parcel, sha256, registry.blobs)
            if left < 0:
                raise ParcelError(ParcelFault.TOO_LARGE,
                                  f"the bundle has more than {max_bytes} bytes of blobs")
        parcel.finish()
        stage.check(registry.blobs)
        added = _merged(registry, stage)
        return Received(stage.count().get("replacement", 0), len(stage.blobs), added,
                        parcel.signer)


def push(source: Registry, target: Registry, selection: Selection | None = None) -> Received:
    """Take what is selected of one registry into another, without a file; see `load`.

    Only blobs that the other one lacks are copied. Raises `ParcelError` and `RegistryError`.
    """
    with staged(source, selection or Selection()) as stage:
        if target.database.exists():
            _rehearse(target, stage)
        copied = 0
        for sha256 in stage.blobs:
            if not target.blobs.exists(sha256):
                target.blobs.put(source.blobs.get(sha256))
                copied += 1
        added = _merged(target, stage, source.blobs)
        return Received(stage.count().get("replacement", 0), copied, added)


def _take(parcel: ParcelReader, sha256: str, blobs: Blobs) -> int:
    """Store the next blob unless it is there; returns its size."""
    if is_intact(blobs, sha256):
        return sum(map(len, parcel.blob(sha256)))
    data = bytearray()
    for chunk in parcel.blob(sha256):
        data += chunk
    blobs.put(cast(bytes, data))  # a copy of up to 1 GiB would be for the name of its type
    return len(data)


def _check_signer(signer: str | None, trust: TrustList | None) -> None:
    if trust is None:
        return
    if signer is None:
        raise ParcelError(ParcelFault.UNSIGNED, "the bundle is not signed, and trust list "
                          f"{trust.path} says whom to trust")
    if signer not in trust.keys:
        raise ParcelError(ParcelFault.UNTRUSTED,
                          f"the bundle is signed by {signer}, who is not in trust list "
                          f"{trust.path}")


def _rehearse(registry: Registry, stage: Stage) -> None:
    """Find conflicts before any blob is copied."""
    try:
        with registry.database.write() as session:
            merge(session, stage)
            raise _UndoneError
    except _UndoneError:
        pass


def _merged(registry: Registry, stage: Stage, source: Blobs | None = None) -> Mapping[str, int]:
    with registry.database.write() as session:
        # `gc` removes blobs within transactions only, so that what is there now stays.
        for sha256 in stage.blobs:
            if registry.blobs.exists(sha256):
                continue
            if source is None:
                raise RegistryError(f"blob {sha256} was removed while the bundle was imported; "
                                    "import it again")
            registry.blobs.put(source.get(sha256))
        added = merge(session, stage)
        candidates = sorted(row["candidate_id"] for row in stage.rows(_REPLACEMENTS))
        try:
            check_statements(session, candidates, registry.blobs)
        except StatementError as error:
            raise ParcelError(ParcelFault.CONFLICT, f"with what the registry has already, {error}; "
                              "nothing was changed") from error
        return dict(added)


_REPLACEMENTS = Table.metadata.tables["replacement"]
