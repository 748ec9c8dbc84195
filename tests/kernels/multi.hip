// Several kernels in one object, device functions, and data of every kind reached PC-relative.
#define GLOBAL extern "C" __attribute__((global))
#define DEVICE __attribute__((device))
#define CONSTANT __attribute__((constant))
#define SHARED __attribute__((shared))
#define NOINLINE __attribute__((noinline))
#define LANE __builtin_amdgcn_workitem_id_x()

// .rodata, .data and .bss, private to the object and visible from outside.
static CONSTANT const float table[8] = {1, 2, 4, 8, 16, 32, 64, 128};
DEVICE int initialised[4] = {3, 1, 4, 1};
DEVICE int zeroed[16];
static DEVICE NOINLINE int twice(int x) { return x * 2 + initialised[x & 3]; }
static DEVICE NOINLINE int thrice(int x) { return x * 3 + twice(x); }

// Pointers in data need relocations: to code, to data.
typedef int (*function)(int);
DEVICE function dispatch[2] = {twice, thrice};
DEVICE int *pointer = zeroed + 3;

// May be replaced by the loader, hence reached through the global offset table.
__attribute__((visibility("default"))) DEVICE int preemptible = 5;

DEVICE NOINLINE float external(float x, int i) { return x * table[i & 7]; }

GLOBAL void first(float *out, const float *in) { out[LANE] = external(in[LANE], LANE); }

GLOBAL void second(int *out, int n) {
  int i = LANE;
  if (i < n) out[i] = thrice(out[i]) + *pointer + preemptible;
  else zeroed[i & 15] = i;
}

GLOBAL void third(int *out, int which) {
  SHARED static int local[64];
  local[LANE] = out[LANE];
  __builtin_amdgcn_s_barrier();
  out[LANE] = dispatch[which & 1](local[63 - LANE]);
}

GLOBAL void fourth(int *out) {
  int stack[32];
  for (int i = 0; i < 32; i++) stack[(i * 7 + out[i]) & 31] = i;
  out[LANE] = stack[out[LANE] & 31];
}

// Weak, and in a section of its own that the linker merges.
template <int N> __attribute__((global)) void weak(float *out) {
  out[LANE] = external(out[LANE + N], N) + (table + N)[LANE & 3];
}
template __attribute__((global)) void weak<1>(float *);
template __attribute__((global)) void weak<2>(float *);
