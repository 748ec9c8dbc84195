"""Addresses computed from the program counter."""

from __future__ import annotations

import pytest

from asmevo.codeobject.addresses import CodeAddress, code_addresses
from asmevo.codeobject.disassembler import Row
from asmevo.codeobject.errors import CodeObjectError


def listing(*lines: str) -> list[Row]:
    rows: list[Row] = []
    position = 0x100
    for line in lines:
        size = 8 if "0x" in line else 4
        rows.append((position, size, line))
        position += size
    return rows


def test_forwards_and_backwards() -> None:
    code = listing("s_nop 0", "s_getpc_b64 s[4:5]", "s_add_u32 s4, s4, 0x40",
                   "s_addc_u32 s5, s5, 0", "s_getpc_b64 s[6:7]", "s_nop 0", "s_add_u32 s6, s6, 0xffffff00",
                   "s_addc_u32 s7, s7, -1")
    assert code_addresses(code) == (
        CodeAddress((1, 2, 3), 4, 0x108 + 0x40),
        CodeAddress((4, 6, 7), 6, 0x118 - 0x100),
    )


@pytest.mark.parametrize("lines", [
    ("s_getpc_b64 s[4:5]",), ("s_getpc_b64 vcc", "s_add_u32 s4, s4, 8", "s_addc_u32 s5, s5, 0"),
    ("s_getpc_b64 s[4:5]", "s_add_u32 s4, s4, s9", "s_addc_u32 s5, s5, 0"),
    ("s_getpc_b64 s[4:5]", "s_add_u32 s6, s4, 8", "s_addc_u32 s7, s5, 0"),
    ("s_getpc_b64 s[4:5]", *["s_nop 0"] * 9, "s_add_u32 s4, s4, 8", "s_addc_u32 s5, s5, 0"),
])
def test_other_shapes_are_named(lines: tuple[str, ...]) -> None:
    with pytest.raises(CodeObjectError, match=r"s_getpc_b64.* at offset 0x100 .*cannot be followed"):
        code_addresses(listing(*lines))
