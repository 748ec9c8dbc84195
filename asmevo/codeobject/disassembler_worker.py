"""The child process in which LLVM decodes machine code; run as a script, never imported.

LLVM's disassembler crashes on some words that are no instructions, so it may not run in a process
that has anything to lose. The command line is: LLVM's library, a file descriptor. A request on
standard input is a `REQUEST` header and the code; the reply on standard output is its length and
one line of ``size text`` for each instruction. Before decoding, the position is stored behind the
descriptor, where the parent finds it after a crash; positions in the request's list are not
decoded. The standard library is all that this file may use: it must start in milliseconds.
"""

from __future__ import annotations

import ctypes
import mmap
import re
import struct
import sys
from typing import BinaryIO

# Processor name, bytes of code, number of positions to leave alone.
REQUEST = struct.Struct("<16sII")
REPLY = struct.Struct("<I")
POSITION = struct.Struct("<q")
NOT_DECODING = -1

_LINE_SIZE = 512
_CACHE_LIMIT = 1 << 18
# Longest instruction: 8 bytes, but gfx950's scaled MFMAs take 16.
_LONGEST = {"gfx950": 16}
# LLVM remarks on operands it cannot print: `/*invalid immediate*/`, `; Warning: ... isn't aligned`.
_REMARK = re.compile(r"/\*|;")


def load(path: str) -> ctypes.CDLL:
    """LLVM's C interface with the AMDGPU disassembler initialised."""
    library = ctypes.CDLL(path)
    for name in ("TargetInfo", "TargetMC", "Disassembler"):
        getattr(library, f"LLVMInitializeAMDGPU{name}")()
    create, decode = library.LLVMCreateDisasmCPUFeatures, library.LLVMDisasmInstruction
    create.restype = ctypes.c_void_p
    create.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p,
                       ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    decode.restype = ctypes.c_size_t
    decode.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64,
                       ctypes.c_char_p, ctypes.c_size_t]
    return library


class Decoder:
    """One LLVM disassembler context and what it has decoded so far.

    Nothing is decoded relative to the address, so the text of an instruction depends on its bytes
    alone and can be remembered.
    """

    def __init__(self, library: ctypes.CDLL, isa: str, position: mmap.mmap) -> None:
        self._library = library
        self._position = position
        self._context = library.LLVMCreateDisasmCPUFeatures(
            b"amdgcn-amd-amdhsa", isa.encode(), b"", None, 0, None, None)
        self._longest = _LONGEST.get(isa, 8)
        self._text = ctypes.create_string_buffer(_LINE_SIZE)
        self._known: dict[bytes, tuple[int, str]] = {}

    def lines(self, code: bytes, avoid: frozenset[int]) -> list[str]:
        lines: list[str] = []
        position = 0
        while position < len(code):
            window = code[position:position + self._longest]
            if position in avoid:
                size, line = _data(window)
            elif window in self._known:
                size, line = self._known[window]
            else:
                POSITION.pack_into(self._position, 0, position)
                if len(self._known) >= _CACHE_LIMIT:
                    self._known.clear()
                size, line = self._known[window] = self._decode(window)
            lines.append(line)
            position += size
        POSITION.pack_into(self._position, 0, NOT_DECODING)
        return lines

    def _decode(self, window: bytes) -> tuple[int, str]:
        if len(window) < 4 or not self._context:
            return _data(window)
        # LLVM 22 dereferences null when an instruction's literal is cut off by the end of the code,
        # so it always gets the longest possible instruction.
        padded = window.ljust(self._longest, b"\0")
        size: int = self._library.LLVMDisasmInstruction(
            self._context, padded, len(padded), 0, self._text, _LINE_SIZE)
        text = " ".join(self._text.value.decode("ascii", "replace").split())
        if size == 0 or size > len(window) or not text or _REMARK.search(text):
            return _data(window)
        return size, f"{size} {text}\n"


def _data(window: bytes) -> tuple[int, str]:
    """A word that LLVM does not know, or remarks on; or what is left of an incomplete one."""
    if len(window) < 4:
        return len(window), f"{len(window)} .byte " + ", ".join(f"{b:#04x}" for b in window) + "\n"
    return 4, f"4 .long 0x{int.from_bytes(window[:4], 'little'):08x}\n"


def serve(library: ctypes.CDLL, position: mmap.mmap, source: BinaryIO, sink: BinaryIO) -> None:
    """Answer requests until the input ends."""
    decoders: dict[str, Decoder] = {}
    while header := source.read(REQUEST.size):
        name, size, count = REQUEST.unpack(header)
        avoid = frozenset(struct.unpack(f"<{count}I", source.read(4 * count)))
        code = source.read(size)
        isa = name.rstrip(b"\0").decode()
        if isa not in decoders:
            decoders[isa] = Decoder(library, isa, position)
        reply = "".join(decoders[isa].lines(code, avoid)).encode()
        sink.write(REPLY.pack(len(reply)) + reply)
        sink.flush()


def main() -> None:
    """Run as ``python disassembler_worker.py LIBRARY DESCRIPTOR``."""
    library = load(sys.argv[1])
    numbers = [ctypes.c_uint() for _ in range(3)]
    library.LLVMGetVersion(*(ctypes.byref(n) for n in numbers))
    version = ".".join(str(n.value) for n in numbers).encode()
    sys.stdout.buffer.write(REPLY.pack(len(version)) + version)
    sys.stdout.buffer.flush()
    position = mmap.mmap(int(sys.argv[2]), POSITION.size)
    serve(library, position, sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
