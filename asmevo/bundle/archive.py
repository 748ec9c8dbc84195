"""Static libraries: ``ar`` archives with the long names of GNU and BSD.

Layout: the file format part of the System V and BSD manual pages ar(5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from asmevo.bundle.container import listed, quote, unique
from asmevo.bundle.errors import BundleError, ReplacementError

MAGIC = b"!<arch>\n"
THIN_MAGIC = b"!<thin>\n"
MEMBER_LIMIT = 1 << 17
NAME_LIMIT = 1 << 12

_HEADER_SIZE = 60
_NAME = slice(0, 16)
_SIZE = slice(48, 58)
_END = slice(58, 60)
_TABLES = frozenset({b"/", b"/SYM64/", b"__.SYMDEF", b"__.SYMDEF SORTED", b"__.SYMDEF_64",
                     b"__.SYMDEF_64 SORTED"})


@dataclass(frozen=True, slots=True)
class Archive:
    """An archive's members; symbol and name tables are left out."""

    data: memoryview
    places: Mapping[str, tuple[int, int]]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.places)

    @classmethod
    def parse(cls, data: memoryview) -> Archive:
        """Read the member headers. Raises `BundleError` on a thin or malformed archive."""
        if data[:len(THIN_MAGIC)] == THIN_MAGIC:
            raise BundleError("a thin archive only names its members; open them by themselves")
        long_names = b""
        names: list[str] = []
        places: list[tuple[int, int]] = []
        position = len(MAGIC)
        while position < len(data):
            header = bytes(data[position:position + _HEADER_SIZE])
            start, size = position + _HEADER_SIZE, _number(header[_SIZE])
            if header[_END] != b"`\n" or size is None:
                raise BundleError(f"the archive has no member header at byte {position}")
            if start + size > len(data):
                raise BundleError(f"truncated: a member of the archive ends at byte {start + size} "
                                  f"of {len(data)}")
            position = start + size + size % 2
            name = header[_NAME].rstrip(b" ")
            if name == b"//":
                long_names = bytes(data[start:start + size])
                continue
            name, length = _member_name(name, long_names, data[start:start + size])
            if name in _TABLES:
                continue
            if len(places) == MEMBER_LIMIT:
                raise BundleError(f"the archive has more than {MEMBER_LIMIT} members")
            names.append(_text(name))
            places.append((start + length, size - length))
        return cls(data, dict(zip(unique(names), places, strict=True)))

    def _place(self, name: str) -> tuple[int, int]:
        if name not in self.places:
            raise BundleError(f"the archive has no member '{name}'; its members: "
                              f"{listed(self.names)}")
        return self.places[name]

    def start(self, name: str) -> bytes:
        return bytes(self.read(name)[:64])

    def read(self, name: str) -> memoryview:
        offset, size = self._place(name)
        return self.data[offset:offset + size]

    def room(self, name: str) -> int | None:
        return self._place(name)[1]

    def replaced(self, name: str, content: bytes, limit: int | None) -> bytes:
        offset, size = self._place(name)
        if len(content) != size:
            # The symbol table holds file offsets, which would have to move too.
            raise ReplacementError(f"member '{name}' of the archive would have {len(content)} "
                                   f"bytes instead of {size}")
        return b"".join((self.data[:offset], content, self.data[offset + size:]))


def _member_name(name: bytes, long_names: bytes, content: memoryview) -> tuple[bytes, int]:
    """A member's name, and how many bytes of its content hold it (BSD)."""
    if name.startswith(b"#1/"):
        length = _number(name[3:])
        if length is None or length > min(NAME_LIMIT, len(content)):
            raise BundleError("a member of the archive has a malformed BSD name")
        return bytes(content[:length]).rstrip(b"\0"), length
    if name.startswith(b"/") and name not in _TABLES:
        offset = _number(name[1:])
        end = -1 if offset is None else long_names.find(b"\n", offset, offset + NAME_LIMIT)
        if offset is None or end < 0:
            raise BundleError("a member of the archive has a name outside the name table")
        return long_names[offset:end].removesuffix(b"/"), 0
    return name if name in _TABLES else name.removesuffix(b"/"), 0


def _number(field: bytes) -> int | None:
    text = field.strip(b" ")
    return int(text) if text.isdigit() else None


def _text(name: bytes) -> str:
    try:
        text = name.decode()
    except UnicodeDecodeError:
        raise BundleError("the name of an archive member is not valid UTF-8") from None
    if not text or not text.isprintable():
        raise BundleError(f"a member of the archive has the malformed name {text[:80]!r}")
    return quote(text)
