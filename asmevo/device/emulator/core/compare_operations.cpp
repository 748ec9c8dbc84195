// v_cmp and v_cmpx: a mask of lanes into a scalar pair, 0 for inactive lanes.
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "typed_lanes.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace asmevo {

namespace {

// One bit per byte of 0 or 1.
u64 pack(const u8* flags) {
#if defined(__AVX2__)
  const auto half = [&](std::size_t at) -> u64 {
    const __m256i bytes = _mm256_load_si256(reinterpret_cast<const __m256i*>(flags + at));
    return static_cast<u32>(_mm256_movemask_epi8(_mm256_slli_epi16(bytes, 7)));
  };
  return half(0) | half(32) << 32;
#else
  // Gathered eight at a time by a multiplication.
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

// Operands of other sizes, lane by lane; `Source` reads halves, pairs and modifiers.
template <class T, auto F, bool WritesExec>
void compare_lanes(Wave& w, const Step& s) {
  const Source<T> a(w, s, 0), b(w, s, 1);
  u64 mask = 0;
  for (std::size_t i = 0; i < kLanes; ++i) {
    if constexpr (std::is_same_v<T, F64>) {
      const bool keep = w.fp.wide.keep_in;
      mask |= u64{F(std::bit_cast<double>(soft::Wide::flush(a[i], keep)),
                    std::bit_cast<double>(soft::Wide::flush(b[i], keep)))} << i;
    } else if constexpr (std::is_same_v<T, F16>) {
      const bool keep = w.fp.half.keep_in;
      const auto value = [keep](u32 x) {
        return as_float(f16_to_f32(static_cast<u32>(soft::Half::flush(x, keep))));
      };
      mask |= u64{F(value(a[i]), value(b[i]))} << i;
    } else {
      mask |= u64{F(a[i], b[i])} << i;
    }
  }
  mask &= w.active();
  w.set_scalar64(s.dst, mask);
  if constexpr (WritesExec) w.set_scalar64(kExec, mask);
}

// Bit n of the mask asks for class n: signalling and quiet NaN, then -inf, -normal, -denormal, -0,
// +0, +denormal, +normal, +inf. Denormals are seen as such in every mode.
template <class F>
u32 class_of(u64 x) {
  if (F::is_nan(x)) return F::is_signalling(x) ? 0 : 1;
  const bool negative = (x & F::kSign) != 0;
  if (F::is_infinite(x)) return negative ? 2 : 9;
  if (F::is_zero(x)) return negative ? 5 : 6;
  if (F::is_denormal(x)) return negative ? 4 : 7;
  return negative ? 3 : 8;
}
template <class T, bool WritesExec>
void compare_class(Wave& w, const Step& s) {
  const Source<T> a(w, s, 0);
  const Source<U32> wanted(w, s, 1);
  u64 mask = 0;
  for (std::size_t i = 0; i < kLanes; ++i) {
    mask |= u64{(wanted[i] >> class_of<typename T::Format>(a[i])) & 1} << i;
  }
  mask &= w.active();
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

#define TYPED_ONE(prefix, name, T, traits, writes_exec, ...) \
  {prefix name, Shape::kCompare, 2, {T::kWords, T::kWords, 0}, traits, \
   compare_lanes<T, [](auto a, auto b) -> bool { (void)a; (void)b; return (__VA_ARGS__); }, \
                 writes_exec>, {T::kType, T::kType}}
#define TYPED(name, T, traits, ...) \
  TYPED_ONE("v_cmp_", name, T, traits, false, __VA_ARGS__), \
  TYPED_ONE("v_cmpx_", name, T, traits, true, __VA_ARGS__)
#define TYPED_INTEGER(suffix, T) \
  TYPED("f_" suffix, T, kNoTraits, false), TYPED("lt_" suffix, T, kNoTraits, a < b), \
  TYPED("eq_" suffix, T, kNoTraits, a == b), TYPED("le_" suffix, T, kNoTraits, a <= b), \
  TYPED("gt_" suffix, T, kNoTraits, a > b), TYPED("ne_" suffix, T, kNoTraits, a != b), \
  TYPED("ge_" suffix, T, kNoTraits, a >= b), TYPED("t_" suffix, T, kNoTraits, true)
#define TYPED_FLOAT(suffix, T) \
  TYPED("f_" suffix, T, kMods, false), TYPED("lt_" suffix, T, kMods, a < b), \
  TYPED("eq_" suffix, T, kMods, a == b), TYPED("le_" suffix, T, kMods, a <= b), \
  TYPED("gt_" suffix, T, kMods, a > b), TYPED("lg_" suffix, T, kMods, (a < b) | (a > b)), \
  TYPED("ge_" suffix, T, kMods, a >= b), TYPED("o_" suffix, T, kMods, (a == a) & (b == b)), \
  TYPED("u_" suffix, T, kMods, (a != a) | (b != b)), TYPED("nge_" suffix, T, kMods, !(a >= b)), \
  TYPED("nlg_" suffix, T, kMods, !((a < b) | (a > b))), TYPED("ngt_" suffix, T, kMods, !(a > b)), \
  TYPED("nle_" suffix, T, kMods, !(a <= b)), TYPED("neq_" suffix, T, kMods, a != b), \
  TYPED("nlt_" suffix, T, kMods, !(a < b)), TYPED("tru_" suffix, T, kMods, true)
#define CLASS(suffix, T) \
  {"v_cmp_class_" suffix, Shape::kCompare, 2, {T::kWords, 1, 0}, kMods, compare_class<T, false>, \
   {T::kType}}, \
  {"v_cmpx_class_" suffix, Shape::kCompare, 2, {T::kWords, 1, 0}, kMods, compare_class<T, true>, \
   {T::kType}}

constexpr Operation kTable[] = {
    INTEGER("i32", i32),
    INTEGER("u32", u32),
    TYPED_INTEGER("i16", I16),
    TYPED_INTEGER("u16", U16),
    TYPED_INTEGER("i64", I64),
    TYPED_INTEGER("u64", U64),
    TYPED_FLOAT("f16", F16),
    TYPED_FLOAT("f64", F64),
    CLASS("f16", F16),
    CLASS("f32", F32),
    CLASS("f64", F64),
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

std::span<const Operation> ASMEVO_TABLE(compare_operations)() { return kTable; }

}  // namespace asmevo
