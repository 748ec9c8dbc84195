// Compiled with -mllvm -amdgpu-s-branch-bits=5 every branch is out of reach, so that LLVM goes through
// s_getpc_b64 and s_setpc_b64.
#define LANE __builtin_amdgcn_workitem_id_x()

extern "C" __attribute__((global)) void far(int *out, const float *in, int n) {
  float v = in[LANE];
  for (int i = 0; i < n; i++) {
    if (out[i] == 5) {
      for (int j = 0; j < 20; j++) v = v / in[j] + __builtin_sqrtf(v);
    } else if (out[i] < 0) {
      v *= in[i] / v;
    } else {
      v -= in[i + n] / (v + 1);
    }
  }
  out[LANE] = v;
}
