// Loads and stores of 64 lanes. A load reads memory at issue, and its registers
// change when a wait delivers it; a store takes effect in memory at issue.
#pragma once

#include <algorithm>
#include <bit>

#include "address_space.hpp"
#include "field.hpp"
#include "line_tracer.hpp"
#include "operation.hpp"

namespace asmevo {

// Addresses of one vector memory operation; words[i] units of lane i are in range, the rest is
// dropped or reads 0.
struct LaneAccess {
  u64 address[kLanes];
  u8 words[kLanes];
  u64 active;
};

// Where the cycle model sees a lane's bytes. Scratch is interleaved by dword over the lanes, and each
// wave has its own (LLVM AMDGPUUsage, "Private"); which addresses is the driver's choice, so it is put
// where no dispatch has memory.
template <class Space>
u64 traced_address(const Wave& w, u64 address, std::size_t lane) {
  constexpr u64 kScratch = u64{1} << 60;
  if constexpr (std::is_same_v<Space, GlobalSpace>) return address;
  if (std::is_same_v<Space, FlatSpace> && address >> 32 == kSharedAperture >> 32) {
    throw Fault(FaultKind::kIllegal, "the cycle model has no timing for a flat access to LDS");
  }
  if (std::is_same_v<Space, FlatSpace> && address >> 32 != kPrivateAperture >> 32) return address;
  const u64 wave = u64{w.trace->workgroup} * 16 + w.trace->wave;
  const u64 offset = address & 0xffffffffu;
  return kScratch + (wave << 24) + offset / 4 * (4 * kLanes) + 4 * lane + offset % 4;
}

template <class Space>
void trace_lanes(Wave& w, const LaneAccess& access, u64 unit) {
  Tracer tracer(*w.trace);
  for (u64 m = access.active; m != 0; m &= m - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(m));
    if (access.words[i] == 0) continue;
    const u64 size = unit * access.words[i];
    if (traced_address<Space>(w, access.address[i], i) == access.address[i]) {
      tracer.touch(access.address[i], size);
      continue;
    }
    for (u64 at = 0; at < size; at += 4) {
      tracer.touch(traced_address<Space>(w, access.address[i] + at, i), std::min<u64>(size, 4));
    }
  }
  tracer.finish();
}

// All 64 lanes at 32-bit offsets from one base, every unit in range of `limit` and of one region:
// one check for the whole access. Returns the host address of offset `low`, or null.
template <u32 Size>
u8* uniform_region(Wave& w, u64 base, const u32* offsets, u64 limit, bool write, u32& low) {
  if (w.active() != kAllLanes || w.trace != nullptr || offsets == nullptr) return nullptr;
  u32 lowest = ~0u, highest = 0;
  for (std::size_t i = 0; i < kLanes; ++i) {
    lowest = std::min(lowest, offsets[i]);
    highest = std::max(highest, offsets[i]);
  }
  if (limit < Size || highest > limit - Size) return nullptr;
  u8* bytes = w.memory->range(base + lowest, u64{highest} - lowest + Size, write);
  if (bytes != nullptr && w.memory->tracked()) {
    w.memory->mark_lanes(base, offsets, kLanes, Size, write);
  }
  low = lowest;
  return bytes;
}

template <u8 Words>
bool consecutive(const u32* offsets) {
  u32 difference = 0;
  for (u32 i = 0; i < kLanes; ++i) difference |= offsets[i] - offsets[0] - i * 4 * Words;
  return difference == 0;
}

// A dword of memory, which a lane may have at any address.
// Named where it is used: `auto` would deduce a u32, which is aligned.
using RawDword = u32 __attribute__((aligned(1), may_alias));

template <u8 Words>
void load_uniform(Wave& w, const Step& s, const u8* bytes, const u32* offsets, u32 low) {
  Pending& p = w.issue_vm();
  p.kind = Pending::Kind::kVector;
  p.words = Words;
  p.dst = s.dst;
  p.lanes = kAllLanes;
  u32* out = w.result_rows(w.vm, p, s);
  if (consecutive<Words>(offsets)) {
    const RawDword* in = reinterpret_cast<const RawDword*>(bytes);
    ASMEVO_LANES(i) {
      for (std::size_t k = 0; k < Words; ++k) out[k * kLanes + i] = in[i * Words + k];
    }
    return;
  }
  for (std::size_t i = 0; i < kLanes; ++i) {
    u32 word[Words];
    std::memcpy(word, bytes + (offsets[i] - low), sizeof word);
    for (std::size_t k = 0; k < Words; ++k) out[k * kLanes + i] = word[k];
  }
}

