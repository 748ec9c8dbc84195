"""How LLVM writes vector ALU instructions: modifiers, DPP, SDWA and packed operands."""

from __future__ import annotations

from dataclasses import replace

from asmevo.device.emulator import constants
from asmevo.device.emulator.record import (
    NotModelledError,
    Operation,
    Record,
    allow,
    expect,
    number,
    register,
)
from asmevo.isa.instruction import Instruction, Operand, OperandKind

# DPP modifier -> (base of the control value, whether the number is added to it).
_DPP_CONTROLS = {
    "row_shl": 0x100, "row_shr": 0x110, "row_ror": 0x120, "row_newbcast": 0x150,
    "wave_shl": 0x12F, "wave_rol": 0x133, "wave_shr": 0x137, "wave_ror": 0x13B,
}
_DPP_FIXED = {"row_mirror": 0x140, "row_half_mirror": 0x141}
_DPP_BROADCASTS = {15: 0x142, 31: 0x143}
_DPP_MODIFIERS = frozenset({
    *_DPP_CONTROLS, *_DPP_FIXED, "quad_perm", "row_bcast", "row_mask", "bank_mask", "bound_ctrl"})
# SDWA select -> its code (CDNA3 ISA, "SDWA").
_SDWA_SELECTS = {name: code for code, name in enumerate(
    ("BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"))}
_SDWA_UNUSED = {"UNUSED_PAD": 0, "UNUSED_SEXT": 1, "UNUSED_PRESERVE": 2}
_SDWA_MODIFIERS = frozenset({"src0_sel", "src1_sel", "dst_sel", "dst_unused"})
_VECTOR_MODIFIERS = frozenset({"clamp", "mul", "div"}) | _DPP_MODIFIERS | _SDWA_MODIFIERS
_PACKED_MODIFIERS = frozenset({"clamp", "op_sel", "op_sel_hi", "neg_lo", "neg_hi"})
_OMOD = {("mul", 2): 1, ("mul", 4): 2, ("div", 2): 3}


def vector(record: Record, instruction: Instruction, operation: Operation) -> None:
    operands = list(instruction.operands)
    dst = operands.pop(0)
    record.values["dst"] = register(dst, operation.dst_words)
    if operation.has("carry_out"):
        record.values["sdst"] = register(operands.pop(0), 2)
    if operation.has("accumulate"):
        operands.append(dst)
    if operation.has("packed"):
        allow(instruction, _PACKED_MODIFIERS)
        operands = _packed(record, instruction, operation, operands)
    else:
        selects = frozenset({"op_sel"}) if operation.has("op_sel") else frozenset[str]()
        allow(instruction, _VECTOR_MODIFIERS | selects)
        if instruction.modifier("op_sel") is not None:
            _halves(record, instruction)
    if instruction.encoding == "sdwa":
        operands = _sdwa(record, instruction, operands)
    words = [w for w in operation.src_words if w]
    expect(tuple(operands), len(words))
    for slot, (operand, count) in enumerate(zip(operands, words, strict=True)):
        record.source(slot, operand, count, operation.source_types[slot])
    if instruction.modifier("clamp"):
        record.flag("clamp")
    for name in ("mul", "div"):
        value = instruction.modifier(name)
        if value is not None:
            if not isinstance(value, int) or (name, value) not in _OMOD:
                raise NotModelledError(f"modifier '{name}' has an unknown value")
            record.values["omod"] = _OMOD[name, value]
    if instruction.encoding == "dpp":
        _dpp(record, instruction)


def compare(record: Record, instruction: Instruction, operation: Operation) -> None:
    operands = list(instruction.operands)
    expect(instruction.operands, 3)
    record.values["dst"] = register(operands.pop(0), 2)
    if instruction.encoding == "sdwa":
        allow(instruction, _SDWA_MODIFIERS)
        operands = _sdwa(record, instruction, operands)
    else:
        allow(instruction, frozenset())
    for slot, operand in enumerate(operands):
        record.source(slot, operand, operation.src_words[slot], operation.source_types[slot])


def _packed(record: Record, instruction: Instruction, operation: Operation,
            operands: list[Operand]) -> list[Operand]:
    """Record the selects and signs; the operands as the core takes them."""
    mixed = operation.source_types[0] == "mixed"
    # Without modifiers every half comes from its own place; a mixed source is f32.
    defaults = {"op_sel": 0, "op_sel_hi": 0 if mixed else 7, "neg_lo": 0, "neg_hi": 0}
    bits: dict[str, int] = {}
    for name, default in defaults.items():
        value = instruction.modifier(name)
        listed = value if isinstance(value, tuple) else ()
        # What accumulates has no element for its destination.
        if value is not None and len(listed) < len(operands) - operation.has("accumulate"):
            raise NotModelledError(f"modifier '{name}' has too few elements")
        bits[name] = default if value is None else sum(
            (bit & 1) << slot for slot, bit in enumerate(listed))
    if operation.has("accumulate") and instruction.modifier("op_sel_hi") is not None:
        bits["op_sel_hi"] |= 4
    if instruction.op.startswith("v_dot") and (bits["op_sel"] or bits["op_sel_hi"] != 7):
        raise NotModelledError("op_sel of dot products is not modelled")
    if mixed:
        operands = _mixed(operands, bits)
    elif operation.source_types[0] == "singles":
        for slot, operand in enumerate(operands):
            # Which half of a packed operand an inline constant fills is not documented for 32-bit
            # elements: where both results take the low one, it is the constant.
            if (operand.kind is OperandKind.CONSTANT and operand.value
                    and (bits["op_sel"] | bits["op_sel_hi"]) >> slot & 1):
                raise NotModelledError("this half of a constant is not modelled")
    for name, key in (("op_sel", "op_sel"), ("op_sel_hi", "op_sel_hi"), ("neg_lo", "neg"),
                      ("neg_hi", "neg_hi")):
        record.values[key] = bits[name]
    return operands


