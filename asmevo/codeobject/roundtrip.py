"""The gate before any edit: recovered text must give the original file again, byte for byte."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from asmevo.codeobject.assembly import Assembly, KernelBody
from asmevo.codeobject.build import build
from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.disassemble import branch_target, disassembler_version
from asmevo.codeobject.encoding import UNCHANGED, Encoding
from asmevo.codeobject.errors import AssemblerError, CodeObjectError
from asmevo.codeobject.functions import Function, code_of, functions, listing
from asmevo.codeobject.labels import labels_of
from asmevo.codeobject.recover import NO_FALLBACKS, Fallbacks, recover
from asmevo.codeobject.toolchain import Toolchain

# What the latest round trips found, the oldest first. Every rebuild of an object asks for it.
_KEPT = 8
_found: dict[tuple[str, Toolchain], Fallbacks] = {}


@dataclass(frozen=True, slots=True)
class RoundTripReport:
    """The outcome of one round trip.

    ``masks`` name file fields that were left out of the comparison (none at present).
    ``first_difference`` is a file offset and ``section`` what lies there, in the original; both are
    empty when ``identical``. ``fallback_count`` instructions are kept as data because they do not
    encode back to their bytes, and ``annotation_count`` as text with bits that the assembler does
    not know. ``assembly`` is the text that was compared.
    """

    sha256: str
    identical: bool
    masks: tuple[str, ...]
    first_difference: int | None
    section: str | None
    instruction_count: int
    fallback_count: int
    annotation_count: int
    seconds: float
    versions: Mapping[str, str]
    assembly: Assembly


def round_trip(code_object: CodeObject, toolchain: Toolchain) -> RoundTripReport:
    """Recover, assemble, link and compare the whole file.

    Instructions that the assembler encodes with other bits of no meaning to LLVM get these as an
    annotation; those that it rejects or encodes otherwise are kept as data. Raises
    `CodeObjectError` for what recovery does not handle, and the toolchain's errors.
    """
    started = time.perf_counter()
    versions = {**toolchain.versions(), "disassembler": disassembler_version()}
    fallbacks = NO_FALLBACKS
    while True:
        assembly = recover(code_object, fallbacks)
        try:
            data = build(code_object, assembly, toolchain)
        except AssemblerError as error:
            more = fallbacks | _rejected(code_object, assembly, error)
            if more == fallbacks:
                # Nobody has edited this text yet, so what is wrong with it is recovery's.
                raise CodeObjectError(f"recovery does not handle this object: the text it makes "
                                      f"is rejected, {error}") from error
        else:
            more = fallbacks
            if data != code_object.data:
                more |= _not_reencoded(code_object, data)
            if more == fallbacks:
                break
        fallbacks = more
    _keep(code_object, toolchain, fallbacks)
    difference = _first_difference(code_object.data, data)
    lines = [line for block in assembly.blocks if isinstance(block, KernelBody)
             for line in block.lines if line.text]
    return RoundTripReport(
        sha256=code_object.sha256,
        identical=difference is None,
        masks=(),
        first_difference=difference,
        section=None if difference is None else _place(code_object, difference),
        instruction_count=len(lines),
        fallback_count=sum(line.text.startswith(".") and not line.padding
                           for line in lines),
        annotation_count=sum(line.encoding != UNCHANGED for line in lines),
        seconds=time.perf_counter() - started,
        versions=versions,
        assembly=assembly,
    )


def recovered(code_object: CodeObject, toolchain: Toolchain) -> Assembly:
    """The assembly of the object's round trip, which is only made again if it was long ago.

    Raises what `round_trip` does.
    """
    found = _found.get((code_object.sha256, toolchain))
    if found is None:
        return round_trip(code_object, toolchain).assembly
    return recover(code_object, found)


def _keep(code_object: CodeObject, toolchain: Toolchain, fallbacks: Fallbacks) -> None:
    # By hash: the object itself, with all that is remembered of it, must be free to go.
    _found.pop((code_object.sha256, toolchain), None)
    _found[code_object.sha256, toolchain] = fallbacks
    for old in list(_found)[:-_KEPT]:
        _found.pop(old, None)


def _rejected(code_object: CodeObject, assembly: Assembly, error: AssemblerError) -> Fallbacks:
    """The instructions that the assembler's errors point at, to be kept as data."""
    wrong = {d.line for d in error.diagnostics if d.severity == "error"}
    by_symbol = {f.symbol: f for f in functions(code_object)}
    found: set[int] = set()
    number = 1
    for block in assembly.blocks:
        if isinstance(block, str):
            number += block.count("\n")
            continue
        function = by_symbol[block.symbol]
        rows = listing(code_object, function)
        for row, text in zip(rows, block.text(), strict=False):
            number += text.count("\n")
            if number - 1 in wrong:
                found.add(function.entry + row[0])
    return Fallbacks(frozenset(found))


def _not_reencoded(code_object: CodeObject, data: bytes) -> Fallbacks:
    """The instructions whose bytes differ, when every function has as many as before.

    Branches are left out: theirs differ when an instruction between them and their target does.
    What decodes to the same text as before differs only in bits that LLVM ignores.
    """
    try:
        rebuilt = CodeObject.parse(data)
        before, after = functions(code_object), functions(rebuilt)
        if [f.symbol for f in before] != [f.symbol for f in after]:
            return NO_FALLBACKS
        found = NO_FALLBACKS
        for old, new in zip(before, after, strict=True):
            found |= _differences(code_object, old, rebuilt, new)
        return found
    except CodeObjectError:
        return NO_FALLBACKS


def _differences(code_object: CodeObject, old: Function, rebuilt: CodeObject,
                 new: Function) -> Fallbacks:
    before, after = code_of(code_object, old), code_of(rebuilt, new)
    old_rows, new_rows = listing(code_object, old), listing(rebuilt, new)
    data: set[int] = set()
    encodings: set[tuple[int, Encoding]] = set()
    computed = {index for found in labels_of(code_object).code_addresses.get(old.entry, ())
                for index in (found.low, found.high)}
    if before == after or len(old_rows) != len(new_rows):
        return NO_FALLBACKS
    for index, (left, right) in enumerate(zip(old_rows, new_rows, strict=True)):
        original, assembled = (code[row[0]:row[0] + row[1]]
                               for code, row in ((before, left), (after, right)))
        if original == assembled or index in computed or branch_target(*left[::2]) is not None:
            continue
        if left[1:] == right[1:]:
            encodings.add((old.entry + left[0], Encoding.between(assembled, original)))
        else:
            data.add(old.entry + left[0])
    return Fallbacks(frozenset(data), frozenset(encodings))


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
