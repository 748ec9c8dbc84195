// Moves between lanes through the crossbar of the LDS; no memory is touched.
#include <algorithm>
#include <bit>

#include "operation.hpp"

namespace asmevo {

namespace {

Pending& begin(Wave& w, const Step& s) {
  Pending& p = w.issue_lgkm(1);
  p.kind = Pending::Kind::kVector;
  p.words = 1;
  p.dst = s.dst;
  p.lanes = w.active();
  std::fill_n(p.data.data(), kLanes, 0u);
  return p;
}

// Both gather at issue. A lane that EXEC disables is never read: its value counts as 0.
template <bool Forward>
void permute_lanes(Wave& w, const Step& s) {
  const u32* address = w.v + s.src[0].index * kLanes;
  const u32* data = w.v + s.src[1].index * kLanes;
  const u32 offset = static_cast<u32>(s.imm0);
  const u64 active = w.active();
  Pending& p = begin(w, s);
  for (u64 m = active; m != 0; m &= m - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(m));
    const std::size_t other = ((address[i] + offset) / 4) & 63;
    if constexpr (Forward) {
      p.data[other] = data[i];  // of several writers the highest lane wins
    } else if ((active >> other) & 1) {
      p.data[i] = data[other];
    }
  }
}

u32 reverse5(u32 x) {
  u32 out = 0;
  for (u32 bit = 0; bit < 5; ++bit) out |= ((x >> bit) & 1) << (4 - bit);
  return out;
}

// Which lane of its 32 a lane reads (CDNA3 ISA, "DS_SWIZZLE_B32"; the rotation, which that text
// leaves out, is in the one of RDNA and LLVM encodes it for gfx9).
u32 swizzle_source(u32 pattern, u32 lane) {
  const u32 low = pattern & 31;
  if (pattern >= 0xe000) {
    return low == 31 ? lane
                     : (reverse5(lane) >> std::popcount(low)) | (lane & low);
  }
  if (pattern >= 0xc000) {
    const u32 distance = (pattern >> 5) & 31;
    const u32 moved = (pattern >> 10) & 1 ? lane - distance : lane + distance;
    return (lane & low) | (moved & ~low & 31);
  }
  if (pattern & 0x8000) return (lane & ~3u) | ((pattern >> (2 * (lane & 3))) & 3);
  return ((lane & low) | ((pattern >> 5) & 31)) ^ ((pattern >> 10) & 31);
}

void swizzle(Wave& w, const Step& s) {
  const u32* data = w.v + s.src[0].index * kLanes;
  const u64 active = w.active();
  Pending& p = begin(w, s);
  for (u64 m = active; m != 0; m &= m - 1) {
    const auto i = static_cast<u32>(std::countr_zero(m));
    const u32 other = (i & 32) | swizzle_source(static_cast<u32>(s.imm0) & 0xffffu, i & 31);
    if ((active >> other) & 1) p.data[i] = data[other];
  }
}

constexpr Operation kTable[] = {
    {"ds_permute_b32", Shape::kLds, 1, {1, 1, 0}, kNoTraits, permute_lanes<true>},
    {"ds_bpermute_b32", Shape::kLds, 1, {1, 1, 0}, kNoTraits, permute_lanes<false>},
    {"ds_swizzle_b32", Shape::kLds, 1, {1, 0, 0}, kNoTraits, swizzle},
};

}  // namespace

std::span<const Operation> lds_permute_operations() { return kTable; }

}  // namespace asmevo
