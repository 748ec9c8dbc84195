"""The committed list of gfx942's instructions against an exhaustive decode with LLVM."""

from __future__ import annotations

from asmevo.isa import opcodes
from asmevo.isa.gfx942 import examples
from asmevo.isa.targets import operations
from tests.isa.gfx942_instructions import instructions


def test_the_list_is_what_llvm_decodes() -> None:
    found = instructions()
    assert [(e.encoding, e.text) for e in examples()] == list(found.values())


def test_the_opcode_table_has_nothing_else() -> None:
    known = {found[0] for found in map(opcodes.find, (e.mnemonic for e in examples())) if found}
    assert known == set(operations("gfx942"))
    unknown = {e.mnemonic for e in examples() if opcodes.find(e.mnemonic) is None}
    assert unknown <= opcodes.UNMODELLED
