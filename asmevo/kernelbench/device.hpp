// What the HIP runtime headers would declare, as far as these kernels need it.
#pragma once

#define GLOBAL extern "C" __attribute__((global))
#define DEVICE static inline __attribute__((device, always_inline))
#define SHARED __attribute__((shared))
#define THREADS(n) __attribute__((amdgpu_flat_work_group_size(n, n)))
#define UNROLL _Pragma("unroll")

constexpr int WAVE = 64;

typedef float float4 __attribute__((ext_vector_type(4)));
typedef unsigned short ushort4 __attribute__((ext_vector_type(4)));

DEVICE int least(int a, int b) { return a < b ? a : b; }

DEVICE int thread() { return __builtin_amdgcn_workitem_id_x(); }
DEVICE int block_x() { return __builtin_amdgcn_workgroup_id_x(); }
DEVICE int block_y() { return __builtin_amdgcn_workgroup_id_y(); }
DEVICE int block_z() { return __builtin_amdgcn_workgroup_id_z(); }

// __syncthreads()
DEVICE void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

// __shfl_xor() and __shfl_up(); the latter gives lanes without a source their own value.
DEVICE float shuffle_from(float x, int lane) {
  return __builtin_bit_cast(
      float, __builtin_amdgcn_ds_bpermute(lane << 2, __builtin_bit_cast(int, x)));
}
DEVICE float shuffle_xor(float x, int mask) {
  return shuffle_from(x, (thread() & (WAVE - 1)) ^ mask);
}
DEVICE float shuffle_up(float x, int distance) {
  int lane = thread() & (WAVE - 1);
  return shuffle_from(x, lane < distance ? lane : lane - distance);
}

DEVICE float from_bf16(unsigned short x) {
  return __builtin_bit_cast(float, (unsigned)x << 16);
}
// To nearest, ties to even; a NaN stays one.
DEVICE unsigned short to_bf16(float x) {
  unsigned bits = __builtin_bit_cast(unsigned, x);
  if (x != x) return (unsigned short)((bits >> 16) | 0x40);
  return (unsigned short)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
