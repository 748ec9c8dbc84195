"""The kernel that clears an output before others add to it, which a measured time may contain."""

from __future__ import annotations

import struct

from asmevo.codeobject.container import CodeObject
from asmevo.codeobject.target import Target
from asmevo.codeobject.toolchain import Toolchain
from asmevo.dispatch.dispatch import Dispatch, ElementType, Pointer, Region, Role
from asmevo.validation.tuned_dispatch import Launch

_SYMBOL = "clear"
_WORK_ITEMS = 256
_BYTES = 8  # a work-item
_ADDRESS = 0x7F10_0000_0000

# Kernarg: a pointer, and the bytes behind it.
_TEXT = f""".amdgcn_target "amdgcn-amd-amdhsa--gfx942"
.text
.globl {_SYMBOL}
.p2align 8
.type {_SYMBOL},@function
{_SYMBOL}:
s_load_dwordx2 s[4:5], s[0:1], 0x0
s_load_dword s6, s[0:1], 0x8
s_mul_i32 s2, s2, {_WORK_ITEMS * _BYTES}
v_lshl_add_u32 v0, v0, 3, s2
v_mov_b32_e32 v2, 0
v_mov_b32_e32 v3, 0
s_waitcnt lgkmcnt(0)
v_cmp_gt_u32_e32 vcc, s6, v0
s_and_saveexec_b64 s[8:9], vcc
global_store_dwordx2 v0, v[2:3], s[4:5]
s_endpgm
.Lsize:
.size {_SYMBOL}, .Lsize-{_SYMBOL}
.rodata
.p2align 6
.amdhsa_kernel {_SYMBOL}
.amdhsa_next_free_vgpr 4
.amdhsa_accum_offset 4
.amdhsa_next_free_sgpr 10
.amdhsa_user_sgpr_kernarg_segment_ptr 1
.amdhsa_user_sgpr_count 2
.amdhsa_system_sgpr_workgroup_id_x 1
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx942
amdhsa.kernels:
  - .name: {_SYMBOL}
    .symbol: {_SYMBOL}.kd
    .kernarg_segment_size: 12
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 16
    .vgpr_count: 4
    .max_flat_workgroup_size: {_WORK_ITEMS}
...
.end_amdgpu_metadata
"""


class Clearing:
    """Launches that fill with zeros as PyTorch's ``zero_()`` does: 256 work-items store 8 bytes
    each (four elements of bf16: ATen/native/cuda/CUDALoops.cuh)."""

    def __init__(self, toolchain: Toolchain) -> None:
        relocatable = toolchain.assemble(_TEXT, Target("gfx942"))
        self._object = CodeObject.parse(toolchain.link(relocatable))

    def launch(self, size: int) -> Launch:
        """Clears ``size`` bytes, a multiple of 8."""
        region = Region("cleared", _ADDRESS, bytes(size), Role.OUTPUT, ElementType.OPAQUE, guard=0)
        groups = -(-size // (_WORK_ITEMS * _BYTES))
        return Launch(self._object, _SYMBOL, Dispatch(
            name=f"clear {size} bytes", kernel=_SYMBOL,
            kernarg=struct.pack("<QI", _ADDRESS, size), grid=(groups, 1, 1),
            workgroup=(_WORK_ITEMS, 1, 1), regions=(region,), pointers=(Pointer(0, 0),)))
