// f64 products: 16 x 16 x 4, and four blocks of 4 x 4 x 4. Every product is added with one
// rounding, in order of rising k; denormals are kept, as the modes of gfx942 keep those of f64.
#include <array>
#include <cmath>

#include "float_bits.hpp"
#include "matrix_operations.hpp"

namespace asmevo {

namespace {

using Doubles = std::array<double, kLanes>;

// Lane `i` of a register pair whose words are 64 lanes apart.
void read(Doubles& out, const u32* low, const u32* high, bool negate) {
  for (std::size_t i = 0; i < kLanes; ++i) {
    const double x = std::bit_cast<double>(low[i] | (u64{high[i]} << 32));
    out[i] = negate ? -x : x;
  }
}

template <std::size_t M>
void dense_double(Wave& w, const Step& s) {
  constexpr std::size_t kBlocks = 16 / M, kPairs = M * M * kBlocks / kLanes, kDepth = 4;
  Doubles a, b, c[kPairs];
  const auto pair = [&](std::size_t slot) { return matrix_rows(w, s, slot); };
  read(a, pair(0), pair(0) + kLanes, s.src[0].neg);
  read(b, pair(1), pair(1) + kLanes, s.src[1].neg);
  for (std::size_t p = 0; p < kPairs; ++p) {
    const bool constant = s.src[2].kind == Operand::Kind::kConstant;
    const u32* low = constant ? s.src[2].rows : w.v + (s.src[2].index + 2 * p) * kLanes;
    read(c[p], low, low + kLanes, s.src[2].neg);
  }
  for (std::size_t i = 0; i < M; ++i) {
    for (std::size_t block = 0; block < kBlocks; ++block) {
      Doubles& row = c[M == 16 ? i / 4 : 0];
      const std::size_t at = 16 * (i % 4) + M * block % 16;
      for (std::size_t k = 0; k < kDepth; ++k) {
        const double left = a[16 * k + M * block % 16 + i];
        const double* columns = &b[16 * k + M * block % 16];
        for (std::size_t j = 0; j < M; ++j) row[at + j] = std::fma(left, columns[j], row[at + j]);
      }
    }
  }
  for (std::size_t p = 0; p < kPairs; ++p) {
    u32* low = w.v + (s.dst + 2 * p) * kLanes;
    for (std::size_t i = 0; i < kLanes; ++i) {
      const double x = c[p][i];
      const u64 bits = x != x ? w.fp.nan_wide : std::bit_cast<u64>(x);
      low[i] = static_cast<u32>(bits);
      low[kLanes + i] = static_cast<u32>(bits >> 32);
    }
  }
}

}  // namespace

const Handler kMatrixDouble16 = dense_double<16>;
const Handler kMatrixDouble4 = dense_double<4>;

}  // namespace asmevo
