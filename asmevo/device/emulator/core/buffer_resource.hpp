// The buffer resource (V#) of gfx9 and the lane addresses it yields.
#pragma once

#include "lane_access.hpp"

namespace asmevo {

// Buffer resource of gfx9: base 48 bits, stride 14, swizzle enable bit 63, num_records 32. Bounds:
// with IDXEN and a stride, num_records counts records; otherwise it counts bytes and every dword of
// the access is checked on its own (CDNA3 ISA, "Range Checking"; LLVM AMDGPUUsage, "Buffer
// Resource"; Mesa ac_descriptors on gfx9).
struct Buffer {
  u64 base, stride, records, fixed;
  const u32* index;
  const u32* offset;

  Buffer(Wave& w, const Step& s) {
    const u32* resource = &w.s[s.src[1].index];
    base = resource[0] | (u64{resource[1] & 0xffffu} << 32);
    stride = (resource[1] >> 16) & 0x3fffu;
    records = resource[2];
    if (resource[1] >> 31) {
      throw Fault(FaultKind::kIllegal, "swizzled buffer resources are not modelled");
    }
    if (resource[3] >> 30) {
      throw Fault(FaultKind::kIllegal, "word 3 of the resource is not a buffer's");
    }
    fixed = u64{w.read32(s.src[2])} + static_cast<u32>(s.imm0);
    const bool offen = s.flags & kFlagOffen;
    const bool idxen = s.flags & kFlagIdxen;
    index = idxen ? w.v + s.src[0].index * kLanes : nullptr;
    offset = offen ? w.v + (s.src[0].index + (idxen ? 1 : 0)) * kLanes : nullptr;
  }

  template <u8 Words>
  LaneAccess lanes(u64 active) const {
    const bool structured = index != nullptr && stride != 0;
    LaneAccess access;
    access.active = active;
    for (std::size_t i = 0; i < kLanes; ++i) {
      const u64 record = index ? index[i] : 0;
      const u64 within = (offset ? u64{offset[i]} : 0) + fixed;
      const u64 total = within + record * stride;
      access.address[i] = base + total;
      if (structured) {
        access.words[i] = record < records ? Words : 0;
      } else {
        const u64 room = total < records ? (records - total) / 4 : 0;
        access.words[i] = static_cast<u8>(room < Words ? room : Words);
      }
    }
    return access;
  }
};

}  // namespace asmevo
