"""Edits written into a code object's bytes, for what cannot be rebuilt."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from asmevo.codeobject.assembly import Assembly, Edit, KernelBody, Line
from asmevo.codeobject.code_address import CodeAddress, code_addresses
from asmevo.codeobject.container import CodeObject, Kernel
from asmevo.codeobject.disassemble import branch_target, labels, local_symbols, rows
from asmevo.codeobject.disassembler import Row
from asmevo.codeobject.elf import read_tables
from asmevo.codeobject.encoding import UNCHANGED
from asmevo.codeobject.errors import CodeObjectError, RebuildError
from asmevo.codeobject.functions import code_of, functions
from asmevo.codeobject.interface import Interface, differences, outside_hash
from asmevo.codeobject.padding import ENTRY_ALIGNMENT
from asmevo.codeobject.rebuild import validate_line
from asmevo.codeobject.recover import CODE_ADDRESS
from asmevo.codeobject.relocation import relocations
from asmevo.codeobject.requirements import check_segments, code_use
from asmevo.codeobject.resources import Allocation, Counts, counts, required_allocation
from asmevo.codeobject.toolchain import Toolchain

_NOP = (0xBF800000).to_bytes(4, "little")  # s_nop 0
_BRANCH = re.compile(r"(s_c?branch\w*) (\S+)")
_JUMP = re.compile(r"s_(?:setpc|rfe|cbranch_[gi]_fork|cbranch_join)\w*")
_POINTER_SIZE = 8


@dataclass(frozen=True, slots=True)
class _Site:
    """One edit with its place: byte offsets ``start`` to ``stop`` of the kernel's code."""

    edit: Edit
    start: int
    stop: int


def listing(original: CodeObject, kernel: str | None = None,
            patched: CodeObject | None = None) -> Assembly:
    """A kernel's instructions with symbolic branch targets, whatever surrounds them.

    The document holds the kernel's body alone and cannot be assembled; it is what edits for `patch`
    are written against when recovery refuses the object. With ``patched`` it shows that object's
    instructions, under the original's labels. Raises `RebuildError` when that is no patch.
    """
    chosen = original.kernel(kernel)
    decoded = rows(original.code(chosen), original.target)
    names = _labels(original, chosen, decoded)
    if patched is not None:
        other = patched.kernel(chosen.symbol)
        if (other.entry, other.size) != (chosen.entry, chosen.size):
            raise RebuildError("the object is not a patch of the original: its code lies elsewhere")
        decoded = rows(patched.code(other), patched.target)
    lines = [Line(_symbolic(offset, text, names), names.get(offset, ()))
             for offset, _, text in decoded]
    if chosen.size in names:
        lines.append(Line("", names[chosen.size]))
    return Assembly(original.sha256, (KernelBody(chosen.symbol, tuple(lines)),))


def edits_between(before: KernelBody, after: KernelBody) -> tuple[Edit, ...]:
    """The edits that make ``after`` of ``before``: at most one between two labels.

    Raises `RebuildError` when the two have other labels or another order of them.
    """
    old, new = _stretches(before), _stretches(after)
    if [names for names, _ in old] != [names for names, _ in new]:
        raise RebuildError("the assembly has other labels than the original")
    edits: list[Edit] = []
    position = 0
    for (_, left), (_, right) in zip(old, new, strict=True):
        if left != right:
            head = _common(left, right)
            tail = _common(left[head:][::-1], right[head:][::-1])
            new_lines = right[head:len(right) - tail]
            if any(line.encoding != UNCHANGED for line in new_lines):
                raise RebuildError("a patch cannot write bits that the assembler does not")
            edits.append(Edit(before.symbol, position + head, position + len(left) - tail,
                              tuple(line.text for line in new_lines), "difference"))
        position += len(left)
    return tuple(edits)


def check_patch(original: CodeObject, candidate: CodeObject, kernel: str | None,
                toolchain: Toolchain) -> None:
    """Raise `RebuildError` unless `patch` makes exactly ``candidate`` of ``original``."""
    symbol = original.kernel(kernel).symbol
    edits = edits_between(listing(original, symbol).body(symbol),
                          listing(original, symbol, candidate).body(symbol))
    if patch(original, symbol, edits, toolchain) != candidate:
        raise RebuildError("the object is not a patch of the original: other bytes differ as well")


