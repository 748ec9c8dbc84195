// out[i] = a * in[i] for i < n; a lane has every step-th element, and leaves when there is no more.
	.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
	.amdhsa_code_object_version 5
	.text
	.protected strided_scale
	.globl strided_scale
	.p2align 8
	.type strided_scale,@function
strided_scale:
	s_load_dwordx4 s[4:7], s[0:1], 0x0
	s_load_dwordx4 s[8:11], s[0:1], 0x10
	v_lshl_add_u32 v1, s2, 8, v0
	s_waitcnt lgkmcnt(0)
	v_cmp_gt_u32_e32 vcc, s8, v1
	s_and_saveexec_b64 s[12:13], vcc
	s_cbranch_execz .Lend
	v_lshlrev_b32_e32 v2, 2, v1
	s_lshl_b32 s14, s9, 2
	s_mov_b64 s[16:17], 0
.Lagain:
	global_load_dword v3, v2, s[6:7]
	v_add_u32_e32 v1, s9, v1
	v_cmp_le_u32_e32 vcc, s8, v1
	s_or_b64 s[16:17], vcc, s[16:17]
	s_waitcnt vmcnt(0)
	v_mul_f32_e32 v4, s10, v3
	global_store_dword v2, v4, s[4:5]
	v_add_u32_e32 v2, s14, v2
	s_andn2_b64 exec, exec, s[16:17]
	s_cbranch_execnz .Lagain
.Lend:
	s_endpgm
.Lstrided_scale_end:
	.size strided_scale, .Lstrided_scale_end-strided_scale

	.section .rodata,"a",@progbits
	.p2align 6
	.amdhsa_kernel strided_scale
		.amdhsa_next_free_vgpr 16
		.amdhsa_accum_offset 16
		.amdhsa_next_free_sgpr 32
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_user_sgpr_count 2
		.amdhsa_system_sgpr_workgroup_id_x 1
	.end_amdhsa_kernel
	.amdgpu_metadata
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx942
amdhsa.kernels:
  - .name: strided_scale
    .symbol: strided_scale.kd
    .kernarg_segment_size: 32
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 38
    .vgpr_count: 16
    .agpr_count: 0
    .max_flat_workgroup_size: 256
    .args:
      - {.name: out, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: in, .offset: 8, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: n, .offset: 16, .size: 4, .value_kind: by_value}
      - {.name: step, .offset: 20, .size: 4, .value_kind: by_value}
      - {.name: a, .offset: 24, .size: 4, .value_kind: by_value}
...
	.end_amdgpu_metadata
