"""Whether rows are what their blobs say: all columns that follow from the bytes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.elf import read_tables, read_target
from asmevo.codeobject.errors import CodeObjectError
from asmevo.dispatch.captured.document import identity_of
from asmevo.dispatch.captured.errors import CaptureError
from asmevo.dispatch.dispatch import identity
from asmevo.registry.audit.finding import Finding, FindingCode, shown
from asmevo.registry.audit.rows import Row, subject_of
from asmevo.registry.errors import BlobCorruptError, BlobError, BlobMissingError, RegistryError
from asmevo.registry.rows.named_blobs import DOCUMENTS, blobs_in, parsed

_MALFORMED = (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError)


@dataclass(frozen=True, slots=True)
class Derived:
    """What a blob says of the row that names it, by column, or why it says nothing; ``blobs`` are
    those that it names."""

    columns: Mapping[str, Any] = field(default_factory=dict)
    blobs: frozenset[str] = frozenset()
    fault: str | None = None


def derived(table: str, data: bytes) -> Derived:
    """What a blob says that rows of a table name."""
    derive = DERIVED.get(table)
    if derive is None:
        return Derived()
    try:
        return Derived(derive(data), blobs_in(table, data) if table in DOCUMENTS else frozenset())
    except (CodeObjectError, CaptureError, RegistryError, *_MALFORMED) as error:
        reason = shown(str(error).partition("\n")[0])
        return Derived(fault=f"its blob is no {_NOUNS[table]}: {reason}")


def audit_content(table: sa.Table, row: Row, said: Derived) -> Iterator[Finding]:
    """Compare a row with what its blob says."""
    if said.fault is not None:
        yield Finding(FindingCode.CONTENT_MISMATCH, subject_of(table, row), said.fault)
        return
    different = [name for name, value in said.columns.items() if row[name] != value]
    if different:
        yield Finding(FindingCode.CONTENT_MISMATCH, subject_of(table, row),
                      f"its blob says another {', '.join(different)}: "
                      f"{shown(said.columns[different[0]])}")


def audit_toolchain(row: Row) -> Iterator[Finding]:
    """Compare the hash of a recovered object's toolchain with the toolchain."""
    text = json.dumps(row["toolchain"], sort_keys=True)
    if hashlib.sha256(text.encode()).hexdigest() != row["toolchain_sha256"]:
        yield Finding(FindingCode.CONTENT_MISMATCH, f"recovered_object {shown(row['id'])}",
                      "its toolchain_sha256 is not that of its toolchain")


def finding_of(error: BlobError, subject: str) -> Finding:
    """What an error of a blob is as a finding."""
    code = (FindingCode.BLOB_MISSING if isinstance(error, BlobMissingError) else
            FindingCode.BLOB_CORRUPT if isinstance(error, BlobCorruptError) else
            FindingCode.BLOB_UNREADABLE)
    return Finding(code, subject, str(error))


def _code_object(data: bytes) -> Mapping[str, Any]:
    target, version = read_target(data)
    sections, symbols = read_tables(data)
    # Objects built from one original have its metadata, which takes most of the time to read.
    note = CodeObject(data, "", target, version, sections, symbols, (), {}).metadata_note()
    key = hashlib.sha256(note).digest()
    if key not in _KERNELS:
        if len(_KERNELS) >= _MOST_KERNELS:
            _KERNELS.clear()
        _KERNELS[key] = [kernel.symbol for kernel in CodeObject.parse(data).kernels]
    return {"isa": target.isa, "size": len(data), "kernels": _KERNELS[key]}


_MOST_KERNELS = 4096
_KERNELS: dict[bytes, list[str]] = {}
"""The kernels of a code object by the SHA-256 of its metadata note."""


def _dispatch(data: bytes) -> Mapping[str, Any]:
    said = parsed(data)
    regions = [(r["name"], r["address"], r["role"], r["element"], r["guard"],
                bytes.fromhex(r["data"])) for r in said["regions"]]
    x, y, z = said["grid"]
    a, b, c = said["workgroup"]
    return {
        "sha256": identity((said["kernel"], (x, y, z), (a, b, c), said["dynamic_lds"]),
                           bytes.fromhex(said["kernarg"]), regions,
                           relies_on_time=said.get("relies_on_time") is True),
        "kernel": said["kernel"], "name": said["name"], "held_out": said["held_out"]}


def _capture(data: bytes) -> Mapping[str, Any]:
    sha256 = identity_of(data)
    said = parsed(data)
    size = sum(s["size"] for a in said["allocations"] for s in a["segments"])
    return {"sha256": sha256, "original_sha256": said["code_object"], "kernel": said["kernel"],
            "name": said["name"], "size": size}


def _text(data: bytes) -> Mapping[str, Any]:
    data.decode()
    return {}


DERIVED: Mapping[str, Callable[[bytes], Mapping[str, Any]]] = {
    "code_object": _code_object, "dispatch": _dispatch, "capture": _capture,
    "recovered_object": _text, "run": _text, "candidate": _text}
_NOUNS = {"code_object": "code object", "dispatch": "description of a dispatch",
          "capture": "document of a capture", "recovered_object": "text",
          "run": "text", "candidate": "text"}
