// Kernels whose compiled form needs waits and wait states of many kinds. LLVM inserts exactly the
// ones it holds necessary, which makes it the reference for the checkers.
#define GLOBAL extern "C" __attribute__((global))
#define SHARED static __attribute__((shared))
#define LANE __builtin_amdgcn_workitem_id_x()
#define ORDER_MEMORY(order) __builtin_amdgcn_fence(order, "workgroup")
#define BARRIER \
  ORDER_MEMORY(__ATOMIC_RELEASE); \
  __builtin_amdgcn_s_barrier(); \
  ORDER_MEMORY(__ATOMIC_ACQUIRE)

typedef float f32x2 __attribute__((ext_vector_type(2)));
typedef float f32x4 __attribute__((ext_vector_type(4)));
typedef float f32x16 __attribute__((ext_vector_type(16)));
typedef float f32x32 __attribute__((ext_vector_type(32)));
typedef short s16x2 __attribute__((ext_vector_type(2)));
typedef int i32x4 __attribute__((ext_vector_type(4)));
typedef int i32x8 __attribute__((ext_vector_type(8)));
typedef int i32x16 __attribute__((ext_vector_type(16)));
typedef _Float16 f16x2 __attribute__((ext_vector_type(2)));
typedef _Float16 f16x4 __attribute__((ext_vector_type(4)));
typedef _Float16 f16x8 __attribute__((ext_vector_type(8)));
typedef short s16x4 __attribute__((ext_vector_type(4)));
typedef double f64x4 __attribute__((ext_vector_type(4)));

// A matrix result goes to the VALU, to memory, to SrcC and to SrcA; its inputs come from the VALU.
#define MATRIX(NAME, A, D, BUILTIN) \
  GLOBAL void NAME##_to_valu(const A *p, const A *q, D *r) { \
    D c = BUILTIN(p[LANE], q[LANE], r[LANE], 0, 0, 0); \
    r[LANE] = c + c; \
  } \
  GLOBAL void NAME##_to_memory(const A *p, const A *q, D *r) { \
    r[LANE] = BUILTIN(p[LANE], q[LANE], r[LANE], 0, 0, 0); \
  } \
  GLOBAL void NAME##_to_c(const A *p, const A *q, D *r) { \
    D c = BUILTIN(p[LANE], q[LANE], r[LANE], 0, 0, 0); \
    r[LANE] = BUILTIN(p[LANE], q[LANE], c, 0, 0, 0); \
  } \
  GLOBAL void NAME##_from_valu(const A *p, const A *q, D *r) { \
    r[LANE] = BUILTIN(p[LANE] * p[LANE + 64], q[LANE], r[LANE], 0, 0, 0); \
  } \
  GLOBAL void NAME##_to_a(const A *p, const A *q, D *r) { \
    D c = BUILTIN(p[LANE], q[LANE], r[LANE], 0, 0, 0); \
    A a; \
    __builtin_memcpy(&a, &c, sizeof a); \
    r[LANE] = BUILTIN(a, q[LANE], r[LANE + 64], 0, 0, 0); \
  }

