"""Replacements and their evidence as one file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from asmevo.registry.audit.stream import chunks
from asmevo.registry.parcel.errors import ParcelError, ParcelFault
from asmevo.registry.parcel.format import Head, write_parcel
from asmevo.registry.parcel.gather import Selection, gather, selected
from asmevo.registry.parcel.stage import Stage, new_stage

if TYPE_CHECKING:
    from asmevo.registry.registry import Registry
    from asmevo.registry.signing.keys import SigningKey


@dataclass(frozen=True, slots=True)
class Exported:
    """What a bundle file holds; ``rows`` counts by table, ``signer`` is a public key."""

    replacements: int
    rows: Mapping[str, int]
    blobs: int
    signer: str | None


def export(registry: Registry, out: BinaryIO, selection: Selection | None = None, *,
           key: SigningKey | None = None) -> Exported:
    """Write replacements with everything that their evidence rests on to ``out``.

    The same content gives the same bytes, from whatever registry. Raises `ParcelError` where what
    is selected is not sound, `RegistryError` where the registry cannot be read, `OSError` for
    ``out``.
    """
    with staged(registry, selection or Selection()) as stage:
        digest, size = hashlib.sha256(), 0
        for line in stage.lines():
            digest.update(line + b"\n")
            size += len(line) + 1
        rows = stage.count()
        head = Head(size, digest.hexdigest(), rows, len(stage.blobs))
        Head.parse(head.to_bytes())
        write_parcel(out, head.to_bytes(), key, stage.lines(),
                     (chunks(registry.blobs, sha256) for sha256 in stage.blobs))
        return Exported(rows.get("replacement", 0), rows, len(stage.blobs),
                        None if key is None else key.public_key)


@contextmanager
def staged(registry: Registry, selection: Selection) -> Iterator[Stage]:
    """A stage with what is selected, checked. Raises `ParcelError`, also where that is nothing."""
    with new_stage() as stage:
        with registry.database.read() as session:
            candidates = selected(session, selection)
            if not candidates:
                raise ParcelError(ParcelFault.NOTHING, "no replacement is meant by that")
            gather(session, candidates, stage)
            stage.flush()
        stage.collect(registry.blobs)
        stage.check(registry.blobs)
        yield stage
