"""Decoded instructions to the records that the emulator's sanitizer checks them by.

What an instruction reads, writes and implies comes from the instruction model of `asmevo.isa`; this
module adds how its result depends on its sources bit by bit, and where its addresses are. The
layout is `core/sanitizer_record.hpp`'s.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Container
from dataclasses import dataclass, field
from functools import lru_cache

import asmevo_core as core
import numpy as np
import numpy.typing as npt

from asmevo.isa.hazards import hazards
from asmevo.isa.instruction import Instruction, Operand, OperandKind, Unit
from asmevo.isa.opcodes import OPCODES
from asmevo.isa.parse import parse
from asmevo.isa.program import Program
from asmevo.isa.registers import (
    EXEC_HI,
    EXEC_LO,
    EXEC_MASK,
    M0,
    M0_MASK,
    MODE_MASK,
    SCC,
    SCC_MASK,
    VCC_LO,
    VCC_MASK,
    VGPR0,
    mask,
)
from asmevo.isa.violation import Violation

_HEADER = struct.Struct("<BBHbbBBIiiBBBBBBBx")
_OPERAND = struct.Struct("<HBBHxxII")
_FLOWS = {name: number for number, name in enumerate(core.CHECK_FLOWS)}
_SPACES = {name: number for number, name in enumerate(core.CHECK_SPACES)}
_FLAGS = dict(core.CHECK_FLAGS)
_OPERAND_FLAGS = dict(core.CHECK_OPERAND_FLAGS)
_READ, _WRITE, _USE = (_OPERAND_FLAGS[name] for name in ("read", "write", "use"))
_LANE_MASK, _INVERT = _OPERAND_FLAGS["lane_mask"], _OPERAND_FLAGS["invert"]
_DEFINED = _OPERAND_FLAGS["defined"]

_DST, _SECOND_DST, _SOURCE, _EXTRA_SOURCE, _EXTRA_DST = 0, 1, 2, 5, 6
_DATA, _ADDRESS, _BASE, _OFFSET, _M0 = 1, 3, 4, 5, 6

_ALL_BITS = 0xFFFFFFFF
_NOT_INDEXED = 255
_GPR_INDEX_DST = 3
_SINGLE = 1

# Operation -> flow, where it is not the default: one undefined bit spoils the whole result. An
# operand order of the flow that differs from the instruction's follows, as source numbers.
_BITWISE: dict[str, tuple[str, tuple[int, ...]]] = {
    **dict.fromkeys(
        ("v_mov_b32", "v_mov_b64", "v_not_b32", "v_accvgpr_read_b32", "v_accvgpr_write_b32",
         "v_accvgpr_mov_b32", "v_swap_b32", "s_mov_b32", "s_mov_b64", "s_not_b32", "s_not_b64",
         "s_movk_i32"), ("move", ())),
    **dict.fromkeys(("v_and_b32", "s_and_b32", "s_and_b64", "s_nand_b32", "s_nand_b64",
                     "s_andn2_b32", "s_andn2_b64"), ("and", ())),
    **dict.fromkeys(("v_or_b32", "s_or_b32", "s_or_b64", "s_nor_b32", "s_nor_b64", "s_orn2_b32",
                     "s_orn2_b64"), ("or", ())),
    **dict.fromkeys(("v_xor_b32", "v_xnor_b32", "s_xor_b32", "s_xor_b64", "s_xnor_b32",
                     "s_xnor_b64"), ("xor", ())),
    **dict.fromkeys(
        ("v_add_u32", "v_sub_u32", "v_subrev_u32", "v_add_i32", "v_sub_i32", "v_add3_u32",
         "v_add_co_u32", "v_sub_co_u32", "v_subrev_co_u32", "v_addc_co_u32", "v_subb_co_u32",
         "v_subbrev_co_u32", "s_add_u32", "s_sub_u32", "s_add_i32", "s_sub_i32", "s_addc_u32",
         "s_subb_u32", "s_addk_i32", "v_mul_lo_u32", "s_mul_i32", "s_mulk_i32", "v_mad_u64_u32",
         "v_mad_i64_i32", "v_mul_u32_u24", "v_mul_i32_i24", "v_mad_u32_u24", "v_mad_i32_i24"),
        ("add", ())),
    **dict.fromkeys(("v_lshlrev_b32", "v_lshlrev_b64"), ("shift_left", (1, 0))),
    **dict.fromkeys(("v_lshrrev_b32", "v_lshrrev_b64"), ("shift_right", (1, 0))),
    **dict.fromkeys(("v_ashrrev_i32", "v_ashrrev_i64"), ("shift_signed", (1, 0))),
    **dict.fromkeys(("s_lshl_b32", "s_lshl_b64"), ("shift_left", ())),
    **dict.fromkeys(("s_lshr_b32", "s_lshr_b64"), ("shift_right", ())),
    **dict.fromkeys(("s_ashr_i32", "s_ashr_i64"), ("shift_signed", ())),
    "v_and_or_b32": ("and_or", ()), "v_or3_b32": ("or3", ()), "v_lshl_or_b32": ("shift_or", ()),
    "v_lshl_add_u32": ("shift_add", ()), "v_lshl_add_u64": ("shift_add", ()),
    **dict.fromkeys(("v_bfe_u32", "v_bfe_i32"), ("bit_field", ())),
    "v_bfi_b32": ("bit_select", ()), "v_perm_b32": ("permute", ()), "v_alignbit_b32": ("align", ()),
    "v_pack_b32_f16": ("halves", ()), "s_pack_ll_b32_b16": ("halves", ()),
    "s_pack_lh_b32_b16": ("halves", ()), "s_pack_hh_b32_b16": ("halves", ()),
    **dict.fromkeys(("v_cvt_pkrtz_f16_f32", "v_cvt_pk_bf16_f32", "v_cvt_pk_u16_u32",
                     "v_cvt_pk_i16_i32", "v_cvt_pknorm_i16_f32", "v_cvt_pknorm_u16_f32"),
                    ("pair", ())),
    "v_cndmask_b32": ("select", ()),
    **dict.fromkeys(("s_cselect_b32", "s_cselect_b64"), ("select", (1, 0))),
    **dict.fromkeys(("v_pk_add_f32", "v_pk_mul_f32", "v_pk_fma_f32"), ("packed", ())),
    "v_pk_mov_b32": ("packed_move", ()),
    "v_readlane_b32": ("read_lane", ()), "v_readfirstlane_b32": ("read_first_lane", ()),
    "v_writelane_b32": ("write_lane", ()),
}
# Operations that complement a source before they combine it: its number.
_COMPLEMENTED = {"s_andn2_b32": 1, "s_andn2_b64": 1, "s_orn2_b32": 1, "s_orn2_b64": 1}
# Operations on a part of their source.
_SOURCE_BITS = {
    **{f"v_cvt_f32_ubyte{n}": 0xFF << 8 * n for n in range(4)},
    "v_cvt_off_f32_i4": 0xF, "v_cvt_f32_fp8": 0xFF, "v_cvt_f32_bf8": 0xFF,
    "v_cvt_pk_f32_fp8": 0xFFFF, "v_cvt_pk_f32_bf8": 0xFFFF,
}
_SIXTEEN_BITS = re.compile(
    r"v_(?!pk_|dot|cvt_pk|mfma|smfmac|fma_mix|sat_pk)\w*_(?:f16|u16|i16|b16)")
_PACK_HALVES = {"s_pack_ll_b32_b16": (0, 0), "s_pack_lh_b32_b16": (0, 1),
                "s_pack_hh_b32_b16": (1, 1)}
_SDWA_BITS = {**{f"BYTE_{n}": 0xFF << 8 * n for n in range(4)}, "WORD_0": 0xFFFF,
              "WORD_1": 0xFFFF0000, "DWORD": _ALL_BITS}
_ONE_BLOCK = re.compile(r"v_mfma_(?:f32|i32)_(16x16|32x32)x\d+_(?!\d+b_)\w+")

_WIDTHS = {
    "ubyte": 1, "sbyte": 1, "byte": 1, "ushort": 2, "sshort": 2, "short": 2, "dword": 4,
    "dwordx2": 8, "dwordx3": 12, "dwordx4": 16, "dwordx8": 32, "dwordx16": 64,
    "b8": 1, "u8": 1, "i8": 1, "b16": 2, "u16": 2, "i16": 2, "b32": 4, "b64": 8, "b96": 12,
    "b128": 16,
}
_MEMORY_OP = re.compile(
    r"(?:buffer|global|flat)_(?:load|store)(?:_lds)?_(?P<width>[us]?byte|[us]?short|dword(?:x\d)?)"
    r"(?:_d16)?(?P<high>_hi)?")
_LDS_OP = re.compile(
    r"ds_(?:read|write)(?P<two>2)?(?P<stride>st64)?_(?P<width>[bui]\d+)(?:_d16)?(?P<high>_hi)?")
_LDS_ATOMIC = re.compile(r"ds_(?!wrxchg2|wrap|condxchg|gws|append|consume)\w+_[a-z]+(32|64)")


@dataclass(slots=True)
class _Operand:
    register: int
    words: int = _SINGLE
    flags: int = 0
    slot: int = _NOT_INDEXED
    bits: int = _ALL_BITS
    value: int = 0

    def pack(self) -> bytes:
        return _OPERAND.pack(self.register, self.words, self.slot, self.flags, self.bits,
                             self.value)


_NOTHING = _Operand(core.ABSENT, 0).pack()


@dataclass(slots=True)
class _Check:
    """The fields of one record that differ from their default."""

    flow: str = "none"
    space: str = "none"
    flags: int = 0
    result_bits: int = _ALL_BITS
    offsets: tuple[int, int] = (0, 0)
    size: int = 0
    parts: int = 1
    shift: int = 0
    op_sel: int = 0
    op_sel_hi: int = 0
    tile: int = 0
    operands: dict[int, _Operand] = field(default_factory=dict)

    def flag(self, *names: str) -> None:
        for name in names:
            self.flags |= _FLAGS[name]

    def put(self, position: int, operand: Operand, flags: int, slot: int = _NOT_INDEXED) -> None:
        """An operand as written; what is neither register nor constant takes no part."""
        if operand.kind is OperandKind.CONSTANT:
            high = _ALL_BITS if operand.text.startswith("-") else 0
            self.operands[position] = _Operand(core.CONSTANT, flags=flags, bits=high,
                                               value=operand.value)
        elif operand.count:
            indexed = slot if operand.first >= VGPR0 else _NOT_INDEXED
            self.operands[position] = _Operand(operand.first, operand.count, flags, indexed)

    def pack(self, i: Instruction) -> bytes:
        vmcnt = lgkmcnt = -1
        if i.wait is not None:
            vmcnt = -1 if i.wait.vmcnt is None else i.wait.vmcnt
            lgkmcnt = -1 if i.wait.lgkmcnt is None else i.wait.lgkmcnt
        states = i.operands[0].value + 1 if i.unit is Unit.NOP else 1
        header = _HEADER.pack(
            _FLOWS[self.flow], _SPACES[self.space], self.flags, vmcnt, lgkmcnt, i.vmcnt, i.lgkmcnt,
            self.result_bits, *self.offsets, self.size, self.parts, min(states, 255), self.shift,
            self.op_sel, self.op_sel_hi, self.tile)
        return header + b"".join(
            self.operands[k].pack() if k in self.operands else _NOTHING
            for k in range(core.CHECK_OPERANDS))


def check_records(program: Program, refused: Container[int] = ()) -> npt.NDArray[np.uint8]:
    """One record an instruction, back to back, as `asmevo_core.Sanitizer` takes them.

    Of ``refused`` instructions, which fault, there is nothing to check.
    """
    data = b"".join(_record("s_nop 0" if index in refused else i.text)
                    for index, i in enumerate(program.instructions))
    return np.frombuffer(bytearray(data), dtype=np.uint8)


def hazard_pairs(program: Program) -> tuple[Violation, ...]:
    """Wait states that some path lacks.

    No executed path can break a rule that no path breaks, so the tables of `asmevo.isa` stay the
    only ones, and the core only measures the distances of these pairs. Of a DPP operation's
    sources only the permuted one counts here: the rule's text and LLVM name all of them, but the
    others are read as in any VALU operation, and AITER's int8 GEMMs overwrite them right before,
    128 times in each epilogue.
    """
    return tuple(v for v in hazards(program) if v.kind != "valu-dpp" or (
        v.registers & _permuted(program.instructions[v.consumer])))


def _permuted(i: Instruction) -> int:
    source = i.operands[1]
    return mask(source.first, source.count) if source.count else 0


@lru_cache(maxsize=1 << 16)
def _record(text: str) -> bytes:
    i = parse(text)
    check = _Check()
    if i.reads & EXEC_MASK and i.unit not in (Unit.SALU, Unit.BRANCH):
        check.flag("masked")
    match i.unit:
        case Unit.SMEM:
            _scalar_memory(check, i)
        case Unit.VMEM | Unit.FLAT:
            _vector_memory(check, i)
        case Unit.LDS:
            _lds(check, i)
        case Unit.BARRIER:
            check.flag("barrier")
        case Unit.END:
            check.flag("end")
        case Unit.BRANCH:
            _branch(check, i)
        case Unit.SALU | Unit.VALU | Unit.TRANS | Unit.MFMA:
            _arithmetic(check, i)
    if i.unit is Unit.FLAT or (i.lgkmcnt and i.unit is not Unit.LDS):
        check.flag("unordered")
    return check.pack(i)


def _split(i: Instruction) -> tuple[list[Operand], list[Operand]]:
    """Destinations and sources; what an operation accumulates into is both."""
    roles = OPCODES[i.op].roles_with({name for name, _ in i.modifiers})
    pairs = list(zip(i.operands, roles, strict=True))
    return ([o for o, role in pairs if role in "wx"],
            [o for o, role in pairs if role in "ri"])


def _branch(check: _Check, i: Instruction) -> None:
    if i.reads & SCC_MASK:
        check.operands[_SOURCE] = _Operand(SCC, flags=_READ | _USE)
    if i.reads & VCC_MASK:
        check.operands[_SOURCE] = _Operand(VCC_LO, 2, _READ | _USE)
    destinations, sources = _split(i)
    for operand in sources:
        check.put(_SOURCE, operand, _READ | _USE)
    for operand in destinations:
        check.flow = "any"
        check.put(_DST, operand, _WRITE | _DEFINED)


def _arithmetic(check: _Check, i: Instruction) -> None:
    destinations, sources = _split(i)
    check.flow, order = _BITWISE.get(i.op, ("any", ()))
    if not i.writes & ~MODE_MASK:
        # s_setreg and the like: what they set decides everything after.
        check.flow = "none"
    keeps = _keeps_destination(check, i)
    if not keeps and i.operands and destinations and _accumulates(i):
        sources.append(destinations[0])
    in_order = [sources[k] for k in order] + sources[len(order):] if order else sources
    mask_at = _lane_mask_source(i)
    use = _USE if check.flow == "none" or i.op.startswith("s_set_gpr_idx") else 0
    for number, operand in enumerate(in_order[:4]):
        slot = order[number] if number < len(order) else number
        flags = _READ | use | (_LANE_MASK if number == mask_at else 0)
        carry = number == mask_at and i.op != "v_cndmask_b32"
        check.put(_EXTRA_SOURCE if carry or number == 3 else _SOURCE + number, operand, flags, slot)
    complemented = _COMPLEMENTED.get(i.op)
    if complemented is not None:
        check.operands[_SOURCE + complemented].flags |= _INVERT
    if check.flow in ("packed", "packed_move"):
        check.op_sel = _selects(i, "op_sel", 0)
        check.op_sel_hi = _selects(i, "op_sel_hi", 7)
    _source_bits(check, i)
    vector = i.unit is not Unit.SALU
    for position, operand in zip((_DST, _SECOND_DST), destinations, strict=False):
        # A vector operation's scalar result is a mask of lanes, but for lane reads.
        mask = vector and operand.first < VGPR0 and not i.op.startswith(("v_readlane",
                                                                        "v_readfirstlane"))
        check.put(position, operand, _WRITE | (_LANE_MASK if mask else 0), _GPR_INDEX_DST)
    _implied(check, i, vector)
    if i.unit is Unit.MFMA:
        _matrix(check, i)


def _selects(i: Instruction, name: str, default: int) -> int:
    bits = i.modifier(name)
    if not isinstance(bits, tuple):
        return default
    return sum((bit & 1) << number for number, bit in enumerate(bits))


def _accumulates(i: Instruction) -> bool:
    """Whether the old value of the destination is an input of the operation."""
    return (OPCODES[i.op].roles.startswith("x")
            and i.op not in ("v_writelane_b32", "v_swap_b32"))


def _lane_mask_source(i: Instruction) -> int:
    if i.op == "v_cndmask_b32" or i.op in ("v_addc_co_u32", "v_subb_co_u32", "v_subbrev_co_u32"):
        return 2
    return -1


def _keeps_destination(check: _Check, i: Instruction) -> bool:
    """Results that leave part of a register alone set ``result_bits`` to the part they write."""
    if i.encoding == "sdwa":
        if i.modifier("dst_unused") == "UNUSED_PRESERVE":
            check.result_bits = _SDWA_BITS[str(i.modifier("dst_sel") or "DWORD")]
            return True
        return False
    select = i.modifier("op_sel")
    high = isinstance(select, tuple) and len(select) == len(i.operands) and bool(select[-1])
    partial = OPCODES[i.op].roles.startswith("x") and (
        i.op.startswith(("v_cvt_pk_fp8", "v_cvt_pk_bf8", "v_cvt_sr_", "v_mad_", "v_fma_",
                         "v_div_fixup_f16")))
    if i.op == "v_fma_mixhi_f16":
        high = True
    if high or partial:
        check.result_bits = 0xFFFF0000 if high else 0xFFFF
        return True
    return False


def _source_bits(check: _Check, i: Instruction) -> None:
    """Narrow the sources to the bits that the operation looks at."""
    select = i.modifier("op_sel")
    halves = select if isinstance(select, tuple) else ()
    for number in range(3):
        operand = check.operands.get(_SOURCE + number)
        if operand is None or operand.words != 1 or operand.register == core.CONSTANT:
            continue
        high = number < len(halves) and bool(halves[number])
        if i.encoding == "sdwa" and number < 2:
            chosen = i.modifier(f"src{number}_sel")
            operand.bits = _SDWA_BITS[str(chosen or "DWORD")]
            if chosen is None or chosen == "DWORD":
                operand.bits = _SOURCE_BITS.get(i.op, operand.bits)
        elif i.op in _PACK_HALVES:
            operand.bits = 0xFFFF0000 if _PACK_HALVES[i.op][number] else 0xFFFF
        elif _SIXTEEN_BITS.fullmatch(i.op) and not (i.op.startswith("v_mad_") and number == 2
                                                    and "32" in i.op):
            operand.bits = 0xFFFF0000 if high else 0xFFFF
        else:
            operand.bits = _SOURCE_BITS.get(i.op, _ALL_BITS)


def _implied(check: _Check, i: Instruction, vector: bool) -> None:
    """SCC, VCC, M0 and EXEC where no operand names them."""
    if i.reads & SCC_MASK and not vector:
        scc = _Operand(SCC, flags=_READ)
        if i.op.startswith("s_cmov"):
            # SCC ? source : destination.
            source = check.operands[_SOURCE]
            destination = i.operands[0]
            check.flow = "select"
            check.operands[_SOURCE + 1] = source
            check.put(_SOURCE, destination, _READ)
            check.operands[_SOURCE + 2] = scc
        else:
            select = check.flow == "select"
            check.operands[_SOURCE + 2 if select else _EXTRA_SOURCE] = scc
    if i.writes & SCC_MASK:
        check.operands[_EXTRA_DST] = _Operand(SCC, flags=_WRITE)
    if i.op.startswith("v_div_fmas"):
        check.operands[_EXTRA_SOURCE] = _Operand(VCC_LO, 2, _READ | _LANE_MASK)
    named_exec = any(o.first in (EXEC_LO, EXEC_HI) for o in i.operands[:1])
    if i.writes & EXEC_MASK and not named_exec:
        check.operands[_SECOND_DST] = _Operand(
            EXEC_LO, 2, _WRITE | (_LANE_MASK if vector else 0))
        if "saveexec" in i.op:
            check.operands[_DST].flags |= _DEFINED
    if i.writes & M0_MASK and i.op.startswith("s_set_gpr_idx"):
        check.operands[_DST] = _Operand(M0, flags=_WRITE | _DEFINED)


def _matrix(check: _Check, i: Instruction) -> None:
    check.flow = "matrix"
    block = _ONE_BLOCK.fullmatch(i.op)
    if block is not None and not any(i.modifier(name) for name in ("cbsz", "abid", "blgp")):
        check.tile = int(block[1].split("x")[0])


def _scalar_memory(check: _Check, i: Instruction) -> None:
    destinations, sources = _split(i)
    check.space = "unchecked"
    for operand in destinations:
        check.put(_DST, operand, _WRITE)
    match = re.fullmatch(r"s_(?:buffer_)?(load|store)_(dword(?:x\d+)?)|s_atomic_\w+", i.op)
    if match is None or len(i.operands) != 3:
        return
    check.space = "scalar"
    check.flag("load" if i.is_load else "store" if i.is_store else "atomic")
    check.size = _WIDTHS[match[2]] if match[2] else 8 if i.op.endswith("_x2") else 4
    if not i.is_load:
        check.put(_DATA, i.operands[0], _READ | _USE)
    check.put(_BASE, sources[-2], _READ | _USE)
    check.put(_OFFSET, sources[-1], _READ | _USE)
    check.offsets = (_offset(i, "offset"), 0)


def _offset(i: Instruction, name: str) -> int:
    value = i.modifier(name)
    return value if isinstance(value, int) else 0


def _vector_memory(check: _Check, i: Instruction) -> None:
    destinations, sources = _split(i)
    check.space = "unchecked"
    for operand in destinations:
        check.put(_DST, operand, _WRITE)
    match = _MEMORY_OP.fullmatch(i.op)
    segment = i.op.partition("_")[0]
    if not sources or segment not in ("buffer", "global", "flat") or (
            match is None and not i.is_atomic):
        for number, operand in enumerate(sources[:3]):
            check.put(_ADDRESS + number, operand, _READ)
        return
    check.space = segment
    check.flag("load" if i.is_load else "store" if i.is_store else "atomic")
    if match is not None:
        check.size = _WIDTHS[match["width"]]
        if check.size < 4:
            # A load into one half clears the other, see core/field.hpp.
            check.shift = 16 if match["high"] else 0
            if i.is_load and "_d16" not in i.op:
                check.flag("extend")
    else:
        check.size = 8 if i.op.endswith(("_x2", "_f64")) else 4
        if "_add_" in i.op and ("_f" in i.op or "bf16" in i.op):  # max and min do not round
            check.flag("float")
    if i.modifier("lds") or "_load_lds_" in i.op:
        check.flag("to_lds")
        check.operands[_M0] = _Operand(M0, flags=_READ | _USE)
    check.offsets = (_offset(i, "offset"), 0)
    if segment == "buffer":
        # An atomic that returns has its data register as destination too.
        data = i.operands[0] if len(i.operands) == 4 and not i.is_load else None
        address, resource, offset = i.operands[-3:]
        check.put(_BASE, resource, _READ | _USE)
        check.put(_OFFSET, offset, _READ | _USE)
    else:
        data = sources[1] if not i.is_load else None
        address = sources[0]
        if segment == "global":
            check.put(_BASE, sources[-1], _READ | _USE)
    if data is not None:
        check.put(_DATA, data, _READ)
    check.put(_ADDRESS, address, _READ | _USE)


def _lds(check: _Check, i: Instruction) -> None:
    destinations, sources = _split(i)
    check.space = "unchecked"
    for operand in destinations:
        check.put(_DST, operand, _WRITE)
    match = _LDS_OP.fullmatch(i.op)
    atomic = _LDS_ATOMIC.fullmatch(i.op) if i.is_atomic else None
    if i.op in ("ds_permute_b32", "ds_bpermute_b32"):
        check.space, check.size = "lanes", 4
        if i.op == "ds_permute_b32":
            check.flag("forward")
    elif match is not None:
        check.space, check.size = "lds", _WIDTHS[match["width"]]
        check.flag("load" if i.is_load else "store")
        if check.size < 4:
            # A load into one half clears the other, see core/field.hpp.
            check.shift = 16 if match["high"] else 0
            if i.is_load and "_d16" not in i.op:
                check.flag("extend")
    elif atomic is not None:
        check.space, check.size = "lds", int(atomic[1]) // 8
        check.flag("atomic")
    if check.space == "unchecked":
        for number, operand in enumerate(sources[:3]):
            check.put(_ADDRESS + number, operand, _READ)
        return
    check.put(_ADDRESS, sources[0], _READ | _USE)
    for number, operand in enumerate(sources[1:3]):
        check.put(_DATA + number, operand, _READ)
    check.offsets = (_offset(i, "offset"), 0)
    if match is not None and match["two"]:
        scale = check.size * (64 if match["stride"] else 1)
        check.parts = 2
        check.offsets = (_offset(i, "offset0") * scale, _offset(i, "offset1") * scale)
