"""The text of a recovered object, as somebody's editor left it, back to an `Assembly`."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from asmevo.codeobject.assembly import Assembly, KernelBody, Line
from asmevo.codeobject.encoding import UNCHANGED, Encoding
from asmevo.codeobject.errors import RebuildError
from asmevo.codeobject.rebuild import validate_line

TEXT_LIMIT = 64 << 20

_ORIGIN = "// original: SHA-256 "
_ORIGIN_LINE = re.compile(rf"^{_ORIGIN}([0-9a-f]{{64}})\s*$", re.MULTILINE)
# What the assembler takes for the end of a line or refuses, while editors show it as nothing.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029]")
# Where quoted text or a comment that LLVM's AMDGPU assembler knows begins.
_OPENING = re.compile(r"""["']|/\*|//|;|^[ \t]*\#""", re.MULTILINE)
_QUOTED = re.compile(r""""(?:\\[^\n]|[^"\\\n])*"|'[^'\n]*'""")
_NAME = r"[A-Za-z_.$][A-Za-z0-9_.$]*"
_LABEL = re.compile(rf"({_NAME}) ?: ?")
_LOCAL = re.compile(rf"\.local ({_NAME})")
_WORD = re.compile(rf"(?<![A-Za-z0-9_.$@]){_NAME}")
_KERNEL = re.compile(r"\.amdhsa_kernel (\S+)")
# Without leading zeros, which make a number octal for the assembler.
_NUMBER = "(0|[1-9][0-9]{0,9}|0[xX][0-9a-fA-F]{1,8})"
_SIZE = re.compile(rf"\.amdhsa_(group|private)_segment_fixed_size {_NUMBER}")
_METADATA_SIZE = re.compile(rf"(?:- )?'?\.(group|private)_segment_fixed_size'?: {_NUMBER}")
_METADATA_SYMBOL = re.compile(r"(?:- )?'?\.symbol'?: (?:!str )?'?(.+?)\.kd'?")
_COUNTED = re.compile(r"\.amdhsa_(?:next_free_[vs]gpr|accum_offset) |(?:- )?'?\.[vsa]gpr_count")
_ENCODING = re.compile(r"// enc:.*")
_SHOWN = 60


def header(origin: str, sha256: str) -> str:
    """Comment lines for the top of a recovered text, which tell it where it comes from."""
    shown = re.sub(r"[^ -~]", "?", origin)
    return (f"// recovered from {shown}\n{_ORIGIN}{sha256}\n"
            "// Edit the instructions, add labels and comments, change the two segment_fixed_size\n"
            "// directives. Registers are counted again by a rebuild. All else has to stay.\n")


@dataclass(frozen=True, slots=True)
class Edited:
    """An edited text as an `Assembly`.

    ``numbers`` gives the line in the edited text for each line of the assembly's text, 0 for lines
    that are the original's. ``lds_bytes`` and ``scratch_bytes`` are the sizes that the text
    declares otherwise than the original, by kernel.
    """

    assembly: Assembly
    numbers: tuple[int, ...]
    lds_bytes: Mapping[str, int] = field(default_factory=dict)
    scratch_bytes: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Changes:
    """What was changed between the bodies: new names of symbols with their old ones, and sizes by
    segment and kernel. ``fixed`` are the statements there, up to the metadata.
    """

    renamed: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, dict[str, int]] = field(default_factory=lambda: {"group": {}, "private": {}})
    kernel: str = ""
    fixed: list[_Statement] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Statement:
    """One line without and with its comments, spaces made single."""

    number: int
    code: str
    full: str


# A statement, its labels and its code behind them.
_Parsed = tuple[_Statement, list[str], str]


def read_edited(text: str, baseline: Assembly) -> Edited:
    """Take an edited text of ``baseline`` apart.

    Comments, spacing and label names are free: a label that the object does not keep as a symbol
    leaves no trace, and one that it keeps may be renamed if its ``.local`` directive is. Sizes of
    LDS and scratch may be changed in the kernel's directives. Raises `RebuildError` with the line
    number when anything else outside kernel bodies was changed, a label is missing or defined
    twice, or a new line is not one plain instruction.
    """
    text = text.replace("\r\n", "\n")
    if len(text) > TEXT_LIMIT:
        raise RebuildError(f"the text is longer than {TEXT_LIMIT >> 20} MiB")
    _check_characters(text)
    origin = _ORIGIN_LINE.search(text)
    if origin and origin[1] != baseline.original_sha256:
        raise RebuildError(f"the text was recovered from the object with SHA-256 {origin[1]}, not "
                           f"from {baseline.original_sha256}")
    found, changes = _split(list(_statements(text)), baseline)
    bodies = [[(s, *_labels(s)) for s in statements] for statements in found]
    before = [block for block in baseline.blocks if isinstance(block, KernelBody)]
    originals = {label for body in before for line in body.lines for label in line.labels}
    names = _label_names(before, originals, bodies, changes)
    _check_fixed(changes, originals, names)
    remaining = iter(bodies)
    blocks: list[str | KernelBody] = []
    numbers: list[int] = []
    for block in baseline.blocks:
        if isinstance(block, str):
            blocks.append(block)
            numbers += [0] * block.count("\n")
        else:
            body, places = _body(block, next(remaining), names, originals)
            blocks.append(body)
            numbers += places
    return Edited(replace(baseline, blocks=tuple(blocks)), tuple(numbers),
                  changes.sizes["group"], changes.sizes["private"])


