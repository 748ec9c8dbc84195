"""A code object back to editable assembly text."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from asmevo.codeobject.assembly import Assembly, KernelBody, Line
from asmevo.codeobject.container import CodeObject, Kernel
from asmevo.codeobject.descriptor import DESCRIPTOR_SIZE, KernelDescriptor
from asmevo.codeobject.disassemble import branch_target, labels, local_symbols, rows
from asmevo.codeobject.disassembler import Row
from asmevo.codeobject.errors import CodeObjectError
from asmevo.codeobject.metadata import metadata_yaml

# Processors whose descriptor directives and register granules are known here.
RECOVERABLE = frozenset({"gfx942"})

SYMBOL_NAME = re.compile(r"[A-Za-z_.][A-Za-z0-9_.$]*")

_LINKER_COMMENT = "Linker: "
# Sections that the assembler and linker make from the text below, or by themselves.
_KNOWN_SECTIONS = frozenset({
    "", ".note", ".dynsym", ".gnu.hash", ".hash", ".dynstr", ".rodata", ".text", ".dynamic",
    ".relro_padding", ".comment", ".symtab", ".shstrtab", ".strtab",
})
# Instructions whose code address is in registers, or a displacement beside a register.
CODE_ADDRESS = re.compile(r"s_(getpc|setpc|swappc|call|rfe|cbranch_[gi]_fork|cbranch_join)\w*")


@dataclass(frozen=True, slots=True)
class Comments:
    """What ``.comment`` holds: the linker's line and the others, one `.ident` each."""

    linker: str | None
    idents: tuple[str, ...]


def comments(code_object: CodeObject) -> Comments:
    """Split ``.comment``. Raises `CodeObjectError` on text that no directive can write."""
    if not any(s.name == ".comment" for s in code_object.sections):
        return Comments(None, ())
    data = code_object.section_data(code_object.section(".comment"))
    linker: list[str] = []
    idents: list[str] = []
    for raw in data.split(b"\0"):
        if not raw:
            continue
        if not all(0x20 <= byte < 0x7F and byte not in b'"\\' for byte in raw):
            raise CodeObjectError("the .comment section holds text that is not plain ASCII")
        text = raw.decode("ascii")
        (linker if text.startswith(_LINKER_COMMENT) else idents).append(text)
    if len(linker) > 1:
        raise CodeObjectError("the .comment section names several linkers")
    return Comments(linker[0] if linker else None, tuple(idents))


@functools.lru_cache(maxsize=8)
def recover(code_object: CodeObject, verbatim: frozenset[int] = frozenset()) -> Assembly:
    """Assembly text from which the toolchain makes ``code_object`` again.

    Instructions whose indices are in ``verbatim`` are written as their bytes with the text as a
    comment; `asmevo.codeobject.roundtrip.round_trip` finds out which need it. Raises
    `CodeObjectError` naming the first construct that is not handled.
    """
    _check_supported(code_object)
    kernel = code_object.kernel()
    head = _head(code_object, kernel)
    body = KernelBody(kernel.symbol, tuple(_lines(code_object, kernel, verbatim)))
    tail = tail_text(code_object, kernel.symbol, kernel.descriptor, code_object.metadata)
    return Assembly(code_object.sha256, (head, body, tail))


def tail_text(code_object: CodeObject, symbol: str, descriptor: KernelDescriptor,
              metadata: Mapping[str, object]) -> str:
    """The block behind a kernel's body: its descriptor, the object's metadata and idents."""
    text = code_object.section(".text")
    rodata = code_object.section(".rodata")
    sized = [f"\t.size {symbol}, .-{symbol}"] if _function_size(code_object, symbol) else []
    lines = [
        *sized,
        f'\t.section {rodata.name},"a",@progbits',
        f"\t.p2align {_log2(rodata.alignment, rodata.name)}",
        f"\t.amdhsa_kernel {symbol}",
        *(f"\t\t{directive}" for directive in descriptor.directives()),
        "\t.end_amdhsa_kernel",
        f"\t.section {text.name}",
        *(f'\t.ident "{ident}"' for ident in comments(code_object).idents),
        "\t.amdgpu_metadata",
    ]
    return "\n".join(lines) + "\n" + metadata_yaml(metadata) + "\t.end_amdgpu_metadata\n"


def data_line(code: bytes, text: str) -> str:
    """An instruction as data, with its text as a comment."""
    words = [int.from_bytes(code[i:i + 4], "little") for i in range(0, len(code), 4)]
    return ".long " + ", ".join(f"0x{word:08x}" for word in words) + f" // {text}"


def _head(code_object: CodeObject, kernel: Kernel) -> str:
    text = code_object.section(".text")
    lines = [
        f'\t.amdgcn_target "{code_object.target.triple}"',
        f"\t.amdhsa_code_object_version {code_object.version}",
        # Declared first and in this order, local symbols keep their places in .symtab.
        *(f"\t.local {_checked(s.name)}" for s in local_symbols(code_object)),
        "\t.text",
        f"\t.p2align {_log2(text.alignment, text.name)}",
        f"\t.globl {_checked(kernel.symbol)}",
        f"\t.type {kernel.symbol},@function",
        f"{kernel.symbol}:",
    ]
    return "\n".join(lines) + "\n"


