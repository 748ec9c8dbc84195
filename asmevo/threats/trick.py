"""How a candidate is made from a subject: edits of its text, or of the object's bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from asmevo.codeobject.assembly import Assembly, Edit, KernelBody
from asmevo.codeobject.container import CodeObject
from asmevo.errors import AsmEvoError
from asmevo.gates.verdict import Verdict
from asmevo.threats.subject import Subject


class EditMismatch(AsmEvoError):  # noqa: N818 - a statement about the corpus, not a failure
    """The text that a threat edits is not in the kernel."""


@runtime_checkable
class Trick(Protocol):
    """Something that is tried on a subject."""

    def attempt(self, subject: Subject) -> tuple[Verdict, ...]:
        """What the gates say, the last verdict first that does not pass."""
        ...


@runtime_checkable
class Candidate(Protocol):
    """A trick that is a candidate, so that other harnesses can be asked as well."""

    def made(self, subject: Subject) -> Assembly | CodeObject: ...


@dataclass(frozen=True, slots=True)
class Change:
    """The ``nth`` instruction that starts with ``start``, and ``drop`` - 1 more, become ``lines``.

    ``drop`` = 0 inserts in front of it.
    """

    start: str
    lines: tuple[str, ...]
    nth: int = 0
    drop: int = 1

    def edit(self, subject: Subject) -> Edit:
        found = [i for i, line in enumerate(subject.lines) if line.startswith(self.start)]
        if not found or not -len(found) <= self.nth < len(found):
            raise EditMismatch(f"kernel '{subject.name}' has no {self.nth + 1}. '{self.start}'")
        at = found[self.nth]
        return Edit(subject.symbol, at, at + self.drop, self.lines, "threat")


def replaced(start: str, *lines: str, nth: int = 0, drop: int = 1) -> Change:
    return Change(start, lines, nth, drop)


def removed(start: str, *, nth: int = 0, drop: int = 1) -> Change:
    return Change(start, (), nth, drop)


def before(start: str, *lines: str, nth: int = 0) -> Change:
    return Change(start, lines, nth, 0)


class _Judged:
    def made(self, subject: Subject) -> Assembly | CodeObject:
        raise NotImplementedError

    def attempt(self, subject: Subject) -> tuple[Verdict, ...]:
        return subject.judge(self.made(subject))


@dataclass(frozen=True)
class Edited(_Judged):
    """Changes of the kernel's text, each found in the original."""

    changes: tuple[Change, ...]

    def made(self, subject: Subject) -> Assembly:
        return subject.assembly.apply([change.edit(subject) for change in self.changes])


def edited(*changes: Change) -> Edited:
    return Edited(changes)


@dataclass(frozen=True)
class Rewritten(_Judged):
    """Every line through a function; what it gives back, lines, instead of a line replaces it."""

    line: Callable[[str], str]

    def made(self, subject: Subject) -> Assembly:
        edits = [Edit(subject.symbol, i, i + 1, tuple(new.splitlines()), "threat")
                 for i, old in enumerate(subject.lines) if (new := self.line(old)) != old]
        if not edits:
            raise EditMismatch(f"nothing of kernel '{subject.name}' is to be rewritten")
        return subject.assembly.apply(edits)


@dataclass(frozen=True)
class Derived(_Judged):
    """A text that follows from the subject, for a trick that fits any kernel."""

    text: Callable[[Subject], Assembly]

    def made(self, subject: Subject) -> Assembly:
        return self.text(subject)


def inserted(*lines: str, at: int = 0) -> Derived:
    """The lines in front of instruction ``at`` of any kernel; negative counts from its end."""
    def text(subject: Subject) -> Assembly:
        where = at % len(subject.lines)
        return subject.assembly.apply([Edit(subject.symbol, where, where, lines, "threat")])

    return Derived(text)


def labelled(assembly: Assembly, kernel: str, at: int, label: str) -> Assembly:
    """The same text with another label in front of instruction ``at`` of a kernel."""
    body = assembly.body(kernel)
    lines = [*body.lines]
    lines[at] = replace(lines[at], labels=(*lines[at].labels, label))
    new = KernelBody(kernel, tuple(lines))
    return replace(assembly, blocks=tuple(new if b is body else b for b in assembly.blocks))


@dataclass(frozen=True)
class Bytes(_Judged):
    """A change of the object's own bytes, as somebody would hand it in."""

    change: Callable[[bytearray, Subject], None]

    def made(self, subject: Subject) -> CodeObject:
        data = bytearray(subject.code_object.data)
        self.change(data, subject)
        return CodeObject.parse(bytes(data))

    def attempt(self, subject: Subject) -> tuple[Verdict, ...]:
        try:
            return subject.judge(self.made(subject))
        except EditMismatch:
            raise
        except AsmEvoError as error:
            return (subject.unreadable(error),)


@dataclass(frozen=True)
class Measured:
    """A trick of the measurement, not of the kernel: what the gates say is computed directly."""

    verdicts: Callable[[Subject], tuple[Verdict, ...]]

    def attempt(self, subject: Subject) -> tuple[Verdict, ...]:
        return self.verdicts(subject)


def renamed(names: Mapping[str, str]) -> Callable[[str], str]:
    """A rewriting that gives registers other names, as ``{"v216": "v240"}``; no tuples."""
    pattern = re.compile(r"\b(" + "|".join(map(re.escape, names)) + r")\b")
    return lambda line: pattern.sub(lambda match: names[match[1]], line)
