// Every f32, i32 and sparse matrix operation of gfx942 (LLVM, "Syntax of gfx942 instructions"; AMD
// matrix instruction calculator, cdna3), as macro rows:
//   DENSE(name, A, B, size, blocks, words)  words: registers of A and of B
//   QUADS(name, A, B, words)                sixteen blocks of 4 x 4
//   SPARSE(name, A, B, size)
#pragma once

#define ASMEVO_MATRIX_FLOAT8(ROW, prefix, shape, ...)  \
  ROW(prefix shape "_fp8_fp8", Fp8, Fp8, __VA_ARGS__)  \
  ROW(prefix shape "_fp8_bf8", Fp8, Bf8, __VA_ARGS__)  \
  ROW(prefix shape "_bf8_fp8", Bf8, Fp8, __VA_ARGS__)  \
  ROW(prefix shape "_bf8_bf8", Bf8, Bf8, __VA_ARGS__)

#define ASMEVO_MATRIX_OPERATIONS(DENSE, QUADS, SPARSE)                          \
  DENSE("v_mfma_f32_16x16x4_f32", F32, F32, 16, 1, 1)                           \
  DENSE("v_mfma_f32_32x32x2_f32", F32, F32, 32, 1, 1)                           \
  DENSE("v_mfma_f32_16x16x1_4b_f32", F32, F32, 16, 4, 1)                        \
  DENSE("v_mfma_f32_32x32x1_2b_f32", F32, F32, 32, 2, 1)                        \
  QUADS("v_mfma_f32_4x4x1_16b_f32", F32, F32, 1)                                \
  DENSE("v_mfma_f32_16x16x8_xf32", Xf32, Xf32, 16, 1, 2)                        \
  DENSE("v_mfma_f32_32x32x4_xf32", Xf32, Xf32, 32, 1, 2)                        \
  DENSE("v_mfma_f32_16x16x16_f16", F16, F16, 16, 1, 2)                          \
  DENSE("v_mfma_f32_32x32x8_f16", F16, F16, 32, 1, 2)                           \
  DENSE("v_mfma_f32_16x16x4_4b_f16", F16, F16, 16, 4, 2)                        \
  DENSE("v_mfma_f32_32x32x4_2b_f16", F16, F16, 32, 2, 2)                        \
  QUADS("v_mfma_f32_4x4x4_16b_f16", F16, F16, 2)                                \
  DENSE("v_mfma_f32_16x16x16_bf16", Bf16, Bf16, 16, 1, 2)                       \
  DENSE("v_mfma_f32_32x32x8_bf16", Bf16, Bf16, 32, 1, 2)                        \
  DENSE("v_mfma_f32_16x16x4_4b_bf16", Bf16, Bf16, 16, 4, 2)                     \
  DENSE("v_mfma_f32_32x32x4_2b_bf16", Bf16, Bf16, 32, 2, 2)                     \
  QUADS("v_mfma_f32_4x4x4_16b_bf16", Bf16, Bf16, 2)                             \
  DENSE("v_mfma_i32_16x16x32_i8", I8, I8, 16, 1, 2)                             \
  DENSE("v_mfma_i32_32x32x16_i8", I8, I8, 32, 1, 2)                             \
  DENSE("v_mfma_i32_16x16x4_4b_i8", I8, I8, 16, 4, 1)                           \
  DENSE("v_mfma_i32_32x32x4_2b_i8", I8, I8, 32, 2, 1)                           \
  QUADS("v_mfma_i32_4x4x4_16b_i8", I8, I8, 1)                                   \
  ASMEVO_MATRIX_FLOAT8(DENSE, "v_mfma_f32_", "16x16x32", 16, 1, 2)              \
  ASMEVO_MATRIX_FLOAT8(DENSE, "v_mfma_f32_", "32x32x16", 32, 1, 2)              \
  SPARSE("v_smfmac_f32_16x16x32_f16", F16, F16, 16)                             \
  SPARSE("v_smfmac_f32_32x32x16_f16", F16, F16, 32)                             \
  SPARSE("v_smfmac_f32_16x16x32_bf16", Bf16, Bf16, 16)                          \
  SPARSE("v_smfmac_f32_32x32x16_bf16", Bf16, Bf16, 32)                          \
  SPARSE("v_smfmac_i32_16x16x64_i8", SparseI8, SparseI8, 16)                    \
  SPARSE("v_smfmac_i32_32x32x32_i8", SparseI8, SparseI8, 32)                    \
  ASMEVO_MATRIX_FLOAT8(SPARSE, "v_smfmac_f32_", "16x16x64", 16)                 \
  ASMEVO_MATRIX_FLOAT8(SPARSE, "v_smfmac_f32_", "32x32x32", 32)
