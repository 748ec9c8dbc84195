"""Clang's uncompressed offload bundle: several code objects in a row behind one header.

Layout: Clang documentation, "Clang Offload Bundler", section "Bundled Binary File Layout".
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from asmevo.bundle.errors import BundleError, ReplacementError

MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
ALIGNMENT = 4096
"""Where the HIP driver aligns code objects (``-bundle-align=4096``)."""

# Far above any real bundle; they bound the work that a hostile header can ask for.
ENTRY_LIMIT = 4096
ID_LIMIT = 1024

_COUNT = struct.Struct("<Q")
_ENTRY = struct.Struct("<QQQ")
_SIZE_FIELD = 8


@dataclass(frozen=True, slots=True)
class BundleEntry:
    """One code object of a bundle; ``offset`` counts from the start of the bundle, in bytes.

    ``header`` is the offset of the entry's own three integers.
    """

    id: str
    offset: int
    size: int
    header: int

    @property
    def kind(self) -> str:
        """The offload kind: ``host``, ``hip``, ``hipv4`` or ``openmp``."""
        return self.id.split("-", 1)[0]

    @property
    def triple(self) -> str:
        """Architecture, vendor, system and environment, e.g. ``amdgcn-amd-amdhsa-``."""
        return self._split()[0]

    @property
    def target(self) -> str:
        """The target ID, e.g. ``gfx90a:sramecc+:xnack-``; empty for a host entry."""
        return self._split()[1]

    def _split(self) -> tuple[str, str]:
        parts = self.id.split("-")[1:]
        # Clang before 13 wrote no environment: hip-amdgcn-amd-amdhsa-gfx906.
        length = 3 if len(parts) > 3 and parts[3].startswith("gfx") else 4
        return "-".join(parts[:length]), "-".join(parts[length:])


@dataclass(frozen=True, slots=True)
class OffloadBundle:
    """The entries of one bundle, and its bytes with whatever follows it."""

    data: memoryview
    entries: tuple[BundleEntry, ...]
    header_size: int

    @property
    def size(self) -> int:
        """The length of header and code objects, without padding behind them."""
        return max((e.offset + e.size for e in self.entries if e.size), default=self.header_size)

    @classmethod
    def parse(cls, data: memoryview) -> OffloadBundle:
        """Read the header at the start of ``data``, which may extend beyond the bundle.

        Raises `BundleError` unless all entries lie apart from each other inside ``data``.
        """
        if data[:len(MAGIC)] != MAGIC:
            raise BundleError("not an offload bundle: the magic string is missing")
        position = len(MAGIC) + _COUNT.size
        if len(data) < position:
            raise BundleError("the offload bundle's header is truncated")
        (count,) = _COUNT.unpack_from(data, len(MAGIC))
        if count > ENTRY_LIMIT:
            raise BundleError(f"the offload bundle claims {count} entries, more than "
                              f"{ENTRY_LIMIT}")
        entries = []
        for _ in range(count):
            entry = _entry(data, position)
            entries.append(entry)
            position += _ENTRY.size + len(entry.id.encode())
        _check(entries, position, len(data))
        return cls(data, tuple(entries), position)

    def content(self, entry: BundleEntry) -> memoryview:
        """The bytes of an entry."""
        return self.data[entry.offset:entry.offset + entry.size]

    def room(self, entry: BundleEntry, limit: int | None) -> int | None:
        """How long an entry can become where it is, in a bundle of at most ``limit`` bytes."""
        following = [e.offset for e in self.entries if e.size and e.offset > entry.offset]
        end = min(following, default=limit)
        return None if end is None else end - entry.offset

    def replaced(self, entry: BundleEntry, content: bytes, limit: int | None) -> bytes:
        """The bundle with other bytes for one entry, at most ``limit`` bytes long.

        Nothing moves when the new bytes fit before the next entry; otherwise the code objects are
        laid out again in their order. Raises `ReplacementError` when they do not fit either way.
        """
        if not entry.size:
            raise ReplacementError(f"entry '{entry.id}' of the bundle is empty")
        room = self.room(entry, limit)
        if room is None or len(content) <= room:
            return self._in_place(entry, content)
        laid = build([(e.id, content if e is entry else bytes(self.content(e)))
                      for e in self.entries], self._alignment())
        if limit is not None and len(laid) > limit:
            raise ReplacementError(
                f"the replacement for '{entry.id}' has {len(content)} bytes, its place {room}, and "
                f"a bundle laid out anew would have {len(laid)} bytes where there are {limit}"
            )
        return laid

    def _in_place(self, entry: BundleEntry, content: bytes) -> bytes:
        end = max(self.size, entry.offset + len(content))
        result = bytearray(self.data[:self.size].tobytes().ljust(end, b"\0"))
        result[entry.offset:entry.offset + entry.size] = bytes(entry.size)
        result[entry.offset:entry.offset + len(content)] = content
        struct.pack_into("<Q", result, entry.header + _SIZE_FIELD, len(content))
        return bytes(result)

    def _alignment(self) -> int:
        """The largest power of two, at most a page, that all offsets are multiples of."""
        alignment = ALIGNMENT
        while any(e.offset % alignment for e in self.entries if e.size):
            alignment //= 2
        return alignment


def build(entries: Sequence[tuple[str, bytes]], alignment: int = ALIGNMENT) -> bytes:
    """A bundle of IDs and contents, as ``clang-offload-bundler -bundle-align`` writes it."""
    ids = [name.encode() for name, _ in entries]
    position = len(MAGIC) + _COUNT.size + sum(_ENTRY.size + len(name) for name in ids)
    header = bytearray(MAGIC + _COUNT.pack(len(entries)))
    body = bytearray()
    start = position
    for name, (_, content) in zip(ids, entries, strict=True):
        position += -position % alignment
        header += _ENTRY.pack(position, len(content), len(name)) + name
        if content:
            body += bytes(position - start - len(body)) + content
            position += len(content)
    return bytes(header + body)


def _entry(data: memoryview, position: int) -> BundleEntry:
    if position + _ENTRY.size > len(data):
        raise BundleError("the offload bundle's header is truncated")
    offset, size, length = _ENTRY.unpack_from(data, position)
    start = position + _ENTRY.size
    if length > ID_LIMIT or start + length > len(data):
        raise BundleError(f"an entry of the offload bundle claims an ID of {length} bytes")
    try:
        name = bytes(data[start:start + length]).decode()
    except UnicodeDecodeError:
        raise BundleError("an entry ID of the offload bundle is not valid UTF-8") from None
    if not name or not name.isprintable() or "!" in name:
        raise BundleError(f"an entry of the offload bundle has the malformed ID {name[:80]!r}")
    return BundleEntry(name, offset, size, position)


def _check(entries: Sequence[BundleEntry], header_size: int, limit: int) -> None:
    seen: set[str] = set()
    for entry in entries:
        if entry.id in seen:
            raise BundleError(f"the offload bundle lists '{entry.id}' twice")
        seen.add(entry.id)
    end, previous = header_size, "the header"
    for entry in sorted((e for e in entries if e.size), key=lambda e: e.offset):
        if entry.offset + entry.size > limit:
            raise BundleError(f"truncated: '{entry.id}' ends at byte {entry.offset + entry.size} "
                              f"of an offload bundle of at most {limit} bytes")
        if entry.offset < end:
            raise BundleError(f"{previous} and '{entry.id}' overlap in the offload bundle")
        end, previous = entry.offset + entry.size, f"'{entry.id}'"
