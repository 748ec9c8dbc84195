// Mergeable sections under names that no tool knows: strings alone, and constants beside strings.
	.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
	.amdhsa_code_object_version 5
	.text
	.protected kernel
	.globl kernel
	.p2align 8
	.type kernel,@function
kernel:
	s_getpc_b64 s[4:5]
	s_add_u32 s4, s4, tag@rel32@lo+4
	s_addc_u32 s5, s5, tag@rel32@hi+12
	s_getpc_b64 s[6:7]
	s_add_u32 s6, s6, mixed@rel32@lo+4
	s_addc_u32 s7, s7, mixed@rel32@hi+12
	s_endpgm
	.size kernel, .-kernel
	.section tags,"aMS",@progbits,1
	.asciz "first"
tag:
	.asciz "second"
	.asciz "first"
	.section mixed,"aM",@progbits,8
	.quad 1, 2, 1
	.section mixed,"aMS",@progbits,2,unique,1
	.short 65, 0
	.section mixed,"a",@progbits,unique,2
	.long 3
	.section notes,"MS",@progbits,1
	.asciz "note"
	.ident "before the last section"
	.section last,"",@progbits
	.long 4
	.section .rodata,"a",@progbits
	.p2align 6
	.amdhsa_kernel kernel
	.amdhsa_next_free_vgpr 1
	.amdhsa_next_free_sgpr 8
	.amdhsa_accum_offset 4
	.end_amdhsa_kernel
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
    .sgpr_count: 8
    .vgpr_count: 1
    .max_flat_workgroup_size: 64
    .args: []
	.end_amdgpu_metadata
