"""Whether rows are what their blobs say: all columns that follow from the bytes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.errors import CodeObjectError
from asmevo.dispatch.captured.document import identity_of
from asmevo.dispatch.captured.errors import CaptureError
from asmevo.dispatch.dispatch import identity
from asmevo.registry.audit.finding import Finding, FindingCode, shown
from asmevo.registry.audit.rows import Row
from asmevo.registry.errors import BlobError
from asmevo.registry.references import parsed
from asmevo.registry.statement import Blobs

_MALFORMED = (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError)


def audit_content(table: str, row: Row, data: bytes) -> Iterator[Finding]:
    """Compare a row with the content of its blob."""
    derive = _DERIVED.get(table)
    if derive is None:
        return
    subject = f"{table} {shown(row[_KEYS.get(table, 'id')])}"
    try:
        derived = derive(data)
    except (CodeObjectError, CaptureError, *_MALFORMED) as error:
        reason = str(error).partition("\n")[0]
        yield Finding(FindingCode.CONTENT_MISMATCH, subject,
                      f"its blob is no {_NOUNS[table]}: {shown(reason)}")
        return
    different = [name for name, value in derived.items() if row[name] != value]
    if different:
        yield Finding(FindingCode.CONTENT_MISMATCH, subject,
                      f"its blob says another {', '.join(different)}: "
                      f"{shown(derived[different[0]])}")


def audit_toolchain(row: Row) -> Iterator[Finding]:
    """Compare the hash of a recovered object's toolchain with the toolchain."""
    text = json.dumps(row["toolchain"], sort_keys=True)
    if hashlib.sha256(text.encode()).hexdigest() != row["toolchain_sha256"]:
        yield Finding(FindingCode.CONTENT_MISMATCH, f"recovered_object {shown(row['id'])}",
                      "its toolchain_sha256 is not that of its toolchain")


def content_of(blobs: Blobs, subject: str, sha256: str) -> bytes | Finding:
    """A blob, or what is wrong with it."""
    try:
        return blobs.get(sha256)
    except BlobError as error:
        return finding_of(error, subject)


def finding_of(error: BlobError, subject: str) -> Finding:
    """What an error of a blob is as a finding."""
    from asmevo.registry.errors import BlobCorruptError, BlobMissingError

    code = (FindingCode.BLOB_MISSING if isinstance(error, BlobMissingError) else
            FindingCode.BLOB_CORRUPT if isinstance(error, BlobCorruptError) else
            FindingCode.BLOB_UNREADABLE)
    return Finding(code, subject, str(error))


def _code_object(data: bytes) -> Mapping[str, Any]:
    code_object = CodeObject.parse(data)
    return {"isa": code_object.target.isa, "size": len(data),
            "kernels": [kernel.symbol for kernel in code_object.kernels]}


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


_DERIVED: Mapping[str, Callable[[bytes], Mapping[str, Any]]] = {
    "code_object": _code_object, "dispatch": _dispatch, "capture": _capture,
    "recovered_object": _text, "run": _text, "candidate": _text}
_NOUNS = {"code_object": "code object", "dispatch": "description of a dispatch",
          "capture": "document of a capture", "recovered_object": "text",
          "run": "text", "candidate": "text"}
_KEYS = {"code_object": "sha256", "dispatch": "sha256", "capture": "sha256"}
