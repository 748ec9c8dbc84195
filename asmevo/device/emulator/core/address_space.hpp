// The address spaces of a lane: global memory, LDS and the private segment (scratch), and the
// apertures by which a flat address selects one of them.
#pragma once

#include <string>

#include "wave.hpp"

namespace asmevo {

// Upper halves of the flat addresses that lead to LDS and to scratch, as Linux sets them on gfx9
// (amdkfd, MAKE_LDS_APP_BASE_V9 and MAKE_SCRATCH_APP_BASE_V9); the lower half is the offset.
inline constexpr u64 kSharedAperture = 0x0001'0000'0000'0000ull;
inline constexpr u64 kPrivateAperture = 0x0002'0000'0000'0000ull;

inline u8* private_bytes(Wave& w, u32 offset, u64 size, std::size_t lane) {
  const u64 limit = w.private_words * sizeof(u32);
  if (offset + size > limit) {
    throw Fault(FaultKind::kMemory,
                "scratch access of " + std::to_string(size) + " bytes at offset " +
                    std::to_string(offset) + " in lane " + std::to_string(lane) +
                    " leaves the private segment of " + std::to_string(limit) + " bytes",
                static_cast<int>(lane), kPrivateAperture + offset);
  }
  return reinterpret_cast<u8*>(w.private_segment + lane * w.private_words) + offset;
}

inline u8* shared_bytes(Wave& w, u32 offset, u64 size, std::size_t lane) {
  const u64 limit = w.group->lds_bytes();
  if (offset + size > limit) {
    throw Fault(FaultKind::kMemory,
                "flat access of " + std::to_string(size) + " bytes at LDS offset " +
                    std::to_string(offset) + " in lane " + std::to_string(lane) +
                    " leaves the " + std::to_string(limit) + " bytes of the workgroup",
                static_cast<int>(lane), kSharedAperture + offset);
  }
  return w.group->lds() + offset;
}

// Host bytes of one lane's access, and the counters that the operation raises.
struct GlobalSpace {
  static u8* bytes(Wave& w, u64 address, u64 size, bool write, std::size_t lane) {
    return w.memory->access(address, size, write, static_cast<int>(lane));
  }
  static Pending& issue(Wave& w) { return w.issue_vm(); }
  static void issued(Wave&, Pending&) {}
};

// The address is the lane's offset into its private segment.
struct PrivateSpace {
  static u8* bytes(Wave& w, u64 address, u64 size, bool, std::size_t lane) {
    return private_bytes(w, static_cast<u32>(address), size, lane);
  }
  static Pending& issue(Wave& w) { return w.issue_vm(); }
  static void issued(Wave&, Pending&) {}
};

// A flat access raises both counters, and neither alone says that it is done (CDNA3 ISA, "Important
// Timing Consideration").
struct FlatSpace {
  static u8* bytes(Wave& w, u64 address, u64 size, bool write, std::size_t lane) {
    const u64 upper = address >> 32;
    if (upper == kSharedAperture >> 32) {
      return shared_bytes(w, static_cast<u32>(address), size, lane);
    }
    if (upper == kPrivateAperture >> 32) {
      return private_bytes(w, static_cast<u32>(address), size, lane);
    }
    return w.memory->access(address, size, write, static_cast<int>(lane));
  }
  static Pending& issue(Wave& w) { return w.issue_vm(); }
  static void issued(Wave& w, Pending& p) { w.pair_flat(p); }
};

}  // namespace asmevo
