"""An edited assembly to a code object that the host cannot tell from the original."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from asmevo.codeobject.assembly import Assembly, KernelBody
from asmevo.codeobject.build import build
from asmevo.codeobject.container import CodeObject, Kernel
from asmevo.codeobject.disassemble import rows
from asmevo.codeobject.disassembler import Row
from asmevo.codeobject.errors import RebuildError
from asmevo.codeobject.interface import Interface, differences
from asmevo.codeobject.recover import CODE_ADDRESS, data_line, recover, tail_text
from asmevo.codeobject.resources import (
    Allocation,
    RegisterUse,
    register_use,
    required_allocation,
    with_allocation,
    with_counts,
)
from asmevo.codeobject.toolchain import Toolchain

LINE_LIMIT = 256

# One instruction and nothing else: no `.directive`, `label:`, `name = value`, `;`, quote, comment,
# macro argument or line break can be written with these characters in this order.
_LINE = re.compile(r"(?:s|v|ds|buffer|global|flat|scratch)_[a-z0-9_]+"
                   r"(?: [A-Za-z0-9_.,:\[\]()|&+\- ]+)?")
_WORD = re.compile(r"[A-Za-z_.$][\w.$]*")
_BRANCH = re.compile(r"s_c?branch_?\w*")


def validate_line(text: str, labels: Iterable[str] = (), symbols: Iterable[str] = ()) -> None:
    """Check one line that a proposer wrote; raises `RebuildError` saying what is wrong with it.

    It must be one instruction. ``labels`` are the branch targets it may name, ``symbols`` the
    object's symbols, which no operand may name.
    """
    shown = repr(text if len(text) <= 80 else text[:77] + "...")
    if len(text) > LINE_LIMIT:
        raise RebuildError(f"line {shown} is longer than {LINE_LIMIT} characters")
    if not _LINE.fullmatch(text):
        raise RebuildError(f"line {shown} is not one plain instruction")
    if CODE_ADDRESS.match(text):
        raise RebuildError(f"line {shown} handles code addresses, which an edit may not")
    mnemonic, _, operands = text.partition(" ")
    if _BRANCH.fullmatch(mnemonic):
        if operands.strip() not in set(labels):
            raise RebuildError(f"line {shown} does not branch to a label of the kernel")
        return
    forbidden = {*labels, *symbols}
    for word in _WORD.findall(operands):
        if word in forbidden or word.startswith("."):
            raise RebuildError(f"line {shown} names the symbol '{word}'")


def rebuild(original: CodeObject, assembly: Assembly, toolchain: Toolchain, *,
            allow_lower: bool = False) -> CodeObject:
    """Assemble and link an edited assembly of ``original``, with its interface unchanged.

    The register allocation stays what the original declares unless the code needs more, or, with
    ``allow_lower``, becomes the least that covers the code. Raises `RebuildError` when an edit is
    not plain instructions, does not fit the hardware, or would change what the host sees;
    `AssemblerError` when the assembler rejects it.
    """
    baseline = recover(original)
    _check_document(original, baseline, assembly)
    result = CodeObject.parse(build(original, assembly, toolchain))
    kernel = original.kernel()
    listing = _check_code(result, assembly.body(kernel.symbol))
    use = register_use(listing)
    declared = Allocation.of(kernel.descriptor)
    needed = required_allocation(kernel.descriptor, use, allow_lower=allow_lower)
    if needed != declared:
        assembly = _with_allocation(original, kernel, assembly, needed, use)
        result = CodeObject.parse(build(original, assembly, toolchain))
        _check_code(result, assembly.body(kernel.symbol))
    _check_interface(original, result, kernel.symbol)
    return result


def _check_document(original: CodeObject, baseline: Assembly, assembly: Assembly) -> None:
    if assembly.original_sha256 != original.sha256:
        raise RebuildError("the assembly was recovered from another object")
    shapes = [[b.symbol if isinstance(b, KernelBody) else None for b in a.blocks]
              for a in (baseline, assembly)]
    if shapes[0] != shapes[1]:
        raise RebuildError("the assembly has other blocks or kernels than the original")
    for before, after in zip(baseline.blocks, assembly.blocks, strict=True):
        if isinstance(before, KernelBody) and isinstance(after, KernelBody):
            _check_body(original, before, after)
        elif before != after:
            raise RebuildError("the assembly was changed outside the kernel's instructions")


def _check_body(original: CodeObject, before: KernelBody, after: KernelBody) -> None:
    labels = sorted(label for line in before.lines for label in line.labels)
    if sorted(label for line in after.lines for label in line.labels) != labels:
        raise RebuildError("the assembly has other labels than the original")
    if any(not line.text for line in after.lines[:-1]):
        raise RebuildError("the assembly has an empty line between instructions")
    trusted = {line.text for line in before.lines} | _verbatim_lines(original, after)
    symbols = {s.name for s in original.symbols if s.name} - set(labels)
    private = any(line.text.startswith("scratch_") for line in before.lines)
    for text in {line.text for line in after.lines if line.text} - trusted:
        validate_line(text, labels, symbols)
        if text.startswith("scratch_") and not private:
            raise RebuildError(f"line {text!r} uses scratch memory, which the original does not")


def _verbatim_lines(original: CodeObject, body: KernelBody) -> set[str]:
    """The original's instructions as data, as a round trip with fallbacks writes them."""
    if not any(line.text.startswith(".long") for line in body.lines):
        return set()
    code = original.code(original.kernel(body.symbol))
    return {data_line(code[offset:offset + size], text)
            for offset, size, text in rows(code, original.target)}


def _check_code(result: CodeObject, body: KernelBody) -> tuple[Row, ...]:
    """The decoded kernel, which must have one instruction a line and end with the section."""
    listing = rows(result.code(result.kernel(body.symbol)), result.target)
    count = sum(1 for line in body.lines if line.text)
    if len(listing) != count:
        raise RebuildError(f"the kernel's {count} lines became {len(listing)} instructions")
    return listing


def _check_interface(original: CodeObject, result: CodeObject, symbol: str) -> None:
    found = differences(Interface.of(original, original.kernel(symbol)),
                        Interface.of(result, result.kernel(symbol)))
    if found:
        raise RebuildError(f"the rebuilt object's interface differs: {'; '.join(found)}")


def _with_allocation(original: CodeObject, kernel: Kernel, assembly: Assembly, needed: Allocation,
                     use: RegisterUse) -> Assembly:
    declared = Allocation.of(kernel.descriptor)
    metadata: dict[str, object] = {}
    for key, value in original.metadata.items():
        if key == "amdhsa.kernels" and isinstance(value, list):
            metadata[key] = [with_counts(entry, needed, declared, use)
                             if _describes(entry, kernel.symbol) else entry for entry in value]
        else:
            metadata[key] = value
    descriptor = with_allocation(kernel.descriptor, needed)
    tail = tail_text(original, kernel.symbol, descriptor, metadata)
    return replace(assembly, blocks=(*assembly.blocks[:-1], tail))


def _describes(entry: object, symbol: str) -> bool:
    return isinstance(entry, Mapping) and entry.get(".symbol") == f"{symbol}.kd"
