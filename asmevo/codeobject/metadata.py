"""The AMDGPU metadata note: msgpack in the object, YAML in assembler input."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

import msgpack

from asmevo.codeobject.errors import CodeObjectError

NOTE_LIMIT = 16 << 20
_DEPTH_LIMIT = 32
# Without `;`, `/`, `#`, quotes and backslash: the assembler splits the document into statements
# before YAML sees it, so a name with these could smuggle in directives.
_PLAIN = re.compile(r"[A-Za-z0-9 _.,:*&<>()\[\]{}$@+=~!?|^%-]*")

# LLVM's reader guesses the type of quoted text too; all but plain names need an explicit tag.
_NAME = re.compile(r"\.?[A-Za-z_][A-Za-z0-9_.-]*")
_NUMBERS = frozenset({"true", "false", "inf", "infinity", "nan"})


def decode_metadata(note: bytes) -> dict[str, object]:
    """Decode the note's msgpack document into dicts in file order, lists, strings and numbers.

    Raises `CodeObjectError` on anything that is not one map with distinct string keys.
    """
    if len(note) > NOTE_LIMIT:
        raise CodeObjectError(f"the metadata note has more than {NOTE_LIMIT} bytes")
    try:
        document = msgpack.unpackb(note, object_pairs_hook=_map, strict_map_key=True)
    except CodeObjectError:
        raise
    except (ValueError, msgpack.UnpackException, RecursionError, TypeError,
            MemoryError) as error:
        raise CodeObjectError(f"the metadata note is not valid msgpack: "
                              f"{error or type(error).__name__}") from error
    if not isinstance(document, dict):
        raise CodeObjectError("the metadata note is not a map")
    _check(document, 0)
    return cast("dict[str, object]", document)


def _map(pairs: list[tuple[object, object]]) -> dict[object, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise CodeObjectError("a map of the metadata note has the same key twice")
    return result


def _check(node: object, depth: int) -> None:
    if depth > _DEPTH_LIMIT:
        raise CodeObjectError(f"the metadata note nests deeper than {_DEPTH_LIMIT} levels")
    if isinstance(node, dict):
        for key, value in node.items():
            if not isinstance(key, str):
                raise CodeObjectError("the metadata note has a key that is not text")
            _check(value, depth + 1)
    elif isinstance(node, list):
        for value in node:
            _check(value, depth + 1)
    elif not isinstance(node, str | int | float | bool | None):
        raise CodeObjectError(f"the metadata note holds a {type(node).__name__}")


def metadata_yaml(metadata: Mapping[str, object]) -> str:
    """YAML that LLVM's `.amdgpu_metadata` turns into the same msgpack bytes again.

    LLVM sorts the keys of a map, as every toolchain so far has done. Raises
    `CodeObjectError` for what LLVM's reader cannot bring back: floats, null, control characters.
    """
    lines = ["---"]
    _emit_map(metadata, 0, lines)
    lines.append("...")
    return "\n".join(lines) + "\n"


def _emit_map(node: Mapping[str, object], indent: int, lines: list[str]) -> None:
    for key, value in node.items():
        # LLVM ignores a tag on a key, so only those that need none can be written.
        name = _scalar(key)
        if name.startswith("!"):
            raise CodeObjectError(f"recovery does not handle the metadata key {key[:80]!r}")
        _emit_entry(f"{name}:", value, indent, lines)


def _emit_entry(prefix: str, value: object, indent: int, lines: list[str]) -> None:
    pad = " " * indent
    if isinstance(value, dict) and value:
        lines.append(f"{pad}{prefix}")
        _emit_map(value, indent + 2, lines)
    elif isinstance(value, list) and value:
        lines.append(f"{pad}{prefix}")
        for item in value:
            _emit_item(item, indent + 2, lines)
    else:
        lines.append(f"{pad}{prefix} {_scalar(value)}")


def _emit_item(value: object, indent: int, lines: list[str]) -> None:
    first = len(lines)
    if isinstance(value, dict) and value:
        _emit_map(value, indent + 2, lines)
    elif isinstance(value, list) and value:
        for item in value:
            _emit_item(item, indent + 2, lines)
    else:
        lines.append(" " * (indent + 2) + _scalar(value))
    lines[first] = " " * indent + "- " + lines[first][indent + 2:]


def _scalar(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        if not _PLAIN.fullmatch(value):
            raise CodeObjectError(f"recovery does not handle the metadata text {value[:80]!r}")
        plain = _NAME.fullmatch(value) and value.lower() not in _NUMBERS
        return f"'{value}'" if plain else f"!str '{value}'"
    if value == {}:
        return "{}"
    if value == []:
        return "[]"
    raise CodeObjectError(f"the metadata note holds a value that cannot be written: {value!r}")