def patch(original: CodeObject, kernel: str | None, edits: Sequence[Edit],
          toolchain: Toolchain) -> CodeObject:
    """Write edits into the bytes of one kernel; everything else stays byte for byte.

    Indices count the kernel's decoded instructions. A replacement may be shorter than what it
    replaces (`s_nop 0` fills the rest) but not longer, and may use no register, LDS or scratch that
    descriptor and metadata do not declare already. Nothing may branch or point into the interior
    of a replaced range. Raises `RebuildError` naming what forbids the patch, `CodeObjectError` for
    code whose targets cannot be known, and `AssemblerError` for rejected text.
    """
    chosen = original.kernel(kernel)
    code = original.code(chosen)
    decoded = rows(code, original.target)
    sites = _sites(chosen, decoded, edits)
    _check_replaced(original, chosen, decoded, sites)
    names = _labels(original, chosen, decoded)
    patched = bytearray(code)
    for site, text in zip(sites, _encoded(original, sites, names, toolchain), strict=True):
        room = site.stop - site.start
        if len(text) > room:
            raise RebuildError(f"the replacement of instructions {site.edit.start} to "
                               f"{site.edit.stop} has {len(text)} bytes, the original {room}")
        patched[site.start:site.stop] = text + _NOP * ((room - len(text)) // 4)
    start = original.section(".text").offset + chosen.entry
    data = original.data[:start] + bytes(patched) + original.data[start + len(code):]
    result = CodeObject.parse(data)
    _check_result(original, result, chosen.symbol, decoded, sites)
    return result


def _labels(code_object: CodeObject, kernel: Kernel,
            decoded: Sequence[Row]) -> dict[int, tuple[str, ...]]:
    """Every label by byte offset: the local symbols there, or the synthetic name of a target."""
    base = code_object.section(".text").address + kernel.entry
    found: dict[int, tuple[str, ...]] = {}
    for symbol in local_symbols(code_object):
        offset = symbol.value - base
        if 0 <= offset <= kernel.size:
            found[offset] = (*found.get(offset, ()), symbol.name)
    for offset, name in labels(code_object, kernel, decoded).items():
        found.setdefault(offset, (name,))
    return found


def _symbolic(offset: int, text: str, names: Mapping[int, tuple[str, ...]]) -> str:
    target = branch_target(offset, text)
    if target is None or target not in names:
        return text
    return f"{text.rsplit(' ', 1)[0]} {names[target][0]}"


def padded(original: CodeObject, edits: Sequence[Edit], result: CodeObject) -> tuple[Edit, ...]:
    """The edits with the padding that `patch` put behind each replacement."""
    found: list[Edit] = []
    for edit in edits:
        kernel = original.kernel(edit.kernel)
        site = _sites(kernel, rows(original.code(kernel), original.target), [edit])[0]
        written = [row for row in rows(result.code(kernel), result.target)
                   if site.start <= row[0] < site.stop]
        padding = [text for _, _, text in written[len(edit.lines):]]
        found.append(replace(edit, lines=(*edit.lines, *padding)))
    return tuple(found)


def _stretches(body: KernelBody) -> list[tuple[tuple[str, ...], list[Line]]]:
    """The lines in groups that each begin with a label, or with the kernel."""
    found: list[tuple[tuple[str, ...], list[Line]]] = [((), [])]
    for line in body.lines:
        if line.labels:
            found.append((line.labels, []))
        if line.text:
            found[-1][1].append(replace(line, labels=()))
    return found


def _common(left: Sequence[Line], right: Sequence[Line]) -> int:
    count = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        count += 1
    return count


def _sites(kernel: Kernel, decoded: Sequence[Row], edits: Sequence[Edit]) -> list[_Site]:
    sites: list[_Site] = []
    ends = [offset for offset, _, _ in decoded] + [kernel.size]
    position = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.stop)):
        if edit.kernel != kernel.symbol:
            raise RebuildError(f"an edit is of '{edit.kernel}', the patch of '{kernel.symbol}'")
        if not position <= edit.start <= edit.stop <= len(decoded):
            raise RebuildError(f"edit of instructions {edit.start} to {edit.stop} overlaps another "
                               f"edit or lies outside the kernel's {len(decoded)} instructions")
        if edit.start == edit.stop and edit.lines:
            raise RebuildError(f"an insertion at instruction {edit.start} would grow the code")
        position = edit.stop
        sites.append(_Site(edit, ends[edit.start], ends[edit.stop]))
    return sites


