"""Assembly text of microbenchmark kernels: many kernels in one object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from asmevo.validation.microbenchmark import Microbenchmark

KERNARG_BYTES = 24
LDS_BYTES = 32768
WAVE = 64
_WAVES = 4  # one a SIMD
_VGPRS, _AGPRS, _SGPRS = 64, 128, 48  # leaves room for two waves a SIMD

# Kernarg: two pointers, rounds, bytes of all work-items at 16 each.
_PROLOGUE = """s_load_dwordx4 s[4:7], s[0:1], 0x0
s_load_dwordx2 s[8:9], s[0:1], 0x10
s_waitcnt lgkmcnt(0)
s_mov_b32 s16, s9
s_mov_b32 s12, s4
s_mov_b32 s13, s5
s_mov_b32 s14, -1
s_mov_b32 s15, 0x20000
s_mov_b32 m0, 0
v_lshlrev_b32_e32 v1, 2, v0
v_readfirstlane_b32 s10, v0
s_lshr_b32 s10, s10, 6""".splitlines()
# Of a stream: 16 bytes a work-item and workgroup of 256.
_STREAM_OFFSET = ("v_lshlrev_b32_e32 v1, 4, v0", "s_lshl_b32 s11, s2, 12",
                  "v_add_u32_e32 v1, s11, v1")


@dataclass(frozen=True, slots=True)
class Microkernel:
    """One kernel: a microbenchmark's loop over ``copies`` of its body, or of its reference."""

    symbol: str
    benchmark: Microbenchmark
    copies: int
    reference: bool = False

    @property
    def waves(self) -> int:
        return _WAVES * (2 if self.benchmark.other else 1)

    def lines(self) -> list[str]:
        """Instructions and labels."""
        b = self.benchmark
        body = b.reference if self.reference else b.body
        lines = [*_PROLOGUE, *(_STREAM_OFFSET if b.stream else ()), *b.setup]
        for wave in range(_WAVES):
            if wave not in b.waves:
                lines += [f"s_cmp_eq_u32 s10, {wave}", f"s_cbranch_scc1 .L{self.symbol}_end"]
        if b.other:
            lines += [f"s_cmp_ge_u32 s10, {_WAVES}", f"s_cbranch_scc1 .L{self.symbol}_other"]
        lines += self._loop("own", b.head, body)
        if b.other:
            lines += [f".L{self.symbol}_other:", *self._loop("others", b.head, b.other)]
        return [*lines, f".L{self.symbol}_end:", "s_endpgm"]

    def _loop(self, name: str, head: tuple[str, ...], body: tuple[str, ...]) -> list[str]:
        label = f".L{self.symbol}_{name}"
        # Loops of both copies start at a line of the instruction cache.
        return ["s_nop 0", ".p2alignl 6, 0xbf800000", f"{label}:", *head, *(body * self.copies),
                "s_sub_u32 s8, s8, 1", "s_cmp_lg_u32 s8, 0", f"s_cbranch_scc1 {label}", "s_endpgm"]


def assembly(kernels: Sequence[Microkernel]) -> str:
    """The text of one object with all of ``kernels``."""
    code: list[str] = []
    descriptors: list[str] = []
    metadata: list[str] = []
    for kernel in kernels:
        name = kernel.symbol
        code += [f".globl {name}", ".p2align 8", f".type {name},@function", f"{name}:",
                 *kernel.lines(), f".L{name}_size:", f".size {name}, .L{name}_size-{name}"]
        descriptors += [
            f".amdhsa_kernel {name}", f".amdhsa_next_free_vgpr {_VGPRS + _AGPRS}",
            f".amdhsa_accum_offset {_VGPRS}", f".amdhsa_next_free_sgpr {_SGPRS}",
            f".amdhsa_group_segment_fixed_size {LDS_BYTES}",
            ".amdhsa_user_sgpr_kernarg_segment_ptr 1", ".amdhsa_user_sgpr_count 2",
            ".amdhsa_system_sgpr_workgroup_id_x 1", ".end_amdhsa_kernel"]
        metadata += [
            f"  - .name: {name}", f"    .symbol: {name}.kd",
            f"    .kernarg_segment_size: {KERNARG_BYTES}", "    .kernarg_segment_align: 8",
            f"    .group_segment_fixed_size: {LDS_BYTES}", "    .private_segment_fixed_size: 0",
            f"    .wavefront_size: {WAVE}", f"    .sgpr_count: {_SGPRS + 6}",
            f"    .vgpr_count: {_VGPRS + _AGPRS}", f"    .agpr_count: {_AGPRS}",
            f"    .max_flat_workgroup_size: {kernel.waves * WAVE}", "    .args:",
            *(f"      - {{.size: {size}, .offset: {offset}, .value_kind: {kind}}}"
              for offset, size, kind in ((0, 8, "global_buffer, .address_space: global"),
                                         (8, 8, "global_buffer, .address_space: global"),
                                         (16, 4, "by_value"), (20, 4, "by_value")))]
    return "\n".join([
        '.amdgcn_target "amdgcn-amd-amdhsa--gfx942"', ".text", *code, ".rodata", ".p2align 6",
        *descriptors, ".amdgpu_metadata", "---", "amdhsa.version: [1, 2]",
        "amdhsa.target: amdgcn-amd-amdhsa--gfx942", "amdhsa.kernels:", *metadata, "...",
        ".end_amdgpu_metadata", ""])
