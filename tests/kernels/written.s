// What compilers emit seldom or never, as somebody may write it by hand.
	.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
	.amdhsa_code_object_version 5
	.text
	.protected kernel
	.globl kernel
	.p2align 8
	.type kernel,@function
kernel:
	s_call_b64 s[30:31], callee
	s_cbranch_scc1 behind
	s_mov_b32 s6, 0x12345678
	// An address in VCC, with other instructions within the sequence.
	s_getpc_b64 vcc
	s_mov_b32 s7, s6
	s_add_u32 vcc_lo, vcc_lo, constant@rel32@lo+8
	s_nop 3
	s_addc_u32 vcc_hi, vcc_hi, constant@rel32@hi+20
	// The middle of an object, and code without a symbol; an upper half as inline constant.
	s_getpc_b64 s[4:5]
	s_add_u32 s4, s4, constant@rel32@lo+10
	s_addc_u32 s5, s5, constant@rel32@hi+18
	s_getpc_b64 s[8:9]
.Lbase:
	s_add_u32 s8, s8, (behind-.Lbase)&0xffffffff
	s_addc_u32 s9, s9, 0
	s_setpc_b64 s[8:9]
	s_endpgm
// Reached by a branch only, behind the last s_endpgm.
behind:
	v_mov_b32_e32 v0, 0
	s_nop 0
	s_branch kept_label
.Lkernel_end:
	.size kernel, .Lkernel_end-kernel

	.p2alignl 6, 0xbf9f0000
	.globl callee
	.hidden callee
	.type callee,@function
callee:
alias:
	.type alias,@function
	.cfi_sections .eh_frame
	.cfi_startproc
	s_nop 1
kept_label:
	s_add_u32 s30, s30, 0
	s_setpc_b64 s[30:31]
	.cfi_endproc
	.size callee, .-callee

	.section .rodata,"a",@progbits
	.p2align 6
	.amdhsa_kernel kernel
		.amdhsa_next_free_vgpr 1
		.amdhsa_accum_offset 4
		.amdhsa_next_free_sgpr 32
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
	.end_amdhsa_kernel
	.byte 1, 2, 3
constant:
	.asciz "text in read-only data"
	.type constant,@object
	.size constant, 23
	.section .init_array,"aw",@init_array
	.p2align 3
	.quad callee
	.quad constant+5
	.section .data,"aw",@progbits
	.globl elsewhere
	.weak elsewhere
elsewhere:
	.quad elsewhere+16
	.zero 100
	.byte 7
	.amdgpu_metadata
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx942
amdhsa.kernels:
  - .name: kernel
    .symbol: kernel.kd
    .kernarg_segment_size: 0
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 38
    .vgpr_count: 1
    .max_flat_workgroup_size: 256
    .args: []
	.end_amdgpu_metadata
