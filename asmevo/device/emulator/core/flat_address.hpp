// Lane addresses of the flat encoding's segments.
#pragma once

#include "lane_access.hpp"

namespace asmevo {

inline LaneAccess every_lane(Wave& w, u8 words) {
  LaneAccess access;
  access.active = w.active();
  std::fill_n(access.words, kLanes, words);
  return access;
}

// A 64-bit VGPR address, or an SGPR base with a 32-bit VGPR offset (CDNA3 ISA, "Global").
inline LaneAccess global_lanes(Wave& w, const Step& s, u8 words) {
  const u64 immediate = static_cast<u64>(i64{s.imm0});
  LaneAccess access = every_lane(w, words);
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

// Offsets into each lane's private segment; VGPR and SGPR are both optional (CDNA3 ISA, "Scratch").
inline LaneAccess private_lanes(Wave& w, const Step& s, u8 words) {
  LaneAccess access = every_lane(w, words);
  u32 fixed = static_cast<u32>(s.imm0);
  if (s.src[1].kind != Operand::Kind::kAbsent) fixed += w.read32(s.src[1]);
  const u32* offset =
      s.src[0].kind == Operand::Kind::kVector ? w.v + s.src[0].index * kLanes : nullptr;
  for (std::size_t i = 0; i < kLanes; ++i) {
    access.address[i] = static_cast<u32>(fixed + (offset ? offset[i] : 0));
  }
  return access;
}

}  // namespace asmevo
