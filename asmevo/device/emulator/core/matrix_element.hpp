// Input formats of matrix operations and the vectors they are unpacked to.
//
// Included once for every vector width, with ASMEVO_MATRIX_WIDTH (namespace) and
// ASMEVO_MATRIX_LANES (32-bit elements of a vector: 8 or 16) defined; hence no include guard. Every
// element sees the same operations in the same order at each width, so results are the same bytes.

namespace asmevo::ASMEVO_MATRIX_WIDTH {

inline constexpr std::size_t kWide = ASMEVO_MATRIX_LANES;

using FloatVector = float __attribute__((vector_size(4 * kWide)));
using IntVector = i32 __attribute__((vector_size(4 * kWide)));
using WordVector = u32 __attribute__((vector_size(4 * kWide)));
using ShortVector = std::int16_t __attribute__((vector_size(4 * kWide)));
using ByteVector = u8 __attribute__((vector_size(4 * kWide)));
using HalfVector = u16 __attribute__((vector_size(2 * kWide)));

template <class V>
inline V load(const void* from) {
  V v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
template <class V>
inline void put(void* to, const V& v) {
  std::memcpy(to, &v, sizeof v);
}

inline FloatVector broadcast(float x) { return x - FloatVector{}; }
inline IntVector broadcast(i32 x) { return x - IntVector{}; }

// acc += a * b, rounded once.
inline void accumulate(FloatVector& acc, const FloatVector& a, const FloatVector& b) {
#if ASMEVO_MATRIX_LANES == 16
  acc = (FloatVector)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)acc);
#elif defined(__AVX2__) && defined(__FMA__)
  acc = (FloatVector)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)acc);
#else
  for (std::size_t c = 0; c < kWide; ++c) acc[c] = std::fma(a[c], b[c], acc[c]);
#endif
}

// acc += the dot product of the lane's bytes as I8 unpacks them, modulo 2^32.
inline void accumulate(IntVector& acc, const IntVector& a, const IntVector& b) {
#if ASMEVO_MATRIX_LANES == 16
  acc = (IntVector)_mm512_dpbusd_epi32((__m512i)acc, (__m512i)a, (__m512i)b);
#elif defined(__AVX2__) && defined(__FMA__)
  acc = (IntVector)((WordVector)acc + (WordVector)_mm256_madd_epi16((__m256i)a, (__m256i)b));
#else
  const WordVector low = (WordVector)(((a << 16) >> 16) * ((b << 16) >> 16));
  acc = (IntVector)((WordVector)acc + low + (WordVector)((a >> 16) * (b >> 16)));
#endif
}

// Every NaN result has the launch's payload.
inline void store(u32* to, const FloatVector& acc, u32 nan) {
  put(to, acc != acc ? broadcast(static_cast<i32>(nan)) : (IntVector)acc);
}
inline void store(u32* to, const IntVector& acc, u32) { put(to, acc); }

inline bool any(const IntVector& mask) {
#if ASMEVO_MATRIX_LANES == 16
  return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#elif defined(__AVX2__)
  return _mm256_testz_si256((__m256i)mask, (__m256i)mask) == 0;
#else
  i32 all = 0;
  for (std::size_t c = 0; c < kWide; ++c) all |= mask[c];
  return all != 0;
#endif
}

inline FloatVector f16_to_float(const HalfVector& h) {
#if ASMEVO_MATRIX_LANES == 16
  // Masked: GCC 12 warns of the unmasked one's undefined source (bug 105593).
  return (FloatVector)_mm512_maskz_cvtph_ps(0xffff, (__m256i)h);
#elif defined(__F16C__)
  return (FloatVector)_mm256_cvtph_ps((__m128i)h);
#else
  FloatVector out;
  for (std::size_t c = 0; c < kWide; ++c) out[c] = as_float(f16_to_f32(h[c]));
  return out;
#endif
}

// A format turns a register of a lane into kPerWord elements in order of k; `unpack` writes those
// of the words `w` to the columns from `at` of the rows at `to`.
template <class Element, class Accumulator>
struct Format {
  using Lane = Element;
  using Vector = Accumulator;
  using Rows = std::array<Lane, kLanes>;
};

