"""B10: another floating-point mode."""

from __future__ import annotations

from asmevo.gates.verdict import Gate
from asmevo.threats.subject import Subject
from asmevo.threats.threat import ANY, Threat
from asmevo.threats.trick import Bytes, Derived, edited, inserted, replaced

# COMPUTE_PGM_RSRC1 is at byte 48: round mode in bits 12 to 15, denormal mode in 16 to 19.
_RSRC1 = 48


def _flip(byte: int, bits: int) -> Bytes:
    def change(data: bytearray, subject: Subject) -> None:
        data[subject.descriptor_offset + _RSRC1 + byte] ^= bits

    return Bytes(change)


THREATS = (
    Threat("B10", "the descriptor rounds another way", ANY, _flip(1, 0x10),
           Gate.G1, ("interface",)),
    Threat("B10", "the descriptor flushes denormals", ANY, _flip(2, 0x0C),
           Gate.G1, ("interface",)),
    Threat("B10", "the descriptor has another IEEE mode", ANY, _flip(2, 0x80),
           Gate.G1, ("interface",)),
    Threat("B10", "s_setreg flushes denormals", ANY,
           inserted("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 4), 0"),
           Gate.G1, ("forbidden-opcode",)),
    Threat("B10", "s_round_mode truncates", ANY, inserted("s_setreg_imm32_b32 "
           "hwreg(HW_REG_MODE, 0, 4), 15"), Gate.G1, ("forbidden-opcode",)),
    Threat("B10", "the text flushes denormals", "topksoftmax",
           Derived(lambda subject: subject.with_directive(
               "amdhsa_float_denorm_mode_16_64", "0")),
           Gate.G0, ("rebuild-refused",)),
    Threat("B10", "an output modifier that flushes denormals", "topksoftmax",
           edited(replaced("v_mul_f32_e64 v11, v11, s49", "v_mul_f32_e64 v11, v11, s49 clamp")),
           Gate.G2, ("max-abs", "bits")),
)
