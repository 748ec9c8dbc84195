// What code that runs straight on does to vector registers.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "operation.hpp"

namespace asmevo {

// Adjacent vector rows.
struct Rows {
  u32 first, count;
  bool meets(u32 other, u32 words) const {
    return other < first + count && first < other + words;
  }
};

// Operations after which the next one may be another, may not be issued, or may use other registers
// than it names; flat accesses and caches, which count in more than one way.
inline bool ends_the_walk(const Operation& op) {
  using namespace std::string_view_literals;
  static constexpr std::array kNames = {"s_setpc_b64"sv,    "s_swappc_b64"sv, "s_setreg_b32"sv,
                                        "s_setreg_imm32_b32"sv, "s_setvskip"sv, "s_endpgm"sv,
                                        "s_endpgm_saved"sv, "s_trap"sv};
  switch (op.shape) {
    case Shape::kBranch: case Shape::kProgramCounter: case Shape::kFlat: case Shape::kCache:
      return true;
    default:
      return (op.traits & kIndexesGprs) != 0 ||
             std::find(kNames.begin(), kNames.end(), op.name) != kNames.end();
  }
}

inline bool writes_vectors(Shape shape) {
  switch (shape) {
    case Shape::kVector: case Shape::kWriteLane: case Shape::kMatrix: case Shape::kBuffer:
    case Shape::kGlobal: case Shape::kFlat: case Shape::kScratch: case Shape::kLds:
      return true;
    default:
      return false;
  }
}

inline bool reads(const Step& s, Rows rows) {
  for (std::size_t k = 0; k < 3; ++k) {
    if (s.src[k].kind == Operand::Kind::kVector && rows.meets(s.src[k].index, s.src_words[k])) {
      return true;
    }
  }
  return false;
}

}  // namespace asmevo
