// out[c] = the sum of column c, where elements in front of the limit add twice their right neighbour.
// Rows are walked by a signed index and an address of 64 bits, one load under a condition each.
	.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
	.amdhsa_code_object_version 5
	.text
	.protected column_sum
	.globl column_sum
	.p2align 8
	.type column_sum,@function
column_sum:
	s_load_dwordx4 s[4:7], s[0:1], 0x0
	s_load_dwordx4 s[8:11], s[0:1], 0x10
	v_lshl_add_u32 v1, s2, 8, v0
	s_waitcnt lgkmcnt(0)
	v_cmp_gt_u32_e32 vcc, s9, v1
	s_and_saveexec_b64 s[12:13], vcc
	s_cbranch_execz .Lend
	v_mov_b32_e32 v3, 0
	v_mov_b32_e32 v4, v1
	s_mov_b32 s11, s8
.Lrow:
	v_ashrrev_i32_e32 v5, 31, v4
	v_lshl_add_u64 v[6:7], v[4:5], 2, s[6:7]
	global_load_dword v10, v[6:7], off
	v_cmp_gt_u32_e64 s[14:15], s10, v4
	v_mov_b32_e32 v8, 0
	s_and_saveexec_b64 s[16:17], s[14:15]
	s_cbranch_execz .Ljoin
	v_lshl_add_u64 v[8:9], v[6:7], 0, 4
	global_load_dword v8, v[8:9], off
	s_waitcnt vmcnt(0)
	v_mul_f32_e32 v8, 2.0, v8
.Ljoin:
	s_or_b64 exec, exec, s[16:17]
	s_add_i32 s11, s11, -1
	v_add_u32_e32 v4, s9, v4
	s_waitcnt vmcnt(0)
	v_add_f32_e32 v3, v3, v10
	v_add_f32_e32 v3, v3, v8
	s_cmp_lg_u32 s11, 0
	s_cbranch_scc1 .Lrow
	v_lshlrev_b32_e32 v2, 2, v1
	global_store_dword v2, v3, s[4:5]
.Lend:
	s_endpgm
.Lcolumn_sum_end:
	.size column_sum, .Lcolumn_sum_end-column_sum

	.section .rodata,"a",@progbits
	.p2align 6
	.amdhsa_kernel column_sum
		.amdhsa_next_free_vgpr 24
		.amdhsa_accum_offset 24
		.amdhsa_next_free_sgpr 32
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_user_sgpr_count 2
		.amdhsa_system_sgpr_workgroup_id_x 1
	.end_amdhsa_kernel
	.amdgpu_metadata
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx942
amdhsa.kernels:
  - .name: column_sum
    .symbol: column_sum.kd
    .kernarg_segment_size: 32
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 38
    .vgpr_count: 24
    .agpr_count: 0
    .max_flat_workgroup_size: 256
    .args:
      - {.name: out, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: in, .offset: 8, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: rows, .offset: 16, .size: 4, .value_kind: by_value}
      - {.name: columns, .offset: 20, .size: 4, .value_kind: by_value}
      - {.name: limit, .offset: 24, .size: 4, .value_kind: by_value}
...
	.end_amdgpu_metadata
