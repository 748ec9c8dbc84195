// A double as an f32 with a sticky last bit, from which rounding to f16 is correct.
#pragma once

#include <cmath>

#include "float_bits.hpp"

namespace asmevo {

inline u32 sticky_f32(double x) {
  const auto near = static_cast<float>(x);
  u32 bits = as_bits(near);
  if (x != x || static_cast<double>(near) == x) return bits;
  if (std::fabs(static_cast<double>(near)) > std::fabs(x)) --bits;
  return bits | 1;
}

}  // namespace asmevo
