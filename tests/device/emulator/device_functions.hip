// Kernels and the functions they call, in one object: each kernel has the registers of its own calls.
#define KERNEL extern "C" __attribute__((global))
#define FUNCTION extern "C" __attribute__((device, noinline, visibility("hidden")))
#define ITEM __builtin_amdgcn_workitem_id_x()
typedef unsigned u32;

FUNCTION u32 small_function(u32 x, u32 y) { return x * y + 17; }

// More VGPRs than a kernel has that does not call it.
FUNCTION u32 large_function(const u32* p) {
  u32 values[60], sum = 0;
#pragma unroll
  for (int i = 0; i < 60; ++i) values[i] = p[64 * i];
#pragma unroll
  for (int i = 0; i < 60; ++i) sum = sum * values[59 - i] + values[i];
  return sum;
}

// An operation that the emulator does not model.
FUNCTION u32 unmodelled_function(u32 x) {
  u32 y;
  __asm__ volatile("s_getreg_b32 %0, hwreg(HW_REG_HW_ID)" : "=s"(y));
  return x + y;
}

KERNEL void calls_small(const u32* in, u32* out) { out[ITEM] = small_function(in[ITEM], ITEM); }
KERNEL void calls_large(const u32* in, u32* out) { out[ITEM] = large_function(in + ITEM); }
KERNEL void calls_unmodelled(const u32* in, u32* out) { out[ITEM] = unmodelled_function(in[ITEM]); }
KERNEL void is_unmodelled(const u32* in, u32* out) {
  u32 y;
  __asm__ volatile("s_getreg_b32 %0, hwreg(HW_REG_HW_ID)" : "=s"(y));
  out[ITEM] = in[ITEM] + small_function(y, y);
}

#define JUMP(target)                                                      \
  __asm__ volatile(                                                       \
      "s_getpc_b64 s[30:31]\n"                                            \
      "s_add_u32 s30, s30, " target "@rel32@lo+4\n"                       \
      "s_addc_u32 s31, s31, " target "@rel32@hi+12\n"                     \
      "s_swappc_b64 s[30:31], s[30:31]" ::: "s30", "s31", "scc")
// No compiler knows of these jumps, so it does not allocate for them.
KERNEL void jumps_to_large(const u32* in, u32* out) { JUMP("large_function"); out[ITEM] = in[ITEM]; }
KERNEL void jumps_to_kernel(const u32* in, u32* out) { JUMP("calls_large"); out[ITEM] = in[ITEM]; }
// To the instruction behind the jump, through a register that could hold anything.
KERNEL void returns_elsewhere(const u32* in, u32* out) {
  __asm__ volatile(
      "s_getpc_b64 s[30:31]\n"
      "s_lshl_b32 s29, 1, 4\n"
      "s_add_u32 s30, s30, s29\n"
      "s_addc_u32 s31, s31, 0\n"
      "s_setpc_b64 s[30:31]" ::: "s29", "s30", "s31", "scc");
  out[ITEM] = in[ITEM];
}
