"""A record of the emulator's core: what an instruction fills in, and checks on its operands."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import asmevo_core as core

from asmevo.device.emulator import constants
from asmevo.isa.instruction import Instruction, Operand, OperandKind

_CODES = {(1, False): "B", (2, False): "H", (4, False): "I", (4, True): "i"}
_FIELDS = tuple(name for name, _, _, _ in core.RECORD_FIELDS)
_LAYOUT = struct.Struct(
    "<" + "".join(_CODES[size, signed] for _, _, size, signed in core.RECORD_FIELDS))
_FLAGS = dict(core.FLAGS)
_TRAITS = dict(core.TRAITS)
# Source operands that name the flat apertures; each is 4 GiB.
_APERTURES = {
    f"src_{name}_{end}": base | offset
    for name, base in (("shared", core.SHARED_APERTURE), ("private", core.PRIVATE_APERTURE))
    for end, offset in (("base", 0), ("limit", 0xFFFFFFFF))
}
# Operand codes of the values that hardware computes (CDNA3 ISA, "Instruction Operands").
_STATUS = {"vccz": 251, "src_vccz": 251, "execz": 252, "src_execz": 252, "scc": 253, "src_scc": 253}


class NotModelledError(Exception):
    """Why one instruction cannot run; becomes an `UnsupportedError` with pc and text."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One row of the core's operation table."""

    number: int
    shape: str
    dst_words: int
    src_words: tuple[int, int, int]
    traits: int
    source_types: tuple[str, str, str]

    def has(self, trait: str) -> bool:
        return bool(self.traits & _TRAITS[trait])


OPERATIONS = {
    name: Operation(number, shape, dst_words, src_words, traits, core.SOURCE_TYPES[number])
    for number, (name, shape, dst_words, src_words, traits) in enumerate(core.OPERATIONS)
}


@dataclass(slots=True)
class Record:
    """Fields of a record that differ from their default."""

    values: dict[str, int] = field(default_factory=dict)

    def pack(self, operation: Operation) -> bytes:
        defaults = {"dst": core.ABSENT, "sdst": core.ABSENT, "src0": core.ABSENT,
                    "src1": core.ABSENT, "src2": core.ABSENT}
        merged = {**defaults, **self.values, "op": operation.number}
        return _LAYOUT.pack(*(merged.get(name, 0) for name in _FIELDS))

    def flag(self, name: str) -> None:
        self.values["flags"] = self.values.get("flags", 0) | _FLAGS[name]

    def source(self, slot: int, operand: Operand, words: int, kind: str = "word") -> None:
        """A source register, status bit, or constant of ``words`` dwords and type ``kind``."""
        if operand.sext:
            raise NotModelledError("sext() is not modelled")
        if operand.kind is OperandKind.REGISTER:
            if operand.count != words:
                raise NotModelledError(f"operand '{operand.text}' should have {words} dwords")
            self.values[f"src{slot}"] = operand.first
        elif operand.kind is OperandKind.CONSTANT:
            self.values[f"src{slot}"] = core.CONSTANT
            try:
                low, high = constants.constant_bits(operand, kind, words)
            except ValueError as error:
                raise NotModelledError(str(error)) from None
            self.values[f"literal_lo{slot}"] = low
            self.values[f"literal_hi{slot}"] = high
        elif operand.text in _APERTURES:
            # As a 32-bit source the value is wrong on hardware (LLVM, getSegmentAperture).
            if words != 2:
                raise NotModelledError(f"operand '{operand.text}' of {words} dwords is not "
                                       "modelled")
            value = _APERTURES[operand.text]
            self.values[f"src{slot}"] = core.CONSTANT
            self.values[f"literal_lo{slot}"] = value & 0xFFFFFFFF
            self.values[f"literal_hi{slot}"] = value >> 32
        elif operand.text in _STATUS and words <= 2:
            self.values[f"src{slot}"] = _STATUS[operand.text]
        else:
            raise NotModelledError(f"operand '{operand.text}' is not modelled")
        for name, given in (("neg", operand.neg), ("abs", operand.abs)):
            if given:
                self.values[name] = self.values.get(name, 0) | 1 << slot


def register(operand: Operand, words: int) -> int:
    if operand.kind is not OperandKind.REGISTER or operand.count != words:
        raise NotModelledError(f"operand '{operand.text}' should be a register of {words} dwords")
    return operand.first


def number(instruction: Instruction, name: str, default: int = 0) -> int:
    value = instruction.modifier(name)
    if value is None:
        return default
    if not isinstance(value, int):
        raise NotModelledError(f"modifier '{name}' is not modelled in this form")
    return value


def allow(instruction: Instruction, names: frozenset[str]) -> None:
    for name, _ in instruction.modifiers:
        if name not in names:
            raise NotModelledError(f"modifier '{name}' is not modelled")


def expect(operands: tuple[Operand, ...], count: int) -> None:
    if len(operands) != count:
        raise NotModelledError(f"expected {count} operands, found {len(operands)}")
