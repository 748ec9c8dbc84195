// LDS reads, writes and lane permutes.
#include <algorithm>
#include <bit>

#include "lds_banks.hpp"
#include "line_tracer.hpp"
#include "operation.hpp"

namespace asmevo {

namespace {

void trace_lds(Wave& w, const u32* address, const u64* offsets, std::size_t parts, u32 words,
               bool write) {
  Tracer tracer(*w.trace);
  u32 cycles = 0;
  for (std::size_t part = 0; part < parts; ++part) {
    cycles += lds_cycles(address, static_cast<u32>(offsets[part]), w.active(), words, write);
  }
  tracer.add_bytes(u64{static_cast<u32>(std::popcount(w.active()))} * 4 * words * parts);
  tracer.finish(cycles);
}

u64 highest(const u32* address) {
  u32 result = 0;
  for (std::size_t i = 0; i < kLanes; ++i) result = std::max(result, address[i]);
  return result;
}

// Dwords beyond the allocated LDS read 0 and are not written (CDNA3 ISA, "LDS Out of Range").
// Parts is 2 for ds_read2/ds_write2; Scale turns their offsets into bytes.
template <u8 Words, std::size_t Parts, u32 Scale>
void lds_read(Wave& w, const Step& s) {
  const u32* address = w.v + s.src[0].index * kLanes;
  const u64 offsets[2] = {u64{static_cast<u32>(s.imm0)} * Scale,
                          u64{static_cast<u32>(s.imm1)} * Scale};
  const u8* lds = w.group->lds();
  const u64 size = w.group->lds_bytes();
  Pending& p = w.issue_lgkm(1);
  p.kind = Pending::Kind::kVector;
  p.words = Words * Parts;
  p.dst = s.dst;
  p.lanes = w.active();
  if (w.trace != nullptr) trace_lds(w, address, offsets, Parts, Words, false);

  const u64 reach = std::max(offsets[0], Parts == 2 ? offsets[1] : 0) + 4 * Words;
  if (p.lanes == kAllLanes && highest(address) + reach <= size) {
    for (std::size_t k = 0; k < Words * Parts; ++k) {
      const u8* base = lds + offsets[k / Words] + 4 * (k % Words);
      u32* out = p.data.data() + k * kLanes;
      for (std::size_t i = 0; i < kLanes; ++i) std::memcpy(&out[i], base + address[i], 4);
    }
    return;
  }
  for (u64 m = p.lanes; m != 0; m &= m - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(m));
    for (std::size_t k = 0; k < Words * Parts; ++k) {
      const u64 at = address[i] + offsets[k / Words] + 4 * (k % Words);
      u32 word = 0;
      if (at + 4 <= size) std::memcpy(&word, lds + at, 4);
      p.data[k * kLanes + i] = word;
    }
  }
}

template <u8 Words, std::size_t Parts, u32 Scale>
void lds_write(Wave& w, const Step& s) {
  const u32* address = w.v + s.src[0].index * kLanes;
  const u64 offsets[2] = {u64{static_cast<u32>(s.imm0)} * Scale,
                          u64{static_cast<u32>(s.imm1)} * Scale};
  u8* lds = w.group->lds();
  const u64 size = w.group->lds_bytes();
  w.land_lds_loads();
  w.issue_lgkm(1).kind = Pending::Kind::kStore;
  for (std::size_t part = 0; part < Parts; ++part) {
    const u32* data = w.v + s.src[1 + part].index * kLanes;
    for (u64 m = w.active(); m != 0; m &= m - 1) {
      const auto i = static_cast<std::size_t>(std::countr_zero(m));
      for (std::size_t k = 0; k < Words; ++k) {
        const u64 at = address[i] + offsets[part] + 4 * k;
        if (at + 4 <= size) std::memcpy(lds + at, &data[k * kLanes + i], 4);
      }
    }
  }
  if (w.trace != nullptr) trace_lds(w, address, offsets, Parts, Words, true);
}

// Both gather at issue. A lane that EXEC disables is never read: its value counts as 0.
template <bool Forward>
void permute_lanes(Wave& w, const Step& s) {
  const u32* address = w.v + s.src[0].index * kLanes;
  const u32* data = w.v + s.src[1].index * kLanes;
  const u32 offset = static_cast<u32>(s.imm0);
  const u64 active = w.active();
  Pending& p = w.issue_lgkm(1);
  p.kind = Pending::Kind::kVector;
  p.words = 1;
  p.dst = s.dst;
  p.lanes = active;
  std::fill_n(p.data.data(), kLanes, 0u);
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

#define LDS(suffix, n) \
  {"ds_read_" suffix, Shape::kLds, n, {1, 0, 0}, kNoTraits, lds_read<n, 1, 1>}, \
  {"ds_write_" suffix, Shape::kLds, 0, {1, n, 0}, kNoTraits, lds_write<n, 1, 1>}
#define LDS2(infix, suffix, n, scale) \
  {"ds_read2" infix suffix, Shape::kLds, 2 * n, {1, 0, 0}, kNoTraits, lds_read<n, 2, scale>}, \
  {"ds_write2" infix suffix, Shape::kLds, 0, {1, n, n}, kNoTraits, lds_write<n, 2, scale>}

constexpr Operation kTable[] = {
    {"ds_permute_b32", Shape::kLds, 1, {1, 1, 0}, kNoTraits, permute_lanes<true>},
    {"ds_bpermute_b32", Shape::kLds, 1, {1, 1, 0}, kNoTraits, permute_lanes<false>},
    LDS("b32", 1), LDS("b64", 2), LDS("b128", 4),
    LDS2("_", "b32", 1, 4), LDS2("_", "b64", 2, 8),
    LDS2("st64_", "b32", 1, 256), LDS2("st64_", "b64", 2, 512),
};

}  // namespace

std::span<const Operation> lds_operations() { return kTable; }

}  // namespace asmevo
