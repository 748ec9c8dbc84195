"""The gate before any edit: recovered text must give the original file again, byte for byte."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from asmevo.codeobject.assembly import Assembly
from asmevo.codeobject.build import build
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import branch_target, disassembler_version, rows
from asmevo.codeobject.errors import AssemblerError, CodeObjectError
from asmevo.codeobject.recover import recover
from asmevo.codeobject.toolchain import Toolchain


@dataclass(frozen=True, slots=True)
class RoundTripReport:
    """The outcome of one round trip.

    ``masks`` name file fields that were left out of the comparison (none at present).
    ``first_difference`` is a file offset and ``section`` what lies there, in the original; both are
    empty when ``identical``. ``fallback_count`` instructions are kept as data because they do not
    encode back to their bytes. ``assembly`` is the text that was compared.
    """

    sha256: str
    identical: bool
    masks: tuple[str, ...]
    first_difference: int | None
    section: str | None
    instruction_count: int
    fallback_count: int
    seconds: float
    versions: Mapping[str, str]
    assembly: Assembly


def round_trip(code_object: CodeObject, toolchain: Toolchain) -> RoundTripReport:
    """Recover, assemble, link and compare the whole file.

    Instructions that the assembler rejects or encodes otherwise are kept as data. Raises
    `CodeObjectError` for what recovery does not handle, and the toolchain's errors.
    """
    started = time.perf_counter()
    versions = {**toolchain.versions(), "disassembler": disassembler_version()}
    kernel = code_object.kernel()
    verbatim: frozenset[int] = frozenset()
    while True:
        assembly = recover(code_object, verbatim)
        try:
            data = build(code_object, assembly, toolchain)
        except AssemblerError as error:
            more = _rejected(assembly, kernel.symbol, error)
            if more <= verbatim:
                raise
        else:
            more = frozenset() if data == code_object.data else _not_reencoded(code_object, data)
            if more <= verbatim:
                break
        verbatim |= more
    difference = _first_difference(code_object.data, data)
    lines = [line.text for line in assembly.body(kernel.symbol).lines if line.text]
    return RoundTripReport(
        sha256=code_object.sha256,
        identical=difference is None,
        masks=(),
        first_difference=difference,
        section=None if difference is None else _place(code_object, difference),
        instruction_count=len(lines),
        fallback_count=sum(text.startswith(".") for text in lines),
        seconds=time.perf_counter() - started,
        versions=versions,
        assembly=assembly,
    )


def _rejected(assembly: Assembly, kernel: str, error: AssemblerError) -> frozenset[int]:
    """Indices of the instructions that the assembler's errors point at."""
    wrong = {d.line for d in error.diagnostics if d.severity == "error"}
    found: set[int] = set()
    number = 1
    for block in assembly.blocks:
        if isinstance(block, str):
            number += block.count("\n")
            continue
        index = 0
        for line in block.lines:
            number += len(line.labels)
            if line.text:
                if number in wrong and block.symbol == kernel:
                    found.add(index)
                index += 1
                number += 1
    return frozenset(found)


def _not_reencoded(code_object: CodeObject, data: bytes) -> frozenset[int]:
    """Indices of the instructions whose bytes differ, when there are as many as before.

    Branches are left out: theirs differ when an instruction between them and their target does.
    """
    kernel = code_object.kernel()
    try:
        rebuilt = CodeObject.parse(data)
        before, after = code_object.code(kernel), rebuilt.code(rebuilt.kernel(kernel.symbol))
    except CodeObjectError:
        return frozenset()
    old, new = rows(before, code_object.target), rows(after, code_object.target)
    if len(old) != len(new):
        return frozenset()
    return frozenset(
        index for index, ((start, size, text), (other, length, _)) in
        enumerate(zip(old, new, strict=True))
        if branch_target(start, text) is None
        and before[start:start + size] != after[other:other + length]
    )


def _first_difference(original: bytes, rebuilt: bytes) -> int | None:
    if original == rebuilt:
        return None
    for offset, (left, right) in enumerate(zip(original, rebuilt, strict=False)):
        if left != right:
            return offset
    return min(len(original), len(rebuilt))


def _place(code_object: CodeObject, offset: int) -> str:
    for section in code_object.sections:
        if section.occupies_file and section.offset <= offset < section.offset + section.size:
            return section.name
    return "headers"
