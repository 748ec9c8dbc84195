// Dense products of one or several blocks. Included once for every vector width, after
// matrix_element.hpp.

namespace asmevo::ASMEVO_MATRIX_WIDTH {

// Where D[i][j] of a block is; the same for C. 64 / M groups of four rows share four registers.
template <std::size_t M>
struct Result {
  static constexpr std::size_t kGroups = kLanes / M;
  static constexpr std::size_t at(std::size_t block, std::size_t i) {
    const std::size_t group = i / 4;
    const std::size_t word = block * (M * M / kLanes) + 4 * (group / kGroups) + i % 4;
    return word * kLanes + M * (group % kGroups);
  }
};

// C of a product, moved out of the way when the result would overwrite what is still to be read.
template <std::size_t Words>
class Accumulator {
 public:
  Accumulator(const Wave& w, const Operand& c, u16 dst)
      : constant_(c.kind == Operand::Kind::kConstant),
        rows_(constant_ ? c.rows : w.v + c.index * kLanes) {
    if (!constant_ && c.index != dst && c.index < dst + Words && dst < c.index + Words) {
      std::memcpy(copy_, rows_, sizeof copy_);
      rows_ = copy_;
    }
  }
  const u32* at(std::size_t element) const { return rows_ + (constant_ ? 0 : element); }

 private:
  bool constant_;
  const u32* rows_;
  alignas(64) u32 copy_[Words * kLanes];
};

// Columns and rows of D that a register block holds: 8 or 16 vectors of sums.
template <std::size_t M>
inline constexpr std::size_t kColumns = M < 2 * kWide ? M : 2 * kWide;
template <std::size_t M>
inline constexpr std::size_t kRows = kWide == 16 ? 16 * kWide / kColumns<M> : 4;

template <class A, class B, std::size_t M, std::size_t Blocks, std::size_t Words>
void dense(Wave& w, const Step& s) {
  using Vector = typename A::Vector;
  constexpr std::size_t kElements = Words * A::kPerWord;
  constexpr std::size_t kDepthGroups = kLanes / (M * Blocks);  // lane groups along k of one block
  constexpr std::size_t kVectors = kColumns<M> / kWide;
  constexpr bool kRaised = std::is_same_v<A, I8> && kWide == 16;
  alignas(64) Unpacked<A, Words> a;
  alignas(64) Unpacked<B, Words> b;
  alignas(64) u32 moved[Words * kLanes];
  unpack<A, Words>(a, matrix_rows(w, s, 0, M, Words, moved));
  if constexpr (kRaised) {
    for (auto& row : a) {
      for (std::size_t at = 0; at < kLanes; at += kWide) {
        put(&row[at], load<IntVector>(&row[at]) ^ kRaise);
      }
    }
  }
  unpack<B, Words>(b, matrix_rows(w, s, 1, kLanes, Words, moved));
  const Accumulator<Blocks * M * M / kLanes> c(w, s.src[2], s.dst);
  u32* out = w.v + s.dst * kLanes;
  const u32 nan = w.fp.nan;

  for (std::size_t block = 0; block < Blocks; ++block) {
    for (std::size_t j = 0; j < M; j += kColumns<M>) {
      const std::size_t lane = block * M;
      Vector raised[kVectors] = {};  // what raising A adds to each column
      if constexpr (kRaised) {
        for (std::size_t group = 0; group < kDepthGroups; ++group) {
          for (std::size_t e = 0; e < kElements; ++e) {
            for (std::size_t v = 0; v < kVectors; ++v) {
              accumulate(raised[v], broadcast(kRaise),
                         load<Vector>(&b[e][group * M + lane + j + v * kWide]));
            }
          }
        }
      }
      for (std::size_t i = 0; i < M; i += kRows<M>) {
        Vector acc[kRows<M>][kVectors];
#pragma GCC unroll 16
        for (std::size_t r = 0; r < kRows<M>; ++r) {
#pragma GCC unroll 2
          for (std::size_t v = 0; v < kVectors; ++v) {
            acc[r][v] = load<Vector>(c.at(Result<M>::at(block, i + r) + j + v * kWide));
            if constexpr (kRaised) {
              acc[r][v] = (Vector)((WordVector)acc[r][v] - (WordVector)raised[v]);
            }
          }
        }
#pragma GCC unroll 1  // more would not fit the vector registers
        for (std::size_t group = 0; group < kDepthGroups; ++group) {
#pragma GCC unroll 1
          for (std::size_t e = 0; e < kElements; ++e) {
            const auto* rows = &a[e][group * M + lane + i];
            const auto* columns = &b[e][group * M + lane + j];
            Vector right[kVectors];
#pragma GCC unroll 2
            for (std::size_t v = 0; v < kVectors; ++v) right[v] = load<Vector>(columns + v * kWide);
#pragma GCC unroll 16
            for (std::size_t r = 0; r < kRows<M>; ++r) {
              const Vector left = broadcast(rows[r]);
#pragma GCC unroll 2
              for (std::size_t v = 0; v < kVectors; ++v) accumulate(acc[r][v], left, right[v]);
            }
          }
        }
#pragma GCC unroll 16
        for (std::size_t r = 0; r < kRows<M>; ++r) {
#pragma GCC unroll 2
          for (std::size_t v = 0; v < kVectors; ++v) {
            store(out + Result<M>::at(block, i + r) + j + v * kWide, acc[r][v], nan);
          }
        }
      }
    }
  }
}

// Sixteen blocks of 4 x 4: D[i][j] of a block is word i of lane 4 * block + j.
template <class A, class B, std::size_t Words>
void quads(Wave& w, const Step& s) {
  using Vector = typename A::Vector;
  constexpr std::size_t kElements = Words * A::kPerWord;
  constexpr bool kRaised = std::is_same_v<A, I8> && kWide == 16;
  alignas(64) Unpacked<A, Words> a;
  alignas(64) Unpacked<B, Words> b;
  alignas(64) u32 moved[Words * kLanes];
  unpack<A, Words>(a, matrix_rows(w, s, 0, 4, Words, moved));
  unpack<B, Words>(b, matrix_rows(w, s, 1, kLanes, Words, moved));
  const Accumulator<4> c(w, s.src[2], s.dst);
  u32* out = w.v + s.dst * kLanes;
  const u32 nan = w.fp.nan;
  for (std::size_t i = 0; i < 4; ++i) {
    alignas(64) std::array<typename A::Rows, kElements> left;
    for (std::size_t e = 0; e < kElements; ++e) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) left[e][lane] = a[e][(lane & ~3u) + i];
    }
    for (std::size_t at = 0; at < kLanes; at += kWide) {
      Vector acc = load<Vector>(c.at(i * kLanes + at));
      for (std::size_t e = 0; e < kElements; ++e) {
        const Vector columns = load<Vector>(&b[e][at]);
        Vector row = load<Vector>(&left[e][at]);
        if constexpr (kRaised) {
          Vector raised{};
          accumulate(raised, broadcast(kRaise), columns);
          acc = (Vector)((WordVector)acc - (WordVector)raised);
          row ^= kRaise;
        }
        accumulate(acc, row, columns);
      }
      store(out + i * kLanes + at, acc, nan);
    }
  }
}

}  // namespace
