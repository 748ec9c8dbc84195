"""The editable document that recovery makes of a code object."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from asmevo.codeobject.encoding import UNCHANGED, Encoding
from asmevo.errors import AsmEvoError

_LABEL = re.compile(r"\.L[A-Za-z0-9_.$]*")


class EditError(AsmEvoError):
    """An edit does not fit the assembly it is applied to."""


@dataclass(frozen=True, slots=True)
class Line:
    """One instruction of a kernel and the labels in front of it.

    ``text`` is the instruction with symbolic branch targets; it is empty only for a last line that
    carries labels behind the final instruction. ``encoding`` are bits that the assembler does not
    encode (`asmevo.codeobject.encoding`). ``padding`` is the alignment directive that makes this
    instruction and its neighbours with the same one; they have no text of their own in the
    document, so that their number follows an edit.
    """

    text: str
    labels: tuple[str, ...] = ()
    encoding: Encoding = UNCHANGED
    padding: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace instructions ``start`` to ``stop`` (exclusive) of a kernel by ``lines``.

    Indices count the kernel's instructions. Labels in front of ``start`` stay in front of whatever
    comes first there afterwards. ``start == stop`` inserts. A line such as ``.L_new:`` is a label
    for what follows it (`label_of`).
    """

    kernel: str
    start: int
    stop: int
    lines: tuple[str, ...]
    reason: str


def label_of(line: str) -> str | None:
    """The label that a line of an edit defines, ``None`` for an instruction."""
    return line[:-1] if line.endswith(":") and _LABEL.fullmatch(line[:-1]) else None


@dataclass(frozen=True, slots=True)
class KernelBody:
    """The instructions of one function, a kernel or a device function, in address order."""

    symbol: str
    lines: tuple[Line, ...]

    def text(self) -> Iterator[str]:
        """What each line contributes to the document; the instruction is in its last line."""
        padding = ""
        for line in self.lines:
            labels = "".join([f"{label}:\n" for label in line.labels]) if line.labels else ""
            if line.padding:
                yield labels + (f"\t{line.padding}\n" if labels or line.padding != padding else "")
            elif not line.text:
                yield labels
            elif line.encoding is UNCHANGED:
                yield f"{labels}\t{line.text}\n"
            else:
                yield f"{labels}\t{line.text}{line.encoding.comment()}\n"
            padding = line.padding


    def statements(self) -> Iterator[tuple[str, tuple[Line, ...]]]:
        """Each statement of the document without its labels, and the lines that it stands for.

        That is one line, or all that an alignment directive makes. A reader of an edited document
        finds here what a statement was in the recovered one.
        """
        run: list[Line] = []
        for line in self.lines:
            if run and (line.padding != run[0].padding or line.labels):
                yield run[0].padding, tuple(run)
                run = []
            if line.padding:
                run.append(line)
            elif line.text:
                yield f"{line.text}{line.encoding.comment()}", (line,)
        if run:
            yield run[0].padding, tuple(run)


@dataclass(frozen=True, slots=True)
class Assembly:
    """A recovered code object: verbatim text blocks around editable function bodies.

    ``blocks`` in file order; joined they are a complete input for the assembler.
    """

    original_sha256: str
    blocks: tuple[str | KernelBody, ...]

    def text(self) -> str:
        """The complete assembler input."""
        out: list[str] = []
        for block in self.blocks:
            if isinstance(block, str):
                out.append(block)
                continue
            # Joined at once: a string for every instruction of a large object is a lot of memory.
            out.append("".join(block.text()))
        return "".join(out)

    def body(self, kernel: str) -> KernelBody:
        """The body of a kernel; raises `EditError` when there is none of that symbol."""
        for block in self.blocks:
            if isinstance(block, KernelBody) and block.symbol == kernel:
                return block
        raise EditError(f"the object has no kernel or function named '{kernel}'")

    def apply(self, edits: Sequence[Edit]) -> Assembly:
        """Apply edits whose indices all refer to this assembly; they may not overlap."""
        result = self
        for kernel in {edit.kernel for edit in edits}:
            body = self.body(kernel)
            mine = sorted((e for e in edits if e.kernel == kernel), key=lambda e: (e.start, e.stop))
            result = result._with_body(KernelBody(kernel, _spliced(body.lines, mine)))
        return result

    def _with_body(self, body: KernelBody) -> Assembly:
        blocks = tuple(
            body if isinstance(b, KernelBody) and b.symbol == body.symbol else b
            for b in self.blocks
        )
        return replace(self, blocks=blocks)


def _spliced(lines: tuple[Line, ...], edits: Sequence[Edit]) -> tuple[Line, ...]:
    count = sum(1 for line in lines if line.text)
    out: list[Line] = []
    position = 0
    pending: tuple[str, ...] = ()
    new = [name for edit in edits for text in edit.lines if (name := label_of(text))]
    if new and len({*new, *(x for line in lines for x in line.labels)}) < len(new) + sum(
            len(line.labels) for line in lines):
        raise EditError(f"an edit defines a label that is there already, of {', '.join(new)}")

    def emit(line: Line) -> None:
        nonlocal pending
        if pending:
            line = replace(line, labels=pending + line.labels)
            pending = ()
        out.append(line)

    for edit in edits:
        if not position <= edit.start <= edit.stop <= count:
            raise EditError(
                f"edit of instructions {edit.start} to {edit.stop} overlaps another edit or lies "
                f"outside the kernel's {count} instructions"
            )
        for line in lines[position:edit.start]:
            emit(line)
        # An edit's replacement stands where its first instruction stood, so labels in front of that
        # instruction (and of the ones it replaces) now precede the replacement.
        replaced = lines[edit.start:edit.stop]
        if replaced:
            pending += replaced[0].labels
        elif edit.lines and edit.start < len(lines):
            pending += lines[edit.start].labels
            lines = (*lines[:edit.start], replace(lines[edit.start], labels=()),
                     *lines[edit.start + 1:])
        inner = tuple(label for line in replaced[1:] for label in line.labels)
        for text in edit.lines:
            if name := label_of(text):
                pending += (name,)
            else:
                emit(Line(text))
        pending += inner
        position = edit.stop
    for line in lines[position:]:
        emit(line)
    if pending:
        out.append(Line("", pending))
    return tuple(out)