def _mixed(operands: list[Operand], bits: dict[str, int]) -> list[Operand]:
    """V_FMA_MIX: neg and abs are written at the operands, encoded in neg_lo and neg_hi."""
    plain: list[Operand] = []
    for slot, operand in enumerate(operands):
        bits["neg_lo"] |= operand.neg << slot
        bits["neg_hi"] |= operand.abs << slot
        value = operand.value
        if operand.kind is OperandKind.CONSTANT and bits["op_sel_hi"] >> slot & 1:
            try:
                value = constants.half_bits(operand)
            except ValueError as error:
                raise NotModelledError(str(error)) from None
        plain.append(replace(operand, neg=False, abs=False, value=value))
    return plain


def _halves(record: Record, instruction: Instruction) -> None:
    """op_sel of VOP3: the half of each source, then of the destination."""
    bits = instruction.modifier("op_sel")
    if not isinstance(bits, tuple):
        raise NotModelledError("modifier 'op_sel' is not modelled in this form")
    if instruction.op.startswith("v_cvt_sr_"):
        # The byte of the destination, in the two upper bits.
        if len(bits) != 4 or any(bits[:2]):
            raise NotModelledError("op_sel of these sources is not modelled")
        record.values["op_sel"] = bits[2] << 2 | bits[3] << 3
        return
    if len(bits) != len(instruction.operands):
        raise NotModelledError("modifier 'op_sel' is not modelled in this form")
    *sources, dst = bits
    # The conversions to pairs of bytes write either half of whole sources.
    if instruction.op.startswith(("v_cvt_pk_fp8", "v_cvt_pk_bf8")) and any(sources):
        raise NotModelledError("op_sel of these sources is not modelled")
    if instruction.op.startswith(("v_pack", "v_cvt_pknorm", "v_mad_u32", "v_mad_i32")) and dst:
        raise NotModelledError("op_sel of this destination is not modelled")
    record.values["op_sel"] = sum(bit << slot for slot, bit in enumerate(sources)) | dst << 3


def _sdwa(record: Record, instruction: Instruction, operands: list[Operand]) -> list[Operand]:
    """Record the selects; the operands without the sext() that they carry."""
    record.flag("sdwa")

    def code(name: str, codes: dict[str, int], default: str) -> int:
        value = instruction.modifier(name)
        return codes[default if value is None else str(value)]

    control = code("src0_sel", _SDWA_SELECTS, "DWORD")
    control |= code("src1_sel", _SDWA_SELECTS, "DWORD") << 3
    control |= code("dst_sel", _SDWA_SELECTS, "DWORD") << 6
    control |= code("dst_unused", _SDWA_UNUSED, "UNUSED_PAD") << 9
    for slot, operand in enumerate(operands[:2]):
        control |= operand.sext << 11 + slot
    record.values["dpp_ctrl"] = control
    return [replace(operand, sext=False) for operand in operands]


def _dpp(record: Record, instruction: Instruction) -> None:
    record.flag("dpp")
    record.values["row_mask"] = number(instruction, "row_mask", 0xF)
    record.values["bank_mask"] = number(instruction, "bank_mask", 0xF)
    # LLVM writes `bound_ctrl:0` for the set bit.
    if instruction.modifier("bound_ctrl") is not None:
        record.flag("bound_ctrl")
    quad = instruction.modifier("quad_perm")
    if isinstance(quad, tuple) and len(quad) == 4:
        record.values["dpp_ctrl"] = sum((lane & 3) << 2 * i for i, lane in enumerate(quad))
        return
    for name, value in instruction.modifiers:
        if name in _DPP_FIXED:
            record.values["dpp_ctrl"] = _DPP_FIXED[name]
            return
        if name in _DPP_CONTROLS and isinstance(value, int):
            record.values["dpp_ctrl"] = _DPP_CONTROLS[name] + value
            return
        if name == "row_bcast" and value in _DPP_BROADCASTS:
            record.values["dpp_ctrl"] = _DPP_BROADCASTS[value]
            return
    raise NotModelledError("this DPP control is not modelled")
