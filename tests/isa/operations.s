// One instruction for every operation of the opcode table, in table order.
s_add_u32 s1, s1, s1
s_sub_u32 s1, s1, s1
s_add_i32 s1, s1, s1
s_sub_i32 s1, s1, s1
s_min_i32 s1, s1, s1
s_min_u32 s1, s1, s1
s_max_i32 s1, s1, s1
s_max_u32 s1, s1, s1
s_and_b32 s1, s1, s1
s_and_b64 s[2:3], vcc, vcc
s_or_b32 s1, s1, s1
s_or_b64 s[2:3], vcc, vcc
s_xor_b32 s1, s1, s1
s_xor_b64 s[2:3], vcc, vcc
s_andn2_b32 s1, s1, s1
s_andn2_b64 s[2:3], vcc, vcc
s_orn2_b32 s1, s1, s1
s_orn2_b64 s[2:3], vcc, vcc
s_nand_b32 s1, s1, s1
s_nand_b64 s[2:3], vcc, vcc
s_nor_b32 s1, s1, s1
s_nor_b64 s[2:3], vcc, vcc
s_xnor_b32 s1, s1, s1
s_xnor_b64 s[2:3], vcc, vcc
s_lshl_b32 s1, s1, s1
s_lshl_b64 s[2:3], vcc, s1
s_lshr_b32 s1, s1, s1
s_lshr_b64 s[2:3], vcc, s1
s_ashr_i32 s1, s1, s1
s_ashr_i64 s[2:3], vcc, s1
s_bfe_u32 s1, s1, s1
s_bfe_i32 s1, s1, s1
s_bfe_u64 s[2:3], vcc, s1
s_bfe_i64 s[2:3], vcc, s1
s_absdiff_i32 s1, s1, s1
s_lshl1_add_u32 s1, s1, s1
s_lshl2_add_u32 s1, s1, s1
s_lshl3_add_u32 s1, s1, s1
s_lshl4_add_u32 s1, s1, s1
s_addc_u32 s1, s1, s1
s_subb_u32 s1, s1, s1
s_cselect_b32 s1, s1, s1
s_cselect_b64 s[2:3], vcc, vcc
s_bfm_b32 s1, s1, s1
s_bfm_b64 vcc, s1, s1
s_mul_i32 s1, s1, s1
s_mul_hi_u32 s1, s1, s1
s_mul_hi_i32 s1, s1, s1
s_pack_ll_b32_b16 s1, s1, s1
s_pack_lh_b32_b16 s1, s1, s1
s_pack_hh_b32_b16 s1, s1, s1
s_mov_b32 s1, s1
s_mov_b64 s[2:3], vcc
s_brev_b32 s1, s1
s_brev_b64 s[2:3], vcc
s_ff0_i32_b32 s1, s1
s_ff0_i32_b64 s1, vcc
s_ff1_i32_b32 s1, s1
s_ff1_i32_b64 s1, vcc
s_flbit_i32_b32 s1, s1
s_flbit_i32_b64 s1, vcc
s_flbit_i32 s1, s1
s_flbit_i32_i64 s1, vcc
s_sext_i32_i8 s1, s1
s_sext_i32_i16 s1, s1
s_bitreplicate_b64_b32 vcc, s1
s_not_b32 s1, s1
s_not_b64 s[2:3], vcc
s_wqm_b32 s1, s1
s_wqm_b64 s[2:3], vcc
s_bcnt0_i32_b32 s1, s1
s_bcnt0_i32_b64 s1, vcc
s_bcnt1_i32_b32 s1, s1
s_bcnt1_i32_b64 s1, vcc
s_quadmask_b32 s1, s1
s_quadmask_b64 s[2:3], vcc
s_abs_i32 s1, s1
s_cmov_b32 s1, s1
s_cmov_b64 s[2:3], vcc
s_bitset0_b32 s1, s1
s_bitset0_b64 vcc, s1
s_bitset1_b32 s1, s1
s_bitset1_b64 vcc, s1
s_and_saveexec_b64 s[2:3], vcc
s_or_saveexec_b64 s[2:3], vcc
s_xor_saveexec_b64 s[2:3], vcc
s_andn2_saveexec_b64 s[2:3], vcc
s_orn2_saveexec_b64 s[2:3], vcc
s_nand_saveexec_b64 s[2:3], vcc
s_nor_saveexec_b64 s[2:3], vcc
s_xnor_saveexec_b64 s[2:3], vcc
s_andn1_saveexec_b64 s[2:3], vcc
s_orn1_saveexec_b64 s[2:3], vcc
s_andn1_wrexec_b64 s[2:3], vcc
s_andn2_wrexec_b64 s[2:3], vcc
s_cmp_eq_i32 s1, s1
s_cmp_lg_i32 s1, s1
s_cmp_gt_i32 s1, s1
s_cmp_ge_i32 s1, s1
s_cmp_lt_i32 s1, s1
s_cmp_le_i32 s1, s1
s_cmp_eq_u32 s1, s1
s_cmp_lg_u32 s1, s1
s_cmp_gt_u32 s1, s1
s_cmp_ge_u32 s1, s1
s_cmp_lt_u32 s1, s1
s_cmp_le_u32 s1, s1
s_cmp_eq_u64 s[2:3], vcc
s_cmp_lg_u64 s[2:3], vcc
s_bitcmp0_b32 s1, s1
s_bitcmp0_b64 vcc, s1
s_bitcmp1_b32 s1, s1
s_bitcmp1_b64 vcc, s1
s_cmpk_eq_i32 s1, 0x1
s_cmpk_lg_i32 s1, 0x1
s_cmpk_gt_i32 s1, 0x1
s_cmpk_ge_i32 s1, 0x1
s_cmpk_lt_i32 s1, 0x1
s_cmpk_le_i32 s1, 0x1
s_cmpk_eq_u32 s1, 0x1
s_cmpk_lg_u32 s1, 0x1
s_cmpk_gt_u32 s1, 0x1
s_cmpk_ge_u32 s1, 0x1
s_cmpk_lt_u32 s1, 0x1
s_cmpk_le_u32 s1, 0x1
s_movk_i32 s1, 0x1
s_cmovk_i32 s1, 0x1
s_addk_i32 s1, 0x1
s_mulk_i32 s1, 0x1
s_getpc_b64 vcc
s_getreg_b32 s1, 0x1
s_setreg_b32 0x1, s1
s_setreg_imm32_b32 hwreg(HW_REG_MODE), 0x1
s_set_gpr_idx_on s1, 0x1
s_set_gpr_idx_off
s_set_gpr_idx_mode 0x1
s_set_gpr_idx_idx s1
s_setvskip s1, s1
s_branch 4
s_cbranch_scc0 4
s_cbranch_scc1 4
s_cbranch_vccz 4
s_cbranch_vccnz 4
s_cbranch_execz 4
s_cbranch_execnz 4
s_cbranch_cdbgsys 1
s_cbranch_cdbguser 1
s_cbranch_cdbgsys_or_user 1
s_cbranch_cdbgsys_and_user 1
s_setpc_b64 vcc
s_swappc_b64 s[2:3], vcc
s_call_b64 vcc, 4
s_load_dword s1, vcc, s1
s_load_dwordx2 s[2:3], vcc, s1
s_load_dwordx4 s[4:7], vcc, s1
s_load_dwordx8 s[8:15], vcc, s1
s_load_dwordx16 s[16:31], vcc, s1
s_buffer_load_dword s1, s[4:7], s1
s_buffer_load_dwordx2 vcc, s[4:7], s1
s_buffer_load_dwordx4 s[4:7], s[4:7], s1
s_buffer_load_dwordx8 s[8:15], s[4:7], s1
s_buffer_load_dwordx16 s[16:31], s[4:7], s1
s_store_dword s1, vcc, s1
s_store_dwordx2 s[2:3], vcc, s1
s_store_dwordx4 s[4:7], vcc, s1
s_buffer_store_dword s1, s[4:7], s1
s_buffer_store_dwordx2 vcc, s[4:7], s1
s_buffer_store_dwordx4 s[4:7], s[4:7], s1
s_scratch_load_dword s1, vcc, s1
s_scratch_store_dword s1, vcc, s1
s_scratch_load_dwordx2 s[2:3], vcc, s1
s_scratch_store_dwordx2 s[2:3], vcc, s1
s_scratch_load_dwordx4 s[4:7], vcc, s1
s_scratch_store_dwordx4 s[4:7], vcc, s1
s_atomic_swap s1, vcc, s1
s_atomic_cmpswap s[2:3], vcc, s1
s_atomic_add s1, vcc, s1
s_atomic_sub s1, vcc, s1
s_atomic_smin s1, vcc, s1
s_atomic_umin s1, vcc, s1
s_atomic_smax s1, vcc, s1
s_atomic_umax s1, vcc, s1
s_atomic_and s1, vcc, s1
s_atomic_or s1, vcc, s1
s_atomic_xor s1, vcc, s1
s_atomic_inc s1, vcc, s1
s_atomic_dec s1, vcc, s1
s_atomic_swap_x2 s[2:3], vcc, s1
s_atomic_cmpswap_x2 s[4:7], vcc, s1
s_atomic_add_x2 s[2:3], vcc, s1
s_atomic_sub_x2 s[2:3], vcc, s1
s_atomic_smin_x2 s[2:3], vcc, s1
s_atomic_umin_x2 s[2:3], vcc, s1
s_atomic_smax_x2 s[2:3], vcc, s1
s_atomic_umax_x2 s[2:3], vcc, s1
s_atomic_and_x2 s[2:3], vcc, s1
s_atomic_or_x2 s[2:3], vcc, s1
s_atomic_xor_x2 s[2:3], vcc, s1
s_atomic_inc_x2 s[2:3], vcc, s1
s_atomic_dec_x2 s[2:3], vcc, s1
s_buffer_atomic_swap s1, s[4:7], s1
s_buffer_atomic_cmpswap vcc, s[4:7], s1
s_buffer_atomic_add s1, s[4:7], s1
s_buffer_atomic_sub s1, s[4:7], s1
s_buffer_atomic_smin s1, s[4:7], s1
s_buffer_atomic_umin s1, s[4:7], s1
s_buffer_atomic_smax s1, s[4:7], s1
s_buffer_atomic_umax s1, s[4:7], s1
s_buffer_atomic_and s1, s[4:7], s1
s_buffer_atomic_or s1, s[4:7], s1
s_buffer_atomic_xor s1, s[4:7], s1
s_buffer_atomic_inc s1, s[4:7], s1
s_buffer_atomic_dec s1, s[4:7], s1
s_buffer_atomic_swap_x2 vcc, s[4:7], s1
s_buffer_atomic_cmpswap_x2 s[4:7], s[4:7], s1
s_buffer_atomic_add_x2 vcc, s[4:7], s1
s_buffer_atomic_sub_x2 vcc, s[4:7], s1
s_buffer_atomic_smin_x2 vcc, s[4:7], s1
s_buffer_atomic_umin_x2 vcc, s[4:7], s1
s_buffer_atomic_smax_x2 vcc, s[4:7], s1
s_buffer_atomic_umax_x2 vcc, s[4:7], s1
s_buffer_atomic_and_x2 vcc, s[4:7], s1
s_buffer_atomic_or_x2 vcc, s[4:7], s1
s_buffer_atomic_xor_x2 vcc, s[4:7], s1
s_buffer_atomic_inc_x2 vcc, s[4:7], s1
s_buffer_atomic_dec_x2 vcc, s[4:7], s1
s_memtime vcc
s_memrealtime vcc
s_dcache_inv
s_dcache_inv_vol
s_dcache_wb
s_dcache_wb_vol
s_waitcnt 0x1
s_nop 0x1
s_barrier
s_endpgm
s_endpgm_saved
s_endpgm_ordered_ps_done
s_sendmsg 0x1
s_sendmsghalt 0x1
s_sleep 0x1
s_setprio 0x1
s_sethalt 0x1
s_setkill 0x1
s_trap 0x1
s_incperflevel 0x1
s_decperflevel 0x1
s_icache_inv
s_wakeup
s_ttracedata
v_mov_b32 v1, v1
v_mov_b64 v[2:3], vcc
v_cvt_i32_f64 v1, vcc
v_cvt_f64_i32 v[2:3], v1
v_cvt_f32_i32 v1, v1
v_cvt_f32_u32 v1, v1
v_cvt_u32_f32 v1, v1
v_cvt_i32_f32 v1, v1
v_cvt_f16_f32 v1, v1
v_cvt_f32_f16 v1, v1
v_cvt_rpi_i32_f32 v1, v1
v_cvt_flr_i32_f32 v1, v1
v_cvt_off_f32_i4 v1, v1
v_cvt_f32_f64 v1, vcc
v_cvt_f64_f32 v[2:3], v1
v_cvt_f32_ubyte0 v1, v1
v_cvt_f32_ubyte1 v1, v1
v_cvt_f32_ubyte2 v1, v1
v_cvt_f32_ubyte3 v1, v1
v_cvt_u32_f64 v1, vcc
v_cvt_f64_u32 v[2:3], v1
v_trunc_f64 v[2:3], vcc
v_ceil_f64 v[2:3], vcc
v_rndne_f64 v[2:3], vcc
v_floor_f64 v[2:3], vcc
v_fract_f32 v1, v1
v_trunc_f32 v1, v1
v_ceil_f32 v1, v1
v_rndne_f32 v1, v1
v_floor_f32 v1, v1
v_not_b32 v1, v1
v_bfrev_b32 v1, v1
v_ffbh_u32 v1, v1
v_ffbl_b32 v1, v1
v_ffbh_i32 v1, v1
v_frexp_exp_i32_f64 v1, vcc
v_frexp_mant_f64 v[2:3], vcc
v_fract_f64 v[2:3], vcc
v_frexp_exp_i32_f32 v1, v1
v_frexp_mant_f32 v1, v1
v_cvt_f16_u16 v1, v1
v_cvt_f16_i16 v1, v1
v_cvt_u16_f16 v1, v1
v_cvt_i16_f16 v1, v1
v_frexp_mant_f16 v1, v1
v_frexp_exp_i16_f16 v1, v1
v_floor_f16 v1, v1
v_ceil_f16 v1, v1
v_trunc_f16 v1, v1
v_rndne_f16 v1, v1
v_fract_f16 v1, v1
v_cvt_norm_i16_f16 v1, v1
v_cvt_norm_u16_f16 v1, v1
v_sat_pk_u8_i16 v1, v1
v_cvt_f32_bf8 v1, v1
v_cvt_f32_fp8 v1, v1
v_cvt_pk_f32_bf8 v[2:3], v1
v_cvt_pk_f32_fp8 v[2:3], v1
v_cvt_f32_bf16_e32 v1, v33
v_prng_b32_e32 v1, v33
v_rcp_f32 v1, v1
v_rcp_iflag_f32 v1, v1
v_rsq_f32 v1, v1
v_sqrt_f32 v1, v1
v_exp_f32 v1, v1
v_log_f32 v1, v1
v_sin_f32 v1, v1
v_cos_f32 v1, v1
v_exp_legacy_f32 v1, v1
v_log_legacy_f32 v1, v1
v_rcp_f64 v[2:3], vcc
v_rsq_f64 v[2:3], vcc
v_sqrt_f64 v[2:3], vcc
v_rcp_f16 v1, v1
v_rsq_f16 v1, v1
v_sqrt_f16 v1, v1
v_exp_f16 v1, v1
v_log_f16 v1, v1
v_sin_f16 v1, v1
v_cos_f16 v1, v1
v_screen_partition_4se_b32 v1, v1
v_nop
v_clrexcp
v_swap_b32 v1, v1
v_permlane16_swap_b32_e32 v1, v33
v_permlane32_swap_b32_e32 v1, v33
v_add_f32 v1, v1, v1
v_sub_f32 v1, v1, v1
v_subrev_f32 v1, v1, v1
v_mul_f32 v1, v1, v1
v_mul_i32_i24 v1, v1, v1
v_mul_hi_i32_i24 v1, v1, v1
v_mul_u32_u24 v1, v1, v1
v_mul_hi_u32_u24 v1, v1, v1
v_min_f32 v1, v1, v1
v_max_f32 v1, v1, v1
v_min_i32 v1, v1, v1
v_max_i32 v1, v1, v1
v_min_u32 v1, v1, v1
v_max_u32 v1, v1, v1
v_lshrrev_b32 v1, v1, v1
v_ashrrev_i32 v1, v1, v1
v_lshlrev_b32 v1, v1, v1
v_and_b32 v1, v1, v1
v_or_b32 v1, v1, v1
v_xor_b32 v1, v1, v1
v_xnor_b32 v1, v1, v1
v_add_f16 v1, v1, v1
v_sub_f16 v1, v1, v1
v_subrev_f16 v1, v1, v1
v_mul_f16 v1, v1, v1
v_add_u16 v1, v1, v1
v_sub_u16 v1, v1, v1
v_subrev_u16 v1, v1, v1
v_mul_lo_u16 v1, v1, v1
v_lshlrev_b16 v1, v1, v1
v_lshrrev_b16 v1, v1, v1
v_ashrrev_i16 v1, v1, v1
v_max_f16 v1, v1, v1
v_min_f16 v1, v1, v1
v_max_u16 v1, v1, v1
v_max_i16 v1, v1, v1
v_min_u16 v1, v1, v1
v_min_i16 v1, v1, v1
v_ldexp_f16 v1, v1, v1
v_add_u32 v1, v1, v1
v_sub_u32 v1, v1, v1
v_subrev_u32 v1, v1, v1
v_mac_f16 v1, v1, v1
v_mac_f32_e32 v1, v33, v65
v_fmac_f32 v1, v1, v1
v_fmac_f64 v[2:3], v[2:3], vcc
v_pk_fmac_f16 v1, 0x1234, v1
v_dot2c_f32_f16 v1, v1, v1
v_dot2c_i32_i16 v1, v1, v1
v_dot4c_i32_i8 v1, v1, v1
v_dot8c_i32_i4 v1, v1, v1
v_dot2c_f32_bf16_e32 v1, v33, v65
v_add_co_u32 v1, vcc, v1, v1
v_sub_co_u32 v1, vcc, v1, v1
v_subrev_co_u32 v1, vcc, v1, v1
v_addc_co_u32 v1, s[2:3], v1, v1, vcc
v_subb_co_u32 v1, s[2:3], v1, v1, vcc
v_subbrev_co_u32 v1, s[2:3], v1, v1, vcc
v_cndmask_b32 v1, v1, v1, vcc
v_fmamk_f32 v1, v1, 0x1234, v1
v_fmaak_f32 v1, v1, v1, 0x1234
v_madmk_f16 v1, v1, 0x1234, v1
v_madak_f16 v1, v1, v1, 0x1234
v_madmk_f32 v1, v33, 0x12345678, v65
v_madak_f32 v1, v33, v65, 0x12345678
v_cmp_f_f16 vcc, v1, v1
v_cmpx_f_f16 vcc, v1, v1
v_cmp_f_f32 vcc, v1, v1
v_cmpx_f_f32 vcc, v1, v1
v_cmp_f_f64 s[2:3], v[2:3], vcc
v_cmpx_f_f64 vcc, v[2:3], v[2:3]
v_cmp_lt_f16 vcc, v1, v1
v_cmpx_lt_f16 vcc, v1, v1
v_cmp_lt_f32 vcc, v1, v1
v_cmpx_lt_f32 vcc, v1, v1
v_cmp_lt_f64 s[2:3], v[2:3], vcc
v_cmpx_lt_f64 vcc, v[2:3], v[2:3]
v_cmp_eq_f16 vcc, v1, v1
v_cmpx_eq_f16 vcc, v1, v1
v_cmp_eq_f32 vcc, v1, v1
v_cmpx_eq_f32 vcc, v1, v1
v_cmp_eq_f64 s[2:3], v[2:3], vcc
v_cmpx_eq_f64 vcc, v[2:3], v[2:3]
v_cmp_le_f16 vcc, v1, v1
v_cmpx_le_f16 vcc, v1, v1
v_cmp_le_f32 vcc, v1, v1
v_cmpx_le_f32 vcc, v1, v1
v_cmp_le_f64 s[2:3], v[2:3], vcc
v_cmpx_le_f64 vcc, v[2:3], v[2:3]
v_cmp_gt_f16 vcc, v1, v1
v_cmpx_gt_f16 vcc, v1, v1
v_cmp_gt_f32 vcc, v1, v1
v_cmpx_gt_f32 vcc, v1, v1
v_cmp_gt_f64 s[2:3], v[2:3], vcc
v_cmpx_gt_f64 vcc, v[2:3], v[2:3]
v_cmp_lg_f16 vcc, v1, v1
v_cmpx_lg_f16 vcc, v1, v1
v_cmp_lg_f32 vcc, v1, v1
v_cmpx_lg_f32 vcc, v1, v1
v_cmp_lg_f64 s[2:3], v[2:3], vcc
v_cmpx_lg_f64 vcc, v[2:3], v[2:3]
v_cmp_ge_f16 vcc, v1, v1
v_cmpx_ge_f16 vcc, v1, v1
v_cmp_ge_f32 vcc, v1, v1
v_cmpx_ge_f32 vcc, v1, v1
v_cmp_ge_f64 s[2:3], v[2:3], vcc
v_cmpx_ge_f64 vcc, v[2:3], v[2:3]
v_cmp_o_f16 vcc, v1, v1
v_cmpx_o_f16 vcc, v1, v1
v_cmp_o_f32 vcc, v1, v1
v_cmpx_o_f32 vcc, v1, v1
v_cmp_o_f64 s[2:3], v[2:3], vcc
v_cmpx_o_f64 vcc, v[2:3], v[2:3]
v_cmp_u_f16 vcc, v1, v1
v_cmpx_u_f16 vcc, v1, v1
v_cmp_u_f32 vcc, v1, v1
v_cmpx_u_f32 vcc, v1, v1
v_cmp_u_f64 s[2:3], v[2:3], vcc
v_cmpx_u_f64 vcc, v[2:3], v[2:3]
v_cmp_nge_f16 vcc, v1, v1
v_cmpx_nge_f16 vcc, v1, v1
v_cmp_nge_f32 vcc, v1, v1
v_cmpx_nge_f32 vcc, v1, v1
v_cmp_nge_f64 s[2:3], v[2:3], vcc
v_cmpx_nge_f64 vcc, v[2:3], v[2:3]
v_cmp_nlg_f16 vcc, v1, v1
v_cmpx_nlg_f16 vcc, v1, v1
v_cmp_nlg_f32 vcc, v1, v1
v_cmpx_nlg_f32 vcc, v1, v1
v_cmp_nlg_f64 s[2:3], v[2:3], vcc
v_cmpx_nlg_f64 vcc, v[2:3], v[2:3]
v_cmp_ngt_f16 vcc, v1, v1
v_cmpx_ngt_f16 vcc, v1, v1
v_cmp_ngt_f32 vcc, v1, v1
v_cmpx_ngt_f32 vcc, v1, v1
v_cmp_ngt_f64 s[2:3], v[2:3], vcc
v_cmpx_ngt_f64 vcc, v[2:3], v[2:3]
v_cmp_nle_f16 vcc, v1, v1
v_cmpx_nle_f16 vcc, v1, v1
v_cmp_nle_f32 vcc, v1, v1
v_cmpx_nle_f32 vcc, v1, v1
v_cmp_nle_f64 s[2:3], v[2:3], vcc
v_cmpx_nle_f64 vcc, v[2:3], v[2:3]
v_cmp_neq_f16 vcc, v1, v1
v_cmpx_neq_f16 vcc, v1, v1
v_cmp_neq_f32 vcc, v1, v1
v_cmpx_neq_f32 vcc, v1, v1
v_cmp_neq_f64 s[2:3], v[2:3], vcc
v_cmpx_neq_f64 vcc, v[2:3], v[2:3]
v_cmp_nlt_f16 vcc, v1, v1
v_cmpx_nlt_f16 vcc, v1, v1
v_cmp_nlt_f32 vcc, v1, v1
v_cmpx_nlt_f32 vcc, v1, v1
v_cmp_nlt_f64 s[2:3], v[2:3], vcc
v_cmpx_nlt_f64 vcc, v[2:3], v[2:3]
v_cmp_tru_f16 vcc, v1, v1
v_cmpx_tru_f16 vcc, v1, v1
v_cmp_tru_f32 vcc, v1, v1
v_cmpx_tru_f32 vcc, v1, v1
v_cmp_tru_f64 s[2:3], v[2:3], vcc
v_cmpx_tru_f64 vcc, v[2:3], v[2:3]
v_cmp_f_i16 vcc, v1, v1
v_cmpx_f_i16 vcc, v1, v1
v_cmp_f_u16 vcc, v1, v1
v_cmpx_f_u16 vcc, v1, v1
v_cmp_f_i32 vcc, v1, v1
v_cmpx_f_i32 vcc, v1, v1
v_cmp_f_u32 vcc, v1, v1
v_cmpx_f_u32 vcc, v1, v1
v_cmp_f_i64 s[2:3], v[2:3], vcc
v_cmpx_f_i64 vcc, v[2:3], v[2:3]
v_cmp_f_u64 s[2:3], v[2:3], vcc
v_cmpx_f_u64 vcc, v[2:3], v[2:3]
v_cmp_lt_i16 vcc, v1, v1
v_cmpx_lt_i16 vcc, v1, v1
v_cmp_lt_u16 vcc, v1, v1
v_cmpx_lt_u16 vcc, v1, v1
v_cmp_lt_i32 vcc, v1, v1
v_cmpx_lt_i32 vcc, v1, v1
v_cmp_lt_u32 vcc, v1, v1
v_cmpx_lt_u32 vcc, v1, v1
v_cmp_lt_i64 s[2:3], v[2:3], vcc
v_cmpx_lt_i64 vcc, v[2:3], v[2:3]
v_cmp_lt_u64 s[2:3], v[2:3], vcc
v_cmpx_lt_u64 vcc, v[2:3], v[2:3]
v_cmp_eq_i16 vcc, v1, v1
v_cmpx_eq_i16 vcc, v1, v1
v_cmp_eq_u16 vcc, v1, v1
v_cmpx_eq_u16 vcc, v1, v1
v_cmp_eq_i32 vcc, v1, v1
v_cmpx_eq_i32 vcc, v1, v1
v_cmp_eq_u32 vcc, v1, v1
v_cmpx_eq_u32 vcc, v1, v1
v_cmp_eq_i64 s[2:3], v[2:3], vcc
v_cmpx_eq_i64 vcc, v[2:3], v[2:3]
v_cmp_eq_u64 s[2:3], v[2:3], vcc
v_cmpx_eq_u64 vcc, v[2:3], v[2:3]
v_cmp_le_i16 vcc, v1, v1
v_cmpx_le_i16 vcc, v1, v1
v_cmp_le_u16 vcc, v1, v1
v_cmpx_le_u16 vcc, v1, v1
v_cmp_le_i32 vcc, v1, v1
v_cmpx_le_i32 vcc, v1, v1
v_cmp_le_u32 vcc, v1, v1
v_cmpx_le_u32 vcc, v1, v1
v_cmp_le_i64 s[2:3], v[2:3], vcc
v_cmpx_le_i64 vcc, v[2:3], v[2:3]
v_cmp_le_u64 s[2:3], v[2:3], vcc
v_cmpx_le_u64 vcc, v[2:3], v[2:3]
v_cmp_gt_i16 vcc, v1, v1
v_cmpx_gt_i16 vcc, v1, v1
v_cmp_gt_u16 vcc, v1, v1
v_cmpx_gt_u16 vcc, v1, v1
v_cmp_gt_i32 vcc, v1, v1
v_cmpx_gt_i32 vcc, v1, v1
v_cmp_gt_u32 vcc, v1, v1
v_cmpx_gt_u32 vcc, v1, v1
v_cmp_gt_i64 s[2:3], v[2:3], vcc
v_cmpx_gt_i64 vcc, v[2:3], v[2:3]
v_cmp_gt_u64 s[2:3], v[2:3], vcc
v_cmpx_gt_u64 vcc, v[2:3], v[2:3]
v_cmp_ne_i16 vcc, v1, v1
v_cmpx_ne_i16 vcc, v1, v1
v_cmp_ne_u16 vcc, v1, v1
v_cmpx_ne_u16 vcc, v1, v1
v_cmp_ne_i32 vcc, v1, v1
v_cmpx_ne_i32 vcc, v1, v1
v_cmp_ne_u32 vcc, v1, v1
v_cmpx_ne_u32 vcc, v1, v1
v_cmp_ne_i64 s[2:3], v[2:3], vcc
v_cmpx_ne_i64 vcc, v[2:3], v[2:3]
v_cmp_ne_u64 s[2:3], v[2:3], vcc
v_cmpx_ne_u64 vcc, v[2:3], v[2:3]
v_cmp_ge_i16 vcc, v1, v1
v_cmpx_ge_i16 vcc, v1, v1
v_cmp_ge_u16 vcc, v1, v1
v_cmpx_ge_u16 vcc, v1, v1
v_cmp_ge_i32 vcc, v1, v1
v_cmpx_ge_i32 vcc, v1, v1
v_cmp_ge_u32 vcc, v1, v1
v_cmpx_ge_u32 vcc, v1, v1
v_cmp_ge_i64 s[2:3], v[2:3], vcc
v_cmpx_ge_i64 vcc, v[2:3], v[2:3]
v_cmp_ge_u64 s[2:3], v[2:3], vcc
v_cmpx_ge_u64 vcc, v[2:3], v[2:3]
v_cmp_t_i16 vcc, v1, v1
v_cmpx_t_i16 vcc, v1, v1
v_cmp_t_u16 vcc, v1, v1
v_cmpx_t_u16 vcc, v1, v1
v_cmp_t_i32 vcc, v1, v1
v_cmpx_t_i32 vcc, v1, v1
v_cmp_t_u32 vcc, v1, v1
v_cmpx_t_u32 vcc, v1, v1
v_cmp_t_i64 s[2:3], v[2:3], vcc
v_cmpx_t_i64 vcc, v[2:3], v[2:3]
v_cmp_t_u64 s[2:3], v[2:3], vcc
v_cmpx_t_u64 vcc, v[2:3], v[2:3]
v_cmp_class_f16 vcc, v1, v1
v_cmpx_class_f16 vcc, v1, v1
v_cmp_class_f32 vcc, v1, v1
v_cmpx_class_f32 vcc, v1, v1
v_cmp_class_f64 vcc, v[2:3], v1
v_cmpx_class_f64 vcc, v[2:3], v1
v_mul_legacy_f32 v1, v1, v1
v_add_f64 v[2:3], v[2:3], vcc
v_mul_f64 v[2:3], v[2:3], vcc
v_min_f64 v[2:3], v[2:3], vcc
v_max_f64 v[2:3], v[2:3], vcc
v_ldexp_f64 v[2:3], v[2:3], v1
v_mul_lo_u32 v1, v1, v1
v_mul_hi_u32 v1, v1, v1
v_mul_hi_i32 v1, v1, v1
v_ldexp_f32 v1, v1, v1
v_bcnt_u32_b32 v1, v1, v1
v_mbcnt_lo_u32_b32 v1, v1, v1
v_mbcnt_hi_u32_b32 v1, v1, v1
v_lshlrev_b64 v[2:3], v1, vcc
v_lshrrev_b64 v[2:3], v1, vcc
v_ashrrev_i64 v[2:3], v1, vcc
v_trig_preop_f64 v[2:3], v[2:3], v1
v_bfm_b32 v1, v1, v1
v_cvt_pknorm_i16_f32 v1, v1, v1
v_cvt_pknorm_u16_f32 v1, v1, v1
v_cvt_pkrtz_f16_f32 v1, v1, v1
v_cvt_pk_u16_u32 v1, v1, v1
v_cvt_pk_i16_i32 v1, v1, v1
v_cvt_pknorm_i16_f16 v1, v1, v1
v_cvt_pknorm_u16_f16 v1, v1, v1
v_add_i32 v1, v1, v1
v_sub_i32 v1, v1, v1
v_add_i16 v1, v1, v1
v_sub_i16 v1, v1, v1
v_pack_b32_f16 v1, v1, v1
v_pk_mul_lo_u16 v1, v1, v1
v_pk_add_i16 v1, v1, v1
v_pk_sub_i16 v1, v1, v1
v_pk_lshlrev_b16 v1, v1, v1
v_pk_lshrrev_b16 v1, v1, v1
v_pk_ashrrev_i16 v1, v1, v1
v_pk_max_i16 v1, v1, v1
v_pk_min_i16 v1, v1, v1
v_pk_add_u16 v1, v1, v1
v_pk_sub_u16 v1, v1, v1
v_pk_max_u16 v1, v1, v1
v_pk_min_u16 v1, v1, v1
v_pk_add_f16 v1, v1, v1
v_pk_mul_f16 v1, v1, v1
v_pk_min_f16 v1, v1, v1
v_pk_max_f16 v1, v1, v1
v_pk_mul_f32 v[2:3], v[2:3], vcc
v_pk_add_f32 v[2:3], v[2:3], vcc
v_pk_mov_b32 v[2:3], v[2:3], vcc
v_cvt_pk_f16_f32 v1, v33, s16
v_cvt_pk_bf16_f32 v1, v33, s16
v_cvt_scalef32_f32_fp8 v1, v33, s16
v_cvt_scalef32_f32_bf8 v1, v33, s16
v_cvt_scalef32_pk_f32_fp8 v[0:1], v33, s16
v_cvt_scalef32_pk_f32_bf8 v[0:1], v33, s16
v_cvt_scalef32_pk_f32_fp4 v[0:1], v33, s16
v_cvt_scalef32_pk_f16_fp8 v1, v33, s16
v_cvt_scalef32_pk_f16_bf8 v1, v33, s16
v_cvt_scalef32_pk_f16_fp4 v1, v33, s16
v_cvt_scalef32_pk_bf16_fp8 v1, v33, s16
v_cvt_scalef32_pk_bf16_bf8 v1, v33, s16
v_cvt_scalef32_pk_bf16_fp4 v1, v33, s16
v_cvt_scalef32_pk32_f32_fp6 v[0:31], v[32:37], s16
v_cvt_scalef32_pk32_f32_bf6 v[0:31], v[32:37], s16
v_cvt_scalef32_pk32_f16_fp6 v[0:15], v[32:37], s16
v_cvt_scalef32_pk32_f16_bf6 v[0:15], v[32:37], s16
v_cvt_scalef32_pk32_bf16_fp6 v[0:15], v[32:37], s16
v_cvt_scalef32_pk32_bf16_bf6 v[0:15], v[32:37], s16
v_cvt_scalef32_pk32_fp6_f16 v[0:5], v[32:47], s16
v_cvt_scalef32_pk32_bf6_f16 v[0:5], v[32:47], s16
v_cvt_scalef32_pk32_fp6_bf16 v[0:5], v[32:47], s16
v_cvt_scalef32_pk32_bf6_bf16 v[0:5], v[32:47], s16
v_mad_i32_i24 v1, v1, v1, v1
v_mad_u32_u24 v1, v1, v1, v1
v_cubeid_f32 v1, v1, v1, v1
v_cubesc_f32 v1, v1, v1, v1
v_cubetc_f32 v1, v1, v1, v1
v_cubema_f32 v1, v1, v1, v1
v_bfe_u32 v1, v1, v1, v1
v_bfe_i32 v1, v1, v1, v1
v_bfi_b32 v1, v1, v1, v1
v_fma_f32 v1, v1, v1, v1
v_fma_f64 v[2:3], v[2:3], v[2:3], vcc
v_lerp_u8 v1, v1, v1, v1
v_alignbit_b32 v1, v1, v1, v1
v_alignbyte_b32 v1, v1, v1, v1
v_min3_f32 v1, v1, v1, v1
v_min3_i32 v1, v1, v1, v1
v_min3_u32 v1, v1, v1, v1
v_max3_f32 v1, v1, v1, v1
v_max3_i32 v1, v1, v1, v1
v_max3_u32 v1, v1, v1, v1
v_med3_f32 v1, v1, v1, v1
v_med3_i32 v1, v1, v1, v1
v_med3_u32 v1, v1, v1, v1
v_sad_u8 v1, v1, v1, v1
v_sad_hi_u8 v1, v1, v1, v1
v_sad_u16 v1, v1, v1, v1
v_sad_u32 v1, v1, v1, v1
v_div_fixup_f32 v1, v1, v1, v1
v_div_fixup_f64 v[2:3], v[2:3], v[2:3], vcc
v_msad_u8 v1, v1, v1, v1
v_qsad_pk_u16_u8 v[2:3], v[2:3], v1, vcc
v_mqsad_pk_u16_u8 v[2:3], v[2:3], v1, vcc
v_mqsad_u32_u8 v[4:7], v[2:3], v1, v[4:7]
v_mad_legacy_f16 v1, v1, v1, v1
v_mad_legacy_u16 v1, v1, v1, v1
v_mad_legacy_i16 v1, v1, v1, v1
v_perm_b32 v1, v1, v1, v1
v_fma_legacy_f16 v1, v1, v1, v1
v_div_fixup_legacy_f16 v1, v1, v1, v1
v_mad_u32_u16 v1, v1, v1, v1
v_mad_i32_i16 v1, v1, v1, v1
v_xad_u32 v1, v1, v1, v1
v_min3_f16 v1, v1, v1, v1
v_min3_i16 v1, v1, v1, v1
v_min3_u16 v1, v1, v1, v1
v_max3_f16 v1, v1, v1, v1
v_max3_i16 v1, v1, v1, v1
v_max3_u16 v1, v1, v1, v1
v_med3_f16 v1, v1, v1, v1
v_med3_i16 v1, v1, v1, v1
v_med3_u16 v1, v1, v1, v1
v_lshl_add_u32 v1, v1, v1, v1
v_add_lshl_u32 v1, v1, v1, v1
v_add3_u32 v1, v1, v1, v1
v_lshl_or_b32 v1, v1, v1, v1
v_and_or_b32 v1, v1, v1, v1
v_or3_b32 v1, v1, v1, v1
v_lshl_add_u64 v[2:3], v[2:3], v1, vcc
v_pk_mad_i16 v1, v1, v1, v1
v_pk_mad_u16 v1, v1, v1, v1
v_pk_fma_f16 v1, v1, v1, v1
v_pk_fma_f32 v[2:3], v[2:3], v[2:3], vcc
v_fma_mix_f32 v1, v1, v1, v1
v_mad_f32 v1, v33, v65, v97
v_mad_legacy_f32 v1, v33, v65, v97
v_bitop3_b32 v1, v33, v65, v97
v_minimum3_f32 v1, v33, v65, v97
v_maximum3_f32 v1, v33, v65, v97
v_pk_minimum3_f16 v1, v33, v65, v97
v_pk_maximum3_f16 v1, v33, v65, v97
v_cvt_scalef32_2xpk16_fp6_f32 v[0:5], v[32:47], v[64:79], v97
v_cvt_scalef32_2xpk16_bf6_f32 v[0:5], v[32:47], v[64:79], v97
v_cvt_scalef32_sr_pk32_fp6_f32 v[0:5], v[32:63], v65, v97
v_cvt_scalef32_sr_pk32_bf6_f32 v[0:5], v[32:63], v65, v97
v_cvt_scalef32_sr_pk32_fp6_f16 v[0:5], v[32:47], v65, v97
v_cvt_scalef32_sr_pk32_bf6_f16 v[0:5], v[32:47], v65, v97
v_cvt_scalef32_sr_pk32_fp6_bf16 v[0:5], v[32:47], v65, v97
v_cvt_scalef32_sr_pk32_bf6_bf16 v[0:5], v[32:47], v65, v97
v_dot2_f32_f16 v1, v1, v1, v1
v_dot2_i32_i16 v1, v1, v1, v1
v_dot2_u32_u16 v1, v1, v1, v1
v_dot4_i32_i8 v1, v1, v1, v1
v_dot4_u32_u8 v1, v1, v1, v1
v_dot8_i32_i4 v1, v1, v1, v1
v_dot8_u32_u4 v1, v1, v1, v1
v_dot2_f32_bf16 v1, v33, v65, v97
v_cvt_pk_fp8_f32 v1, v1, v1
v_cvt_pk_bf8_f32 v1, v1, v1
v_cvt_sr_fp8_f32 v1, v1, v1
v_cvt_sr_bf8_f32 v1, v1, v1
v_cvt_pkaccum_u8_f32 v1, v33, s16
v_cvt_sr_f16_f32 v1, v33, s16
v_cvt_sr_bf16_f32 v1, v33, s16
v_cvt_scalef32_f16_fp8 v1, v33, s16
v_cvt_scalef32_f16_bf8 v1, v33, s16
v_cvt_scalef32_pk_fp8_f16 v1, v33, s16
v_cvt_scalef32_pk_bf8_f16 v1, v33, s16
v_cvt_scalef32_pk_fp8_bf16 v1, v33, s16
v_cvt_scalef32_pk_bf8_bf16 v1, v33, s16
v_cvt_scalef32_pk_fp4_f16 v1, v33, s16
v_cvt_scalef32_pk_fp4_bf16 v1, v33, s16
v_mad_f16 v1, v1, v1, v1
v_mad_u16 v1, v1, v1, v1
v_mad_i16 v1, v1, v1, v1
v_fma_f16 v1, v1, v1, v1
v_div_fixup_f16 v1, v1, v1, v1
v_fma_mixlo_f16 v1, v1, v1, v1
v_fma_mixhi_f16 v1, v1, v1, v1
v_cvt_pk_u8_f32 v1, v1, v1, v1
v_bitop3_b16 v1, v33, v65, v97
v_ashr_pk_i8_i32 v1, v33, v65, v97
v_ashr_pk_u8_i32 v1, v33, v65, v97
v_cvt_scalef32_pk_fp8_f32 v1, v33, v65, v97
v_cvt_scalef32_pk_bf8_f32 v1, v33, v65, v97
v_cvt_scalef32_pk_fp4_f32 v1, v33, v65, v97
v_cvt_scalef32_sr_fp8_f32 v1, v33, v65, v97
v_cvt_scalef32_sr_bf8_f32 v1, v33, v65, v97
v_cvt_scalef32_sr_fp8_f16 v1, v33, v65, v97
v_cvt_scalef32_sr_bf8_f16 v1, v33, v65, v97
v_cvt_scalef32_sr_fp8_bf16 v1, v33, v65, v97
v_cvt_scalef32_sr_bf8_bf16 v1, v33, v65, v97
v_cvt_scalef32_sr_pk_fp4_f32 v1, v[32:33], v65, v97
v_cvt_scalef32_sr_pk_fp4_f16 v1, v33, v65, v97
v_cvt_scalef32_sr_pk_fp4_bf16 v1, v33, v65, v97
v_div_fmas_f32 v1, v1, v1, v1
v_div_fmas_f64 v[2:3], v[2:3], v[2:3], vcc
v_div_scale_f32 v1, vcc, v1, v1, v1
v_div_scale_f64 v[2:3], s[2:3], v[2:3], v[2:3], vcc
v_mad_u64_u32 v[2:3], s[2:3], v1, v1, vcc
v_mad_i64_i32 v[2:3], s[2:3], v1, v1, vcc
v_readfirstlane_b32 s1, v1
v_readlane_b32 s1, v1, s1
v_writelane_b32 v1, s1, s1
v_accvgpr_read_b32 v1, a2
v_accvgpr_write_b32 a1, v2
v_accvgpr_mov_b32 a1, a2
v_mfma_f32_32x32x1_2b_f32 v[0:31], v1, v1, v[0:31]
v_mfma_f32_16x16x1_4b_f32 v[0:15], v1, v1, v[0:15]
v_mfma_f32_4x4x1_16b_f32 v[0:3], v1, v1, v[0:3]
v_mfma_f32_32x32x2_f32 v[0:15], v1, v1, v[0:15]
v_mfma_f32_16x16x4_f32 v[0:3], v1, v1, v[0:3]
v_mfma_f32_32x32x4_2b_f16 v[0:31], v[2:3], v[2:3], v[0:31]
v_mfma_f32_16x16x4_4b_f16 v[0:15], v[2:3], v[2:3], v[0:15]
v_mfma_f32_4x4x4_16b_f16 v[0:3], v[2:3], v[2:3], v[0:3]
v_mfma_f32_32x32x8_f16 v[0:15], v[2:3], v[2:3], v[0:15]
v_mfma_f32_16x16x16_f16 v[0:3], v[2:3], v[2:3], v[0:3]
v_mfma_f32_32x32x4_2b_bf16 v[0:31], v[2:3], v[2:3], v[0:31]
v_mfma_f32_16x16x4_4b_bf16 v[0:15], v[2:3], v[2:3], v[0:15]
v_mfma_f32_4x4x4_16b_bf16 v[0:3], v[2:3], v[2:3], v[0:3]
v_mfma_f32_32x32x8_bf16 v[0:15], v[2:3], v[2:3], v[0:15]
v_mfma_f32_16x16x16_bf16 v[0:3], v[2:3], v[2:3], v[0:3]
v_mfma_i32_32x32x4_2b_i8 v[0:31], v1, v1, v[0:31]
v_mfma_i32_16x16x4_4b_i8 v[0:15], v1, v1, v[0:15]
v_mfma_i32_4x4x4_16b_i8 v[0:3], v1, v1, v[0:3]
v_mfma_i32_32x32x16_i8 v[0:15], v[2:3], v[2:3], v[0:15]
v_mfma_i32_16x16x32_i8 v[0:3], v[2:3], v[2:3], v[0:3]
v_mfma_f64_16x16x4_f64 v[0:7], v[2:3], v[2:3], v[0:7]
v_mfma_f64_4x4x4_4b_f64 v[0:1], v[2:3], v[2:3], v[0:1]
v_mfma_f32_16x16x8_xf32 v[0:3], v[2:3], v[2:3], v[0:3]
v_mfma_f32_32x32x4_xf32 v[0:15], v[2:3], v[2:3], v[0:15]
v_mfma_f32_16x16x32_bf8_bf8 v[0:3], v[2:3], v[2:3], v[0:3]
v_mfma_f32_16x16x32_bf8_fp8 v[0:3], v[2:3], v[2:3], v[0:3]
v_mfma_f32_16x16x32_fp8_bf8 v[0:3], v[2:3], v[2:3], v[0:3]
v_mfma_f32_16x16x32_fp8_fp8 v[0:3], v[2:3], v[2:3], v[0:3]
v_mfma_f32_32x32x16_bf8_bf8 v[0:15], v[2:3], v[2:3], v[0:15]
v_mfma_f32_32x32x16_bf8_fp8 v[0:15], v[2:3], v[2:3], v[0:15]
v_mfma_f32_32x32x16_fp8_bf8 v[0:15], v[2:3], v[2:3], v[0:15]
v_mfma_f32_32x32x16_fp8_fp8 v[0:15], v[2:3], v[2:3], v[0:15]
v_mfma_f32_16x16x32_f16 v[16:19], v[16:19], v[16:19], v[16:19]
v_mfma_f32_32x32x16_f16 v[16:31], v[16:19], v[16:19], v[16:31]
v_mfma_f32_16x16x32_bf16 v[16:19], v[16:19], v[16:19], v[16:19]
v_mfma_f32_32x32x16_bf16 v[16:31], v[16:19], v[16:19], v[16:31]
v_mfma_i32_16x16x64_i8 v[16:19], v[16:19], v[16:19], v[16:19]
v_mfma_i32_32x32x32_i8 v[16:31], v[16:19], v[16:19], v[16:31]
v_mfma_f32_16x16x128_f8f6f4 v[16:19], v[16:23], v[16:23], v[16:19]
v_mfma_f32_32x32x64_f8f6f4 v[16:31], v[16:23], v[16:23], v[16:31]
v_mfma_f32_32x32x1f32 v[16:47], v16, v16, v[16:47]
v_mfma_f32_16x16x1f32 v[16:31], v16, v16, v[16:31]
v_mfma_f32_4x4x1f32 v[16:19], v16, v16, v[16:19]
v_mfma_f32_32x32x2f32 v[16:31], v16, v16, v[16:31]
v_mfma_f32_16x16x4f32 v[16:19], v16, v16, v[16:19]
v_mfma_f32_32x32x4f16 v[16:47], v[16:17], v[16:17], v[16:47]
v_mfma_f32_16x16x4f16 v[16:31], v[16:17], v[16:17], v[16:31]
v_mfma_f32_4x4x4f16 v[16:19], v[16:17], v[16:17], v[16:19]
v_mfma_f32_32x32x8f16 v[16:31], v[16:17], v[16:17], v[16:31]
v_mfma_f32_16x16x16f16 v[16:19], v[16:17], v[16:17], v[16:19]
v_mfma_f32_32x32x2bf16 v[16:47], v16, v16, v[16:47]
v_mfma_f32_16x16x2bf16 v[16:31], v16, v16, v[16:31]
v_mfma_f32_4x4x2bf16 v[16:19], v16, v16, v[16:19]
v_mfma_f32_32x32x4bf16 v[16:31], v16, v16, v[16:31]
v_mfma_f32_16x16x8bf16 v[16:19], v16, v16, v[16:19]
v_mfma_f32_32x32x4bf16_1k v[16:47], v[16:17], v[16:17], v[16:47]
v_mfma_f32_16x16x4bf16_1k v[16:31], v[16:17], v[16:17], v[16:31]
v_mfma_f32_4x4x4bf16_1k v[16:19], v[16:17], v[16:17], v[16:19]
v_mfma_f32_32x32x8bf16_1k v[16:31], v[16:17], v[16:17], v[16:31]
v_mfma_f32_16x16x16bf16_1k v[16:19], v[16:17], v[16:17], v[16:19]
v_mfma_i32_32x32x4i8 v[16:47], v16, v16, v[16:47]
v_mfma_i32_16x16x4i8 v[16:31], v16, v16, v[16:31]
v_mfma_i32_4x4x4i8 v[16:19], v16, v16, v[16:19]
v_mfma_i32_32x32x8i8 v[16:31], v16, v16, v[16:31]
v_mfma_i32_16x16x16i8 v[16:19], v16, v16, v[16:19]
v_mfma_f64_16x16x4f64 v[16:23], v[16:17], v[16:17], v[16:23]
v_mfma_f64_4x4x4f64 v[16:17], v[16:17], v[16:17], v[16:17]
v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:9], v[10:15], v[16:19], v20, v21 op_sel_hi:[0,0,0] cbsz:2 blgp:2
v_mfma_scale_f32_32x32x64_f8f6f4 a[0:15], v[4:9], v[12:15], a[0:15], v20, v21 op_sel_hi:[0,0,0] cbsz:2 blgp:4
v_smfmac_f32_16x16x32_f16 v[0:3], v[2:3], v[4:7], v1
v_smfmac_f32_32x32x16_f16 v[0:15], v[2:3], v[4:7], v1
v_smfmac_f32_16x16x32_bf16 v[0:3], v[2:3], v[4:7], v1
v_smfmac_f32_32x32x16_bf16 v[0:15], v[2:3], v[4:7], v1
v_smfmac_i32_16x16x64_i8 v[0:3], v[2:3], v[4:7], v1
v_smfmac_i32_32x32x32_i8 v[0:15], v[2:3], v[4:7], v1
v_smfmac_f32_16x16x64_bf8_bf8 v[0:3], v[2:3], v[4:7], v1
v_smfmac_f32_16x16x64_bf8_fp8 v[0:3], v[2:3], v[4:7], v1
v_smfmac_f32_16x16x64_fp8_bf8 v[0:3], v[2:3], v[4:7], v1
v_smfmac_f32_16x16x64_fp8_fp8 v[0:3], v[2:3], v[4:7], v1
v_smfmac_f32_32x32x32_bf8_bf8 v[0:15], v[2:3], v[4:7], v1
v_smfmac_f32_32x32x32_bf8_fp8 v[0:15], v[2:3], v[4:7], v1
v_smfmac_f32_32x32x32_fp8_bf8 v[0:15], v[2:3], v[4:7], v1
v_smfmac_f32_32x32x32_fp8_fp8 v[0:15], v[2:3], v[4:7], v1
v_smfmac_f32_16x16x64_f16 v[0:3], v[32:35], v[64:71], v97
v_smfmac_f32_32x32x32_f16 v[0:15], v[32:35], v[64:71], v97
v_smfmac_f32_16x16x64_bf16 v[0:3], v[32:35], v[64:71], v97
v_smfmac_f32_32x32x32_bf16 v[0:15], v[32:35], v[64:71], v97
v_smfmac_i32_16x16x128_i8 v[0:3], v[32:35], v[64:71], v97
v_smfmac_i32_32x32x64_i8 v[0:15], v[32:35], v[64:71], v97
v_smfmac_f32_16x16x128_bf8_bf8 v[0:3], v[32:35], v[64:71], v97
v_smfmac_f32_16x16x128_bf8_fp8 v[0:3], v[32:35], v[64:71], v97
v_smfmac_f32_16x16x128_fp8_bf8 v[0:3], v[32:35], v[64:71], v97
v_smfmac_f32_16x16x128_fp8_fp8 v[0:3], v[32:35], v[64:71], v97
v_smfmac_f32_32x32x64_bf8_bf8 v[0:15], v[32:35], v[64:71], v97
v_smfmac_f32_32x32x64_bf8_fp8 v[0:15], v[32:35], v[64:71], v97
v_smfmac_f32_32x32x64_fp8_bf8 v[0:15], v[32:35], v[64:71], v97
v_smfmac_f32_32x32x64_fp8_fp8 v[0:15], v[32:35], v[64:71], v97
buffer_load_ubyte v1, v1, s[4:7], 0 offen
buffer_load_sbyte v1, v1, s[4:7], 0 offen
buffer_load_ushort v1, v1, s[4:7], 0 offen
buffer_load_sshort v1, v1, s[4:7], 0 offen
buffer_load_dword v1, v1, s[4:7], 0 offen
buffer_load_dwordx2 v[2:3], v1, s[4:7], 0 offen
buffer_load_dwordx3 v[2:4], v1, s[4:7], 0 offen
buffer_load_dwordx4 v[4:7], v1, s[4:7], 0 offen
buffer_load_ubyte_d16 v1, v1, s[4:7], 0 offen
buffer_load_ubyte_d16_hi v1, v1, s[4:7], 0 offen
buffer_load_sbyte_d16 v1, v1, s[4:7], 0 offen
buffer_load_sbyte_d16_hi v1, v1, s[4:7], 0 offen
buffer_load_short_d16 v1, v1, s[4:7], 0 offen
buffer_load_short_d16_hi v1, v1, s[4:7], 0 offen
buffer_store_byte v1, v1, s[4:7], 0 offen
buffer_store_byte_d16_hi v1, v1, s[4:7], 0 offen
buffer_store_short v1, v1, s[4:7], 0 offen
buffer_store_short_d16_hi v1, v1, s[4:7], 0 offen
buffer_store_dword v1, v1, s[4:7], 0 offen
buffer_store_dwordx2 v[2:3], v1, s[4:7], 0 offen
buffer_store_dwordx3 v[2:4], v1, s[4:7], 0 offen
buffer_store_dwordx4 v[4:7], v1, s[4:7], 0 offen
buffer_load_format_x v1, v1, s[4:7], 0 offen
buffer_store_format_x v1, v1, s[4:7], 0 offen
tbuffer_load_format_x v1, v33, s[16:19], s16 format:[BUF_NUM_FORMAT_UINT] offen
tbuffer_store_format_x v1, v33, s[16:19], s16 format:[BUF_NUM_FORMAT_UINT] offen
buffer_load_format_d16_x v1, v1, s[4:7], 0 offen
buffer_store_format_d16_x v1, v1, s[4:7], 0 offen
tbuffer_load_format_d16_x v1, v33, s[16:19], s16 format:[BUF_NUM_FORMAT_UINT] offen
tbuffer_store_format_d16_x v1, v33, s[16:19], s16 format:[BUF_NUM_FORMAT_UINT] offen
buffer_load_format_xy v[2:3], v1, s[4:7], 0 offen
buffer_store_format_xy v[2:3], v1, s[4:7], 0 offen
tbuffer_load_format_xy v[0:1], v33, s[16:19], s16 format:[BUF_NUM_FORMAT_UINT] offen
tbuffer_store_format_xy v[0:1], v33, s[16:19], s16 format:[BUF_NUM_FORMAT_UINT] offen
buffer_load_format_d16_xy v1, v1, s[4:7], 0 offen
buffer_store_format_d16_xy v1, v1, s[4:7], 0 offen
tbuffer_load_format_d16_xy v1, v33, s[16:19], s16 format:[BUF_NUM_FORMAT_UINT] offen
tbuffer_store_format_d16_xy v1, v33, s[16:19], s16 format:[BUF_NUM_FORMAT_UINT] offen
buffer_load_format_xyz v[2:4], v1, s[4:7], 0 offen
buffer_store_format_xyz v[2:4], v1, s[4:7], 0 offen
tbuffer_load_format_xyz v[0:2], v33, s[16:19], s16 format:[BUF_NUM_FORMAT_UINT] offen
tbuffer_store_format_xyz v[0:2], v33, s[16:19], s16 format:[BUF_NUM_FORMAT_UINT] offen
buffer_load_format_d16_xyz v[2:3], v1, s[4:7], 0 offen
buffer_store_format_d16_xyz v[2:3], v1, s[4:7], 0 offen
tbuffer_load_format_d16_xyz v[0:1], v33, s[16:19], s16 format:[BUF_NUM_FORMAT_UINT] offen
tbuffer_store_format_d16_xyz v[0:1], v33, s[16:19], s16 format:[BUF_NUM_FORMAT_UINT] offen
buffer_load_format_xyzw v[4:7], v1, s[4:7], 0 offen
buffer_store_format_xyzw v[4:7], v1, s[4:7], 0 offen
tbuffer_load_format_xyzw v[0:3], v33, s[16:19], s16 format:[BUF_NUM_FORMAT_UINT] offen
tbuffer_store_format_xyzw v[0:3], v33, s[16:19], s16 format:[BUF_NUM_FORMAT_UINT] offen
buffer_load_format_d16_xyzw v[2:3], v1, s[4:7], 0 offen
buffer_store_format_d16_xyzw v[2:3], v1, s[4:7], 0 offen
tbuffer_load_format_d16_xyzw v[0:1], v33, s[16:19], s16 format:[BUF_NUM_FORMAT_UINT] offen
tbuffer_store_format_d16_xyzw v[0:1], v33, s[16:19], s16 format:[BUF_NUM_FORMAT_UINT] offen
buffer_load_format_d16_hi_x v1, off, s[0:3], s0
buffer_store_format_d16_hi_x v1, off, s[0:3], s0
buffer_atomic_swap v1, v1, s[4:7], 0 offen
buffer_atomic_cmpswap v[2:3], v1, s[4:7], 0 offen
buffer_atomic_add v1, v1, s[4:7], 0 offen
buffer_atomic_sub v1, v1, s[4:7], 0 offen
buffer_atomic_smin v1, v1, s[4:7], 0 offen
buffer_atomic_umin v1, v1, s[4:7], 0 offen
buffer_atomic_smax v1, v1, s[4:7], 0 offen
buffer_atomic_umax v1, v1, s[4:7], 0 offen
buffer_atomic_and v1, v1, s[4:7], 0 offen
buffer_atomic_or v1, v1, s[4:7], 0 offen
buffer_atomic_xor v1, v1, s[4:7], 0 offen
buffer_atomic_inc v1, v1, s[4:7], 0 offen
buffer_atomic_dec v1, v1, s[4:7], 0 offen
buffer_atomic_swap_x2 v[2:3], v1, s[4:7], 0 offen
buffer_atomic_cmpswap_x2 v[4:7], v1, s[4:7], 0 offen
buffer_atomic_add_x2 v[2:3], v1, s[4:7], 0 offen
buffer_atomic_sub_x2 v[2:3], v1, s[4:7], 0 offen
buffer_atomic_smin_x2 v[2:3], v1, s[4:7], 0 offen
buffer_atomic_umin_x2 v[2:3], v1, s[4:7], 0 offen
buffer_atomic_smax_x2 v[2:3], v1, s[4:7], 0 offen
buffer_atomic_umax_x2 v[2:3], v1, s[4:7], 0 offen
buffer_atomic_and_x2 v[2:3], v1, s[4:7], 0 offen
buffer_atomic_or_x2 v[2:3], v1, s[4:7], 0 offen
buffer_atomic_xor_x2 v[2:3], v1, s[4:7], 0 offen
buffer_atomic_inc_x2 v[2:3], v1, s[4:7], 0 offen
buffer_atomic_dec_x2 v[2:3], v1, s[4:7], 0 offen
buffer_atomic_add_f32 v1, v1, s[4:7], 0 offen
buffer_atomic_pk_add_f16 v1, v1, s[4:7], 0 offen
buffer_atomic_pk_add_bf16 v1, off, s[0:3], s0
buffer_atomic_add_f64 v[2:3], v1, s[4:7], 0 offen
buffer_atomic_min_f64 v[2:3], v1, s[4:7], 0 offen
buffer_atomic_max_f64 v[2:3], v1, s[4:7], 0 offen
buffer_wbl2
buffer_inv
buffer_invl2
buffer_wbinvl1
buffer_wbinvl1_vol
flat_load_ubyte v1, v[2:3]
flat_load_sbyte v1, v[2:3]
flat_load_ushort v1, v[2:3]
flat_load_sshort v1, v[2:3]
flat_load_dword v1, v[2:3]
flat_load_dwordx2 v[2:3], v[2:3]
flat_load_dwordx3 v[2:4], v[2:3]
flat_load_dwordx4 v[4:7], v[2:3]
flat_load_ubyte_d16 v1, v[2:3]
flat_load_ubyte_d16_hi v1, v[2:3]
flat_load_sbyte_d16 v1, v[2:3]
flat_load_sbyte_d16_hi v1, v[2:3]
flat_load_short_d16 v1, v[2:3]
flat_load_short_d16_hi v1, v[2:3]
flat_store_byte v[2:3], v1
flat_store_byte_d16_hi v[2:3], v1
flat_store_short v[2:3], v1
flat_store_short_d16_hi v[2:3], v1
flat_store_dword v[2:3], v1
flat_store_dwordx2 v[2:3], v[2:3]
flat_store_dwordx3 v[2:3], v[2:4]
flat_store_dwordx4 v[2:3], v[4:7]
flat_atomic_swap v[2:3], v1
flat_atomic_cmpswap v[2:3], v[2:3]
flat_atomic_add v[2:3], v1
flat_atomic_sub v[2:3], v1
flat_atomic_smin v[2:3], v1
flat_atomic_umin v[2:3], v1
flat_atomic_smax v[2:3], v1
flat_atomic_umax v[2:3], v1
flat_atomic_and v[2:3], v1
flat_atomic_or v[2:3], v1
flat_atomic_xor v[2:3], v1
flat_atomic_inc v[2:3], v1
flat_atomic_dec v[2:3], v1
flat_atomic_swap_x2 v[2:3], v[2:3]
flat_atomic_cmpswap_x2 v[2:3], v[4:7]
flat_atomic_add_x2 v[2:3], v[2:3]
flat_atomic_sub_x2 v[2:3], v[2:3]
flat_atomic_smin_x2 v[2:3], v[2:3]
flat_atomic_umin_x2 v[2:3], v[2:3]
flat_atomic_smax_x2 v[2:3], v[2:3]
flat_atomic_umax_x2 v[2:3], v[2:3]
flat_atomic_and_x2 v[2:3], v[2:3]
flat_atomic_or_x2 v[2:3], v[2:3]
flat_atomic_xor_x2 v[2:3], v[2:3]
flat_atomic_inc_x2 v[2:3], v[2:3]
flat_atomic_dec_x2 v[2:3], v[2:3]
flat_atomic_add_f32 v[2:3], v1
flat_atomic_pk_add_f16 v[2:3], v1
flat_atomic_pk_add_bf16 v[2:3], v1
flat_atomic_add_f64 v[2:3], v[2:3]
flat_atomic_min_f64 v[2:3], v[2:3]
flat_atomic_max_f64 v[2:3], v[2:3]
global_load_ubyte v1, v[2:3], off
global_load_sbyte v1, v[2:3], off
global_load_ushort v1, v[2:3], off
global_load_sshort v1, v[2:3], off
global_load_dword v1, v[2:3], off
global_load_dwordx2 v[2:3], v1, s[2:3]
global_load_dwordx3 v[2:4], v1, s[2:3]
global_load_dwordx4 v[4:7], v1, s[2:3]
global_load_ubyte_d16 v1, v[2:3], off
global_load_ubyte_d16_hi v1, v[2:3], off
global_load_sbyte_d16 v1, v[2:3], off
global_load_sbyte_d16_hi v1, v[2:3], off
global_load_short_d16 v1, v[2:3], off
global_load_short_d16_hi v1, v[2:3], off
global_store_byte v[2:3], v1, off
global_store_byte_d16_hi v[2:3], v1, off
global_store_short v[2:3], v1, off
global_store_short_d16_hi v[2:3], v1, off
global_store_dword v[2:3], v1, off
global_store_dwordx2 v1, v[2:3], s[2:3]
global_store_dwordx3 v1, v[2:4], s[2:3]
global_store_dwordx4 v1, v[4:7], s[2:3]
global_atomic_swap v[2:3], v1, off
global_atomic_cmpswap v1, v[2:3], s[2:3]
global_atomic_add v[2:3], v1, off
global_atomic_sub v[2:3], v1, off
global_atomic_smin v[2:3], v1, off
global_atomic_umin v[2:3], v1, off
global_atomic_smax v[2:3], v1, off
global_atomic_umax v[2:3], v1, off
global_atomic_and v[2:3], v1, off
global_atomic_or v[2:3], v1, off
global_atomic_xor v[2:3], v1, off
global_atomic_inc v[2:3], v1, off
global_atomic_dec v[2:3], v1, off
global_atomic_swap_x2 v1, v[2:3], s[2:3]
global_atomic_cmpswap_x2 v1, v[4:7], s[2:3]
global_atomic_add_x2 v1, v[2:3], s[2:3]
global_atomic_sub_x2 v1, v[2:3], s[2:3]
global_atomic_smin_x2 v1, v[2:3], s[2:3]
global_atomic_umin_x2 v1, v[2:3], s[2:3]
global_atomic_smax_x2 v1, v[2:3], s[2:3]
global_atomic_umax_x2 v1, v[2:3], s[2:3]
global_atomic_and_x2 v1, v[2:3], s[2:3]
global_atomic_or_x2 v1, v[2:3], s[2:3]
global_atomic_xor_x2 v1, v[2:3], s[2:3]
global_atomic_inc_x2 v1, v[2:3], s[2:3]
global_atomic_dec_x2 v1, v[2:3], s[2:3]
global_atomic_add_f32 v[2:3], v1, off
global_atomic_pk_add_f16 v[2:3], v1, off
global_atomic_pk_add_bf16 v[2:3], v1, off
global_atomic_add_f64 v1, v[2:3], s[2:3]
global_atomic_min_f64 v1, v[2:3], s[2:3]
global_atomic_max_f64 v1, v[2:3], s[2:3]
scratch_load_ubyte v1, v1, off
scratch_load_sbyte v1, v1, off
scratch_load_ushort v1, v1, off
scratch_load_sshort v1, v1, off
scratch_load_dword v1, v1, off
scratch_load_dwordx2 v[2:3], v1, off
scratch_load_dwordx3 v[2:4], v1, off
scratch_load_dwordx4 v[4:7], v1, off
scratch_load_ubyte_d16 v1, v1, off
scratch_load_ubyte_d16_hi v1, v1, off
scratch_load_sbyte_d16 v1, v1, off
scratch_load_sbyte_d16_hi v1, v1, off
scratch_load_short_d16 v1, v1, off
scratch_load_short_d16_hi v1, v1, off
scratch_store_byte v1, v1, off
scratch_store_byte_d16_hi v1, v1, off
scratch_store_short v1, v1, off
scratch_store_short_d16_hi v1, v1, off
scratch_store_dword v1, v1, off
scratch_store_dwordx2 v1, v[2:3], off
scratch_store_dwordx3 v1, v[2:4], off
scratch_store_dwordx4 v1, v[4:7], off
global_load_lds_ubyte v1, s[2:3]
global_load_lds_sbyte v1, s[2:3]
global_load_lds_ushort v1, s[2:3]
global_load_lds_sshort v1, s[2:3]
global_load_lds_dword v1, s[2:3]
global_load_lds_dwordx3 v1, s[16:17]
global_load_lds_dwordx4 v1, s[16:17]
scratch_load_lds_ubyte v1, s2
scratch_load_lds_sbyte v1, s2
scratch_load_lds_ushort v1, s2
scratch_load_lds_sshort v1, s2
scratch_load_lds_dword v1, s2
ds_read_b32 v1, v1
ds_read_b64 v[2:3], v1
ds_read_b96 v[2:4], v1
ds_read_b128 v[4:7], v1
ds_read_i8 v1, v1
ds_read_u8 v1, v1
ds_read_i16 v1, v1
ds_read_u16 v1, v1
ds_read2_b32 v[2:3], v1
ds_read2st64_b32 v[2:3], v1
ds_read2_b64 v[4:7], v1
ds_read2st64_b64 v[4:7], v1
ds_read_b64_tr_b4 v[0:1], v33
ds_read_b96_tr_b6 v[0:2], v33
ds_read_b64_tr_b8 v[0:1], v33
ds_read_b64_tr_b16 v[0:1], v33
ds_read_u8_d16 v1, v1
ds_read_u8_d16_hi v1, v1
ds_read_i8_d16 v1, v1
ds_read_i8_d16_hi v1, v1
ds_read_u16_d16 v1, v1
ds_read_u16_d16_hi v1, v1
ds_write_b8 v1, v1
ds_write_b8_d16_hi v1, v1
ds_write_b16 v1, v1
ds_write_b16_d16_hi v1, v1
ds_write_b32 v1, v1
ds_write_b64 v1, v[2:3]
ds_write_b96 v1, v[2:4]
ds_write_b128 v1, v[4:7]
ds_write2_b32 v1, v1, v1
ds_write2st64_b32 v1, v1, v1
ds_write2_b64 v1, v[2:3], v[2:3]
ds_write2st64_b64 v1, v[2:3], v[2:3]
ds_add_u32 v1, v1
ds_add_rtn_u32 v1, v1, v1
ds_sub_u32 v1, v1
ds_sub_rtn_u32 v1, v1, v1
ds_rsub_u32 v1, v1
ds_rsub_rtn_u32 v1, v1, v1
ds_inc_u32 v1, v1
ds_inc_rtn_u32 v1, v1, v1
ds_dec_u32 v1, v1
ds_dec_rtn_u32 v1, v1, v1
ds_min_i32 v1, v1
ds_min_rtn_i32 v1, v1, v1
ds_max_i32 v1, v1
ds_max_rtn_i32 v1, v1, v1
ds_min_u32 v1, v1
ds_min_rtn_u32 v1, v1, v1
ds_max_u32 v1, v1
ds_max_rtn_u32 v1, v1, v1
ds_and_b32 v1, v1
ds_and_rtn_b32 v1, v1, v1
ds_or_b32 v1, v1
ds_or_rtn_b32 v1, v1, v1
ds_xor_b32 v1, v1
ds_xor_rtn_b32 v1, v1, v1
ds_min_f32 v1, v1
ds_min_rtn_f32 v1, v1, v1
ds_max_f32 v1, v1
ds_max_rtn_f32 v1, v1, v1
ds_add_f32 v1, v1
ds_add_rtn_f32 v1, v1, v1
ds_add_u64 v1, v[2:3]
ds_add_rtn_u64 v[2:3], v1, v[2:3]
ds_sub_u64 v1, v[2:3]
ds_sub_rtn_u64 v[2:3], v1, v[2:3]
ds_rsub_u64 v1, v[2:3]
ds_rsub_rtn_u64 v[2:3], v1, v[2:3]
ds_inc_u64 v1, v[2:3]
ds_inc_rtn_u64 v[2:3], v1, v[2:3]
ds_dec_u64 v1, v[2:3]
ds_dec_rtn_u64 v[2:3], v1, v[2:3]
ds_min_i64 v1, v[2:3]
ds_min_rtn_i64 v[2:3], v1, v[2:3]
ds_max_i64 v1, v[2:3]
ds_max_rtn_i64 v[2:3], v1, v[2:3]
ds_min_u64 v1, v[2:3]
ds_min_rtn_u64 v[2:3], v1, v[2:3]
ds_max_u64 v1, v[2:3]
ds_max_rtn_u64 v[2:3], v1, v[2:3]
ds_and_b64 v1, v[2:3]
ds_and_rtn_b64 v[2:3], v1, v[2:3]
ds_or_b64 v1, v[2:3]
ds_or_rtn_b64 v[2:3], v1, v[2:3]
ds_xor_b64 v1, v[2:3]
ds_xor_rtn_b64 v[2:3], v1, v[2:3]
ds_min_f64 v1, v[2:3]
ds_min_rtn_f64 v[2:3], v1, v[2:3]
ds_max_f64 v1, v[2:3]
ds_max_rtn_f64 v[2:3], v1, v[2:3]
ds_add_f64 v1, v[2:3]
ds_add_rtn_f64 v[2:3], v1, v[2:3]
ds_pk_add_f16 v1, v1
ds_pk_add_rtn_f16 v1, v1, v1
ds_pk_add_bf16 v1, v1
ds_pk_add_rtn_bf16 v1, v1, v1
ds_mskor_b32 v1, v1, v1
ds_mskor_rtn_b32 v1, v1, v1, v1
ds_mskor_b64 v1, v[2:3], v[2:3]
ds_mskor_rtn_b64 v[2:3], v1, v[2:3], v[2:3]
ds_cmpst_b32 v1, v1, v1
ds_cmpst_rtn_b32 v1, v1, v1, v1
ds_cmpst_b64 v1, v[2:3], v[2:3]
ds_cmpst_rtn_b64 v[2:3], v1, v[2:3], v[2:3]
ds_cmpst_f32 v1, v1, v1
ds_cmpst_rtn_f32 v1, v1, v1, v1
ds_cmpst_f64 v1, v[2:3], v[2:3]
ds_cmpst_rtn_f64 v[2:3], v1, v[2:3], v[2:3]
ds_wrxchg_rtn_b32 v1, v1, v1
ds_wrxchg2_rtn_b32 v[2:3], v1, v1, v1
ds_wrxchg2st64_rtn_b32 v[2:3], v1, v1, v1
ds_wrxchg_rtn_b64 v[2:3], v1, v[2:3]
ds_wrxchg2_rtn_b64 v[4:7], v1, v[2:3], v[2:3]
ds_wrxchg2st64_rtn_b64 v[4:7], v1, v[2:3], v[2:3]
ds_wrap_rtn_b32 v1, v1, v1, v1
ds_permute_b32 v1, v1, v1
ds_bpermute_b32 v1, v1, v1
ds_swizzle_b32 v1, v1
ds_condxchg32_rtn_b64 v[0:1], v33, v[64:65]
ds_nop
ds_gws_init v2 gds
ds_gws_barrier v2 gds
ds_gws_sema_br v2 gds
ds_gws_sema_v gds
ds_gws_sema_p gds
ds_gws_sema_release_all gds
ds_read_addtid_b32 v1
ds_write_addtid_b32 v1
ds_append v1
ds_consume v1