MATRIX(f16_4, f16x4, f32x4, __builtin_amdgcn_mfma_f32_4x4x4f16)
MATRIX(f16_16, f16x4, f32x4, __builtin_amdgcn_mfma_f32_16x16x16f16)
MATRIX(f16_16_4b, f16x4, f32x16, __builtin_amdgcn_mfma_f32_16x16x4f16)
MATRIX(f16_32, f16x4, f32x16, __builtin_amdgcn_mfma_f32_32x32x8f16)
MATRIX(f16_32_2b, f16x4, f32x32, __builtin_amdgcn_mfma_f32_32x32x4f16)
MATRIX(bf16_16, s16x4, f32x4, __builtin_amdgcn_mfma_f32_16x16x16bf16_1k)
MATRIX(bf16_32, s16x4, f32x16, __builtin_amdgcn_mfma_f32_32x32x8bf16_1k)
#ifdef __gfx90a__
MATRIX(i8_16, int, i32x4, __builtin_amdgcn_mfma_i32_16x16x16i8)
MATRIX(i8_32, int, i32x16, __builtin_amdgcn_mfma_i32_32x32x8i8)
MATRIX(bf16_16_old, s16x2, f32x4, __builtin_amdgcn_mfma_f32_16x16x8bf16)
MATRIX(bf16_32_old, s16x2, f32x16, __builtin_amdgcn_mfma_f32_32x32x4bf16)
#else
MATRIX(i8_16, long, i32x4, __builtin_amdgcn_mfma_i32_16x16x32_i8)
MATRIX(i8_32, long, i32x16, __builtin_amdgcn_mfma_i32_32x32x16_i8)
MATRIX(fp8_16, long, f32x4, __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8)
MATRIX(fp8_32, long, f32x16, __builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8)
#endif
#ifdef __gfx942__
MATRIX(xf32_16, f32x2, f32x4, __builtin_amdgcn_mfma_f32_16x16x8_xf32)
MATRIX(xf32_32, f32x2, f32x16, __builtin_amdgcn_mfma_f32_32x32x4_xf32)
#endif
#ifdef __gfx950__
MATRIX(f16_16_deep, f16x8, f32x4, __builtin_amdgcn_mfma_f32_16x16x32_f16)
MATRIX(f16_32_deep, f16x8, f32x16, __builtin_amdgcn_mfma_f32_32x32x16_f16)
MATRIX(i8_16_deep, i32x4, i32x4, __builtin_amdgcn_mfma_i32_16x16x64_i8)
MATRIX(i8_32_deep, i32x4, i32x16, __builtin_amdgcn_mfma_i32_32x32x32_i8)
// Formats 0 and 1 have eight bits, 2 and 3 six, 4 has four.
#define FP8_16(A, B, C, X, Y, Z) \
  __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(A, B, C, 0, 4, 0, 127, 0, 127)
#define FP6_16(A, B, C, X, Y, Z) \
  __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(A, B, C, 2, 3, 0, 127, 0, 126)
#define FP8_32(A, B, C, X, Y, Z) \
  __builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(A, B, C, 4, 1, 0, 127, 0, 127)
#define FP4_32(A, B, C, X, Y, Z) \
  __builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(A, B, C, 4, 4, 0, LANE, 1, LANE)
MATRIX(mx_fp8_16, i32x8, f32x4, FP8_16)
MATRIX(mx_fp6_16, i32x8, f32x4, FP6_16)
MATRIX(mx_fp8_32, i32x8, f32x16, FP8_32)
MATRIX(mx_fp4_32, i32x8, f32x16, FP4_32)
#endif
MATRIX(f32_4, float, f32x4, __builtin_amdgcn_mfma_f32_4x4x1f32)
MATRIX(f32_16, float, f32x4, __builtin_amdgcn_mfma_f32_16x16x4f32)
MATRIX(f32_16_4b, float, f32x16, __builtin_amdgcn_mfma_f32_16x16x1f32)
MATRIX(f32_32, float, f32x16, __builtin_amdgcn_mfma_f32_32x32x2f32)
MATRIX(f32_32_2b, float, f32x32, __builtin_amdgcn_mfma_f32_32x32x1f32)
MATRIX(f64_4, double, double, __builtin_amdgcn_mfma_f64_4x4x4f64)
MATRIX(f64_16, double, f64x4, __builtin_amdgcn_mfma_f64_16x16x4f64)

GLOBAL void dot_product(const f16x2 *p, const int *q, float *r, int *s) {
  float a = __builtin_amdgcn_fdot2(p[LANE], p[LANE + 64], r[LANE], false);
  int b = __builtin_amdgcn_sdot4(q[LANE], q[LANE + 64], s[LANE], false);
  r[LANE] = a * 3.0f;
  s[LANE] = b;
}