template <u8 Words>
void store_uniform(Wave& w, const Step& s, u8* bytes, const u32* offsets, u32 low) {
  w.issue_vm().kind = Pending::Kind::kStore;
  const u32* data = w.v + s.dst * kLanes;
  if (consecutive<Words>(offsets)) {
    RawDword* out = reinterpret_cast<RawDword*>(bytes);
    ASMEVO_LANES(i) {
      for (std::size_t k = 0; k < Words; ++k) out[i * Words + k] = data[k * kLanes + i];
    }
    return;
  }
  for (std::size_t i = 0; i < kLanes; ++i) {
    u32 word[Words];
    for (std::size_t k = 0; k < Words; ++k) word[k] = data[k * kLanes + i];
    std::memcpy(bytes + (offsets[i] - low), word, sizeof word);
  }
}

template <Field F>
void load_narrow_uniform(Wave& w, const Step& s, const u8* bytes, const u32* offsets, u32 low) {
  Pending& p = w.issue_vm();
  p.kind = Pending::Kind::kVector;
  p.words = 1;
  p.dst = s.dst;
  p.lanes = kAllLanes;
  u32* out = w.result_rows(w.vm, p, s);
  for (std::size_t i = 0; i < kLanes; ++i) {
    u32 raw = 0;
    std::memcpy(&raw, bytes + (offsets[i] - low), F.bytes);
    out[i] = widen<F>(raw);
  }
}

template <Field F>
void store_narrow_uniform(Wave& w, const Step& s, u8* bytes, const u32* offsets, u32 low) {
  w.issue_vm().kind = Pending::Kind::kStore;
  const u32* data = w.v + s.dst * kLanes;
  for (std::size_t i = 0; i < kLanes; ++i) {
    const u32 raw = narrow<F>(data[i]);
    std::memcpy(bytes + (offsets[i] - low), &raw, F.bytes);
  }
}

// Whether the access was done by the uniform path.
template <Field F, bool Store>
bool uniform_access(Wave& w, const Step& s, u64 base, const u32* offsets, u64 limit) {
  u32 low;
  u8* bytes = uniform_region<F.size()>(w, base, offsets, limit, Store, low);
  if (bytes == nullptr) return false;
  if constexpr (F.bytes != 4) {
    if constexpr (Store) store_narrow_uniform<F>(w, s, bytes, offsets, low);
    else load_narrow_uniform<F>(w, s, bytes, offsets, low);
  } else if constexpr (Store) {
    store_uniform<F.words>(w, s, bytes, offsets, low);
  } else {
    load_uniform<F.words>(w, s, bytes, offsets, low);
  }
  return true;
}

inline Pending& begin_load_to_lds(Wave& w, const Step& s) {
  Pending& p = w.issue_vm();
  p.kind = Pending::Kind::kLds;
  p.words = 1;
  p.lanes = w.active();
  p.data[kLanes] = (w.s[kM0] & 0xffffu) + static_cast<u32>(s.imm0);
  return p;
}

template <Field F, class Space>
void load(Wave& w, const Step& s, const LaneAccess& access) {
  Pending& p = Space::issue(w);
  p.kind = Pending::Kind::kVector;
  p.words = F.words;
  p.dst = s.dst;
  p.lanes = access.active;
  for (u64 m = access.active; m != 0; m &= m - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(m));
    u32 word[F.words] = {};
    if (const u64 size = F.bytes * u64{access.words[i]}; size != 0) {
      std::memcpy(word, Space::bytes(w, access.address[i], size, false, i), size);
    }
    for (std::size_t k = 0; k < F.words; ++k) p.data[k * kLanes + i] = widen<F>(word[k]);
  }
  Space::issued(w, p);
  if (w.trace != nullptr) trace_lanes<Space>(w, access, F.bytes);
}

template <Field F, class Space>
void store(Wave& w, const Step& s, const LaneAccess& access) {
  Pending& p = Space::issue(w);
  p.kind = Pending::Kind::kStore;
  const u32* data = w.v + s.dst * kLanes;
  for (u64 m = access.active; m != 0; m &= m - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(m));
    u32 word[F.words];
    for (std::size_t k = 0; k < F.words; ++k) word[k] = narrow<F>(data[k * kLanes + i]);
    if (const u64 size = F.bytes * u64{access.words[i]}; size != 0) {
      std::memcpy(Space::bytes(w, access.address[i], size, true, i), word, size);
    }
  }
  Space::issued(w, p);
  if (w.trace != nullptr) trace_lanes<Space>(w, access, F.bytes);
}

// One unit a lane to LDS at M0[15:0] plus the instruction's offset plus 4 times the lane; it arrives
// with vmcnt. Narrow units fill a dword (CDNA3 ISA, "Memory Buffer Load to LDS").
template <Field F, class Space>
void load_to_lds(Wave& w, const Step& s, const LaneAccess& access) {
  Pending& p = begin_load_to_lds(w, s);
  for (u64 m = access.active; m != 0; m &= m - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(m));
    u32 word = 0;
    if (access.words[i] != 0) {
      std::memcpy(&word, Space::bytes(w, access.address[i], F.bytes, false, i), F.bytes);
    }
    p.data[i] = widen<F>(word);
  }
  if (w.trace != nullptr) trace_lanes<Space>(w, access, F.bytes);
}

}  // namespace asmevo
