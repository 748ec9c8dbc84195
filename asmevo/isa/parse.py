"""Text to :class:`~asmevo.isa.instruction.Instruction`.

The input is what LLVM's disassembler prints for gfx90a, gfx942 or gfx950, or hand-written text that
LLVM's assembler accepts: an operation means the same on each that has it (see
:mod:`asmevo.isa.targets`), so no target is named here. A hand-written vector mnemonic may
leave out its encoding suffix; the one LLVM would choose is filled in (DPP or SDWA by modifier, else
e32 when the operands fit, else e64). ``.long`` with one value is an instruction that may be
anything. Not accepted: bracketed register lists (``[s0, s1]``), expressions other than labels and
``symbol@rel32@lo+4``, ``tfe``, ``lds_direct``.
"""

from __future__ import annotations

import re
from functools import lru_cache

from asmevo.isa import modifiers as modifier_grammar
from asmevo.isa import opcodes
from asmevo.isa.errors import ParseError, UnknownInstructionError
from asmevo.isa.form import Form
from asmevo.isa.instruction import Instruction, Operand, OperandKind, Unit, WaitCount
from asmevo.isa.modifiers import ModifierValue, parse_modifiers
from asmevo.isa.operands import parse_immediate, parse_integer, parse_source, parse_target
from asmevo.isa.registers import AGPR0, EVERYTHING, M0_MASK, VCC_LO, VGPR0, mask

__all__ = ["ParseError", "UnknownInstructionError", "parse"]

_MAX_LENGTH = 512
_OPERAND = re.compile(r"\s*([^\s,()\[\]|]*(?:\([^)]*\)+|\[[^\]]*\]|\|[^|]*\|)?\)?)\s*")
_COUNTER = re.compile(r"(vmcnt|expcnt|lgkmcnt)(_sat)?\(([^)]*)\)")
_COUNTER_LIMITS = {"vmcnt": 63, "expcnt": 7, "lgkmcnt": 15}


@lru_cache(maxsize=1 << 16)
def parse(text: str) -> Instruction:
    """Decode one instruction.

    Raises UnknownInstructionError for a mnemonic outside the opcode table and ParseError for
    anything else that is not a valid instruction.
    """
    if len(text) > _MAX_LENGTH:
        raise ParseError("instruction text is too long")
    head, _, rest = " ".join(text.split()).partition(" ")
    if head == ".long":
        return _opaque(rest)
    found = opcodes.find(head)
    if found is None:
        raise UnknownInstructionError(head)
    op, encoding, form = found
    if op == "s_waitcnt":
        return _wait(rest)

    operand_texts, modifier_text = _split(rest, bool(form.roles))
    modifiers = parse_modifiers(modifier_text)
    names = {name for name, _ in modifiers}
    roles = form.roles_with(names)
    if len(operand_texts) != len(roles):
        raise ParseError(f"{head} takes {len(roles)} operands, not {len(operand_texts)}")
    operands = tuple(_operand(t, r) for t, r in zip(operand_texts, roles, strict=True))
    if form.suffixed and not encoding:
        encoding = _choose_encoding(op, roles, operands, names)
        head = f"{op}_{encoding}"
    reads, writes = _effects(op, encoding, form, roles, operands, modifiers)
    canonical = " ".join(filter(None, (head, ", ".join(operand_texts), modifier_text.strip())))
    return Instruction(
        text=canonical, mnemonic=head, op=op, encoding=encoding,
        operands=operands, modifiers=modifiers, reads=reads, writes=writes, unit=form.unit,
        is_load=form.is_load, is_store=form.is_store, is_atomic=form.is_atomic,
        vmcnt=form.vmcnt, lgkmcnt=form.lgkmcnt, expcnt=1 if "gds" in names else 0,
        is_branch=form.is_branch, is_conditional=form.is_conditional,
        ends_program=form.ends_program)


def _split(rest: str, has_operands: bool) -> tuple[list[str], str]:
    """Separate comma-separated operands from the modifiers that follow the last one."""
    if not has_operands or not rest:
        return [], rest
    operands: list[str] = []
    position = 0
    while True:
        match = _OPERAND.match(rest, position)
        if match is None or not match[1]:
            raise ParseError(f"cannot read an operand at '{rest[position:position + 40]}'")
        operands.append(match[1])
        position = match.end()
        if rest[position:position + 1] != ",":
            return operands, rest[position:]
        position += 1


def _operand(text: str, role: str) -> Operand:
    if role == "t":
        return parse_target(text)
    if role == "i":
        return parse_immediate(text)
    operand = parse_source(text)
    if role != "r":
        if operand.kind is not OperandKind.REGISTER:
            raise ParseError(f"'{text}' cannot be written")
        if operand.neg or operand.abs or operand.sext:
            raise ParseError(f"destination '{text}' takes no modifier")
    return operand


