// Sums as CDNA3 takes them. Included once for every vector width, after matrix_dense.hpp.
//
// AMD does not publish the arithmetic; this is the model that Xie et al. measured on MI300X ("Bit-
// Accurate Modeling of GPU Matrix Multiply-Accumulate Units", arXiv 2511.10909; MMA-Sim). Products
// are summed in groups of rising k: 8 of f16 and bf16 (4 where k has no more), 4 of xf32, 16 of
// 8-bit formats.
//   1. The exact products of a group are aligned to the greatest sum of the two inputs' exponents
//      and truncated to 24 fraction bits; even and odd k of 8-bit formats separately, and the two
//      sums are then aligned to the greater exponent, rounding down.
//   2. That sum, to 31 fraction bits, and the accumulator, to 24, are aligned to the greater
//      exponent, rounding down. Of an 8-bit format an accumulator below 2^-25 of it is dropped.
//   3. Their sum is rounded to f32, to nearest even.
// An exponent is never below that of the format's least normal number; zero has -126. A product of
// 2^128 and more is an infinity. f32 and f64 products are fused operations in order of rising k.

namespace asmevo::ASMEVO_MATRIX_WIDTH {

template <class Type>
struct Sums {  // f16
  static constexpr std::size_t kGroup = 8;
  static constexpr i32 kLeastExponent = -14;
  static constexpr bool kHalves = false;
  static constexpr bool kWideRange = false;  // a product may leave the range of f32
};
template <>
struct Sums<Bf16> {
  static constexpr std::size_t kGroup = 8;
  static constexpr i32 kLeastExponent = -126;
  static constexpr bool kHalves = false;
  static constexpr bool kWideRange = true;
};
template <>
struct Sums<Xf32> : Sums<Bf16> {
  static constexpr std::size_t kGroup = 4;
};
template <u32 Mantissa>
struct Sums<Float8<Mantissa>> {
  static constexpr std::size_t kGroup = 16;
  static constexpr i32 kLeastExponent = 1 - static_cast<i32>(kFnuzBias<Mantissa>);
  static constexpr bool kHalves = true;
  static constexpr bool kWideRange = false;
};

inline constexpr i32 kNotFinite = 1000;  // above every exponent

using DoubleVector = double __attribute__((vector_size(4 * kWide)));
using UnsignedVector = u32 __attribute__((vector_size(4 * kWide)));
using LongVector = i64 __attribute__((vector_size(4 * kWide)));
using HalfIntVector = i32 __attribute__((vector_size(2 * kWide)));
using HalfFloatVector = float __attribute__((vector_size(2 * kWide)));

inline IntVector greater(const IntVector& a, const IntVector& b) { return a > b ? a : b; }

inline DoubleVector floor(const DoubleVector& x) {
#if ASMEVO_MATRIX_LANES == 16
  return (DoubleVector)_mm512_maskz_roundscale_pd(0xff, (__m512d)x, _MM_FROUND_TO_NEG_INF);
#elif defined(__AVX2__)
  return (DoubleVector)_mm256_floor_pd((__m256d)x);
#else
  DoubleVector out;
  for (std::size_t c = 0; c < kWide / 2; ++c) out[c] = std::floor(x[c]);
  return out;
#endif
}

inline double power_of_two(i32 e) {
  return std::bit_cast<double>(static_cast<u64>(i64{e} + 1023) << 52);
}
inline DoubleVector power_of_two(const HalfIntVector& e) {
  return (DoubleVector)((__builtin_convertvector(e, LongVector) + 1023) << 52);
}

// The exponent that alignment uses: never below `least`; of zero and of f32 denormals -126.
inline IntVector exponent(const FloatVector& x, i32 least) {
  const IntVector field = ((IntVector)x >> 23) & 255;
  const IntVector normal = greater(field - 127, broadcast(least));
  const IntVector finite = field == 0 ? broadcast(-126) : normal;
  return field == 255 ? broadcast(kNotFinite) : finite;
}

// The halves of a vector, in registers: memory would hold up a load of what two stores wrote.
#if ASMEVO_MATRIX_LANES == 16
#define ASMEVO_LOW 0, 1, 2, 3, 4, 5, 6, 7
#define ASMEVO_HIGH 8, 9, 10, 11, 12, 13, 14, 15
#else
#define ASMEVO_LOW 0, 1, 2, 3
#define ASMEVO_HIGH 4, 5, 6, 7
#endif
#if __has_builtin(__builtin_shufflevector)
template <bool High, class V>
inline auto half(const V& v) {
  if constexpr (High) {
    return __builtin_shufflevector(v, v, ASMEVO_HIGH);
  } else {
    return __builtin_shufflevector(v, v, ASMEVO_LOW);
  }
}
inline FloatVector join(const HalfFloatVector& low, const HalfFloatVector& high) {
  return __builtin_shufflevector(low, high, ASMEVO_LOW, ASMEVO_HIGH);
}
#else  // GCC before 12
template <bool High, class V>
inline auto half(const V& v) {
  std::conditional_t<std::is_same_v<V, FloatVector>, HalfFloatVector, HalfIntVector> out;
  std::memcpy(&out, reinterpret_cast<const char*>(&v) + High * sizeof out, sizeof out);
  return out;
}
inline FloatVector join(const HalfFloatVector& low, const HalfFloatVector& high) {
  FloatVector out;
  std::memcpy(&out, &low, sizeof low);
  std::memcpy(reinterpret_cast<char*>(&out) + sizeof low, &high, sizeof high);
  return out;
}
#endif
#undef ASMEVO_LOW
#undef ASMEVO_HIGH

template <class A, class B, std::size_t M, std::size_t Blocks, std::size_t Words>
class Fused {
 public:
  static constexpr std::size_t kElements = Words * A::kPerWord;
  static constexpr std::size_t kDepth = kElements * kLanes / (M * Blocks);
  static constexpr std::size_t kGroup = std::min(Sums<A>::kGroup, kDepth);
  static constexpr std::size_t kParts = Sums<A>::kHalves ? 2 : 1;

