"""The 64-byte kernel descriptor that the command processor reads at launch."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from asmevo.codeobject.descriptor_fields import (
    BY_NAME,
    FIELDS,
    USER_SGPR_SIZES,
    Field,
    directives_of,
)
from asmevo.codeobject.errors import CodeObjectError

DESCRIPTOR_SIZE = 64
VGPR_GRANULE = 8
SGPR_GRANULE = 8
ACCUM_GRANULE = 4
# VCC, FLAT_SCRATCH and XNACK_MASK, which the assembler adds on every target with architected flat
# scratch, and on others for `.amdhsa_reserve_flat_scratch 1`, the default (LLVM AMDGPUBaseInfo,
# getNumExtraSGPRs).
EXTRA_SGPRS = 6
FLAT_SCRATCH_SGPRS = 2
SGPR_LIMIT = 102
VGPR_LIMIT = 512

_LAYOUT = struct.Struct("<III4sq20sIIIHH4s")


@dataclass(frozen=True, slots=True)
class KernelDescriptor:
    """The descriptor's words, byte sizes and bit fields by name (gfx90a and gfx942 meanings).

    Field meanings: LLVM "User Guide for AMDGPU Backend", section "Kernel Descriptor".
    """

    group_segment_fixed_size: int
    private_segment_fixed_size: int
    kernarg_size: int
    kernel_code_entry_byte_offset: int
    compute_pgm_rsrc1: int
    compute_pgm_rsrc2: int
    compute_pgm_rsrc3: int
    kernel_code_properties: int
    kernarg_preload: int
    reserved: bytes = bytes(28)

    @classmethod
    def parse(cls, data: bytes) -> KernelDescriptor:
        """Decode 64 bytes; raises `CodeObjectError` when there are fewer or more."""
        if len(data) != DESCRIPTOR_SIZE:
            raise CodeObjectError(f"a kernel descriptor has 64 bytes, not {len(data)}")
        (group, private, kernarg, gap0, entry, gap1, rsrc3, rsrc1, rsrc2, properties, preload,
         gap2) = _LAYOUT.unpack(data)
        return cls(group, private, kernarg, entry, rsrc1, rsrc2, rsrc3, properties, preload,
                   gap0 + gap1 + gap2)

    def pack(self) -> bytes:
        """The 64 bytes again."""
        return _LAYOUT.pack(
            self.group_segment_fixed_size, self.private_segment_fixed_size, self.kernarg_size,
            self.reserved[:4], self.kernel_code_entry_byte_offset, self.reserved[4:24],
            self.compute_pgm_rsrc3, self.compute_pgm_rsrc1, self.compute_pgm_rsrc2,
            self.kernel_code_properties, self.kernarg_preload, self.reserved[24:],
        )

    def field(self, name: str) -> int:
        """The value of a bit field of :mod:`asmevo.codeobject.descriptor_fields`."""
        return self._value(BY_NAME[name])

    def _value(self, field: Field) -> int:
        word: int = getattr(self, field.word)
        return field.of(word)

    @property
    def float_mode(self) -> int:
        """Rounding and denormal modes as the MODE register's low 8 bits hold them at entry."""
        return (self.compute_pgm_rsrc1 >> 12) & 0xFF

    @property
    def ieee_mode(self) -> bool:
        return bool(self.field("enable_ieee_mode"))

    @property
    def dx10_clamp(self) -> bool:
        return bool(self.field("enable_dx10_clamp"))

    @property
    def fp16_overflow(self) -> bool:
        return bool(self.field("fp16_ovfl"))

    @property
    def tg_split(self) -> bool:
        return bool(self.field("tg_split"))

    @property
    def user_sgpr_count(self) -> int:
        return self.field("user_sgpr_count")

    @property
    def enable_sgpr_dispatch_ptr(self) -> bool:
        return bool(self.field("enable_sgpr_dispatch_ptr"))

    @property
    def enable_sgpr_queue_ptr(self) -> bool:
        return bool(self.field("enable_sgpr_queue_ptr"))

    @property
    def enable_sgpr_kernarg_segment_ptr(self) -> bool:
        return bool(self.field("enable_sgpr_kernarg_segment_ptr"))

    @property
    def enable_sgpr_dispatch_id(self) -> bool:
        return bool(self.field("enable_sgpr_dispatch_id"))

    @property
    def enable_sgpr_private_segment_size(self) -> bool:
        return bool(self.field("enable_sgpr_private_segment_size"))

    @property
    def enable_private_segment(self) -> bool:
        return bool(self.field("enable_private_segment"))

    @property
    def enable_sgpr_workgroup_id_x(self) -> bool:
        return bool(self.field("enable_sgpr_workgroup_id_x"))

    @property
    def enable_sgpr_workgroup_id_y(self) -> bool:
        return bool(self.field("enable_sgpr_workgroup_id_y"))

    @property
    def enable_sgpr_workgroup_id_z(self) -> bool:
        return bool(self.field("enable_sgpr_workgroup_id_z"))

    @property
    def enable_sgpr_workgroup_info(self) -> bool:
        return bool(self.field("enable_sgpr_workgroup_info"))

    @property
    def enable_vgpr_workitem_id(self) -> int:
        """0: only x, 1: x and y, 2: x, y and z (packed 10 bits each into v0 on gfx90a+)."""
        return self.field("enable_vgpr_workitem_id")

    @property
    def kernarg_preload_length(self) -> int:
        """Dwords of the kernarg segment that are loaded into SGPRs before the kernel starts."""
        return self.field("kernarg_preload_length")

    @property
    def kernarg_preload_offset(self) -> int:
        return self.field("kernarg_preload_offset")

    @property
    def next_free_vgpr(self) -> int:
        """VGPRs and AGPRs allocated to a wave, in registers."""
        return (self.field("granulated_workitem_vgpr_count") + 1) * VGPR_GRANULE

    @property
    def next_free_sgpr(self) -> int:
        """The `.amdhsa_next_free_sgpr` (without VCC and friends) that gives this allocation."""
        allocated = (self.field("granulated_wavefront_sgpr_count") + 1) * SGPR_GRANULE
        return min(allocated - EXTRA_SGPRS, SGPR_LIMIT)

    @property
    def accum_offset(self) -> int:
        """Number of the first register of the unified file that is an AGPR."""
        return (self.field("accum_offset") + 1) * ACCUM_GRANULE

    def unexpressible(self, isa: str = "gfx942") -> tuple[str, ...]:
        """Names of the fields whose value no assembler directive for ``isa`` can produce."""
        own = directives_of(isa)
        names = [f"{f.word}.{f.name}" for f in FIELDS
                 if f.reserved and f.name not in own and self._value(f)]
        if any(self.reserved):
            names.append("reserved bytes")
        if self.field("granulated_wavefront_sgpr_count") * SGPR_GRANULE > SGPR_LIMIT + EXTRA_SGPRS:
            names.append("compute_pgm_rsrc1.granulated_wavefront_sgpr_count")
        if self.accum_offset > self.next_free_vgpr or self.accum_offset > 256:
            names.append("compute_pgm_rsrc3.accum_offset")
        if self.next_free_vgpr > VGPR_LIMIT:
            names.append("compute_pgm_rsrc1.granulated_workitem_vgpr_count")
        if self.field("enable_vgpr_workitem_id") > 2:
            names.append("compute_pgm_rsrc2.enable_vgpr_workitem_id")
        preloaded = self.kernarg_preload_length
        implied = sum(size for name, size in USER_SGPR_SIZES.items() if name in own
                      and self.field(name))
        if self.user_sgpr_count < implied + preloaded:
            names.append("compute_pgm_rsrc2.user_sgpr_count")
        if preloaded and self.user_sgpr_count > self._sgprs(isa):
            names.append("compute_pgm_rsrc1.granulated_wavefront_sgpr_count")
        if (preloaded + self.kernarg_preload_offset) * 4 > self.kernarg_size:
            names.append("kernarg_preload")
        return tuple(names)

    def _sgprs(self, isa: str) -> int:
        """`next_free_sgpr`, unless the user SGPRs fit only without room for FLAT_SCRATCH.

        That room can be given up on gfx90a; XNACK_MASK and VCC then take 4 registers or none, and
        the granule is the same for both.
        """
        if isa == "gfx90a" and self.user_sgpr_count > self.next_free_sgpr:
            return self.next_free_sgpr + FLAT_SCRATCH_SGPRS
        return self.next_free_sgpr

    def directives(self, isa: str = "gfx942") -> tuple[str, ...]:
        """The `.amdhsa_*` lines from which LLVM makes this descriptor again on ``isa``.

        The entry offset is the linker's. Raises `CodeObjectError` naming the fields that are
        reserved or that the assembler cannot write.
        """
        if names := self.unexpressible(isa):
            raise CodeObjectError(
                f"the kernel descriptor has values that {isa} does not define: {', '.join(names)}"
            )
        lines = [
            f".amdhsa_group_segment_fixed_size {self.group_segment_fixed_size}",
            f".amdhsa_private_segment_fixed_size {self.private_segment_fixed_size}",
            f".amdhsa_kernarg_size {self.kernarg_size}",
            f".amdhsa_next_free_vgpr {self.next_free_vgpr}",
            f".amdhsa_accum_offset {self.accum_offset}",
            f".amdhsa_next_free_sgpr {self._sgprs(isa)}",
            ".amdhsa_reserve_vcc 0",
        ]
        if self._sgprs(isa) != self.next_free_sgpr:
            lines.append(".amdhsa_reserve_flat_scratch 0")
        lines += [f".amdhsa_{directive} {self.field(name)}"
                  for name, directive in directives_of(isa).items()]
        return tuple(lines)
