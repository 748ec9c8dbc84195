// v_cmp and v_cmpx: a mask of lanes into a scalar pair, 0 for inactive lanes.
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "float_bits.hpp"
#include "operation.hpp"

namespace asmevo {

namespace {

// One bit per byte of 0 or 1, gathered eight at a time by a multiplication.
u64 pack(const u8* flags) {
#if defined(__AVX2__)
  const auto half = [&](std::size_t at) {
    const __m256i bytes = _mm256_load_si256(reinterpret_cast<const __m256i*>(flags + at));
    return static_cast<u32>(_mm256_movemask_epi8(_mm256_slli_epi16(bytes, 7)));
  };
  return half(0) | (u64{half(32)} << 32);
#else
  u64 mask = 0;
  for (std::size_t k = 0; k < 8; ++k) {
    u64 bytes = 0;
    for (std::size_t j = 0; j < 8; ++j) bytes |= u64{flags[8 * k + j]} << (8 * j);
    mask |= ((bytes * 0x0102040810204080ull) >> 56) << (8 * k);
  }
  return mask;
#endif
}

template <class T, auto F, bool WritesExec>
void compare(Wave& w, const Step& s) {
  const u32* a = w.row(s.src[0], 0);
  const u32* b = w.row(s.src[1], 1);
  alignas(64) u8 flags[kLanes];
  if constexpr (std::is_same_v<T, float>) {
    const u32 in = w.fp.keep_in;
    ASMEVO_LANES(i) flags[i] = F(as_float(flush(a[i], in)), as_float(flush(b[i], in)));
  } else {
    ASMEVO_LANES(i) flags[i] = F(static_cast<T>(a[i]), static_cast<T>(b[i]));
  }
  const u64 mask = pack(flags) & w.active();
  w.set_scalar64(s.dst, mask);
  if constexpr (WritesExec) w.set_scalar64(kExec, mask);
}

#define ONE(prefix, name, T, traits, writes_exec, ...) \
  {prefix name, Shape::kCompare, 2, {1, 1, 0}, traits, \
   compare<T, [](T a, T b) -> bool { (void)a; (void)b; return (__VA_ARGS__); }, writes_exec>}
#define BOTH(name, T, traits, ...) \
  ONE("v_cmp_", name, T, traits, false, __VA_ARGS__), \
  ONE("v_cmpx_", name, T, traits, true, __VA_ARGS__)
#define INTEGER(suffix, T) \
  BOTH("f_" suffix, T, kNoTraits, false), BOTH("lt_" suffix, T, kNoTraits, a < b), \
  BOTH("eq_" suffix, T, kNoTraits, a == b), BOTH("le_" suffix, T, kNoTraits, a <= b), \
  BOTH("gt_" suffix, T, kNoTraits, a > b), BOTH("ne_" suffix, T, kNoTraits, a != b), \
  BOTH("ge_" suffix, T, kNoTraits, a >= b), BOTH("t_" suffix, T, kNoTraits, true)

constexpr Operation kTable[] = {
    INTEGER("i32", i32),
    INTEGER("u32", u32),
    BOTH("f_f32", float, kMods, false),
    BOTH("lt_f32", float, kMods, a < b),
    BOTH("eq_f32", float, kMods, a == b),
    BOTH("le_f32", float, kMods, a <= b),
    BOTH("gt_f32", float, kMods, a > b),
    BOTH("lg_f32", float, kMods, (a < b) | (a > b)),
    BOTH("ge_f32", float, kMods, a >= b),
    BOTH("o_f32", float, kMods, (a == a) & (b == b)),
    BOTH("u_f32", float, kMods, (a != a) | (b != b)),
    BOTH("nge_f32", float, kMods, !(a >= b)),
    BOTH("nlg_f32", float, kMods, !((a < b) | (a > b))),
    BOTH("ngt_f32", float, kMods, !(a > b)),
    BOTH("nle_f32", float, kMods, !(a <= b)),
    BOTH("neq_f32", float, kMods, a != b),
    BOTH("nlt_f32", float, kMods, !(a < b)),
    BOTH("tru_f32", float, kMods, true),
};

}  // namespace

std::span<const Operation> compare_operations() { return kTable; }

}  // namespace asmevo
