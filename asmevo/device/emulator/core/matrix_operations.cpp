// The matrix operations of gfx942: dense (MFMA) and with a half-empty A (SMFMAC).
//
// Layouts (AMD matrix instruction calculator, cdna3), for M x M results of `blocks` blocks and E
// inputs a lane, L = M * blocks:
//   A[i][k] is element k % E of lane i + M * block + L * (k / E); B[k][j] likewise with j for i,
//   D[i][j], C[i][j]: g = i / 4; lane = j + M * (g % (64 / M)), and
//     word = block * M * M / 64 + 4 * (g / (64 / M)) + i % 4; of 4 x 4 blocks: lane = j + 4 * block;
//   f64: lane = j + M * block + 16 * (i % 4), register pair i / 4.
//
// Arithmetic: AMD publishes neither order nor rounding. By default every product is exact and is
// added to the f32 accumulator, which starts as C, in order of rising k with one rounding to nearest
// even a product; what was measured on MI300X is there too (matrix_fused.hpp, which says whose
// measurement), and differs for 8- and 16-bit floats and xf32. Denormal inputs and results are kept:
// of AMD's generations only MI200 flushes them (MIOpen, "MI200 MFMA behavior specifics"; the same
// measurement), and FP mode is not consulted. xf32 inputs lose the 13 low bits of their mantissa,
// whatever they are (the same measurement). Integers wrap; these encodings have no clamp. A NaN
// result is the launch's one quiet NaN (fp_mode.hpp). EXEC is ignored, as in hardware
// (CDNA3 ISA, "Matrix Arithmetic Instructions").
#include "matrix_operations.hpp"

#include <vector>

#include "fault.hpp"
#include "matrix_table.hpp"

namespace asmevo {

namespace {

// Lane that BLGP reads instead of `lane` (CDNA3 ISA, "VOP3P-MAI", BLGP): of the first or second
// half, one quarter on, or one quarter for all.
std::size_t permuted_lane(std::size_t lane, u32 blgp) {
  switch (blgp) {
    case 1: return lane % 32;
    case 2: return lane % 32 + 32;
    case 3: return (lane + 16) % kLanes;
    case 4: case 5: case 6: case 7: return lane % 16 + 16 * (blgp - 4);
    default: return lane;
  }
}

constexpr Operation kDouble[] = {
    {"v_mfma_f64_16x16x4_f64", Shape::kMatrix, 8, {2, 2, 8}, kMods, nullptr},
    {"v_mfma_f64_4x4x4_4b_f64", Shape::kMatrix, 2, {2, 2, 2}, kMods, nullptr},
};

constexpr u32 dense_traits(bool blocks, bool f32) {
  return (blocks ? kBroadcastsA : kNoTraits) | (blocks || f32 ? kPermutesB : kNoTraits);
}

template <std::size_t N>
constexpr bool is_f32(const char (&type)[N]) {
  return N == 4 && type[0] == 'F' && type[1] == '3' && type[2] == '2';
}

#define DENSE(name, A, B, size, blocks, words)                           \
  {name, Shape::kMatrix, size * size * blocks / 64,                      \
   {words, words, size * size * blocks / 64}, dense_traits(blocks != 1, is_f32(#A)), nullptr},
#define QUADS(name, A, B, words) \
  {name, Shape::kMatrix, 4, {words, words, 4}, dense_traits(true, false), nullptr},
#define SPARSE(name, A, B, size) \
  {name, Shape::kMatrix, size * size / 64, {2, 4, 1}, kReadsDst, nullptr},
constexpr Operation kTable[] = {ASMEVO_MATRIX_OPERATIONS(DENSE, QUADS, SPARSE)};
#undef DENSE
#undef QUADS
#undef SPARSE

}  // namespace

const u32* matrix_rows(const Wave& w, const Step& s, std::size_t slot) {
  if (w.gpr_index_enabled) {
    throw Fault(FaultKind::kIllegal, "GPR indexing of a matrix operation is not modelled");
  }
  return w.v + s.src[slot].index * kLanes;
}

const u32* matrix_rows(const Wave& w, const Step& s, std::size_t slot, std::size_t lanes,
                       std::size_t words, u32* moved) {
  const u32* rows = matrix_rows(w, s, slot);
  const u32 cbsz = static_cast<u32>(s.imm0), abid = static_cast<u32>(s.imm1) & 15;
  const u32 blgp = static_cast<u32>(s.imm1) >> 4;
  if (slot == 0 ? cbsz == 0 : blgp == 0) return rows;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    std::size_t from = permuted_lane(lane, blgp);
    if (slot == 0) {
      const std::size_t block = (lane / lanes & ~((std::size_t{1} << cbsz) - 1)) + abid;
      from = (block * lanes + lane % lanes) % kLanes;
    }
    for (std::size_t word = 0; word < words; ++word) {
      moved[word * kLanes + lane] = rows[word * kLanes + from];
    }
  }
  return moved;
}

std::span<const Operation> matrix_operations() {
  static const std::vector<Operation> table = [] {
    std::vector<Operation> all(std::begin(kTable), std::end(kTable));
    const auto narrow = narrow_matrix_handlers(), wide = wide_matrix_handlers();
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].handler = narrow.sequential[i];
      all[i].fused = narrow.fused[i];
      if (wide.sequential.empty()) continue;
      all[i].wide = wide.sequential[i];
      all[i].wide_fused = wide.fused[i];
    }
    all.insert(all.end(), std::begin(kDouble), std::end(kDouble));
    all[all.size() - 2].handler = kMatrixDouble16;
    all[all.size() - 1].handler = kMatrixDouble4;
    return all;
  }();
  return table;
}

}  // namespace asmevo
