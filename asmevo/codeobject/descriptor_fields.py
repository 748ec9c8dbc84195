"""Bit fields of the kernel descriptor on gfx90a, gfx942 and gfx950.

Source: LLVM "User Guide for AMDGPU Backend", sections "Kernel Descriptor", "compute_pgm_rsrc1",
"compute_pgm_rsrc2" and "compute_pgm_rsrc3 for GFX90A, GFX942". ``directive`` is the field's own
``.amdhsa_`` directive; a field with ``directive=None`` and ``reserved=True`` must be zero, and one
with neither is written through another directive (the register counts).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Word(StrEnum):
    """The descriptor words that are made of bit fields."""

    RSRC1 = "compute_pgm_rsrc1"
    RSRC2 = "compute_pgm_rsrc2"
    RSRC3 = "compute_pgm_rsrc3"
    PROPERTIES = "kernel_code_properties"
    PRELOAD = "kernarg_preload"


@dataclass(frozen=True, slots=True)
class Field:
    """One bit field: ``width`` bits of ``word`` from bit ``position`` upwards."""

    word: Word
    name: str
    position: int
    width: int
    directive: str | None = None
    reserved: bool = False

    @property
    def mask(self) -> int:
        return ((1 << self.width) - 1) << self.position

    def of(self, word: int) -> int:
        """The field's value in a word."""
        return (word & self.mask) >> self.position


def _reserved(word: Word, name: str, position: int, width: int) -> Field:
    return Field(word, name, position, width, reserved=True)


