// Dense one-block MFMA of gfx942 with 8- and 16-bit inputs and f32 or i32 results.
//
// Layouts (AMD matrix instruction calculator, cdna3), for an M x M result and E inputs a lane:
//   A[i][k] is element k % E of lane i + M * (k / E); B[k][j] likewise with j for i;
//   D[i][j], C[i][j]: g = i / 4, lane = j + M * (g % (64 / M)), word = 4 * (g / (64 / M)) + i % 4.
//
// Arithmetic: neither the ISA nor AMD publishes the accumulation order. Here every product is exact
// and is added to the f32 accumulator, which starts as C, in order of rising k with one rounding to
// nearest even a product. Denormal inputs and results are kept, FP mode is not consulted, and
// integers wrap. EXEC is ignored, as in hardware (CDNA3 ISA, "Matrix Arithmetic Instructions").
#include <algorithm>
#include <array>
#include <cmath>
#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#endif

#include "fault.hpp"
#include "float_bits.hpp"
#include "float8.hpp"
#include "operation.hpp"

namespace asmevo {

namespace {

constexpr std::size_t kWide = 8;    // elements of a vector
constexpr std::size_t kColumns = 16;  // of a register block: 4 rows by 16 columns

using FloatVector = float __attribute__((vector_size(4 * kWide)));
using IntVector = i32 __attribute__((vector_size(4 * kWide)));

template <class V>
inline V load(const void* from) {
  V v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

// acc += a * b, rounded once.
inline void accumulate(FloatVector& acc, float a, const FloatVector& b) {
#if defined(__AVX2__) && defined(__FMA__)
  acc = _mm256_fmadd_ps(_mm256_set1_ps(a), b, acc);
#else
  for (std::size_t c = 0; c < kWide; ++c) acc[c] = std::fma(a, b[c], acc[c]);
#endif
}

// acc += the dot product of pairs of i16, modulo 2^32.
inline void accumulate(IntVector& acc, i32 a, const IntVector& b) {
#if defined(__AVX2__) && defined(__FMA__)
  const __m256i dot = _mm256_madd_epi16(_mm256_set1_epi32(a), std::bit_cast<__m256i>(b));
  acc = std::bit_cast<IntVector>(_mm256_add_epi32(std::bit_cast<__m256i>(acc), dot));
#else
  for (std::size_t c = 0; c < kWide; ++c) {
    const i32 low = i32{static_cast<std::int16_t>(a)} * static_cast<std::int16_t>(b[c]);
    const i32 dot = low + (a >> 16) * (b[c] >> 16);
    acc[c] = static_cast<i32>(static_cast<u32>(acc[c]) + static_cast<u32>(dot));
  }
#endif
}

inline void store(u32* to, const FloatVector& acc) {
  const IntVector bits = std::bit_cast<IntVector>(acc);
  const IntVector nan = acc != acc;
  const IntVector out = (bits & ~nan) | (nan & static_cast<i32>(kQuietNan));
  std::memcpy(to, &out, sizeof out);
}
inline void store(u32* to, const IntVector& acc) { std::memcpy(to, &acc, sizeof acc); }

// Inputs: how many elements a word holds, and element `e` of a word as a 32-bit lane.
struct F32 {
  using Lane = float;
  using Vector = FloatVector;
  static constexpr std::size_t kPerWord = 1;
  static u32 element(u32 word, std::size_t) { return word; }
};
struct F16 {
  using Lane = float;
  using Vector = FloatVector;
  static constexpr std::size_t kPerWord = 2;
  static u32 element(u32 word, std::size_t e) {
    const u32 half = word >> (16 * e);
    const u32 magnitude = (half & 0x7fffu) << 13;
    // The lesser of the two, as in fnuz8_to_f32.
    const float tiny = as_float(magnitude + (113u << 23)) - 0x1p-14f;
    const float normal = as_float(magnitude + (112u << 23));
    const u32 finite = as_bits(tiny < normal ? tiny : normal);
    const u32 special = magnitude >= (31u << 23) ? kExponent : 0;
    return finite | special | ((half & 0x8000u) << 16);
  }
};
struct Bf16 {
  using Lane = float;
  using Vector = FloatVector;
  static constexpr std::size_t kPerWord = 2;
  static u32 element(u32 word, std::size_t e) { return e == 0 ? word << 16 : word & 0xffff0000u; }
};
template <u32 Mantissa>
struct Float8 {
  using Lane = float;
  using Vector = FloatVector;
  static constexpr std::size_t kPerWord = 4;
  static u32 element(u32 word, std::size_t e) { return fnuz8_to_f32<Mantissa>(word >> (8 * e)); }
};
using Fp8 = Float8<kFp8Mantissa>;
using Bf8 = Float8<kBf8Mantissa>;
// Two consecutive elements as a pair of i16.
struct I8 {
  using Lane = i32;
  using Vector = IntVector;
  static constexpr std::size_t kPerWord = 2;
  static u32 element(u32 word, std::size_t e) {
    const u32 pair = word >> (16 * e);
    const u32 low = static_cast<u32>(static_cast<i32>(pair << 24) >> 24) & 0xffffu;
    const u32 high = static_cast<u32>(static_cast<i32>(pair << 16) >> 24) << 16;
    return high | low;
  }
};

template <class Type, std::size_t Words>
using Unpacked = std::array<std::array<typename Type::Lane, kLanes>, Words * Type::kPerWord>;

template <class Type, std::size_t Words>
void unpack(Unpacked<Type, Words>& out, const u32* rows) {
  for (std::size_t word = 0; word < Words; ++word) {
    const u32* in = rows + word * kLanes;
    for (std::size_t e = 0; e < Type::kPerWord; ++e) {
      auto& to = out[word * Type::kPerWord + e];
      ASMEVO_LANES(i) to[i] = std::bit_cast<typename Type::Lane>(Type::element(in[i], e));
    }
  }
}

template <class A, class B, std::size_t M, std::size_t Words>
void mfma(Wave& w, const Step& s) {
  using Vector = typename A::Vector;
  constexpr std::size_t kElements = Words * A::kPerWord;
  constexpr std::size_t kGroups = kLanes / M;  // lane groups: of k in A and B, of rows in D
  constexpr std::size_t kResults = M * M / kLanes;
  if (w.gpr_index_enabled) {
    throw Fault(FaultKind::kIllegal, "GPR indexing of a matrix operation is not modelled");
  }
  alignas(64) Unpacked<A, Words> a;
  alignas(64) Unpacked<B, Words> b;
  unpack<A, Words>(a, w.v + s.src[0].index * kLanes);
  unpack<B, Words>(b, w.v + s.src[1].index * kLanes);

  u32* out = w.v + s.dst * kLanes;
  const bool constant = s.src[2].kind == Operand::Kind::kConstant;
  const u32* c = constant ? s.src[2].rows : w.v + s.src[2].index * kLanes;
  alignas(64) u32 copy[kResults * kLanes];
  if (!constant && c != out) {  // a partial overlap would read results
    std::memcpy(copy, c, sizeof copy);
    c = copy;
  }
  for (std::size_t g = 0; g < M / 4; ++g) {
    const std::size_t word = 4 * (g / kGroups), lane = M * (g % kGroups);
    for (std::size_t j = 0; j < M; j += kColumns) {
      Vector acc[4][2];
      for (std::size_t r = 0; r < 4; ++r) {
        const u32* row = c + (constant ? 0 : (word + r) * kLanes) + lane + j;
        acc[r][0] = load<Vector>(row);
        acc[r][1] = load<Vector>(row + kWide);
      }
      for (std::size_t group = 0; group < kGroups; ++group) {
        for (std::size_t e = 0; e < kElements; ++e) {
          const auto* columns = &b[e][group * M + j];
          const auto* rows = &a[e][group * M + 4 * g];
          const Vector low = load<Vector>(columns), high = load<Vector>(columns + kWide);
          for (std::size_t r = 0; r < 4; ++r) {
            accumulate(acc[r][0], rows[r], low);
            accumulate(acc[r][1], rows[r], high);
          }
        }
      }
      for (std::size_t r = 0; r < 4; ++r) {
        u32* row = out + (word + r) * kLanes + lane + j;
        store(row, acc[r][0]);
        store(row + kWide, acc[r][1]);
      }
    }
  }
}

#define MFMA(name, A, B, m, words) \
  {"v_mfma_" name, Shape::kMatrix, m * m / 64, {words, words, m * m / 64}, kNoTraits, \
   mfma<A, B, m, words>}
#define MFMA8(suffix, A, B) \
  MFMA("f32_16x16x32_" suffix, A, B, 16, 2), MFMA("f32_32x32x16_" suffix, A, B, 32, 2)

constexpr Operation kTable[] = {
    MFMA("f32_16x16x4_f32", F32, F32, 16, 1),
    MFMA("f32_32x32x2_f32", F32, F32, 32, 1),
    MFMA("f32_16x16x16_f16", F16, F16, 16, 2),
    MFMA("f32_32x32x8_f16", F16, F16, 32, 2),
    MFMA("f32_16x16x16_bf16", Bf16, Bf16, 16, 2),
    MFMA("f32_32x32x8_bf16", Bf16, Bf16, 32, 2),
    MFMA8("fp8_fp8", Fp8, Fp8),
    MFMA8("fp8_bf8", Fp8, Bf8),
    MFMA8("bf8_fp8", Bf8, Fp8),
    MFMA8("bf8_bf8", Bf8, Bf8),
    MFMA("i32_16x16x32_i8", I8, I8, 16, 2),
    MFMA("i32_32x32x16_i8", I8, I8, 32, 2),
};

}  // namespace

std::span<const Operation> matrix_operations() { return kTable; }

}  // namespace asmevo
