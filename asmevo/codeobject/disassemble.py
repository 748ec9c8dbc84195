"""Machine code to LLVM's text, with AMD's LLVM in this process."""

from __future__ import annotations

import ctypes
import functools
import importlib.metadata
import re
from collections.abc import Collection, Mapping
from pathlib import Path

from asmevo.codeobject.container import CodeObject, Kernel
from asmevo.codeobject.errors import ToolchainError
from asmevo.codeobject.target import Target
from asmevo.isa.program import Program

Row = tuple[int, int, str]

_DISTRIBUTION = "rocm-llvm-python"
_LIBRARY = "librocmllvm.so"
_LINE_SIZE = 512
_CACHE_LIMIT = 1 << 20
# Longest instruction: 8 bytes, but gfx950's scaled MFMAs take 16.
_LONGEST = {"gfx950": 16}
# LLVM remarks on operands it cannot print: `/*invalid immediate*/`, `; Warning: ... isn't aligned`.
_REMARK = re.compile(r"/\*|;")
# Only the 16-bit displacement distinguishes branches; SOPP is the one format that has it, and
# s_call_b64 (SOPK) the one other instruction.
_BRANCH = re.compile(r"(s_c?branch\w*|s_call_b64 \S+) (\d+)")


@functools.cache
def _library() -> ctypes.CDLL:
    try:
        distribution = importlib.metadata.distribution(_DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        raise ToolchainError(f"disassembling needs the Python package '{_DISTRIBUTION}' "
                             f"(pip install {_DISTRIBUTION})") from None
    found = [f for f in distribution.files or () if f.name == _LIBRARY]
    if not found:
        raise ToolchainError(f"the installed '{_DISTRIBUTION}' has no {_LIBRARY}")
    path = Path(str(distribution.locate_file(found[0])))
    try:
        library = ctypes.CDLL(str(path))
        for name in ("TargetInfo", "TargetMC", "Disassembler"):
            getattr(library, f"LLVMInitializeAMDGPU{name}")()
        create, decode = library.LLVMCreateDisasmCPUFeatures, library.LLVMDisasmInstruction
    except (OSError, AttributeError) as error:
        raise ToolchainError(f"cannot load LLVM from '{path}': {error}") from error
    create.restype = ctypes.c_void_p
    create.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p,
                       ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    decode.restype = ctypes.c_size_t
    decode.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64,
                       ctypes.c_char_p, ctypes.c_size_t]
    return library


def disassembler_version() -> str:
    """LLVM's version and the distribution it comes from."""
    numbers = [ctypes.c_uint() for _ in range(3)]
    _library().LLVMGetVersion(*(ctypes.byref(n) for n in numbers))
    version = ".".join(str(n.value) for n in numbers)
    return f"LLVM {version} ({_DISTRIBUTION} {importlib.metadata.version(_DISTRIBUTION)})"


class _Disassembler:
    """One LLVM disassembler context and what it has decoded so far.

    Nothing is decoded relative to the address, so the text of an instruction depends on its bytes
    alone and can be remembered.
    """

    def __init__(self, isa: str) -> None:
        self._library = _library()
        self._context = self._library.LLVMCreateDisasmCPUFeatures(
            b"amdgcn-amd-amdhsa", isa.encode(), b"", None, 0, None, None)
        if not self._context:
            raise ToolchainError(f"LLVM has no disassembler for '{isa}'")
        self._longest = _LONGEST.get(isa, 8)
        self._text = ctypes.create_string_buffer(_LINE_SIZE)
        self._known: dict[bytes, tuple[int, str]] = {}

    def rows(self, code: bytes) -> list[Row]:
        rows: list[Row] = []
        known, longest = self._known, self._longest
        position = 0
        while position < len(code):
            window = code[position:position + longest]
            decoded = known.get(window)
            if decoded is None:
                decoded = self._decode(window)
                if len(known) >= _CACHE_LIMIT:
                    known.clear()
                known[window] = decoded
            rows.append((position, *decoded))
            position += decoded[0]
        return rows

    def _decode(self, window: bytes) -> tuple[int, str]:
        # LLVM 22 dereferences null when an instruction's literal is cut off by the end of the code,
        # so it always gets the longest possible instruction.
        padded = window.ljust(self._longest, b"\0")
        size: int = self._library.LLVMDisasmInstruction(
            self._context, padded, len(padded), 0, self._text, _LINE_SIZE)
        text = " ".join(self._text.value.decode("ascii", "replace").split())
        if size == 0 or size > len(window) or not text or _REMARK.search(text):
            return _undecoded(window)
        return size, text


def _undecoded(window: bytes) -> tuple[int, str]:
    """A data row: LLVM does not know the word, or remarks on one of its operands."""
    if len(window) < 4:
        return len(window), ".byte " + ", ".join(f"{b:#04x}" for b in window)
    return 4, f".long 0x{int.from_bytes(window[:4], 'little'):08x}"


@functools.cache
def _disassembler(isa: str) -> _Disassembler:
    return _Disassembler(isa)


def rows(code: bytes, target: Target) -> list[Row]:
    """Disassemble into ``(byte offset, size, text)`` rows that cover ``code`` without gaps.

    Text is LLVM's with single spaces; branches keep their numeric displacement. What LLVM cannot
    decode becomes a ``.long`` row (``.byte`` for a last incomplete word).
    """
    return _disassembler(target.isa).rows(code)


def branch_target(offset: int, text: str) -> int | None:
    """Where a disassembled branch goes: a byte offset in the numbering of ``offset``, or `None`.

    CDNA3 ISA, "Program Control": PC of the next instruction plus the signed 16-bit dword count.
    """
    match = _BRANCH.fullmatch(text)
    if match is None:
        return None
    displacement = int(match[2])
    return offset + 4 + 4 * (displacement - 0x10000 if displacement & 0x8000 else displacement)


def labels(code_object: CodeObject, kernel: Kernel, listing: list[Row]) -> Mapping[int, str]:
    """Names of a kernel's code offsets: its local symbols, and one for every other branch target.

    Synthetic names start with ``.L`` so that the assembler keeps them out of the symbol table.
    Where several symbols share an address the first names it.
    """
    base = code_object.section(".text").address + kernel.entry
    named: dict[int, str] = {}
    for symbol in code_object.symbols:
        local = symbol.binding == "LOCAL" and symbol.type == "NOTYPE" and symbol.section == ".text"
        if local and 0 <= symbol.value - base <= kernel.size:
            named.setdefault(symbol.value - base, symbol.name)
    taken = {s.name for s in code_object.symbols}
    starts = {offset for offset, _, _ in listing}
    for offset, _, text in listing:
        target = branch_target(offset, text)
        if target is not None and target not in named and target in starts:
            named[target] = _fresh(f".L_{target:04x}", taken)
    return dict(sorted(named.items()))


def _fresh(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name


def program(code_object: CodeObject, symbol: str | None = None) -> Program:
    """Decode a kernel; raises `CodeObjectError` for an unknown one, and what `Program` raises."""
    kernel = code_object.kernel(symbol)
    listing = rows(code_object.code(kernel), code_object.target)
    return Program.from_disassembly(listing, labels(code_object, kernel, listing))