  Fused(Wave& w, const Step& s) {
    alignas(64) u32 moved[Words * kLanes];
    unpack<A, Words>(a_, matrix_rows(w, s, 0, M, Words, moved));
    unpack<B, Words>(b_, matrix_rows(w, s, 1, kLanes, Words, moved));
    for (std::size_t e = 0; e < kElements; ++e) {
      for (std::size_t at = 0; at < kLanes; at += kWide) {
        put(&a_exponents_[e][at],
            exponent(load<FloatVector>(&a_[e][at]), Sums<A>::kLeastExponent));
        put(&b_exponents_[e][at],
            exponent(load<FloatVector>(&b_[e][at]), Sums<B>::kLeastExponent));
      }
    }
  }

  // sums += the products of row i with the kWide columns from lane `column` of B's k = 0.
  void add(FloatVector& sums, std::size_t i, std::size_t column) const {
    for (std::size_t k = 0; k < kDepth; k += kGroup) add_group(sums, k, i, column);
  }

 private:
  // Lanes before those of k, and its element of them.
  static constexpr std::size_t lanes(std::size_t k) { return k / kElements * M * Blocks; }
  static constexpr std::size_t element(std::size_t k) { return k % kElements; }
  static constexpr std::size_t row(std::size_t i, std::size_t column) { return column / M * M + i; }

  // What multiplies the columns: one element of A, or one for every four columns.
  template <class V, class Rows>
  static V left(const Rows& rows, std::size_t k, std::size_t i, std::size_t column) {
    const auto* from = &rows[element(k)][lanes(k)];
    if constexpr (M >= kWide) {
      return broadcast(from[row(i, column)]);
    } else {
      V v;
      for (std::size_t c = 0; c < kWide; ++c) v[c] = from[row(i, column + c)];
      return v;
    }
  }

  void add_group(FloatVector& sums, std::size_t k, std::size_t i, std::size_t column) const {
    IntVector tops[kParts], parts[kParts];
    IntVector greatest = broadcast(-1000), tiny = broadcast(0);
    for (std::size_t part = 0; part < kParts; ++part) {
      IntVector top = broadcast(-1000);
#pragma GCC unroll 8
      for (std::size_t l = k + part; l < k + kGroup; l += kParts) {
        top = greater(top, left<IntVector>(a_exponents_, l, i, column) +
                               load<IntVector>(&b_exponents_[element(l)][lanes(l) + column]));
      }
      greatest = greater(greatest, top);
      if constexpr (Sums<A>::kWideRange) tiny |= top < -60;
      // A group of zeros alone would ask for more than f32 has.
      const IntVector shift = 24 - top;
      const IntVector bounded = shift < 120 ? shift : broadcast(120);
      const FloatVector scale = (FloatVector)((bounded + 127) << 23);
      UnsignedVector sum{};  // of infinities and NaNs it overflows, and is not looked at below
#pragma GCC unroll 8
      for (std::size_t l = k + part; l < k + kGroup; l += kParts) {
        const FloatVector product = left<FloatVector>(a_, l, i, column) *
                                    load<FloatVector>(&b_[element(l)][lanes(l) + column]);
        sum += (UnsignedVector)__builtin_convertvector(product * scale, IntVector);
      }
      tops[part] = top;
      parts[part] = (IntVector)sum;
    }
    const IntVector own = exponent(sums, -126);
    if (any((greatest > 125) | (own > 127)) ||
        (any(tiny) && !zeros(tiny, k, i, column))) [[unlikely]] {
      for (std::size_t c = 0; c < kWide; ++c) sums[c] = add_exactly(sums[c], k, i, column + c);
      return;
    }
    sums = join(rounded<false>(sums, own, tops, parts), rounded<true>(sums, own, tops, parts));
  }

