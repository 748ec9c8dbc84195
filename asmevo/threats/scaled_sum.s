// out[i] = a * in[i] + 1 for i < n, visible to the whole system; total[i % 16] += out[i].
// Partial waves, atomics and coherent accesses, which AITER's kernels do not have together.
	.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
	.amdhsa_code_object_version 5
	.text
	.protected scaled_sum
	.globl scaled_sum
	.p2align 8
	.type scaled_sum,@function
scaled_sum:
	s_load_dwordx4 s[4:7], s[0:1], 0x0
	s_load_dwordx4 s[8:11], s[0:1], 0x10
	v_lshl_add_u32 v1, s2, 8, v0
	s_waitcnt lgkmcnt(0)
	v_cmp_gt_u32_e32 vcc, s10, v1
	s_and_saveexec_b64 s[12:13], vcc
	s_cbranch_execz .Lend
	v_lshlrev_b32_e32 v2, 2, v1
	global_load_dword v3, v2, s[6:7] sc1
	v_and_b32_e32 v5, 15, v1
	v_lshlrev_b32_e32 v5, 2, v5
	s_waitcnt vmcnt(0)
	v_mul_f32_e32 v4, s11, v3
	v_add_f32_e32 v4, 1.0, v4
	global_store_dword v2, v4, s[4:5] sc0 sc1
	global_atomic_add_f32 v5, v4, s[8:9] sc1
.Lend:
	s_endpgm
.Lscaled_sum_end:
	.size scaled_sum, .Lscaled_sum_end-scaled_sum

	.section .rodata,"a",@progbits
	.p2align 6
	.amdhsa_kernel scaled_sum
		.amdhsa_next_free_vgpr 8
		.amdhsa_accum_offset 8
		.amdhsa_next_free_sgpr 16
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_user_sgpr_count 2
		.amdhsa_system_sgpr_workgroup_id_x 1
	.end_amdhsa_kernel
	.amdgpu_metadata
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx942
amdhsa.kernels:
  - .name: scaled_sum
    .symbol: scaled_sum.kd
    .kernarg_segment_size: 32
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 22
    .vgpr_count: 8
    .agpr_count: 0
    .max_flat_workgroup_size: 256
    .args:
      - {.name: out, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: in, .offset: 8, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: total, .offset: 16, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: n, .offset: 24, .size: 4, .value_kind: by_value}
      - {.name: a, .offset: 28, .size: 4, .value_kind: by_value}
...
	.end_amdgpu_metadata
