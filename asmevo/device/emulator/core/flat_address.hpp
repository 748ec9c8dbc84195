// Lane addresses of the flat encoding's segments.
#pragma once

#include "lane_access.hpp"

namespace asmevo {

template <u8 Words>
LaneAccess global_lanes(Wave& w, const Step& s) {
  const u64 immediate = static_cast<u64>(i64{s.imm0});
  LaneAccess access;
  access.active = w.active();
  std::fill_n(access.words, kLanes, Words);
  const u32* lo = w.v + s.src[0].index * kLanes;
  if (s.src[1].kind != Operand::Kind::kAbsent) {
    const u64 base = w.read64(s.src[1]) + immediate;
    for (std::size_t i = 0; i < kLanes; ++i) access.address[i] = base + lo[i];
  } else {
    const u32* hi = lo + kLanes;
    for (std::size_t i = 0; i < kLanes; ++i) {
      access.address[i] = (lo[i] | (u64{hi[i]} << 32)) + immediate;
    }
  }
  return access;
}

}  // namespace asmevo
