// What compilers make of memory: scratch, narrow types, atomics, LDS, flat pointers, launch values.
// Arithmetic is 32-bit integer: these kernels are about where values go.
#define GLOBAL extern "C" __attribute__((global))
#define SHARED static __attribute__((shared))
#define LANE __builtin_amdgcn_workitem_id_x()
#define GROUP __builtin_amdgcn_workgroup_id_x()
#define CONSTANT __attribute__((address_space(4)))
#define ADD(p, x, scope) __hip_atomic_fetch_add(p, x, __ATOMIC_RELAXED, scope)
#define AGENT __HIP_MEMORY_SCOPE_AGENT
#define WORKGROUP __HIP_MEMORY_SCOPE_WORKGROUP
#define BARRIER \
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); \
  __builtin_amdgcn_s_barrier(); \
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup")
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned u32;
typedef unsigned long long u64;

// A local array indexed by data is in scratch.
GLOBAL void histogram(const u8 *p, u32 *r, int n) {
  u32 counts[80];
  for (int k = 0; k < 80; ++k) counts[k] = 0;
  for (int k = 0; k < n; ++k) counts[p[LANE * n + k] & 63] += k + 1;
  for (int k = 0; k < 64; ++k) r[LANE * 64 + k] = counts[k];
}

// Bytes and words in scratch, some of them across dwords.
GLOBAL void narrow_scratch(const u32 *p, u32 *r) {
  struct __attribute__((packed)) Mixed { u8 a; u16 b; u32 c; u64 d; signed char e; };
  volatile Mixed m[6];
  for (int k = 0; k < 6; ++k) {
    u32 x = p[LANE * 6 + k];
    int at = x % 6;
    m[k].a = x; m[k].b = x >> 3; m[k].c = ~x; m[k].d = (u64)x << 7; m[k].e = x >> 24;
    m[at].a = x >> 5;
  }
  for (int k = 0; k < 6; ++k) {
    int at = p[LANE * 6 + k] % 6;
    if (at > k) at = k;
    u32 *to = r + LANE * 30 + k * 5;
    to[0] = m[at].a; to[1] = m[at].b; to[2] = m[at].c; to[3] = m[at].d; to[4] = m[at].e;
  }
}

GLOBAL void narrow(const signed char *a, const u8 *b, const short *c, const u16 *d, u8 *e, u16 *f,
                   int *g, int n) {
  u32 i = GROUP * 64 + LANE;
  if (i >= n) return;
  e[i] = a[i] ^ c[i];
  f[i] = b[i] ^ d[i];
  g[i] = a[i] ^ b[i] << 8 ^ c[i] << 9 ^ d[i] << 3;
}

GLOBAL void atomics(u64 *p, int *q, double *f, float *g, const int *x, const double *y,
                    const float *z) {
  u32 i = GROUP * 64 + LANE, bin = x[i] & 3;
  ADD(p + bin, (u64)x[i] << 20, AGENT);
  __hip_atomic_fetch_xor(p + 4, (u64)x[i] << 32 | i, __ATOMIC_RELAXED, AGENT);
  __hip_atomic_fetch_and(p + 5, ~((u64)x[i] << 30), __ATOMIC_RELAXED, AGENT);
  __hip_atomic_fetch_max(q, x[i], __ATOMIC_RELAXED, AGENT);
  int old = 0;
  __hip_atomic_compare_exchange_strong(q + 1 + bin, &old, i + 1, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED, AGENT);
  q[8 + i] = old;
  __builtin_amdgcn_global_atomic_fadd_f64((__attribute__((address_space(1))) double *)f + bin, y[i]);
  __builtin_amdgcn_global_atomic_fmax_f64((__attribute__((address_space(1))) double *)f + 4 + bin,
                                          y[i]);
  __builtin_amdgcn_flat_atomic_fadd_f32(g + bin, z[i]);
}

GLOBAL void shared_atomics(const u32 *p, u32 *r, u64 *s, float *t) {
  SHARED u32 bins[16];
  SHARED u64 totals[4];
  SHARED float floats[4];
  if (LANE < 16) bins[LANE] = 0;
  if (LANE < 4) totals[LANE] = LANE, floats[LANE] = 0.0f;
  BARRIER;
  u32 v = p[GROUP * 128 + LANE];
  u32 before = ADD(&bins[v & 15], 1, WORKGROUP);
  ADD(&totals[v & 3], (u64)v << 8 | before, WORKGROUP);
  __builtin_amdgcn_ds_faddf((__attribute__((address_space(3))) float *)&floats[v & 3],
                            __builtin_bit_cast(float, 0x3f800000 | v & 0xffff), 0, 0, false);
  BARRIER;
  if (LANE < 16) r[GROUP * 16 + LANE] = bins[LANE];
  if (LANE < 4) s[GROUP * 4 + LANE] = totals[LANE], t[GROUP * 4 + LANE] = floats[LANE];
}

