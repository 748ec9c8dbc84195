"""How the controls that must pass are written down."""

from __future__ import annotations

from asmevo.codeobject.assembly import Assembly, Edit
from asmevo.threats.subject import Subject
from asmevo.threats.threat import Kind, Threat
from asmevo.threats.trick import Derived, EditMismatch, Trick


def equal(title: str, kernel: str, edit: Trick) -> Threat:
    """A rewrite after which the kernel does the same."""
    return Threat("equal", title, kernel, edit, kind=Kind.EQUIVALENT)


def swapped(first: str, *, nth: int = 0) -> Derived:
    """The instruction that starts with ``first`` behind the one that follows it."""
    def text(subject: Subject) -> Assembly:
        found = [i for i, line in enumerate(subject.lines) if line.startswith(first)]
        if len(found) <= nth:
            raise EditMismatch(f"kernel '{subject.name}' has no {nth + 1}. '{first}'")
        at = found[nth]
        one, two = subject.lines[at:at + 2]
        return subject.assembly.apply([Edit(subject.symbol, at, at + 2, (two, one), "threat")])

    return Derived(text)
