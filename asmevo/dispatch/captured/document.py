"""`dispatch.json`: a capture as a JSON document that names its blobs.

docs/capture.md specifies every key. What is unknown, missing, of the wrong type or twice there is
refused: a reader of this version cannot know what it would mean.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from asmevo.dispatch.captured.blobs import Blobs, check_sha256
from asmevo.dispatch.captured.capture import (
    MAX_KERNARG,
    MAX_SEGMENTS,
    Allocation,
    Capture,
    PointerField,
    Segment,
)
from asmevo.dispatch.captured.errors import CaptureError
from asmevo.dispatch.dispatch import ElementType, Role

FORMAT = "asmevo.capture"
VERSION = 1
MAX_DOCUMENT = 64 << 20
MAX_BYTES = 16 << 30
"""Memory that a capture may describe unless more is allowed: bytes before the dispatch, and those
of changed segments after it."""

_TOP = frozenset({"format", "version", "name", "origin", "code_object", "kernel", "kernarg", "grid",
                  "workgroup", "dynamic_lds", "relies_on_time", "allocations", "pointers"})
_ALLOCATION = frozenset({"name", "address", "size", "element", "order_dependent", "segments"})
_SEGMENT = frozenset({"offset", "size", "pre", "post", "role", "written"})
_POINTER = frozenset({"offset", "target", "holder"})

Chosen = TypeVar("Chosen", ElementType, Role)


def to_document(capture: Capture, blobs: Blobs) -> bytes:
    """The document of a capture; its memory goes to ``blobs``, before the document exists."""
    return (json.dumps({
        "format": FORMAT,
        "version": VERSION,
        "name": capture.name,
        "origin": capture.origin,
        "code_object": capture.code_object,
        "kernel": capture.kernel,
        "kernarg": capture.kernarg.hex(),
        "grid": capture.grid,
        "workgroup": capture.workgroup,
        "dynamic_lds": capture.dynamic_lds,
        "relies_on_time": capture.relies_on_time,
        "allocations": [
            {"name": a.name, "address": a.address, "size": a.size, "element": a.element.value,
             "order_dependent": a.order_dependent,
             "segments": [
                 {"offset": s.offset, "size": s.size, "pre": blobs.put(s.pre),
                  "post": blobs.put(s.post), "written": s.written,
                  "role": None if s.role is None else s.role.value}
                 for s in a.segments]}
            for a in capture.allocations],
        "pointers": None if capture.pointers is None else [
            {"offset": p.offset, "target": p.target, "holder": p.holder}
            for p in capture.pointers],
    }, indent=1, sort_keys=True) + "\n").encode()


class _Hashes:
    """Blobs of which only the names matter."""

    def put(self, data: bytes) -> str:
        return hashlib.sha256(data).hexdigest()

    def get(self, sha256: str, size: int) -> bytes:
        raise CaptureError(f"blob {sha256} is not kept")


def identity(capture: Capture) -> str:
    """SHA-256 over everything but the capture's name and who recorded it."""
    nameless = replace(capture, name="-", origin="-")
    return hashlib.sha256(to_document(nameless, _Hashes())).hexdigest()


def identity_of(data: bytes) -> str:
    """`identity` of the capture that a document describes. Raises `CaptureError`."""
    nameless = {**_checked(data), "name": "-", "origin": "-"}
    return hashlib.sha256((json.dumps(nameless, indent=1, sort_keys=True) + "\n").encode()
                          ).hexdigest()


def from_document(data: bytes, blobs: Blobs, *, max_bytes: int = MAX_BYTES) -> Capture:
    """The capture that a document describes, with its memory. Raises `CaptureError`."""
    top = _checked(data)
    _only(top, _TOP, "the document")
    allocations = _list(_required(top, "allocations"), "allocations")
    _check_sizes(allocations, max_bytes)
    pointers = top.get("pointers")
    return Capture(
        name=_text(top, "name"),
        origin=_text(top, "origin"),
        code_object=check_sha256(_required(top, "code_object")),
        kernel=_text(top, "kernel"),
        kernarg=_hexadecimal(_text(top, "kernarg")),
        grid=_dimensions(top, "grid"),
        workgroup=_dimensions(top, "workgroup"),
        dynamic_lds=_natural(top, "dynamic_lds"),
        relies_on_time=_flag(top, "relies_on_time"),
        allocations=tuple(_allocation(entry, blobs) for entry in allocations),
        pointers=None if pointers is None else tuple(
            _pointer(entry) for entry in _list(pointers, "pointers")),
    )


def code_object_of(data: bytes) -> str:
    """The SHA-256 of the code object that a document is of. Raises `CaptureError`."""
    return check_sha256(_required(_checked(data), "code_object"))


def _checked(data: bytes) -> Mapping[str, Any]:
    """The document, if it is of a version that this reader knows."""
    top = _object(_parsed(data), "the document")
    # The version first: another one may have other keys.
    if top.get("format") != FORMAT:
        raise CaptureError("the document is no capture: its 'format' is not "
                           f"'{FORMAT}'")
    version = top.get("version")
    if type(version) is not int or version != VERSION:
        raise CaptureError(f"the capture has format version {str(version)[:20]}, this version of "
                           f"AsmEvo reads version {VERSION}")
    return top


