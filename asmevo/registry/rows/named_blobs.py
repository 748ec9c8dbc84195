"""Which rows need which blobs, and which blobs need others."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from asmevo.registry.errors import RegistryError

BLOBS: Mapping[str, tuple[str, ...]] = {
    "code_object": ("sha256",),
    "recovered_object": ("assembly_sha256",),
    "dispatch": ("content_sha256",),
    "capture": ("content_sha256",),
    "run": ("config_sha256",),
    "candidate": ("assembly_sha256",),
    "statement": ("statement_sha256",),
}
"""By table the columns that hold the SHA-256 of a blob."""

DOCUMENTS = ("dispatch", "capture")
"""Tables whose blobs are documents that name blobs themselves: the memory of a launch."""

MAX_DOCUMENT = 64 << 20
"""Bytes of a document; the largest capture's have less."""


def blobs_of(table: str, row: Mapping[str, Any]) -> Iterable[str]:
    """The blobs that a row names."""
    return (row[column] for column in BLOBS.get(table, ()) if row[column] is not None)


def blobs_in(table: str, data: bytes) -> frozenset[str]:
    """The blobs that a document names. Raises `RegistryError` where it is none."""
    from asmevo.registry.blobs.store import is_sha256

    try:
        document = parsed(data)
        if table == "capture":
            names = {segment[key] for allocation in document["allocations"]
                     for segment in allocation["segments"] for key in ("pre", "post")}
        else:
            names = {region["data"] for region in document["regions"]}
        if not all(isinstance(name, str) and is_sha256(name) for name in names):
            raise ValueError("a blob in it has no SHA-256")
    except (ValueError, TypeError, KeyError, RecursionError, AttributeError) as error:
        raise RegistryError(f"it does not describe a {table}: {error}") from error
    return frozenset(names)


def parsed(data: bytes) -> Any:
    """A document as JSON. Raises `ValueError`."""
    if len(data) > MAX_DOCUMENT:
        raise ValueError(f"it is larger than {MAX_DOCUMENT} bytes")
    return json.loads(data)