GLOBAL void lanes(const float *p, float *r, int n) {
  float x = __builtin_amdgcn_exp2f(p[LANE]);
  x = x + __builtin_amdgcn_rcpf(x + 1.0f);
  int shifted = __builtin_amdgcn_update_dpp(0, __builtin_bit_cast(int, x), 0x111, 15, 15, false);
  x += __builtin_bit_cast(float, shifted);
  int first = __builtin_amdgcn_readfirstlane(__builtin_bit_cast(int, x));
  int other = __builtin_amdgcn_readlane(__builtin_bit_cast(int, x * 3.0f), first & 63);
  r[LANE] = x / (float)(other + n) + __builtin_bit_cast(float, first);
}

GLOBAL void divide(const double *p, double *r, const float *f, float *g) {
  r[LANE] = p[LANE] / p[LANE + 64];
  g[LANE] = f[LANE] / f[LANE + 1];
}

GLOBAL void scalar_address(const int *p, int *r) {
  int k = __builtin_amdgcn_readfirstlane(p[LANE]);
  r[k * 64 + LANE] = 1;
  int m = __builtin_amdgcn_readfirstlane(p[LANE + k]);
  r[m + LANE] = r[m + 7];
}

GLOBAL void mode(float *r, int n) {
  __builtin_amdgcn_s_setreg(1 | 3 << 11, n);
  __builtin_amdgcn_s_setreg(1 | 3 << 11, 5);
  r[LANE] = r[LANE] + 1.0f + __builtin_amdgcn_s_getreg(1 | 3 << 11);
}

GLOBAL void shared_memory(const float *p, float *r, int n) {
  SHARED float buffer[512];
  float sum = 0;
  for (int k = 0; k < n; ++k) {
    buffer[LANE] = p[LANE + k * 256];
    BARRIER;
    sum += buffer[LANE ^ 1] * buffer[(LANE + k) & 255];
    BARRIER;
  }
  if (sum > 0.0f) r[LANE] = sum;
}

#ifdef __gfx950__
GLOBAL void swap_lanes(const unsigned *p, unsigned *r) {
  auto x = __builtin_amdgcn_permlane16_swap(p[LANE] + 1, p[LANE + 64] * 3, false, false);
  auto y = __builtin_amdgcn_permlane32_swap(x[0] + 1, x[1] * 3, false, false);
  r[LANE] = y[0] + y[1];
}

GLOBAL void narrow(const float *p, s16x2 *r, unsigned *s) {
  s16x2 packed = r[LANE];
  packed = __builtin_amdgcn_cvt_scalef32_pk_fp8_f32(packed, p[LANE], p[LANE + 64], 2.0f, true);
  r[LANE] = packed * packed;
  unsigned fours = __builtin_amdgcn_cvt_scalef32_pk_fp4_f32(s[LANE], p[LANE], p[0], 1.0f, 2);
  s[LANE] = fours * 3;
}
#endif

#ifndef __gfx90a__
GLOBAL void load_to_shared(float *p, float *r) {
  SHARED float staging[64];
  __builtin_amdgcn_global_load_lds(
      (__attribute__((address_space(1))) unsigned *)(p + LANE),
      (__attribute__((address_space(3))) unsigned *)staging, 4, 0, 0);
  BARRIER;
  r[LANE] = staging[LANE ^ 1];
}
#endif

GLOBAL void stream(const f32x4 *p, f32x4 *r, int n) {
  f32x4 sum = {0, 0, 0, 0};
#pragma unroll 4
  for (int k = 0; k < n; ++k) sum += p[LANE + k * 64] * p[LANE + k * 128 + 7];
  r[LANE] = sum;
}

GLOBAL void generic_pointer(int *p, int *r, int n) {
  int x = p[LANE];
  p[LANE + 64] = x + n;
  r[LANE] = x + __atomic_fetch_add(p + LANE, n, __ATOMIC_RELAXED);
}