struct F32 : Format<float, FloatVector> {
  static constexpr std::size_t kPerWord = 1;
  static void unpack(Rows* to, std::size_t at, const WordVector& w) { put(&to[0][at], w); }
};

// The 10 upper bits of the mantissa; a NaN stays one.
struct Xf32 : Format<float, FloatVector> {
  static constexpr std::size_t kPerWord = 1;
  static void unpack(Rows* to, std::size_t at, const WordVector& w) {
    const WordVector nan = (WordVector)((w & ~kSignBit) > kExponent);
    put(&to[0][at], (w & 0xffffe000u) | (nan & kQuietNan));
  }
};

struct F16 : Format<float, FloatVector> {
  static constexpr std::size_t kPerWord = 2;
  static void unpack(Rows* to, std::size_t at, const WordVector& w) {
    put(&to[0][at], f16_to_float(__builtin_convertvector(w, HalfVector)));
    put(&to[1][at], f16_to_float(__builtin_convertvector(w >> 16, HalfVector)));
  }
};

struct Bf16 : Format<float, FloatVector> {
  static constexpr std::size_t kPerWord = 2;
  static void unpack(Rows* to, std::size_t at, const WordVector& w) {
    put(&to[0][at], w << 16);
    put(&to[1][at], w & 0xffff0000u);
  }
};

// FNUZ (float8.hpp). The bits as those of an f32 are the number times a power of two, denormals
// included; the NaN, which looks like -0, is rare.
template <u32 Mantissa>
struct Float8 : Format<float, FloatVector> {
  static constexpr std::size_t kPerWord = 4;
  static void unpack(Rows* to, std::size_t at, const WordVector& w) {
    constexpr i32 kField = static_cast<i32>(kSignBit | (0x7fu << (23 - Mantissa)));
    constexpr float kScale = Mantissa == kFp8Mantissa ? 0x1p119f : 0x1p111f;
    const IntVector nan = (IntVector)((ByteVector)w == u8{kFnuzNan});
    for (u32 e = 0; e < 4; ++e) {
      const IntVector top = (IntVector)(w << (24 - 8 * e));
      put(&to[e][at], (FloatVector)((top >> (Mantissa + 1)) & kField) * kScale);
    }
    if (any(nan)) [[unlikely]] {
      for (u32 e = 0; e < 4; ++e) {
        const IntVector here = (nan << (24 - 8 * e)) >> 24;
        const IntVector number = load<IntVector>(&to[e][at]);
        put(&to[e][at], (number & ~here) | (here & static_cast<i32>(kQuietNan)));
      }
    }
  }
};
using Fp8 = Float8<kFp8Mantissa>;
using Bf8 = Float8<kBf8Mantissa>;

// What `accumulate` multiplies: at 16 elements the four bytes themselves, those of A raised by 128
// because the instruction takes u8 times i8; otherwise pairs of i16, of the even and the odd bytes.
// The order of the terms of an integer sum does not matter.
struct I8 : Format<i32, IntVector> {
#if ASMEVO_MATRIX_LANES == 16
  static constexpr std::size_t kPerWord = 1;
  static void unpack(Rows* to, std::size_t at, const WordVector& w) { put(&to[0][at], w); }
#else
  static constexpr std::size_t kPerWord = 2;
  static void unpack(Rows* to, std::size_t at, const WordVector& w) {
    put(&to[0][at], (ShortVector)(w << 8) >> 8);
    put(&to[1][at], (ShortVector)w >> 8);
  }
#endif
};
inline constexpr i32 kRaise = static_cast<i32>(0x80808080u);

template <class Type, std::size_t Words>
using Unpacked = std::array<typename Type::Rows, Words * Type::kPerWord>;

template <class Type, std::size_t Words>
inline void unpack(Unpacked<Type, Words>& out, const u32* rows) {
  for (std::size_t word = 0; word < Words; ++word) {
    for (std::size_t at = 0; at < kLanes; at += kWide) {
      Type::unpack(&out[word * Type::kPerWord], at, load<WordVector>(rows + word * kLanes + at));
    }
  }
}

}  // namespace
