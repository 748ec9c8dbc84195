// Kernels that call: known functions, one of them twice and in a loop, a chain of two, and an
// address that only the host knows.
#define GLOBAL extern "C" __attribute__((global))
#define FUNCTION extern "C" __attribute__((device, noinline))
#define LANE __builtin_amdgcn_workitem_id_x()

FUNCTION float leaf(const float *p, float x) {
  return p[LANE] * x + p[LANE + 64];
}

FUNCTION float middle(const float *p, float x, int n) {
  float y = x;
  for (int k = 0; k < n; ++k) y = leaf(p + k, y);
  return y + x;
}

GLOBAL void calls_twice(const float *p, float *r) {
  float x = leaf(p, r[LANE]);
  r[LANE] = leaf(p + 128, x * x);
}

GLOBAL void calls_in_a_loop(const float *p, float *r, int n) {
  float x = 0;
  for (int k = 0; k < n; ++k) x += leaf(p, x);
  r[LANE] = x;
}

GLOBAL void calls_a_chain(const float *p, float *r, int n) {
  r[LANE] = middle(p, r[LANE], n);
}

GLOBAL void calls_an_argument(float (*f)(float), float *r) {
  r[LANE] = f(r[LANE]);
}