def _check_replaced(original: CodeObject, kernel: Kernel, decoded: Sequence[Row],
                    sites: Sequence[_Site]) -> None:
    """What is replaced must be plain instructions that nothing enters but from the top."""
    for site in sites:
        for offset, _, text in decoded[site.edit.start:site.edit.stop]:
            if text.startswith("."):
                raise RebuildError(f"the data at offset {offset:#x} cannot be replaced by "
                                   "instructions")
            if CODE_ADDRESS.match(text):
                raise RebuildError(f"'{text}' at offset {offset:#x} handles code addresses, which "
                                   "an edit may not")
    for index in _address_rows(original.code(kernel), decoded):
        offset = decoded[index][0]
        if any(site.start <= offset < site.stop for site in sites):
            raise RebuildError(f"'{decoded[index][2]}' at offset {offset:#x} is part of a code "
                               "address, which an edit may not change")
    for name, target in _references(original, kernel):
        for site in sites:
            if site.start < target < site.stop:
                raise RebuildError(f"{name} points into the replaced instructions "
                                   f"{site.edit.start} to {site.edit.stop}")
    base = original.section(".text").address + kernel.entry
    for relocation in relocations(original):
        offset = relocation.address - base
        for site in sites:
            if offset < site.stop and site.start < offset + _POINTER_SIZE:
                raise RebuildError(f"the loader writes a pointer into the replaced instructions "
                                   f"{site.edit.start} to {site.edit.stop}")


def _address_rows(code: bytes, decoded: Sequence[Row]) -> set[int]:
    """The additions that make code addresses, and what stands between them and `s_getpc_b64`."""
    return {index for address in code_addresses(code, decoded)
            for index in range(address.getpc, _last_addition(address, decoded) + 1)}


def _last_addition(address: CodeAddress, decoded: Sequence[Row]) -> int:
    if address.high >= 0:
        return address.high
    return next(index for index in range(address.low, len(decoded))
                if decoded[index][2].startswith("s_addc_u32"))


def _references(original: CodeObject, kernel: Kernel) -> Iterator[tuple[str, int]]:
    """Everything that names a place in the code: what it is, and the place from the entry on.

    Raises `CodeObjectError` for a jump to an address that cannot be followed.
    """
    text = original.section(".text")
    for symbol in original.symbols:
        if symbol.section == ".text" and symbol.type != "SECTION":
            yield f"symbol '{symbol.name}'", symbol.value - text.address - kernel.entry
    if kernel.descriptor.kernarg_preload_length:
        yield "the entry for preloaded arguments", ENTRY_ALIGNMENT
    for function in functions(original):
        code = code_of(original, function)
        decoded = rows(code, original.target)
        jumps: dict[int, str] = {}
        for address in code_addresses(code, decoded):
            # A jump at once; later, the address may have been changed again.
            jumps[_last_addition(address, decoded) + 1] = decoded[address.getpc][2].split(" ")[1]
            yield (f"'{decoded[address.getpc][2]}' of '{function.symbol}'",
                   address.base + address.value + function.entry - kernel.entry)
        for index, (offset, _, shown) in enumerate(decoded):
            target = branch_target(offset, shown)
            if target is not None:
                yield (f"'{shown}' of '{function.symbol}'",
                       target + function.entry - kernel.entry)
            # A device function ends with a jump to its caller, behind the call.
            elif function.kernel is not None and _JUMP.match(shown) and (
                    shown != f"s_setpc_b64 {jumps.get(index)}"):
                raise CodeObjectError(f"'{shown}' at offset {offset:#x} of '{function.symbol}' "
                                      "goes to an address that cannot be followed")
    values = {s.name: s.value for s in original.symbols}
    for relocation in relocations(original):
        value = relocation.addend + (values.get(relocation.symbol, 0) if relocation.symbol else 0)
        yield (f"the pointer at address {relocation.address:#x}",
               value - text.address - kernel.entry)


