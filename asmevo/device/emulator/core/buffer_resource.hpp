// The buffer resource (V#) of gfx9 and the lane addresses it yields.
#pragma once

#include "lane_access.hpp"

namespace asmevo {

// Base 48 bits, stride 14 (18 with ADD_TID_ENABLE), swizzle enable in bit 63, num_records 32 (CDNA3
// ISA, "Buffer Resource Descriptor" and "Buffer Addressing"). Without an index num_records counts
// bytes, soffset among them ("Range Checking": out of range from num_records - sgpr_offset on), and
// every unit of the access is checked on its own; with IDXEN and a stride it counts records. LLVM
// promises only that the offsets of VGPR and instruction are checked, but AITER's attention walks
// keys with soffset and relies on zeros beyond the last.
//
// The offset does not wrap at 32 bits: a negative VGPR offset is out of range even when the
// instruction's offset would make the sum positive (LLVM, splitBufferOffsets).
struct Buffer {
  u64 base, stride, records, fixed, scalar;
  u32 index_stride;
  bool swizzled, adds_lane, unbound;
  const u32* index;
  const u32* offset;

  Buffer(Wave& w, const Step& s) {
    const u32* resource = &w.s[s.src[1].index];
    scalar = w.read32(s.src[2]);
    base = (resource[0] | (u64{resource[1] & 0xffffu} << 32)) + scalar;
    stride = (resource[1] >> 16) & 0x3fffu;
    records = resource[2];
    swizzled = resource[1] >> 31;
    index_stride = 8u << ((resource[3] >> 21) & 3);
    adds_lane = (resource[3] >> 23) & 1;
    const u32 format = (resource[3] >> 15) & 15;
    if (adds_lane) stride |= u64{format} << 14;
    unbound = format == 0 && !adds_lane;
    if (resource[3] >> 30) {
      throw Fault(FaultKind::kIllegal, "word 3 of the resource is not a buffer's");
    }
    fixed = static_cast<u32>(s.imm0);
    const bool offen = s.flags & kFlagOffen;
    const bool idxen = s.flags & kFlagIdxen;
    if ((swizzled && !idxen && !adds_lane) || (adds_lane && idxen)) {
      throw Fault(FaultKind::kIllegal,
                  "the range check of a swizzled resource without an index, or of an index with "
                  "ADD_TID_ENABLE, is not documented");
    }
    index = idxen ? w.v + s.src[0].index * kLanes : nullptr;
    offset = offen ? w.v + (s.src[0].index + (idxen ? 1 : 0)) * kLanes : nullptr;
  }

  // Whether lane i reaches base + fixed + offset[i] if offset[i] is below room().
  bool is_raw() const { return index == nullptr && !adds_lane && !unbound && room() > 0; }

  u64 room() const { return fixed + scalar < records ? records - fixed - scalar : 0; }

  template <Field F>
  LaneAccess lanes(u64 active) const {
    if (swizzled && F.size() > kElement) {
      throw Fault(FaultKind::kIllegal, "an access wider than the element of a swizzled resource");
    }
    LaneAccess access;
    access.active = active;
    for (std::size_t i = 0; i < kLanes; ++i) {
      const u64 record = (index ? index[i] : 0) + (adds_lane ? i : 0);
      const u64 within = (offset ? u64{offset[i]} : 0) + fixed;
      access.address[i] = base + (swizzled ? swizzle(record, within) : within + record * stride);
      if (unbound) {
        access.words[i] = 0;  // reads 0, drops writes
      } else if (adds_lane) {
        access.words[i] = F.words;  // a scratch buffer has no range check
      } else if (index != nullptr && stride != 0) {
        access.words[i] = record < records ? F.words : 0;
      } else {
        const u64 used = within + scalar;
        const u64 left = used < records ? (records - used) / F.bytes : 0;
        access.words[i] = static_cast<u8>(left < F.words ? left : F.words);
      }
    }
    return access;
  }

 private:
  static constexpr u32 kElement = 4;  // gfx9 has no element size field

  u64 swizzle(u64 record, u64 within) const {
    const u64 rows = record / index_stride * stride + within / kElement * kElement;
    return rows * index_stride + record % index_stride * kElement + within % kElement;
  }
};

}  // namespace asmevo
