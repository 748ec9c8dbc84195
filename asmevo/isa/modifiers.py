"""The modifiers that may follow an instruction's operands."""

from __future__ import annotations

import re
from functools import lru_cache

from asmevo.isa.errors import ParseError
from asmevo.isa.operands import parse_integer

ModifierValue = int | str | tuple[int, ...]

_FLAGS = frozenset({
    "offen", "idxen", "glc", "slc", "scc", "nt", "sc0", "sc1", "lds", "gds", "clamp", "row_mirror",
    "row_half_mirror"})
_NUMBERS = frozenset({
    "offset", "offset0", "offset1", "row_shl", "row_shr", "row_ror", "row_bcast", "row_newbcast",
    "wave_shl", "wave_rol", "wave_shr", "wave_ror", "row_mask", "bank_mask", "bound_ctrl", "cbsz",
    "abid", "blgp", "mul", "div", "bitop3", "fi"})
_LISTS = frozenset({"quad_perm", "op_sel", "op_sel_hi", "neg_lo", "neg_hi", "neg"})
# A data format and a number format, by name or as one number.
_FORMAT = re.compile(r"\[[A-Z0-9_]+(?:, ?[A-Z0-9_]+)?\]")
_SELECTS = frozenset({"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"})
_NAMES = {
    "dst_sel": _SELECTS, "src0_sel": _SELECTS, "src1_sel": _SELECTS,
    "dst_unused": frozenset({"UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"}),
}

DPP = frozenset({
    "quad_perm", "row_shl", "row_shr", "row_ror", "row_bcast", "row_newbcast", "wave_shl",
    "wave_rol", "wave_shr", "wave_ror", "row_mirror", "row_half_mirror", "row_mask", "bank_mask",
    "bound_ctrl"})
SDWA = frozenset(_NAMES)

_MODIFIER = re.compile(r"\s*([a-z][a-z0-9_]*)(?::(\[[^\]]*\]|swizzle\([^)]*\)|[A-Za-z0-9_-]+))?")


@lru_cache(maxsize=1 << 13)
def parse_modifiers(text: str) -> tuple[tuple[str, ModifierValue], ...]:
    """Parse a space-separated modifier list.

    Raises ParseError for a modifier AsmEvo does not know (``tfe`` among them: it returns an extra
    dword that no operand names), a malformed value, or one given twice.
    """
    found: dict[str, ModifierValue] = {}
    position = 0
    text = text.rstrip()
    while position < len(text):
        match = _MODIFIER.match(text, position)
        end = match.end() if match else position
        if match is None or (end < len(text) and not text[end].isspace()):
            raise ParseError(f"cannot read modifiers at '{text[position:position + 40].strip()}'")
        name, value = match[1], match[2]
        if name in found:
            raise ParseError(f"modifier '{name}' is given twice")
        found[name] = _value(name, value)
        position = end
    return tuple(found.items())


def _value(name: str, value: str | None) -> ModifierValue:
    if value is None:
        if name in _FLAGS:
            return 1
        raise ParseError(f"modifier '{name[:40]}' is not supported")
    if name in _NUMBERS:
        return value if value.startswith("swizzle(") else parse_integer(value)
    if name == "format":
        return value if _FORMAT.fullmatch(value) else parse_integer(value)
    if name in _LISTS:
        if not value.startswith("["):
            raise ParseError(f"modifier '{name}' takes a list")
        return tuple(parse_integer(item.strip()) for item in value[1:-1].split(","))
    if name in _NAMES:
        if value not in _NAMES[name]:
            raise ParseError(f"'{value[:40]}' is not a value of modifier '{name}'")
        return value
    raise ParseError(f"modifier '{name[:40]}' is not supported")