def _lines(code_object: CodeObject, kernel: Kernel, verbatim: frozenset[int]) -> Iterator[Line]:
    code = code_object.code(kernel)
    listing = rows(code, code_object.target)
    _check_code(listing)
    names = labels(code_object, kernel, listing)
    here = _all_labels(code_object, kernel, names)
    ends = {offset for offset, _, _ in listing} | {len(code)}
    if astray := [name for offset, group in here.items() if offset not in ends for name in group]:
        raise CodeObjectError(f"symbol '{astray[0]}' lies inside an instruction")
    for index, (offset, size, text) in enumerate(listing):
        target = branch_target(offset, text)
        shown = text
        if target is not None:
            if target not in names or target not in ends:
                raise CodeObjectError(f"the branch at offset {offset:#x} leaves the kernel or "
                                      "goes into an instruction")
            shown = f"{text.rsplit(' ', 1)[0]} {names[target]}"
        if index in verbatim:
            if target is not None:
                raise CodeObjectError(f"the branch at offset {offset:#x} does not encode back to "
                                      "its bytes, and as data it would not follow an edit")
            shown = data_line(code[offset:offset + size], text)
        yield Line(shown, here.get(offset, ()))
    if len(code) in here:
        yield Line("", here[len(code)])


def _all_labels(code_object: CodeObject, kernel: Kernel,
                names: Mapping[int, str]) -> dict[int, tuple[str, ...]]:
    """Every label by offset: all local symbols in symbol table order, then the synthetic ones."""
    base = code_object.section(".text").address + kernel.entry
    here: dict[int, tuple[str, ...]] = {}
    for symbol in local_symbols(code_object):
        offset = symbol.value - base
        here[offset] = (*here.get(offset, ()), symbol.name)
    for offset, name in names.items():
        if offset not in here:
            here[offset] = (name,)
    return here


def _check_supported(code_object: CodeObject) -> None:
    if code_object.target.isa not in RECOVERABLE:
        raise CodeObjectError(f"recovery does not handle {code_object.target.isa} yet")
    unknown = [s.name for s in code_object.sections if s.name not in _KNOWN_SECTIONS]
    if unknown:
        raise CodeObjectError(f"recovery does not handle the section '{unknown[0]}'")
    if len(code_object.kernels) != 1:
        raise CodeObjectError(f"recovery handles objects of one kernel, not of "
                              f"{len(code_object.kernels)}")
    kernel = code_object.kernels[0]
    text = code_object.section(".text")
    if kernel.entry or kernel.size != text.size:
        raise CodeObjectError("recovery does not handle code outside the kernel")
    if code_object.section(".rodata").size != DESCRIPTOR_SIZE:
        raise CodeObjectError("recovery does not handle read-only data beside the descriptor")
    if kernel.descriptor.kernarg_preload_length:
        raise CodeObjectError("recovery does not handle kernarg preloading")
    expected = {kernel.symbol: ("FUNC", "GLOBAL", "PROTECTED", ".text"),
                f"{kernel.symbol}.kd": ("OBJECT", "GLOBAL", "DEFAULT", ".rodata"),
                "_DYNAMIC": ("NOTYPE", "LOCAL", "HIDDEN", ".dynamic"),
                "": ("NOTYPE", "LOCAL", "DEFAULT", "UND")}
    for symbol in code_object.symbols:
        kind = (symbol.type, symbol.binding, symbol.visibility, symbol.section)
        if kind == ("NOTYPE", "LOCAL", "DEFAULT", ".text"):
            _checked(symbol.name)
        elif expected.get(symbol.name) != kind:
            raise CodeObjectError(f"recovery does not handle the symbol '{symbol.name}' "
                                  f"({symbol.binding} {symbol.type} in {symbol.section})")
    if _function_size(code_object, kernel.symbol) not in (0, kernel.size):
        raise CodeObjectError("recovery does not handle code behind the end of the function")


def _function_size(code_object: CodeObject, symbol: str) -> int:
    return next(s.size for s in code_object.symbols if s.name == symbol and s.type == "FUNC")


def _check_code(listing: Sequence[Row]) -> None:
    for offset, _, text in listing:
        if match := CODE_ADDRESS.match(text):
            raise CodeObjectError(f"recovery does not handle '{match[0]}' (offset {offset:#x}): "
                                  "code addresses in registers would not follow an edit")


def _checked(name: str) -> str:
    """A symbol name that is safe to write into assembler input."""
    if not SYMBOL_NAME.fullmatch(name):
        raise CodeObjectError(f"recovery does not handle the symbol name {name!r}")
    return name


def _log2(alignment: int, section: str) -> int:
    if alignment <= 0 or alignment & (alignment - 1) or alignment > 1 << 16:
        raise CodeObjectError(f"section '{section}' has the alignment {alignment}")
    return alignment.bit_length() - 1
