"""B18: bytes outside the edited kernel change."""

from __future__ import annotations

from asmevo.codeobject.assembly import Assembly
from asmevo.codeobject.errors import CodeObjectError
from asmevo.gates.verdict import Gate
from asmevo.threats.subject import Subject
from asmevo.threats.threat import ANY, Threat
from asmevo.threats.trick import Bytes, Derived, EditMismatch

_REFUSED = ("round-trip", "rebuild-refused", "unreadable")


def _last_byte_of(name: str) -> Bytes:
    def change(data: bytearray, subject: Subject) -> None:
        try:
            section = subject.code_object.section(name)
        except CodeObjectError:
            raise EditMismatch(f"kernel '{subject.name}' has no section {name}") from None
        data[section.offset + section.size - 2] ^= 0x20

    return Bytes(change)


def _argument_name(data: bytearray, subject: Subject) -> None:
    at = bytes(data).find(b".value_kind")
    data[at + 1] ^= 0x01


def _header(data: bytearray, subject: Subject) -> None:
    data[0x30] ^= 0x04  # e_flags: the processor and its features


def _appended(data: bytearray, subject: Subject) -> None:
    data += b"the answer"


def _block(subject: Subject) -> Assembly:
    return subject.with_text("\t.section .data.threat,\"aw\",@progbits\n\t.quad 42\n")


THREATS = (
    Threat("B18", "another compiler's name", ANY, _last_byte_of(".comment"),
           Gate.G0, _REFUSED),
    Threat("B18", "another kind of argument", ANY, Bytes(_argument_name),
           Gate.G0, _REFUSED),
    Threat("B18", "another processor", ANY, Bytes(_header), Gate.G0, _REFUSED),
    Threat("B18", "bytes behind the object", ANY, Bytes(_appended), Gate.G0, _REFUSED),
    Threat("B18", "a section of its own to keep results in", ANY, Derived(_block),
           Gate.G0, (*_REFUSED, "assembler-error")),
)