  // Steps 1 (its end) to 3 for half of the columns.
  template <bool High>
  static HalfFloatVector rounded(const FloatVector& before, const IntVector& own,
                                 const IntVector (&tops)[kParts], const IntVector (&parts)[kParts]) {
    HalfIntVector top = half<High>(tops[0]);
    DoubleVector sum = __builtin_convertvector(half<High>(parts[0]), DoubleVector);
    if constexpr (kParts == 2) {
      const HalfIntVector even = top, odd = half<High>(tops[1]);
      const DoubleVector second = __builtin_convertvector(half<High>(parts[1]), DoubleVector);
      top = even > odd ? even : odd;
      sum = floor(sum * power_of_two(even - top)) + floor(second * power_of_two(odd - top));
    }
    const HalfIntVector exponent_before = half<High>(own);
    const HalfIntVector all = top > exponent_before ? top : exponent_before;
    const DoubleVector aligned = floor(sum * power_of_two(7 + top - all));
    const DoubleVector c = __builtin_convertvector(half<High>(before), DoubleVector);
    DoubleVector accumulator = floor(c * power_of_two(24 - all));
    if constexpr (kParts == 2) {
      const LongVector kept = __builtin_convertvector(exponent_before >= all - 25, LongVector);
      accumulator = (DoubleVector)((LongVector)accumulator & kept);
    }
    return __builtin_convertvector((aligned + accumulator * 128.0) * power_of_two(all - 31),
                                   HalfFloatVector);
  }

  // Whether every product of the columns of `mask` has a zero factor.
  bool zeros(const IntVector& mask, std::size_t k, std::size_t i, std::size_t column) const {
    IntVector found{};
    for (std::size_t l = k; l < k + kGroup; ++l) {
      found |= (left<FloatVector>(a_, l, i, column) != 0.0f) &
               (load<FloatVector>(&b_[element(l)][lanes(l) + column]) != 0.0f);
    }
    return !any(found & mask);
  }

  // One sum, whatever its inputs: infinities, NaNs, products that f32 cannot hold.
  float add_exactly(float c, std::size_t k, std::size_t i, std::size_t column) const {
    const auto product = [&](std::size_t l) {
      return static_cast<double>(a_[element(l)][lanes(l) + row(i, column)]) *
             static_cast<double>(b_[element(l)][lanes(l) + column]);
    };
    double naive = static_cast<double>(c);
    bool above = false, below = false;
    for (std::size_t l = k; l < k + kGroup; ++l) {
      naive += product(l);
      above |= product(l) >= 0x1p128;
      below |= product(l) <= -0x1p128;
    }
    if (!(std::abs(naive) <= 0x1.fffffffffffffp1023)) return static_cast<float>(naive);
    const float infinity = as_float(kExponent);
    if (above || below) return above && below ? as_float(kQuietNan) : above ? infinity : -infinity;
    i32 tops[2] = {-1000, -1000};
    double sums[2] = {0, 0};
    for (std::size_t l = k; l < k + kGroup; ++l) {
      i32& top = tops[l % kParts];
      top = std::max(top, a_exponents_[element(l)][lanes(l) + row(i, column)] +
                              b_exponents_[element(l)][lanes(l) + column]);
    }
    for (std::size_t l = k; l < k + kGroup; ++l) {
      sums[l % kParts] += std::trunc(product(l) * power_of_two(24 - tops[l % kParts]));
    }
    i32 top = tops[0];
    double sum = sums[0];
    if constexpr (kParts == 2) {
      top = std::max(tops[0], tops[1]);
      sum = std::floor(sums[0] * power_of_two(tops[0] - top)) +
            std::floor(sums[1] * power_of_two(tops[1] - top));
    }
    const i32 own = std::max(static_cast<i32>(as_bits(c) >> 23 & 255) - 127, -126);
    const i32 all = std::max(top, own);
    const bool kept = kParts == 1 || own >= all - 25;
    const double accumulator =
        kept ? std::floor(static_cast<double>(c) * power_of_two(24 - all)) : 0.0;
    return static_cast<float>(
        (std::floor(sum * power_of_two(7 + top - all)) + accumulator * 128) *
        power_of_two(all - 31));
  }

  alignas(64) Unpacked<A, Words> a_;
  alignas(64) Unpacked<B, Words> b_;
  alignas(64) std::array<std::array<i32, kLanes>, kElements> a_exponents_, b_exponents_;
};

template <class A, class B, std::size_t M, std::size_t Blocks, std::size_t Words>
void fused(Wave& w, const Step& s) {
  const Fused<A, B, M, Blocks, Words> product(w, s);
  const Accumulator<Blocks * M * M / kLanes> c(w, s.src[2], s.dst);
  u32* out = w.v + s.dst * kLanes;
  const u32 nan = w.fp.nan;
  // Lanes of B that hold the columns of D's lanes: all blocks of 4 x 4 are side by side.
  constexpr std::size_t kSpan = M == 4 ? kLanes : M;
  for (std::size_t block = 0; block < kLanes / kSpan && block < Blocks; ++block) {
    for (std::size_t i = 0; i < M; ++i) {
      const std::size_t row = M == 4 ? i * kLanes : Result<M>::at(block, i);
      for (std::size_t j = 0; j < kSpan; j += kWide) {
        FloatVector sums = load<FloatVector>(c.at(row + j));
        product.add(sums, i, block * kSpan + j);
        store(out + row + j, sums, nan);
      }
    }
  }
}

}  // namespace