def _parsed(data: bytes) -> object:
    try:
        return json.loads(data.decode(), object_pairs_hook=_unique, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        reason = str(error).partition("\n")[0][:120] or "it is nested too deeply"
        raise CaptureError(f"the document of the capture is no valid JSON: {reason}") from None


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise CaptureError("the document of the capture has a key twice in one object")
    return found


def _no_number(text: str) -> object:
    raise CaptureError(f"the document of the capture holds {text}, which is no number")


def _check_sizes(allocations: list[object], max_bytes: int) -> None:
    """Before any blob is opened: how much memory the whole would take."""
    segments = 0
    size = 0
    for entry in allocations:
        listed = _list(_required(_object(entry, "an allocation"), "segments"), "segments")
        segments += len(listed)
        if segments > MAX_SEGMENTS:
            raise CaptureError(f"the capture has more than {MAX_SEGMENTS} segments")
        for each in listed:
            segment = _object(each, "a segment")
            unchanged = segment.get("pre") == segment.get("post")
            size += _natural(segment, "size") * (1 if unchanged else 2)
    if size > max_bytes:
        raise CaptureError(f"the capture describes {size} bytes of memory, more than {max_bytes}")


def _allocation(entry: object, blobs: Blobs) -> Allocation:
    values = _object(entry, "an allocation")
    _only(values, _ALLOCATION, "an allocation")
    return Allocation(
        name=_text(values, "name"),
        address=_natural(values, "address"),
        size=_natural(values, "size"),
        element=_choice(values, "element", ElementType),
        order_dependent=_flag(values, "order_dependent"),
        segments=tuple(_segment(segment, blobs)
                       for segment in _list(_required(values, "segments"), "segments")),
    )


def _segment(entry: object, blobs: Blobs) -> Segment:
    values = _object(entry, "a segment")
    _only(values, _SEGMENT, "a segment")
    size = _natural(values, "size")
    before = check_sha256(_required(values, "pre"))
    after = check_sha256(_required(values, "post"))
    pre = blobs.get(before, size)
    return Segment(
        offset=_natural(values, "offset"), pre=pre,
        post=pre if before == after else blobs.get(after, size),
        role=None if values.get("role") is None else _choice(values, "role", Role),
        written=_flag(values, "written"),
    )


def _pointer(entry: object) -> PointerField:
    values = _object(entry, "a pointer")
    _only(values, _POINTER, "a pointer")
    holder = None if values.get("holder") is None else _natural(values, "holder")
    return PointerField(_natural(values, "offset"), _natural(values, "target"), holder)


def _object(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise CaptureError(f"{what} of the capture is no JSON object")
    return value


def _list(value: object, key: str) -> list[object]:
    if not isinstance(value, list):
        raise CaptureError(f"'{key}' of the capture is no list")
    return value


def _only(values: Mapping[str, Any], known: frozenset[str], what: str) -> None:
    for key in values:
        if key not in known:
            raise CaptureError(f"{what} of the capture has the unknown key {key[:40]!r}")


def _required(values: Mapping[str, Any], key: str) -> Any:
    if key not in values:
        raise CaptureError(f"the capture lacks '{key}'")
    return values[key]


def _text(values: Mapping[str, Any], key: str) -> str:
    value = _required(values, key)
    if not isinstance(value, str):
        raise CaptureError(f"'{key}' of the capture is no text")
    return value


def _natural(values: Mapping[str, Any], key: str) -> int:
    value = _required(values, key)
    if type(value) is not int or not 0 <= value < 1 << 64:
        raise CaptureError(f"'{key}' of the capture is no whole number of 64 bits")
    return value


def _flag(values: Mapping[str, Any], key: str) -> bool:
    value = values.get(key, False)
    if not isinstance(value, bool):
        raise CaptureError(f"'{key}' of the capture is neither true nor false")
    return value


def _dimensions(values: Mapping[str, Any], key: str) -> tuple[int, int, int]:
    sizes = _list(_required(values, key), key)
    if len(sizes) != 3 or not all(type(s) is int and 0 < s < 1 << 32 for s in sizes):
        raise CaptureError(f"'{key}' of the capture is not three whole numbers of 32 bits")
    x, y, z = (int(str(size)) for size in sizes)
    return x, y, z


def _hexadecimal(text: str) -> bytes:
    if len(text) > 2 * MAX_KERNARG:
        raise CaptureError(f"the capture has more than {MAX_KERNARG} bytes of kernarg")
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise CaptureError("'kernarg' of the capture is not hexadecimal") from None


def _choice(values: Mapping[str, Any], key: str, kind: type[Chosen]) -> Chosen:
    try:
        return kind(_text(values, key))
    except ValueError:
        known = ", ".join(member.value for member in kind)
        raise CaptureError(f"'{key}' of the capture is {values[key][:40]!r} (known: {known})"
                           ) from None