def _choose_encoding(op: str, roles: str, operands: tuple[Operand, ...], names: set[str]) -> str:
    if names & modifier_grammar.DPP:
        return "dpp"
    if names & modifier_grammar.SDWA:
        return "sdwa"
    if names or any(o.neg or o.abs for o in operands):
        return "e64"
    # Lane masks, which e32 fixes to VCC though they are written, and the second data source.
    if op.startswith(("v_cmp_", "v_cmpx_")):
        masks, second = operands[:1], operands[2:3]
    elif roles.startswith("ww"):
        masks, second = (*operands[1:2], *operands[4:]), operands[3:4]
    else:
        masks, second = operands[3:], operands[2:3]
    fits = all(o.first == VCC_LO for o in masks) and all(
        VGPR0 <= o.first < AGPR0 for o in second)
    return "e32" if fits else "e64"


def _effects(op: str, encoding: str, form: Form, roles: str, operands: tuple[Operand, ...],
             modifiers: tuple[tuple[str, ModifierValue], ...]) -> tuple[int, int]:
    reads, writes = form.reads, form.writes
    values = dict(modifiers)
    for operand, role in zip(operands, roles, strict=True):
        if not operand.count:
            continue
        registers = mask(operand.first, operand.count)
        if role in "rx":
            reads |= registers
        if role in "wx":
            writes |= registers
    if operands and roles[0] == "w" and _keeps_destination(encoding, roles, values):
        reads |= mask(operands[0].first, operands[0].count)
    if "lds" in values or "gds" in values:
        reads |= M0_MASK
    return reads, writes


def _keeps_destination(encoding: str, roles: str, values: dict[str, ModifierValue]) -> bool:
    """Whether lanes or halves of the destination that are not written keep their value."""
    if encoding == "dpp":
        all_rows = values.get("row_mask", 15) == 15 and values.get("bank_mask", 15) == 15
        # These controls find a source lane for every lane; shifts and broadcasts do not.
        complete = not values.keys().isdisjoint(
            {"quad_perm", "row_ror", "row_newbcast", "row_mirror", "row_half_mirror", "wave_rol",
             "wave_ror"})
        return not (all_rows and (complete or "bound_ctrl" in values))
    if encoding == "sdwa":
        return (values.get("dst_unused") == "UNUSED_PRESERVE"
                and values.get("dst_sel", "DWORD") != "DWORD")
    select = values.get("op_sel")
    # VOP3's op_sel has a bit for the destination after those of the sources; VOP3P's has not.
    return isinstance(select, tuple) and len(select) == len(roles) and bool(select[-1])


def _opaque(rest: str) -> Instruction:
    """A word LLVM cannot decode: it may read and write everything."""
    value = parse_integer(rest.strip())
    if not 0 <= value < 1 << 32:
        raise ParseError(f"'.long {rest[:40]}' does not fit 32 bits")
    text = f".long 0x{value:08x}"
    return Instruction(
        text=text, mnemonic=".long", op=text, encoding="",
        operands=(Operand(OperandKind.CONSTANT, f"0x{value:08x}", value=value),), modifiers=(),
        reads=EVERYTHING, writes=EVERYTHING, unit=Unit.OPAQUE)


def _wait(rest: str) -> Instruction:
    text = rest.strip()
    if not text:
        raise ParseError("s_waitcnt takes a counter list")
    bounds: dict[str, int] = {}
    if text[0].isdigit():
        # simm16: vmcnt in [3:0] and [15:14], expcnt in [6:4], lgkmcnt in [11:8].
        value = parse_integer(text)
        if not 0 <= value <= 0xFFFF:
            raise ParseError(f"s_waitcnt operand {text[:20]} does not fit 16 bits")
        fields = {"vmcnt": value & 15 | value >> 10 & 0x30, "expcnt": value >> 4 & 7,
                  "lgkmcnt": value >> 8 & 15}
        # A field at its maximum waits for nothing.
        bounds = {n: v for n, v in fields.items() if v < _COUNTER_LIMITS[n]}
    else:
        remainder = _COUNTER.sub("", text)
        if remainder.strip(" ,&"):
            raise ParseError(f"cannot read wait counters '{text[:60]}'")
        for name, saturate, number in _COUNTER.findall(text):
            value, limit = parse_integer(number.strip()), _COUNTER_LIMITS[name]
            if saturate:
                value = min(value, limit)
            if name in bounds or not 0 <= value <= limit:
                raise ParseError(f"{name}({number[:20]}) is repeated or out of range")
            bounds[name] = value
    return Instruction(
        text=f"s_waitcnt {text}", mnemonic="s_waitcnt", op="s_waitcnt", encoding="",
        operands=(), modifiers=(), reads=0, writes=0, unit=Unit.WAIT, wait=WaitCount(**bounds))
