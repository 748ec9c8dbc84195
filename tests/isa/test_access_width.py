"""Access widths against the data registers in LLVM's examples of every instruction."""

from __future__ import annotations

import pytest

from asmevo.isa.access_width import access_bytes
from asmevo.isa.gfx942 import examples
from asmevo.isa.instruction import Instruction, OperandKind, Unit
from asmevo.isa.opcodes import UNMODELLED
from asmevo.isa.parse import parse

# They have no lane's data: a counter of the wave, semaphores of all workgroups, clocks.
_NO_WIDTH = ("ds_append", "ds_consume", "ds_gws", "s_memtime", "s_memrealtime")


def _accesses() -> list[Instruction]:
    texts = [e.text for e in examples() if e.mnemonic not in UNMODELLED]
    return [i for i in map(parse, texts) if i.accesses_memory]


def _data_dwords(instruction: Instruction) -> int | None:
    """Dwords of the data registers, where their place among the operands is evident."""
    registers = [o for o in instruction.operands if o.kind is OperandKind.REGISTER]
    if "lds" in instruction.op.split("_") or instruction.modifier("lds") or not registers:
        return None
    if instruction.unit is Unit.LDS:
        first = instruction.is_load or "addtid" in instruction.op
        data = registers[:1] if first else registers[1:]
        return sum(o.count for o in data)
    if instruction.is_load or instruction.op.startswith(("buffer", "tbuffer", "s_")):
        return registers[0].count
    return next((o.count for o in registers[1:]), None)


def test_every_access_has_a_width() -> None:
    unknown = {i.op for i in _accesses() if access_bytes(i) is None}
    assert {op for op in unknown if not op.startswith(_NO_WIDTH)} == set()


def test_loads_and_stores_move_what_their_registers_hold() -> None:
    checked = 0
    for i in _accesses():
        dwords, width = _data_dwords(i), access_bytes(i)
        if i.is_atomic or dwords is None or width is None or "d16" in i.op:
            continue
        assert -(-width // 4) == dwords, i.text
        checked += 1
    assert checked > 80


@pytest.mark.parametrize(("text", "width"), [
    ("buffer_load_format_d16_xyz v[0:1], v2, s[4:7], 0 idxen", 6),
    ("global_load_short_d16_hi v0, v[2:3], off", 2),
    ("ds_write2st64_b64 v0, v[2:3], v[4:5]", 16),
    ("global_atomic_pk_add_bf16 v0, v1, s[2:3]", 4),
    ("global_atomic_cmpswap_x2 v0, v[2:5], s[2:3]", 8),
    ("ds_add_f64 v0, v[2:3]", 8),
    ("s_load_dwordx16 s[16:31], s[0:1], 0x0", 64),
    ("v_mov_b32_e32 v0, v1", None),
])
def test_widths_that_registers_do_not_show(text: str, width: int | None) -> None:
    assert access_bytes(parse(text)) == width
