"""The opcode table: every gfx942 operation AsmEvo knows, by name without encoding suffix."""

from __future__ import annotations

from collections.abc import Mapping

from asmevo.isa.form import Form
from asmevo.isa.memory_ops import MEMORY_FORMS
from asmevo.isa.scalar_ops import SCALAR_FORMS
from asmevo.isa.vector_ops import VECTOR_FORMS

OPCODES: Mapping[str, Form] = SCALAR_FORMS | VECTOR_FORMS | MEMORY_FORMS

ENCODING_SUFFIXES = ("e32", "e64", "dpp", "sdwa")


def find(mnemonic: str) -> tuple[str, str, Form] | None:
    """Operation, encoding and form of a mnemonic; ``None`` when it is not in the table.

    The encoding is ``""`` when the mnemonic has no suffix.
    """
    form = OPCODES.get(mnemonic)
    if form is not None:
        return mnemonic, "", form
    op, _, suffix = mnemonic.rpartition("_")
    form = OPCODES.get(op)
    if form is None or not form.suffixed or suffix not in ENCODING_SUFFIXES:
        return None
    return op, suffix, form
