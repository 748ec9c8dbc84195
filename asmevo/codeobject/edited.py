"""The text of a recovered object, as somebody's editor left it, back to an `Assembly`."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from asmevo.codeobject.assembly import Assembly, KernelBody, Line
from asmevo.codeobject.encoding import UNCHANGED, Encoding
from asmevo.codeobject.errors import RebuildError
from asmevo.codeobject.rebuild import validate_line

TEXT_LIMIT = 64 << 20

_ORIGIN = "// original: SHA-256 "
_ORIGIN_LINE = re.compile(rf"^{_ORIGIN}([0-9a-f]{{64}})\s*$", re.MULTILINE)
# Quoted text first, so that what looks like a comment inside it stays; then the comments that
# LLVM's AMDGPU assembler knows.
_COMMENT = re.compile(
    r""""(?:\\.|[^"\\\n])*"|'[^'\n]*'|/\*.*?\*/|//[^\n]*|;[^\n]*|^[ \t]*\#[^\n]*""",
    re.DOTALL | re.MULTILINE)
_LABEL = re.compile(r"([A-Za-z_.$][\w.$]*)\s*:\s*")
_LOCAL = re.compile(r"\.local ([A-Za-z_.$][\w.$]*)")
_WORD = re.compile(r"[A-Za-z_.$][\w.$]*")
_KERNEL = re.compile(r"\.amdhsa_kernel (\S+)")
_SIZE = re.compile(r"\.amdhsa_(group|private)_segment_fixed_size (\d{1,10})")
_METADATA_SIZE = re.compile(r"(?:- )?'?\.(group|private)_segment_fixed_size'?: (\d{1,10})")
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
    segment and kernel.
    """

    renamed: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, dict[str, int]] = field(default_factory=lambda: {"group": {}, "private": {}})
    kernel: str = ""


@dataclass(frozen=True, slots=True)
class _Statement:
    """One line without and with its comments, spaces made single."""

    number: int
    code: str
    full: str


def read_edited(text: str, baseline: Assembly) -> Edited:
    """Take an edited text of ``baseline`` apart.

    Comments, spacing and label names are free: a label that the object does not keep as a symbol
    leaves no trace, and one that it keeps may be renamed if its ``.local`` directive is. Sizes of
    LDS and scratch may be changed in the kernel's directives. Raises `RebuildError` with the line
    number when anything else outside kernel bodies was changed, a label is missing or defined
    twice, or a new line is not one plain instruction.
    """
    if len(text) > TEXT_LIMIT:
        raise RebuildError(f"the text is longer than {TEXT_LIMIT >> 20} MiB")
    origin = _ORIGIN_LINE.search(text)
    if origin and origin[1] != baseline.original_sha256:
        raise RebuildError(f"the text was recovered from the object with SHA-256 {origin[1]}, not "
                           f"from {baseline.original_sha256}")
    bodies, changes = _split(list(_statements(text)), baseline)
    blocks: list[str | KernelBody] = []
    numbers: list[int] = []
    for block in baseline.blocks:
        if isinstance(block, str):
            blocks.append(block)
            numbers += [0] * block.count("\n")
        else:
            body, places = _body(block, next(bodies), changes.renamed)
            blocks.append(body)
            numbers += places
    return Edited(replace(baseline, blocks=tuple(blocks)), tuple(numbers),
                  changes.sizes["group"], changes.sizes["private"])


def _statements(text: str) -> Iterator[_Statement]:
    def without(match: re.Match[str]) -> str:
        found = match[0]
        return found if found[0] in "\"'" else " " + "\n" * found.count("\n")

    # Only line ends that the assembler knows: others are characters it will refuse.
    text = text.replace("\r\n", "\n")
    bare = _COMMENT.sub(without, text).split("\n")
    for number, (code, full) in enumerate(zip(bare, text.split("\n"), strict=True), 1):
        if collapsed := _collapsed(code):
            yield _Statement(number, collapsed, _collapsed(full))


def _collapsed(line: str) -> str:
    return " ".join(line.split())


def _split(lines: Sequence[_Statement], baseline: Assembly,
           ) -> tuple[Iterator[Sequence[_Statement]], _Changes]:
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
    return iter(bodies), changes


def _match(lines: Sequence[_Statement], at: int, wanted: Sequence[_Statement],
           changes: _Changes) -> None:
    for offset, want in enumerate(wanted):
        if at + offset >= len(lines):
            raise RebuildError(f"the text ends where '{_short(want.code)}' has to follow")
        have = lines[at + offset]
        if kernel := _KERNEL.fullmatch(want.code):
            changes.kernel = kernel[1]
        if have.code != want.code and not _allowed(want.code, have.code, changes):
            why = ("registers are counted in the code" if _COUNTED.match(want.code) else
                   "outside the kernels' instructions nothing else may change")
            raise RebuildError(f"line {have.number}: '{_short(have.code)}' stands where the "
                               f"original has '{_short(want.code)}'; {why}")


def _allowed(want: str, have: str, changes: _Changes) -> bool:
    """Note a change that a person may make; false for any other."""
    if (old := _LOCAL.fullmatch(want)) and (new := _LOCAL.fullmatch(have)):
        changes.renamed[new[1]] = old[1]
        return True
    if (old := _SIZE.fullmatch(want)) and (new := _SIZE.fullmatch(have)) and old[1] == new[1]:
        changes.sizes[new[1]][changes.kernel] = int(new[2])
        return True
    # The metadata is recomputed; who changes it as well has to mean the same.
    if (old := _METADATA_SIZE.fullmatch(want)) and (new := _METADATA_SIZE.fullmatch(have)):
        return old[1] == new[1] and int(new[2]) in changes.sizes[new[1]].values()
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


def _body(before: KernelBody, statements: Sequence[_Statement],
          renamed: Mapping[str, str]) -> tuple[KernelBody, list[int]]:
    parsed = [_labels(s) for s in statements]
    names = _label_names(before, statements, (labels for labels, _ in parsed), renamed)
    original = _Original.of(before)
    lines: list[Line] = []
    numbers: list[int] = []
    pending: list[str] = []
    for statement, (labels, code) in zip(statements, parsed, strict=True):
        pending += [names[label] for label in labels]
        numbers += [statement.number] * len(labels)
        if not code:
            continue
        numbers.append(statement.number)
        if padding := original.padding.get(code):
            first, *rest = padding.popleft()
            lines += [replace(first, labels=tuple(pending)), *rest]
        else:
            mnemonic, _, operands = code.partition(" ")
            named = _WORD.sub(lambda m: names.get(m[0], m[0]), operands)
            lines.append(_line(f"{mnemonic} {named}".strip(), statement, tuple(pending), original,
                               names.values()))
        pending = []
    if pending:
        lines.append(Line("", tuple(pending)))
    if missing := [directive for directive, groups in original.padding.items() if groups]:
        raise RebuildError(f"a line '{missing[0]}' of '{before.symbol}' is missing; code behind it "
                           "has to stay aligned")
    return KernelBody(before.symbol, tuple(lines)), numbers


@dataclass(frozen=True, slots=True)
class _Original:
    """The original's lines as they may come back: ``texts`` by themselves without comments,
    ``encodings`` by mnemonic and comment, ``padding`` in groups of one directive each.
    """

    texts: Mapping[str, str]
    encodings: Mapping[tuple[str, str], Encoding]
    padding: Mapping[str, deque[tuple[Line, ...]]]

    @classmethod
    def of(cls, body: KernelBody) -> _Original:
        texts: dict[str, str] = {}
        encodings: dict[tuple[str, str], Encoding] = {}
        padding: dict[str, deque[tuple[Line, ...]]] = {}
        for statement, lines in body.statements():
            line = lines[0]
            if line.padding:
                padding.setdefault(statement, deque()).append(lines)
                continue
            texts.setdefault(_collapsed(_COMMENT.sub(" ", line.text)), line.text)
            texts[_collapsed(line.text)] = line.text
            encodings[line.text.partition(" ")[0], line.encoding.comment()] = line.encoding
        return cls(texts, encodings, padding)


def _line(text: str, statement: _Statement, labels: tuple[str, ...], original: _Original,
          names: Iterable[str]) -> Line:
    known = original.texts.get(statement.full) or original.texts.get(text)
    if known is None:
        _check(text, statement, names)
    encoding = UNCHANGED
    if match := _ENCODING.search(statement.full):
        found = original.encodings.get((text.partition(" ")[0], f" {match[0]}"))
        if found is None:
            raise RebuildError(f"line {statement.number}: the original has no such instruction "
                               f"with '{match[0][:80]}'")
        encoding = found
    return Line(known or text, labels, encoding)


def _check(text: str, statement: _Statement, labels: Iterable[str]) -> None:
    try:
        validate_line(text, labels)
    except RebuildError as error:
        reason = str(error).removeprefix("line ")
        raise RebuildError(f"line {statement.number}: {reason}") from None


def _labels(statement: _Statement) -> tuple[list[str], str]:
    labels, code = [], statement.code
    while match := _LABEL.match(code):
        labels.append(match[1])
        code = code[match.end():]
    return labels, code


def _label_names(before: KernelBody, statements: Sequence[_Statement],
                 defined: Iterable[list[str]], renamed: Mapping[str, str]) -> dict[str, str]:
    """For each label in the text the name that the assembler gets.

    A label that begins with ``.L`` stays out of the symbol table; the others are the object's own
    symbols, which have to be there under their own names.
    """
    names: dict[str, str] = {}
    places: dict[str, int] = {}
    symbols = {label for line in before.lines for label in line.labels
               if not label.startswith(".L")}
    declared = {old: new for new, old in renamed.items()}
    for statement, labels in zip(statements, defined, strict=True):
        for label in labels:
            if label in declared and label not in renamed:
                raise RebuildError(f"line {statement.number}: the label '{label}' was renamed to "
                                   f"'{declared[label]}' in its .local directive")
            name = renamed.get(label, label)
            if name not in symbols and not name.startswith(".L"):
                name = f".L{name}"
            while label not in renamed and name in places and label not in names:
                name += "_"
            if label in names or name in places:
                raise RebuildError(f"line {statement.number}: the label '{label}' is also defined "
                                   f"in line {places[names.get(label, name)]}")
            names[label] = name
            places[name] = statement.number
    if missing := sorted(symbols - set(places)):
        raise RebuildError(f"the label '{missing[0]}' is missing; it is a symbol of the object")
    return names


def _short(code: str) -> str:
    return code if len(code) <= _SHOWN else code[:_SHOWN - 3] + "..."