FIELDS = (
    Field(Word.RSRC1, "granulated_workitem_vgpr_count", 0, 6),
    Field(Word.RSRC1, "granulated_wavefront_sgpr_count", 6, 4),
    _reserved(Word.RSRC1, "priority", 10, 2),
    Field(Word.RSRC1, "float_round_mode_32", 12, 2, "float_round_mode_32"),
    Field(Word.RSRC1, "float_round_mode_16_64", 14, 2, "float_round_mode_16_64"),
    Field(Word.RSRC1, "float_denorm_mode_32", 16, 2, "float_denorm_mode_32"),
    Field(Word.RSRC1, "float_denorm_mode_16_64", 18, 2, "float_denorm_mode_16_64"),
    _reserved(Word.RSRC1, "priv", 20, 1),
    Field(Word.RSRC1, "enable_dx10_clamp", 21, 1, "dx10_clamp"),
    _reserved(Word.RSRC1, "debug_mode", 22, 1),
    Field(Word.RSRC1, "enable_ieee_mode", 23, 1, "ieee_mode"),
    _reserved(Word.RSRC1, "bulky", 24, 1),
    _reserved(Word.RSRC1, "cdbg_user", 25, 1),
    Field(Word.RSRC1, "fp16_ovfl", 26, 1, "fp16_overflow"),
    _reserved(Word.RSRC1, "reserved_27_31", 27, 5),
    Field(Word.RSRC2, "enable_private_segment", 0, 1, "enable_private_segment"),
    Field(Word.RSRC2, "user_sgpr_count", 1, 5, "user_sgpr_count"),
    _reserved(Word.RSRC2, "enable_trap_handler", 6, 1),
    Field(Word.RSRC2, "enable_sgpr_workgroup_id_x", 7, 1, "system_sgpr_workgroup_id_x"),
    Field(Word.RSRC2, "enable_sgpr_workgroup_id_y", 8, 1, "system_sgpr_workgroup_id_y"),
    Field(Word.RSRC2, "enable_sgpr_workgroup_id_z", 9, 1, "system_sgpr_workgroup_id_z"),
    Field(Word.RSRC2, "enable_sgpr_workgroup_info", 10, 1, "system_sgpr_workgroup_info"),
    Field(Word.RSRC2, "enable_vgpr_workitem_id", 11, 2, "system_vgpr_workitem_id"),
    _reserved(Word.RSRC2, "enable_exception_address_watch", 13, 1),
    _reserved(Word.RSRC2, "enable_exception_memory", 14, 1),
    _reserved(Word.RSRC2, "granulated_lds_size", 15, 9),
    Field(Word.RSRC2, "enable_exception_fp_ieee_invalid_op", 24, 1,
          "exception_fp_ieee_invalid_op"),
    Field(Word.RSRC2, "enable_exception_fp_denorm_src", 25, 1, "exception_fp_denorm_src"),
    Field(Word.RSRC2, "enable_exception_fp_ieee_div_zero", 26, 1, "exception_fp_ieee_div_zero"),
    Field(Word.RSRC2, "enable_exception_fp_ieee_overflow", 27, 1, "exception_fp_ieee_overflow"),
    Field(Word.RSRC2, "enable_exception_fp_ieee_underflow", 28, 1, "exception_fp_ieee_underflow"),
    Field(Word.RSRC2, "enable_exception_fp_ieee_inexact", 29, 1, "exception_fp_ieee_inexact"),
    Field(Word.RSRC2, "enable_exception_int_div_zero", 30, 1, "exception_int_div_zero"),
    _reserved(Word.RSRC2, "reserved_31", 31, 1),
    Field(Word.RSRC3, "accum_offset", 0, 6),
    _reserved(Word.RSRC3, "reserved_6_15", 6, 10),
    Field(Word.RSRC3, "tg_split", 16, 1, "tg_split"),
    _reserved(Word.RSRC3, "reserved_17_31", 17, 15),
    # Defined without architected flat scratch only; see `ABSOLUTE_SCRATCH`.
    _reserved(Word.PROPERTIES, "enable_sgpr_private_segment_buffer", 0, 1),
    Field(Word.PROPERTIES, "enable_sgpr_dispatch_ptr", 1, 1, "user_sgpr_dispatch_ptr"),
    Field(Word.PROPERTIES, "enable_sgpr_queue_ptr", 2, 1, "user_sgpr_queue_ptr"),
    Field(Word.PROPERTIES, "enable_sgpr_kernarg_segment_ptr", 3, 1,
          "user_sgpr_kernarg_segment_ptr"),
    Field(Word.PROPERTIES, "enable_sgpr_dispatch_id", 4, 1, "user_sgpr_dispatch_id"),
    _reserved(Word.PROPERTIES, "enable_sgpr_flat_scratch_init", 5, 1),
    Field(Word.PROPERTIES, "enable_sgpr_private_segment_size", 6, 1,
          "user_sgpr_private_segment_size"),
    _reserved(Word.PROPERTIES, "reserved_7_9", 7, 3),
    _reserved(Word.PROPERTIES, "enable_wavefront_size32", 10, 1),
    Field(Word.PROPERTIES, "uses_dynamic_stack", 11, 1, "uses_dynamic_stack"),
    _reserved(Word.PROPERTIES, "reserved_12_15", 12, 4),
    Field(Word.PRELOAD, "kernarg_preload_length", 0, 7, "user_sgpr_kernarg_preload_length"),
    Field(Word.PRELOAD, "kernarg_preload_offset", 7, 9, "user_sgpr_kernarg_preload_offset"),
)

# gfx90a has no architected flat scratch: code sets it up from these user SGPRs, and the assembler
# calls the field of RSRC2 by another name.
ABSOLUTE_SCRATCH = {
    "enable_private_segment": "system_sgpr_private_segment_wavefront_offset",
    "enable_sgpr_private_segment_buffer": "user_sgpr_private_segment_buffer",
    "enable_sgpr_flat_scratch_init": "user_sgpr_flat_scratch_init",
}

# SGPRs that each enabled user SGPR field takes (LLVM, table "SGPR Register Set Up Order").
USER_SGPR_SIZES = {
    "enable_sgpr_private_segment_buffer": 4,
    "enable_sgpr_dispatch_ptr": 2,
    "enable_sgpr_queue_ptr": 2,
    "enable_sgpr_kernarg_segment_ptr": 2,
    "enable_sgpr_dispatch_id": 2,
    "enable_sgpr_flat_scratch_init": 2,
    "enable_sgpr_private_segment_size": 1,
}

BY_NAME = {field.name: field for field in FIELDS}


def directives_of(isa: str) -> dict[str, str]:
    """The ``.amdhsa_`` directive of each field that has one on a processor, by field name."""
    own = {f.name: f.directive for f in FIELDS if f.directive}
    return own | ABSOLUTE_SCRATCH if isa == "gfx90a" else own
