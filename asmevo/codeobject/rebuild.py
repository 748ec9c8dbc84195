"""An edited assembly to a code object that the host cannot tell from the original."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from asmevo.codeobject.assembly import Assembly, KernelBody
from asmevo.codeobject.build import build
from asmevo.codeobject.container import CodeObject, Kernel
from asmevo.codeobject.disassemble import rows
from asmevo.codeobject.encoding import UNCHANGED
from asmevo.codeobject.errors import RebuildError
from asmevo.codeobject.interface import Interface, differences
from asmevo.codeobject.padding import ENTRY_ALIGNMENT, instruction_rows
from asmevo.codeobject.recover import CODE_ADDRESS
from asmevo.codeobject.requirements import Declaration, required_kernel, with_resources
from asmevo.codeobject.roundtrip import recovered
from asmevo.codeobject.toolchain import Toolchain

LINE_LIMIT = 256

# One instruction and nothing else: no `.directive`, `label:`, `name = value`, `;`, quote, comment,
# macro argument or line break can be written with these characters in this order.
_LINE = re.compile(r"(?:s|v|ds|buffer|global|flat|scratch)_[a-z0-9_]+"
                   r"(?: [A-Za-z0-9_.,:\[\]()|&+\- ]+)?")
_LABEL = re.compile(r"[A-Za-z_.$][\w.$]*", re.ASCII)
_WORD = re.compile(r"(?<![\w.$])[A-Za-z_.$][\w.$]*")
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
            kernel: str | None = None, allow_lower: bool = False, lds_bytes: int | None = None,
            scratch_bytes: int | None = None) -> CodeObject:
    """Assemble and link an edited assembly of ``original``, with its interface unchanged.

    What counts as edited is told from the assembly of the original's round trip.
    One kernel may be edited: ``kernel``, or else the one whose lines differ. Its register
    allocation stays what the original declares unless the code needs more, or, with
    ``allow_lower``, becomes the least that covers the code. LDS and scratch sizes are frozen unless
    ``lds_bytes`` (static LDS of a workgroup) or ``scratch_bytes`` (of a work-item) declares
    another; less than the original's also needs ``allow_lower``. Raises `RebuildError` when an edit
    is not plain instructions, does not fit the hardware, reaches beyond the declared sizes or would
    change what the host sees; `AssemblerError` when the assembler rejects it.
    """
    baseline = recovered(original, toolchain)
    edited = original.kernel(_edited_kernel(original, baseline, assembly, kernel))
    _check_document(original, baseline, assembly)
    result = CodeObject.parse(build(original, assembly, toolchain))
    _check_code(result, assembly.body(edited.symbol))
    expected = required_kernel(original, edited, result, Declaration(
        allow_lower=allow_lower, lds_bytes=lds_bytes, scratch_bytes=scratch_bytes))
    if (expected.descriptor, expected.metadata) != (edited.descriptor, edited.metadata):
        text = with_resources(assembly, original, edited, expected)
        result = CodeObject.parse(build(original, text, toolchain))
        _check_code(result, assembly.body(edited.symbol))
    _check_result(original, result, expected)
    return result


def _edited_kernel(original: CodeObject, baseline: Assembly, assembly: Assembly,
                   kernel: str | None) -> str:
    bodies = {b.symbol: b for b in assembly.blocks if isinstance(b, KernelBody)}
    changed = [b.symbol for b in baseline.blocks if isinstance(b, KernelBody)
               and bodies.get(b.symbol, b) != b]
    others = [symbol for symbol in changed if symbol != kernel]
    if len(changed) > 1 or (kernel is not None and others):
        raise RebuildError(f"the edits touch '{others[0]}' and '{kernel or others[1]}', but one "
                           "rebuild edits one kernel")
    if kernel is not None:
        return original.kernel(kernel).symbol
    symbol = changed[0] if changed else original.kernels[0].symbol
    if symbol not in {k.symbol for k in original.kernels}:
        raise RebuildError(f"the edits touch '{symbol}', which is not a kernel")
    return symbol


def _check_document(original: CodeObject, baseline: Assembly, assembly: Assembly) -> None:
    if assembly.original_sha256 != original.sha256:
        raise RebuildError("the assembly was recovered from another object")
    shapes = [[b.symbol if isinstance(b, KernelBody) else None for b in a.blocks]
              for a in (baseline, assembly)]
    if shapes[0] != shapes[1]:
        raise RebuildError("the assembly has other blocks or kernels than the original")
    for before, after in zip(baseline.blocks, assembly.blocks, strict=True):
        if before == after:
            continue
        if isinstance(before, KernelBody) and isinstance(after, KernelBody):
            _check_body(original, before, after)
        else:
            raise RebuildError("the assembly was changed outside the kernel's instructions")


def _check_body(original: CodeObject, before: KernelBody, after: KernelBody) -> None:
    labels = [label for line in after.lines for label in line.labels]
    if len(set(labels)) != len(labels) or _kept(after) != _kept(before):
        raise RebuildError("the assembly has other labels than the original")
    if odd := [label for label in labels if not _LABEL.fullmatch(label)]:
        raise RebuildError(f"{odd[0][:80]!r} is not a label")
    if any(not line.text for line in after.lines[:-1]):
        raise RebuildError("the assembly has an empty line between instructions")
    _check_encodings(before, after)
    trusted = {line.text for line in before.lines}
    symbols = {s.name for s in original.symbols if s.name} - set(labels)
    for text in {line.text for line in after.lines if line.text} - trusted:
        validate_line(text, labels, symbols)


def _kept(body: KernelBody) -> list[str]:
    """Labels that end up in the symbol table: the assembler leaves out those that start with .L."""
    return sorted(label for line in body.lines for label in line.labels
                  if not label.startswith(".L"))


def _check_encodings(before: KernelBody, after: KernelBody) -> None:
    """Bits that no operand stands for may only be those of an instruction of the same name."""
    known, wanted = ({(line.text.partition(" ")[0], line.encoding) for line in body.lines
                      if line.encoding != UNCHANGED} for body in (before, after))
    for name, encoding in wanted - known:
        raise RebuildError(f"the original has no '{name}' with the bits{encoding.comment()}")


def _check_code(result: CodeObject, body: KernelBody) -> None:
    """The decoded kernel must have one instruction a line, and beside them only padding."""
    kernel = result.kernel(body.symbol)
    found = instruction_rows(body, rows(result.code(kernel), result.target), kernel.entry)
    if kernel.descriptor.kernarg_preload_length:
        prologue = next((i for i, line in enumerate(body.lines) if line.padding), 0)
        if prologue >= len(found) or found[prologue][0] != ENTRY_ALIGNMENT:
            raise RebuildError(
                f"the code in front of the second entry of '{body.symbol}' no longer fits the "
                f"{ENTRY_ALIGNMENT} bytes behind which firmware that preloads arguments enters")


def _check_result(original: CodeObject, result: CodeObject, expected: Kernel) -> None:
    """The result must have the original's interface, and exactly the expected resources."""
    rebuilt = result.kernel(expected.symbol)
    moved = replace(expected.descriptor, kernel_code_entry_byte_offset=(
        rebuilt.descriptor.kernel_code_entry_byte_offset))
    if rebuilt.descriptor != moved:
        raise RebuildError(f"the descriptor of '{expected.symbol}' could not be written with the "
                           "resources that its code needs")
    if rebuilt.metadata != expected.metadata:
        raise RebuildError(f"the metadata of '{expected.symbol}' could not be written with the "
                           "resources that its code needs")
    found = [text for kernel in original.kernels
             for text in differences(
                 Interface.of(original, expected if kernel.symbol == expected.symbol else kernel),
                 Interface.of(result, result.kernel(kernel.symbol)))]
    if found:
        raise RebuildError(f"the rebuilt object's interface differs: {'; '.join(found)}")
