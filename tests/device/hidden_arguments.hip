// A kernel whose code reads what the runtime appends to its arguments, and dynamic LDS.
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))

extern __shared__ int exchanged[];

extern "C" __global__ void reverse(const int* in, int* out) {
  const unsigned lane = __builtin_amdgcn_workitem_id_x();
  const unsigned size = __builtin_amdgcn_workgroup_size_x();
  const unsigned first = __builtin_amdgcn_workgroup_id_x() * size;
  exchanged[lane] = in[first + lane];
  __builtin_amdgcn_s_barrier();
  out[first + lane] = exchanged[size - 1 - lane] + (int)(__builtin_amdgcn_grid_size_x() / size);
}