extern __attribute__((shared)) u32 dynamic_lds[];
GLOBAL void dynamic_shared(const u32 *p, u32 *r) {
  SHARED u32 fixed[64];
  fixed[LANE] = p[LANE];
  for (int k = 0; k < 4; ++k) dynamic_lds[k * 64 + LANE] = p[LANE] + k;
  BARRIER;
  for (int k = 0; k < 4; ++k) r[k * 64 + LANE] = dynamic_lds[(LANE ^ 7) + 64 * k] ^ fixed[LANE ^ 9];
  r[256] = ((const u32 CONSTANT *)__builtin_amdgcn_implicitarg_ptr())[30];
}

GLOBAL void timers(u64 *r) {
  for (int k = 0; k < 4; ++k) {
    r[2 * k] = __builtin_amdgcn_s_memtime();
    r[2 * k + 1] = __builtin_amdgcn_s_memrealtime();
  }
}

GLOBAL void shuffles(const int *p, int *r) {
  int v = p[LANE];
  r[LANE] = __builtin_amdgcn_ds_bpermute((LANE ^ 5) * 4, v);
  r[64 + LANE] = __builtin_amdgcn_ds_permute((LANE ^ 9) * 4, v);
  r[128 + LANE] = __builtin_amdgcn_ds_swizzle(v, 0x801b);
  r[192 + LANE] = __builtin_amdgcn_ds_swizzle(v, 0x401f);
}

// One pointer to one of three address spaces: the accesses are flat.
GLOBAL void generic(int *p, int *r, int which) {
  SHARED int shared[128];
  volatile int own[2];
  shared[LANE * 2] = p[LANE * 2];
  shared[LANE * 2 + 1] = 0;
  own[0] = p[LANE * 2] + 1;
  own[1] = 0;
  volatile int *to = own;
  if ((LANE & 3) == which) to = shared + LANE * 2;
  if ((LANE & 3) == which + 1) to = p + LANE * 2;
  to[0] += 100;
  to[1] = to[0] * 2;
  ADD((int *)to + 1, 5, WORKGROUP);
  r[LANE] = shared[LANE * 2 + 1] + own[1];
}

// Values of the launch: work-item and workgroup ids, the dispatch packet, hidden arguments.
GLOBAL __attribute__((amdgpu_flat_work_group_size(1, 1024))) void launch_values(u32 *r, u32 stride) {
  u32 lane = __builtin_amdgcn_workitem_id_x() + 4 * __builtin_amdgcn_workitem_id_y() +
             8 * __builtin_amdgcn_workitem_id_z();
  u32 group = __builtin_amdgcn_workgroup_id_x() + 3 * __builtin_amdgcn_workgroup_id_y() +
              6 * __builtin_amdgcn_workgroup_id_z();
  const u32 *packet = (const u32 *)__builtin_amdgcn_dispatch_ptr();
  const u32 CONSTANT *hidden = (const u32 CONSTANT *)__builtin_amdgcn_implicitarg_ptr();
  u32 *to = r + (group * 24 + lane) * stride;
  for (int k = 0; k < 8; ++k) to[k] = packet[k];
  for (int k = 0; k < 6; ++k) to[8 + k] = hidden[k];
  to[14] = ((const u16 CONSTANT *)hidden)[32];
  to[15] = hidden[10];
}

// Constants, a variable and a pointer in the module's own memory.
static const int table[37] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8,
                              4, 6, 2, 6, 4, 3, 3, 8, 3, 2, 7, 9, 5, 0, 2, 8, 8, 4};
__attribute__((device)) int counters[4] = {7, 8, 9, 10};
__attribute__((device)) const int *third = table + 3;
GLOBAL void module_memory(const int *p, int *r) {
  r[LANE] = table[p[LANE]] * 100 + third[p[LANE] & 7];
  int old = ADD(&counters[LANE & 3], 1, AGENT);
  r[64 + LANE] = old;
}

// Functions with a stack of their own.
#define FUNCTION __attribute__((device, noinline)) static
FUNCTION u32 fold(const u32 *p, int n) {
  u32 sum = 0;
  for (int k = 0; k < n; ++k) sum = sum * 31 + p[k];
  return sum;
}
FUNCTION u32 shuffle_and_fold(u32 x, int n) {
  u32 own[24];
  for (int k = 0; k < 24; ++k) own[k] = x + k;
  for (int k = 0; k < n; ++k) own[(x + k * 7) % 24] ^= k;
  return fold(own, 24) + fold(own + 3, n);
}
GLOBAL void calls(u32 *r, int n) { r[LANE] = shuffle_and_fold(r[LANE], n) ^ shuffle_and_fold(LANE, 5); }

GLOBAL void queue(u64 *r) { r[0] = (u64)__builtin_amdgcn_queue_ptr(); }
