// Kernels whose arguments, launch and extents the tests know, because they stand here.
#define KERNEL extern "C" __attribute__((global)) void
#define SIZED(n) __attribute__((amdgpu_flat_work_group_size(n, n)))
#define DEVICE static inline __attribute__((device))
DEVICE int lane() { return __builtin_amdgcn_workitem_id_x(); }
DEVICE int lane_y() { return __builtin_amdgcn_workitem_id_y(); }
DEVICE int group() { return __builtin_amdgcn_workgroup_id_x(); }
DEVICE int group_y() { return __builtin_amdgcn_workgroup_id_y(); }
DEVICE int width() { return __builtin_amdgcn_workgroup_size_x(); }
DEVICE int item() { return group() * width() + lane(); }
DEVICE void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup");
  __builtin_amdgcn_s_barrier();
}

KERNEL saxpy(float *y, const float *x, float a, int n) {
  if (item() < n) y[item()] = a * x[item()] + y[item()];
}

KERNEL grid_stride(float *out, const float *x, int n) {
  int step = width() * (__builtin_amdgcn_grid_size_x() / width());
  for (int i = item(); i < n; i += step) out[i] = x[i] * 2.0f + 1.0f;
}

KERNEL SIZED(256) row_sum(float *out, const float *x, int columns) {
  __attribute__((shared)) static float part[256];
  float sum = 0;
  for (int c = lane(); c < columns; c += 256) sum += x[(long)group() * columns + c];
  part[lane()] = sum;
  barrier();
  for (int half = 128; half; half /= 2) {
    if (lane() < half) part[lane()] += part[lane() + half];
    barrier();
  }
  if (lane() == 0) out[group()] = part[0];
}

KERNEL transpose(float *out, const float *in, int rows, int columns) {
  int c = group() * 16 + lane(), r = group_y() * 16 + lane_y();
  if (r < rows && c < columns) out[c * rows + r] = in[r * columns + c];
}

KERNEL matmul(float *c, const float *a, const float *b, int m, int n, int k) {
  int j = group() * 16 + lane(), i = group_y() * 16 + lane_y();
  if (i >= m || j >= n) return;
  float sum = 0;
  for (int p = 0; p < k; p++) sum += a[i * k + p] * b[p * n + j];
  c[i * n + j] = sum;
}

KERNEL relu(_Float16 *y, const _Float16 *x, int n) {
  if (item() < n) y[item()] = x[item()] > (_Float16)0 ? x[item()] : (_Float16)0;
}

KERNEL gather(float *out, const float *table, const int *index, int columns) {
  for (int c = lane(); c < columns; c += width())
    out[group() * columns + c] = table[(long)index[group()] * columns + c];
}

KERNEL histogram(int *bins, const unsigned char *x, int n) {
  if (item() < n)
    __hip_atomic_fetch_add(&bins[x[item()] & 15], 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// Their outputs depend on who comes last, hold one value, or lie behind another pointer.
KERNEL racing(int *out) { out[group() * 8 + lane()] = group() * 7919 + lane(); }

KERNEL constant(int *out, int n) {
  if (item() < n) out[item()] = 0x01010101;
}

// A second workgroup would do the same once more, in place.
KERNEL in_place(float *x) { x[lane()] = x[lane()] * 0.5f + 1.0f; }

struct Node { float *data; int n; };
KERNEL nested(Node *list, float factor) {
  Node node = list[group()];
  for (int i = lane(); i < node.n; i += width()) node.data[i] *= factor;
}

KERNEL waiting(int *out, const int *flag) {
  while (__hip_atomic_load(flag, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) != 12345);
  out[item()] = item();
}

struct Parameters { float scale; int n; float *out; unsigned char bias; };
KERNEL by_value(Parameters p, const unsigned char *x) {
  if (item() < p.n) p.out[item()] = x[item()] * p.scale + p.bias;
}

// Made for workgroups of (64, 4), which nothing tells: others leave gaps, but for one width.
KERNEL rows_of_64(const float *x, float *out, int w, int h) {
  int i = group() * 64 + lane(), j = group_y() * 4 + lane_y();
  if (i < w && j < h) out[j * w + i] = x[i * h + j];
}

KERNEL rows_of_128(const float *x, float *out, int w, int h) {
  int i = group() * 128 + lane(), j = group_y() * 2 + lane_y();
  if (i < w && j < h) out[j * w + i] = x[i * h + j];
}