def _check_characters(text: str) -> None:
    if text.startswith("\ufeff"):
        raise RebuildError("the text begins with a byte order mark; save it as UTF-8 without one")
    if "\r" in text and "\n" not in text:
        raise RebuildError("the text ends its lines with carriage returns; save it with line feeds")
    if match := _CONTROL.search(text):
        raise RebuildError(f"line {_line_number(text, match.start())}: the control character "
                           f"U+{ord(match[0]):04X} may not stand in the text")


def _line_number(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _statements(text: str) -> Iterator[_Statement]:
    bare = _without_comments(text).split("\n")
    for number, (code, full) in enumerate(zip(bare, text.split("\n"), strict=True), 1):
        if collapsed := _collapsed(code):
            yield _Statement(number, collapsed, _collapsed(full))


def _without_comments(text: str) -> str:
    """The text with a space for each comment, and all its line ends."""
    out: list[str] = []
    position = 0

    def line_end(start: int) -> int:
        end = text.find("\n", start)
        return len(text) if end < 0 else end

    while match := _OPENING.search(text, position):
        start = match.start()
        out.append(text[position:start])
        if match[0] in "\"'":
            # What looks like a comment in quoted text is none. An open quote is an error, so that
            # it does not matter what follows it.
            quoted = _QUOTED.match(text, start)
            position = quoted.end() if quoted else line_end(start)
            out.append(text[start:position])
        elif match[0] == "/*":
            end = text.find("*/", start + 2)
            if end < 0:
                shown = _short(_collapsed(text[start:line_end(start)]))
                raise RebuildError(f"line {_line_number(text, start)}: the comment '{shown}' has "
                                   "no end")
            position = end + 2
            out.append(" " + "\n" * text.count("\n", start, position))
        else:
            position = line_end(start)
            out.append(" ")
    return "".join([*out, text[position:]])


def _collapsed(line: str) -> str:
    # Not str.split without arguments: that takes for spaces what the assembler refuses.
    return " ".join(part for part in line.replace("\t", " ").split(" ") if part)


def _split(lines: Sequence[_Statement], baseline: Assembly,
           ) -> tuple[list[Sequence[_Statement]], _Changes]:
    """The statements of each kernel body, and what was changed between them."""
    fixed = [list(_statements(b)) if isinstance(b, str) else None for b in baseline.blocks]
    bodies: list[Sequence[_Statement]] = []
    changes = _Changes()
    at = 0
    for index, wanted in enumerate(fixed):
        if wanted is not None:
            _match(lines, at, wanted, changes)
            at += len(wanted)
            continue
        following = next((f for f in fixed[index + 1:] if f), None)
        stop = len(lines) if following is None else _find(lines, at, following)
        bodies.append(lines[at:stop])
        at = stop
    if at < len(lines):
        raise RebuildError(f"line {lines[at].number}: '{_short(lines[at].code)}' stands behind the "
                           "end of the original's text")
    return bodies, changes


def _match(lines: Sequence[_Statement], at: int, wanted: Sequence[_Statement],
           changes: _Changes) -> None:
    metadata = False
    described = _described(wanted)
    for offset, want in enumerate(wanted):
        if at + offset >= len(lines):
            raise RebuildError(f"the text ends where '{_short(want.code)}' has to follow")
        have = lines[at + offset]
        metadata |= want.code == ".amdgpu_metadata"
        if not metadata:
            changes.fixed.append(have)
        if kernel := _KERNEL.fullmatch(want.code):
            changes.kernel = kernel[1]
        if metadata:
            changes.kernel = described[offset]
        if have.code != want.code and not _allowed(want.code, have.code, changes):
            raise RebuildError(f"line {have.number}: '{_short(have.code)}' stands where the "
                               f"original has '{_short(want.code)}'; "
                               f"{_reason(want.code, have.code, changes)}")


def _described(wanted: Sequence[_Statement]) -> list[str]:
    """For each statement the kernel that it describes if it is metadata.

    LLVM sorts the keys of a kernel's metadata, so that the symbol comes behind the sizes.
    """
    found: list[str] = []
    symbol = ""
    for statement in reversed(wanted):
        if match := _METADATA_SYMBOL.fullmatch(statement.code):
            symbol = match[1]
        found.append(symbol)
    return found[::-1]


def _reason(want: str, have: str, changes: _Changes) -> str:
    """Why a change is none that a person may make."""
    if _COUNTED.match(want):
        return "registers are counted in the code"
    if _SIZE.fullmatch(want) and have.split(" ")[0] == want.split(" ")[0]:
        return "a size has to be a decimal number or a hexadecimal one that begins with 0x"
    if _METADATA_SIZE.fullmatch(want) and have.split(" ")[:-1] == want.split(" ")[:-1]:
        return f"a size has to be the one in the directives of '{changes.kernel}'"
    return "outside the kernels' instructions nothing else may change"


def _allowed(want: str, have: str, changes: _Changes) -> bool:
    """Note a change that a person may make; false for any other."""
    if (old := _LOCAL.fullmatch(want)) and (new := _LOCAL.fullmatch(have)):
        changes.renamed[new[1]] = old[1]
        return True
    if (old := _SIZE.fullmatch(want)) and (new := _SIZE.fullmatch(have)) and old[1] == new[1]:
        changes.sizes[new[1]][changes.kernel] = int(new[2], 0)
        return True
    # The metadata is recomputed; who changes it as well has to mean the same.
    if (old := _METADATA_SIZE.fullmatch(want)) and (new := _METADATA_SIZE.fullmatch(have)):
        return old[1] == new[1] and int(new[2], 0) == (
            changes.sizes[new[1]].get(changes.kernel, int(old[2])))
    return False


def _find(lines: Sequence[_Statement], at: int, following: Sequence[_Statement]) -> int:
    """Where the fixed text behind a kernel body begins."""
    starts = [i for i in range(at, len(lines)) if lines[i].code == following[0].code]
    if not starts:
        raise RebuildError(f"the line '{_short(following[0].code)}' behind the kernel's "
                           "instructions is missing")
    count = len(following)

    def agreeing(start: int) -> int:
        return sum(a.code == b.code for a, b in
                   zip(lines[start:start + count], following, strict=False))

    return max(starts, key=agreeing)


def _body(before: KernelBody, parsed: Sequence[_Parsed],
          names: Mapping[str, str], labels_before: Container[str],
          ) -> tuple[KernelBody, list[int]]:
    original = _Original.of(before, labels_before)
    here = [label for _, labels, _ in parsed for label in labels]
    lines: list[Line] = []
    numbers: list[int] = []
    pending: list[str] = []
    for statement, labels, code in parsed:
        pending += [names[label] for label in labels]
        numbers += [statement.number] * len(labels)
        if not code:
            continue
        numbers.append(statement.number)
        if padding := original.padding.get(code):
            first, *rest = padding.popleft()
            lines += [replace(first, labels=tuple(pending)), *rest]
        else:
            lines.append(_line(code, names, statement, tuple(pending), original, here))
        pending = []
    if pending:
        lines.append(Line("", tuple(pending)))
    if missing := [directive for directive, groups in original.padding.items() if groups]:
        raise RebuildError(f"a line '{missing[0]}' of '{before.symbol}' is missing; code behind it "
                           "has to stay aligned")
    return KernelBody(before.symbol, tuple(lines)), numbers


@dataclass(frozen=True, slots=True)
class _Original:
    """The original's lines as they may come back: ``texts`` by themselves without comments, under
    the original's label names, ``encodings`` by mnemonic and comment, ``padding`` in groups of one
    directive each. ``labels`` are those of all bodies.
    """

    texts: Mapping[str, str]
    encodings: Mapping[tuple[str, str], Encoding]
    padding: Mapping[str, deque[tuple[Line, ...]]]
    labels: Container[str]

    @classmethod
    def of(cls, body: KernelBody, labels: Container[str]) -> _Original:
        texts: dict[str, str] = {}
        encodings: dict[tuple[str, str], Encoding] = {}
        padding: dict[str, deque[tuple[Line, ...]]] = {}
        for statement, lines in body.statements():
            line = lines[0]
            if line.padding:
                padding.setdefault(statement, deque()).append(lines)
                continue
            texts[_collapsed(_without_comments(line.text))] = line.text
            encodings[line.text.partition(" ")[0], line.encoding.comment()] = line.encoding
        return cls(texts, encodings, padding, labels)


def _line(code: str, names: Mapping[str, str], statement: _Statement, labels: tuple[str, ...],
          original: _Original, here: Iterable[str]) -> Line:
    """The line that ``code`` stands for; ``here`` are the labels of its body as it names them."""
    mnemonic, _, operands = code.partition(" ")
    # Only under the assembler's names does a line say where it goes: in the text as it is, a label
    # of the original may have become another's.
    text = f"{mnemonic} {_WORD.sub(lambda m: names.get(m[0], m[0]), operands)}".strip()
    known = original.texts.get(text)
    if known is None:
        _check(code, statement, here)
    else:
        _check_defined(operands, statement.number, original.labels, names)
    encoding = UNCHANGED
    if match := _ENCODING.search(statement.full):
        found = original.encodings.get((text.partition(" ")[0], f" {match[0]}"))
        if found is None:
            raise RebuildError(f"line {statement.number}: the original has no such instruction "
                               f"with '{match[0][:80]}'")
        encoding = found
    return Line(known or text, labels, encoding)


def _check(text: str, statement: _Statement, labels: Iterable[str]) -> None:
    if "$" in text:
        raise RebuildError(f"line {statement.number}: '{_short(text)}' has a '$', which names in "
                           "new lines may not have")
    try:
        validate_line(text, labels)
    except RebuildError as error:
        reason = str(error).removeprefix("line ")
        raise RebuildError(f"line {statement.number}: {reason}") from None


def _labels(statement: _Statement) -> tuple[list[str], str]:
    labels: list[str] = []
    position = 0
    while match := _LABEL.match(statement.code, position):
        labels.append(match[1])
        position = match.end()
    return labels, statement.code[position:]


def _label_names(before: Sequence[KernelBody], originals: Set[str],
                 bodies: Sequence[Sequence[_Parsed]], changes: _Changes) -> dict[str, str]:
    """For each label in the text the name that the assembler gets.

    A label that begins with ``.L`` stays out of the symbol table, so labels of the editor's own
    get names that begin so, none of which the original or another label has. The others are the
    object's own symbols, which have to be there under their own names.
    """
    renamed = changes.renamed
    declared = {old: new for new, old in renamed.items()}
    symbols = {label for label in originals if not label.startswith(".L")}
    outside = {label: s.number for s in changes.fixed for label in _labels(s)[0]}
    taken = originals | outside.keys() | {
        label for parsed in bodies for _, labels, _ in parsed for label in labels}
    names: dict[str, str] = {}
    places = dict(outside)
    for body, parsed in zip(before, bodies, strict=True):
        kept = {label for line in body.lines for label in line.labels} & symbols
        for statement, labels, _ in parsed:
            for label in labels:
                where = f"line {statement.number}: the label '{_short(label)}'"
                if label in declared and label not in renamed:
                    raise RebuildError(f"{where} was renamed to '{declared[label]}' in its .local "
                                       "directive")
                if label in places:
                    raise RebuildError(f"{where} is also defined in line {places[label]}")
                places[label] = statement.number
                name = renamed.get(label, label)
                if name not in symbols and not name.startswith(".L"):
                    if "$" in name:
                        raise RebuildError(f"{where} has a '$', which new names may not have")
                    name = f".L{name}"
                    while name in taken:
                        name += "_"
                    taken.add(name)
                names[label] = name
                kept.discard(name)
        if kept:
            raise RebuildError(f"the label '{min(kept)}' is missing; it is a symbol of the object")
    return names


def _check_fixed(changes: _Changes, originals: Container[str], names: Mapping[str, str]) -> None:
    """What stands between the bodies keeps its names, so that none may mean another label now."""
    new_names = {new for new, old in changes.renamed.items() if new != old}
    for statement in changes.fixed:
        if _LOCAL.fullmatch(statement.code):
            continue
        code = _QUOTED.sub("", statement.code)
        for word in _WORD.findall(code):
            if word in new_names:
                raise RebuildError(f"line {statement.number}: '{word}' is named here, so that no "
                                   "other label may be renamed to it")
        _check_defined(code, statement.number, originals, names)


def _check_defined(code: str, number: int, originals: Container[str],
                   names: Mapping[str, str]) -> None:
    for word in _WORD.findall(code):
        if word in originals and word not in names:
            raise RebuildError(f"line {number}: the label '{word}' is not defined")


def _short(code: str) -> str:
    return code if len(code) <= _SHOWN else code[:_SHOWN - 3] + "..."