def _encoded(original: CodeObject, sites: Sequence[_Site],
             names: Mapping[int, tuple[str, ...]], toolchain: Toolchain) -> list[bytes]:
    """The bytes of each replacement, branches resolved for where it will lie."""
    places = {name: offset for offset, group in names.items() for name in group}
    symbols = {s.name for s in original.symbols if s.name} - set(places)
    lines: list[str] = []
    for site in sites:
        for text in site.edit.lines:
            validate_line(text, places, symbols)
            branch = _BRANCH.fullmatch(text)
            lines.append(f"{branch[1]} 0" if branch else text)
    if not lines:
        return [b""] * len(sites)
    source = (f'\t.amdgcn_target "{original.target.triple}"\n\t.text\n'
              + "".join(f"\t{line}\n" for line in lines))
    code = _assembled(toolchain.assemble(source, original.target))
    decoded = rows(code, original.target)
    if len(decoded) != len(lines):
        raise RebuildError(f"{len(lines)} lines became {len(decoded)} instructions")
    result: list[bytes] = []
    index = 0
    for site in sites:
        done = bytearray()
        for text in site.edit.lines:
            offset, size, _ = decoded[index]
            word = code[offset:offset + size]
            if branch := _BRANCH.fullmatch(text):
                word = _branch(word, branch[0], places[branch[2]], site.start + len(done))
            done += word
            index += 1
        result.append(bytes(done))
    return result


def _assembled(relocatable: bytes) -> bytes:
    """The code of an assembled object; lines that leave work for the linker are refused."""
    sections, _ = read_tables(relocatable)
    if any(s.type in ("SHT_REL", "SHT_RELA") for s in sections):
        raise RebuildError("a line names a symbol that the object does not have")
    for section in sections:
        if section.name == ".text":
            return relocatable[section.offset:section.offset + section.size]
    return b""


def _branch(word: bytes, text: str, target: int, offset: int) -> bytes:
    distance = (target - offset - 4) // 4
    if not -0x8000 <= distance < 0x8000:
        raise RebuildError(f"'{text}' is too far from its target")
    return (distance & 0xFFFF).to_bytes(2, "little") + word[2:]


def _check_result(original: CodeObject, result: CodeObject, symbol: str, decoded: Sequence[Row],
                  sites: Sequence[_Site]) -> None:
    before, after = original.kernel(symbol), result.kernel(symbol)
    listed = rows(result.code(after), result.target)
    if _untouched(decoded, sites) != _untouched(listed, sites):
        raise RebuildError("the patch changes how the instructions around it decode")
    _check_neutral(original, before, result, after)
    found = differences(Interface.of(original, before), Interface.of(result, after))
    if found or outside_hash(original, before) != outside_hash(result, after):
        raise RebuildError("the patch changes something outside the kernel's instructions")


def _untouched(decoded: Sequence[Row], sites: Sequence[_Site]) -> list[Row]:
    return [row for row in decoded
            if not any(site.start <= row[0] < site.stop for site in sites)]


def _check_neutral(original: CodeObject, before: Kernel, result: CodeObject,
                   after: Kernel) -> None:
    """Refuse what descriptor and metadata, which stay as they are, do not declare."""
    old, new = code_use(original, before), code_use(result, after)
    check_segments(before.descriptor, old.segments, new.segments)
    if new.registers.within(old.registers):
        return
    declared = Allocation.of(before.descriptor)
    if required_allocation(before.descriptor, new.registers, original.target) != declared:
        raise RebuildError("the patch uses registers that the descriptor does not allocate")
    needed = counts(new.registers, original.target, declared.accum_offset)
    used = counts(old.registers, original.target, declared.accum_offset)
    for key, value, known in _stated(before, needed, used):
        if value > known:
            raise RebuildError(f"the patch needs {value} by '{key}', the metadata says {known}")


def _stated(kernel: Kernel, needed: Counts, used: Counts) -> list[tuple[str, int, int]]:
    """Each count: its metadata key, what is needed, and what the metadata or the original has."""
    rows: list[tuple[str, int, int]] = []
    for key, value, own in ((".vgpr_count", needed.vgprs, used.vgprs),
                            (".agpr_count", needed.agprs, used.agprs),
                            (".sgpr_count", needed.sgprs, used.sgprs)):
        stated = kernel.metadata.get(key)
        if isinstance(stated, int):
            rows.append((key, value, max(stated, own)))
    return rows
