"""The bundle file: records first, then the blobs that they name, in one pass either way.

    asmevo parcel 1\\n        magic and version
    u32 HEAD                 canonical JSON: schema, size and SHA-256 of the records, counts
    u8 0 | 1 KEY SIGNATURE   Ed25519 over the SHA-256 of HEAD (32 and 64 bytes)
    stream RECORDS           zstd; one JSON array a line: ["table", {row}], then ["blob", "sha256"]
    stream BLOB              zstd; one for each blob, in the order in which the records list them
    end\\n

A stream is pieces of ``u32 length`` and so many bytes, up to a piece of length 0; numbers are
little-endian. HEAD fixes the records and these fix the blobs by their SHA-256, so that the
signature is of all of it, and is checked before anything else is looked at.

Neither zip nor tar: the directory of a zip is at its end and its entries can be described twice,
tar has names that mean places, and both would need all these checks on top.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO, cast

import zstandard

from asmevo.registry.blobs.store import GIB, MAX_WINDOW, is_sha256
from asmevo.registry.database.models import SCHEMA_VERSION
from asmevo.registry.parcel.coding import MAX_LINE
from asmevo.registry.parcel.errors import ParcelError, ParcelFault
from asmevo.registry.signing.keys import Domain, SigningKey, verifies

MAGIC = b"asmevo parcel 1\n"
END = b"end\n"
FORMAT = "asmevo.registry.parcel"
VERSION = 1
MAX_HEAD = 1 << 16
MAX_PIECE = 1 << 20
MAX_RECORDS = 1 << 30
"""Bytes of all records, uncompressed."""

_CHUNK = 1 << 18
_LEVEL = 3
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Head:
    """What is signed: size in bytes and SHA-256 of the records, rows by table, number of blobs."""

    size: int
    sha256: str
    rows: Mapping[str, int]
    blobs: int

    def to_bytes(self) -> bytes:
        """Canonical JSON."""
        return json.dumps({
            "format": FORMAT, "version": VERSION, "schema": SCHEMA_VERSION,
            "records": {"size": self.size, "sha256": self.sha256}, "rows": dict(self.rows),
            "blobs": self.blobs}, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def parse(cls, data: bytes) -> Head:
        """From what `to_bytes` gave. Raises `ParcelError`."""
        try:
            said = json.loads(data)
            if said["format"] != FORMAT:
                raise ValueError("it is of another format")
            versions = said["version"], said["schema"]
            if versions != (VERSION, SCHEMA_VERSION):
                raise ParcelError(
                    ParcelFault.VERSION,
                    f"the bundle is of format {str(versions[0])[:20]} and schema "
                    f"{str(versions[1])[:20]}, this version of AsmEvo reads format {VERSION} and "
                    f"schema {SCHEMA_VERSION}")
            head = cls(said["records"]["size"], said["records"]["sha256"], said["rows"],
                       said["blobs"])
            if head.to_bytes() != data:
                raise ValueError("it is not in canonical form")
            numbers = [head.size, head.blobs, *head.rows.values()]
            if any(type(n) is not int or n < 0 for n in numbers) or not is_sha256(head.sha256):
                raise ValueError("a number in it is none")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ParcelError(ParcelFault.DAMAGED,
                              f"the head of the bundle is malformed: {error}") from None
        if head.size > MAX_RECORDS:
            raise ParcelError(ParcelFault.TOO_LARGE,
                              f"the bundle has {head.size} bytes of records, more than "
                              f"{MAX_RECORDS}")
        return head


def write_parcel(out: BinaryIO, head: bytes, key: SigningKey | None, records: Iterable[bytes],
                 blobs: Iterable[Iterable[bytes | memoryview]]) -> None:
    """Write a bundle file. Raises `OSError`."""
    out.write(MAGIC + _LENGTH.pack(len(head)) + head)
    if key is None:
        out.write(b"\0")
    else:
        signature = key.sign(Domain.BUNDLE, hashlib.sha256(head).hexdigest())
        out.write(b"\1" + bytes.fromhex(key.public_key) + bytes.fromhex(signature))
    _write_stream(out, (line + b"\n" for line in records))
    for blob in blobs:
        _write_stream(out, blob)
    out.write(END)


def _write_stream(out: BinaryIO, content: Iterable[bytes | memoryview]) -> None:
    pieces = _Pieces(out)
    # What is compressed together must not depend on how the content came.
    compressor = zstandard.ZstdCompressor(level=_LEVEL).compressobj()
    for chunk in _even(content):
        pieces.write(compressor.compress(chunk))
    pieces.write(compressor.flush())
    pieces.close()


def _even(content: Iterable[bytes | memoryview]) -> Iterator[bytes]:
    pending = bytearray()
    for part in content:
        rest = memoryview(part)
        while rest:
            taken = rest[:_CHUNK - len(pending)]
            pending += taken
            rest = rest[len(taken):]
            if len(pending) == _CHUNK:
                yield bytes(pending)
                pending.clear()
    yield bytes(pending)


class _Pieces:
    """A stream, in pieces of the same size but for the last."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._pending = bytearray()

    def write(self, data: bytes) -> None:
        self._pending += data
        while len(self._pending) >= MAX_PIECE:
            self._piece(MAX_PIECE)

    def close(self) -> None:
        if self._pending:
            self._piece(len(self._pending))
        self._out.write(_LENGTH.pack(0))

    def _piece(self, length: int) -> None:
        self._out.write(_LENGTH.pack(length) + self._pending[:length])
        del self._pending[:length]


