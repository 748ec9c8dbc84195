"""A code object back to editable assembly text."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from asmevo.codeobject.assembly import Assembly, KernelBody, Line
from asmevo.codeobject.code_address import symbolic
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.data_sections import data_lines, data_sections, log2
from asmevo.codeobject.descriptor import KernelDescriptor
from asmevo.codeobject.disassemble import branch_target
from asmevo.codeobject.disassembler import Row
from asmevo.codeobject.encoding import UNCHANGED, Encoding
from asmevo.codeobject.errors import CodeObjectError
from asmevo.codeobject.functions import Function, code_of, functions, listing
from asmevo.codeobject.labels import Labels, labels_of
from asmevo.codeobject.metadata import metadata_yaml
from asmevo.codeobject.padding import alignment_in_front, filler_in_front, padding_rows
from asmevo.codeobject.symbols import SYMBOL_NAME, declarations

__all__ = ["CODE_ADDRESS", "RECOVERABLE", "SYMBOL_NAME", "Comments", "Fallbacks", "comments",
           "data_line", "recover", "tail_text"]

# Processors whose descriptor directives and register granules are known here.
RECOVERABLE = frozenset({"gfx90a", "gfx942", "gfx950"})

_LINKER_COMMENT = "Linker: "
# Instructions whose code address is in registers, or a displacement beside a register.
CODE_ADDRESS = re.compile(r"s_(getpc|setpc|swappc|call|rfe|cbranch_[gi]_fork|cbranch_join)\w*")
# Those of them that no edit can be followed through.
_UNTRACEABLE = re.compile(r"s_(rfe|cbranch_[gi]_fork|cbranch_join)\w*")

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


@dataclass(frozen=True)
class Fallbacks:
    """Instructions, by offset in ``.text``, that do not encode back to their bytes.

    ``data`` are to be written as bytes, ``encodings`` with the bits that the assembler leaves out.
    """

    data: frozenset[int] = frozenset()
    encodings: frozenset[tuple[int, Encoding]] = frozenset()
    by_offset: Mapping[int, Encoding] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_offset", dict(self.encodings))

    def __or__(self, other: Fallbacks) -> Fallbacks:
        data = self.data | other.data
        merged = {**self.by_offset, **other.by_offset}
        return Fallbacks(data, frozenset((k, v) for k, v in merged.items() if k not in data))


NO_FALLBACKS = Fallbacks()


@functools.lru_cache(maxsize=8)
def recover(code_object: CodeObject, fallbacks: Fallbacks = NO_FALLBACKS) -> Assembly:
    """Assembly text from which the toolchain makes ``code_object`` again.

    ``fallbacks`` are written as their bytes with the text as a comment, or as text with their
    encoding as a comment; `asmevo.codeobject.roundtrip.round_trip` finds out which need it. Raises
    `CodeObjectError` naming the first construct that is not handled.
    """
    if code_object.target.isa not in RECOVERABLE:
        raise CodeObjectError(f"recovery does not handle {code_object.target.isa}; it handles "
                              f"{', '.join(sorted(RECOVERABLE))}")
    if not code_object.kernels:
        raise CodeObjectError("the object has no kernels")
    labels = labels_of(code_object)
    blocks: list[str | KernelBody] = []
    between = _head(code_object)
    for function in functions(code_object):
        blocks.append(between + _opened(code_object, function))
        lines = tuple(_lines(code_object, function, labels, fallbacks))
        blocks.append(KernelBody(function.symbol, lines))
        between = "".join(_sizes(function))
    last = code_object.kernels[-1]
    tail = tail_text(code_object, last.symbol, last.descriptor, code_object.metadata)
    return Assembly(code_object.sha256, (*blocks, between + tail))


def tail_text(code_object: CodeObject, symbol: str, descriptor: KernelDescriptor,
              metadata: Mapping[str, object]) -> str:
    """What comes behind the last function: data, the object's metadata and idents.

    ``descriptor`` stands in for that of kernel ``symbol``.
    """
    labels = labels_of(code_object)
    descriptors = {k.symbol: k.descriptor for k in code_object.kernels} | {symbol: descriptor}
    idents = [f'\t.ident "{ident}"' for ident in comments(code_object).idents]
    written = data_sections(code_object)
    lines: list[str] = []
    for section in code_object.sections:
        if section.name == ".comment":
            # Debug information may stand on both sides of it.
            lines += idents
        elif section in written:
            lines += data_lines(code_object, section, labels, descriptors)
    lines += [
        "\t.section .text",
        "\t.amdgpu_metadata",
    ]
    return "\n".join(lines) + "\n" + metadata_yaml(metadata) + "\t.end_amdgpu_metadata\n"


def data_line(code: bytes, text: str) -> str:
    """An instruction as data, with its text as a comment."""
    words = [int.from_bytes(code[i:i + 4], "little") for i in range(0, len(code), 4)]
    return ".long " + ", ".join(f"0x{word:08x}" for word in words) + f" // {text}"


def _head(code_object: CodeObject) -> str:
    text = code_object.section(".text")
    lines = [
        f'\t.amdgcn_target "{code_object.target.triple}"',
        f"\t.amdhsa_code_object_version {code_object.version}",
        *declarations(code_object),
        "\t.text",
        f"\t.p2align {log2(text.alignment, text.name)}",
        *filler_in_front(code_object),
    ]
    return "\n".join(lines) + "\n"


def _opened(code_object: CodeObject, function: Function) -> str:
    alignment = alignment_in_front(code_object, function)
    lines = [f"\t{alignment}\n"] if alignment else []
    return "".join([*lines, *(f"{symbol.name}:\n" for symbol in function.symbols)])


def _sizes(function: Function) -> Iterator[str]:
    """`.size` directives; a function that ends before the next one starts has a label there."""
    for symbol in function.symbols:
        if symbol.size:
            end = "." if symbol.size == function.size else _end_label(function, symbol.size)
            yield f"\t.size {symbol.name}, {end}-{symbol.name}\n"


def _end_label(function: Function, size: int) -> str:
    return f".L_end_{function.entry + size:04x}"


def _lines(code_object: CodeObject, function: Function, labels: Labels,
           fallbacks: Fallbacks) -> Iterator[Line]:
    code = code_of(code_object, function)
    rows = listing(code_object, function)
    here = _labels_here(code_object, function, rows, labels)
    written = _computed(function, rows, labels, here)
    padding = padding_rows(code_object, function, rows, here)
    for index, (offset, size, text) in enumerate(rows):
        place = function.entry + offset
        target = branch_target(offset, text)
        shown = written.get(index, text)
        if target is not None:
            shown = f"{text.rsplit(' ', 1)[0]} {labels.branch_names[function.entry + target]}"
        elif text.startswith("s_") and (match := _UNTRACEABLE.match(text)):
            raise CodeObjectError(f"recovery does not handle '{match[0]}' (offset {place:#x}): "
                                  "code addresses in registers would not follow an edit")
        if place in fallbacks.data:
            if shown != text:
                raise CodeObjectError(f"'{text}' at offset {place:#x} does not encode back to its "
                                      "bytes, and as data it would not follow an edit")
            shown = data_line(code[offset:offset + size], text)
        yield Line(shown, here.get(offset, ()), fallbacks.by_offset.get(place, UNCHANGED),
                   padding.get(index, ""))
    if function.size in here:
        yield Line("", here[function.size])


def _computed(function: Function, rows: Sequence[Row], labels: Labels,
              here: dict[int, tuple[str, ...]]) -> dict[int, str]:
    """Additions that make addresses, by row; their bases get labels in ``here``."""
    written: dict[int, str] = {}
    for found in labels.code_addresses.get(function.entry, ()):
        base = f".L_pc_{function.entry + found.base:04x}"
        here[found.base] = (*here.get(found.base, ()), base)
        symbol, kind = labels.target(
            labels.text_address + function.entry + found.base + found.value)
        written[found.low] = symbolic(rows[found.low][2], symbol, f"{kind}@lo", base)
        if found.high >= 0:
            written[found.high] = symbolic(rows[found.high][2], symbol, f"{kind}@hi", base)
    return written


def _labels_here(code_object: CodeObject, function: Function, rows: Sequence[Row],
                 labels: Labels) -> dict[int, tuple[str, ...]]:
    """Every label by offset from the entry: symbols in symbol table order, then synthetic ones."""
    base = labels.text_address + function.entry
    last = function.end == code_object.section(".text").size
    here: dict[int, tuple[str, ...]] = {}
    end = function.size + last
    for address in labels.between(base, base + end):
        names = [s.name for s in labels.symbols.get(address, ())
                 if s.type != "FUNC" and s.section == ".text"]
        synthetic = labels.synthetic.get(address, "")
        if synthetic.startswith(".L_"):
            names.append(synthetic)
        if names:
            here[address - base] = tuple(names)
    for size in {s.size for s in function.symbols} - {0, function.size}:
        here[size] = (*here.get(size, ()), _end_label(function, size))
    starts = {offset for offset, _, _ in rows} | {function.size}
    if astray := [name for offset, group in here.items() if offset not in starts
                  for name in group]:
        what = "something that code refers to" if astray[0].startswith(".L") else astray[0]
        raise CodeObjectError(f"{what} lies inside an instruction of '{function.symbol}'")
    return here
