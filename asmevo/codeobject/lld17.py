"""Give a linked object the layout that LLD 17 and older made.

LLD 18 added a ``.relro_padding`` section (llvm-project commit "[ELF] Merge copyRelSec and
.relro_padding", LLVM 18 release notes) and counts it into the memory size of the writable segment.
Older objects have neither; everything else is the same.
"""

from __future__ import annotations

import struct

from asmevo.codeobject.errors import ToolchainError

_PADDING = b".relro_padding"
_SECTION_TABLE_OFFSET = 0x28
_SEGMENT_TABLE_OFFSET = 0x20
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_COUNTS = struct.Struct("<HHHHH")
_COUNTS_OFFSET = 0x36
_PT_LOAD = 1
_PF_W = 2
_SHT_NOBITS = 8


def without_relro_padding(data: bytes) -> bytes:
    """Remove the section; raises `ToolchainError` when the object is not as LLD 18+ makes it."""
    segment_offset, section_offset = struct.unpack_from("<QQ", data, _SEGMENT_TABLE_OFFSET)
    segment_size, segments, section_size, count, names_index = _COUNTS.unpack_from(
        data, _COUNTS_OFFSET)
    headers = [list(_SECTION.unpack_from(data, section_offset + i * section_size))
               for i in range(count)]
    names_at, names_size = headers[names_index][4:6]
    names = data[names_at:names_at + names_size]
    cut = names.find(b"\0" + _PADDING + b"\0") + 1
    padding = next((i for i, h in enumerate(headers) if h[0] == cut and h[1] == _SHT_NOBITS), None)
    if not cut or padding is None or padding >= names_index:
        raise ToolchainError("the linked object has no .relro_padding section to remove")

    removed = len(_PADDING) + 1
    following = names_at + names_size
    body = bytearray(data[:names_at] + names[:cut] + names[cut + removed:])
    moved: dict[int, int] = {}
    for index in sorted(range(count), key=lambda i: int(headers[i][4])):
        header = headers[index]
        if header[4] >= following and header[1] not in (0, _SHT_NOBITS):
            body += bytes(-len(body) % max(header[8], 1))
            moved[index] = len(body)
            body += data[header[4]:header[4] + header[5]]
    body += bytes(-len(body) % 8)

    struct.pack_into("<Q", body, _SECTION_TABLE_OFFSET, len(body))
    _COUNTS.pack_into(body, _COUNTS_OFFSET, segment_size, segments, section_size, count - 1,
                      names_index - 1)
    for index, header in enumerate(headers):
        if index == padding:
            continue
        if header[0] > cut:
            header[0] -= removed
        if index == names_index:
            header[5] -= removed
        header[4] = moved.get(index, header[4])
        if header[6] > padding:
            header[6] -= 1
        body += _SECTION.pack(*header)
    for index in range(segments):
        at = segment_offset + index * segment_size
        segment = list(_SEGMENT.unpack_from(body, at))
        if segment[0] == _PT_LOAD and segment[1] & _PF_W:
            segment[6] = segment[5]
            _SEGMENT.pack_into(body, at, *segment)
    return bytes(body)