class ParcelReader:
    """A bundle file, read once from front to end; ``signer`` is the key that signed it, if any.

    To be used in this order: `lines`, `blob` for each that these list, `finish`. Everything raises
    `ParcelError`.
    """

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        start = self._most(len(MAGIC))
        if not start or not MAGIC.startswith(start):
            raise ParcelError(ParcelFault.NOT_A_BUNDLE, "it is not a bundle of a registry, or one "
                              "of another version")
        data = self._sized(MAX_HEAD, "the head of the bundle")
        self.signer = self._signer(data)
        self.head = Head.parse(data)

    def lines(self) -> Iterator[bytes]:
        """The records; they are what the head promises only once all of them were read."""
        digest, size, pending = hashlib.sha256(), 0, b""
        for chunk in self._stream(self.head.size, "the records of the bundle"):
            digest.update(chunk)
            size += len(chunk)
            *lines, pending = (pending + chunk).split(b"\n")
            if len(pending) > MAX_LINE:
                raise ParcelError(ParcelFault.TOO_LARGE,
                                  f"a record has more than {MAX_LINE} bytes")
            yield from lines
        if size != self.head.size or digest.hexdigest() != self.head.sha256 or pending:
            raise ParcelError(ParcelFault.DAMAGED,
                              "the records of the bundle are not those that its head promises")

    def blob(self, sha256: str, max_bytes: int = GIB) -> Iterator[bytes]:
        """The content of the next blob; it is what its name says only once all of it was read."""
        digest = hashlib.sha256()
        for chunk in self._stream(max_bytes, f"blob {sha256}"):
            digest.update(chunk)
            yield chunk
        if digest.hexdigest() != sha256:
            raise ParcelError(ParcelFault.DAMAGED,
                              f"blob {sha256} of the bundle is not what its name says")

    def finish(self) -> None:
        """Demand that nothing follows."""
        if self._read(len(END)) != END or self._source.read(1):
            raise ParcelError(ParcelFault.DAMAGED, "the bundle does not end where it should")

    def _signer(self, head: bytes) -> str | None:
        flag = self._read(1)
        if flag == b"\0":
            return None
        if flag != b"\1":
            raise ParcelError(ParcelFault.DAMAGED, "the bundle is neither signed nor unsigned")
        key, signature = self._read(32).hex(), self._read(64).hex()
        if not verifies(key, signature, Domain.BUNDLE, hashlib.sha256(head).hexdigest()):
            raise ParcelError(ParcelFault.SIGNATURE_INVALID,
                              f"the signature of the bundle is not that of key {key}")
        return key

    def _stream(self, max_bytes: int, what: str) -> Iterator[bytes]:
        decoder = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
        pieces = _PieceReader(self, what)
        size = 0
        try:
            # Across frames, so that nothing can hide behind the first.
            with decoder.stream_reader(cast(BinaryIO, pieces), read_size=_CHUNK,
                                       read_across_frames=True) as reader:
                while chunk := reader.read(_CHUNK):
                    size += len(chunk)
                    if size > max_bytes:
                        raise ParcelError(ParcelFault.TOO_LARGE,
                                          f"{what} has more than {max_bytes} bytes")
                    yield chunk
        except zstandard.ZstdError:
            raise ParcelError(ParcelFault.DAMAGED, f"{what} is not valid zstd data") from None
        pieces.drain()

    def piece(self, what: str) -> bytes:
        """The next piece of a stream; empty at its end."""
        return self._sized(MAX_PIECE, what)

    def _sized(self, limit: int, what: str) -> bytes:
        [length] = _LENGTH.unpack(self._read(_LENGTH.size))
        if length > limit:
            raise ParcelError(ParcelFault.DAMAGED,
                              f"{what} has a piece of {length} bytes, more than {limit}")
        return self._read(length)

    def _read(self, size: int) -> bytes:
        data = self._most(size)
        if len(data) < size:
            raise ParcelError(ParcelFault.TRUNCATED, "the bundle is cut off")
        return data

    def _most(self, size: int) -> bytes:
        data = b""
        while len(data) < size and (part := self._source.read(size - len(data))):
            data += part  # a pipe gives what it has
        return data


class _PieceReader:
    """The pieces of one stream as a file."""

    def __init__(self, parcel: ParcelReader, what: str) -> None:
        self._parcel = parcel
        self._what = what
        self._pending = b""
        self._over = False

    def read(self, size: int = -1) -> bytes:
        if not self._pending and not self._over:
            self._pending = self._parcel.piece(self._what)
            self._over = not self._pending
        data, self._pending = self._pending[:size], self._pending[size:]
        return data

    def drain(self) -> None:
        """Demand that the decoder took everything."""
        if self._pending or (not self._over and self._parcel.piece(self._what)):
            raise ParcelError(ParcelFault.DAMAGED, f"{self._what} does not end where it should")
