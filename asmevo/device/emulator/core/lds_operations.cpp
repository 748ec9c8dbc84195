// LDS reads and writes.
#include <algorithm>
#include <bit>

#include "field.hpp"
#include "lane_access.hpp"
#include "lds_banks.hpp"
#include "line_tracer.hpp"
#include "operation.hpp"

namespace asmevo {

namespace {

void trace_lds(Wave& w, const u32* address, const u32* offsets, std::size_t parts, Field field,
               bool write) {
  Tracer tracer(*w.trace);
  u32 cycles = 0;
  for (std::size_t part = 0; part < parts; ++part) {
    cycles += lds_cycles(address, offsets[part], w.active(), field.words, write);
  }
  tracer.add_bytes(u64{static_cast<u32>(std::popcount(w.active()))} * field.size() * parts);
  tracer.finish(cycles);
}

u64 highest(const u32* address) {
  u32 result = 0;
  for (std::size_t i = 0; i < kLanes; ++i) result = std::max(result, address[i]);
  return result;
}

u32 differing(const u32* address) {
  u32 bits = 0;
  for (std::size_t i = 0; i < kLanes; ++i) bits |= address[i] ^ address[0];
  return bits;
}

// The address of ds_*_addtid: M0[15:0] plus 4 times the lane.
void lane_addresses(Wave& w, u32* address) {
  for (u32 i = 0; i < kLanes; ++i) address[i] = (w.s[kM0] & 0xffffu) + 4 * i;
}

// Units beyond the allocated LDS read 0 and are not written (CDNA3 ISA, "LDS Out of Range"); address
// plus offset wraps at 32 bits, which only Southern Islands did not do (LLVM, isDSOffsetLegal).
// Parts is 2 for ds_read2/ds_write2; Scale turns their offsets into bytes.
template <Field F, std::size_t Parts>
void read_at(Wave& w, const Step& s, const u32* address, const u32* offsets) {
  const u8* lds = w.group->lds();
  const u64 size = w.group->lds_bytes();
  Pending& p = w.issue_lgkm(1);
  p.kind = Pending::Kind::kVector;
  p.words = F.words * Parts;
  p.dst = s.dst;
  p.lanes = w.active();
  if (w.trace != nullptr) trace_lds(w, address, offsets, Parts, F, false);

  if constexpr (F.bytes == 4) {
    const u64 reach = u64{std::max(offsets[0], Parts == 2 ? offsets[1] : 0)} + F.size();
    if (p.lanes == kAllLanes && highest(address) + reach <= size) {
      u32* const rows = w.result_rows(w.lgkm, p, s);
      const u32 first = address[0];
      const bool one = differing(address) == 0;  // all lanes read the same
      if (F.words == 1 && (one || consecutive<1>(address))) {
        for (std::size_t k = 0; k < Parts; ++k) {
          const RawDword* in = reinterpret_cast<const RawDword*>(lds + offsets[k] + first);
          u32* out = rows + k * kLanes;
          if (one) {
            const u32 word = in[0];
            ASMEVO_LANES(i) out[i] = word;
          } else {
            ASMEVO_LANES(i) out[i] = in[i];
          }
        }
        return;
      }
      for (std::size_t k = 0; k < F.words * Parts; ++k) {
        const u8* base = lds + offsets[k / F.words] + 4 * (k % F.words);
        u32* out = rows + k * kLanes;
        for (std::size_t i = 0; i < kLanes; ++i) std::memcpy(&out[i], base + address[i], 4);
      }
      return;
    }
  }
  for (u64 m = p.lanes; m != 0; m &= m - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(m));
    for (std::size_t k = 0; k < F.words * Parts; ++k) {
      const u64 at = u64{address[i] + offsets[k / F.words]} + 4 * (k % F.words);
      u32 word = 0;
      if (at + F.bytes <= size) std::memcpy(&word, lds + at, F.bytes);
      p.data[k * kLanes + i] = widen<F>(word);
    }
  }
}

template <Field F, std::size_t Parts>
void write_at(Wave& w, const Step& s, const u32* address, const u32* offsets) {
  u8* lds = w.group->lds();
  const u64 size = w.group->lds_bytes();
  w.issue_lgkm(1).kind = Pending::Kind::kStore;
  const u64 reach = u64{std::max(offsets[0], Parts == 2 ? offsets[1] : 0)} + F.size();
  const bool all = w.active() == kAllLanes && highest(address) + reach <= size;
  for (std::size_t part = 0; part < Parts; ++part) {
    const u32* data = w.v + s.src[1 + part].index * kLanes;
    if (all) {
      u8* base = lds + offsets[part];
      for (std::size_t i = 0; i < kLanes; ++i) {
        for (std::size_t k = 0; k < F.words; ++k) {
          const u32 word = narrow<F>(data[k * kLanes + i]);
          std::memcpy(base + address[i] + 4 * k, &word, F.bytes);
        }
      }
      continue;
    }
    for (u64 m = w.active(); m != 0; m &= m - 1) {
      const auto i = static_cast<std::size_t>(std::countr_zero(m));
      for (std::size_t k = 0; k < F.words; ++k) {
        const u64 at = u64{address[i] + offsets[part]} + 4 * k;
        const u32 word = narrow<F>(data[k * kLanes + i]);
        if (at + F.bytes <= size) std::memcpy(lds + at, &word, F.bytes);
      }
    }
  }
  if (w.trace != nullptr) trace_lds(w, address, offsets, Parts, F, true);
}

template <Field F, std::size_t Parts = 1, u32 Scale = 1>
void lds_read(Wave& w, const Step& s) {
  const u32 offsets[2] = {static_cast<u32>(s.imm0) * Scale, static_cast<u32>(s.imm1) * Scale};
  read_at<F, Parts>(w, s, w.v + s.src[0].index * kLanes, offsets);
}
template <Field F, std::size_t Parts = 1, u32 Scale = 1>
void lds_write(Wave& w, const Step& s) {
  const u32 offsets[2] = {static_cast<u32>(s.imm0) * Scale, static_cast<u32>(s.imm1) * Scale};
  write_at<F, Parts>(w, s, w.v + s.src[0].index * kLanes, offsets);
}

void read_add_lane(Wave& w, const Step& s) {
  u32 address[kLanes];
  lane_addresses(w, address);
  const u32 offset = static_cast<u32>(s.imm0);
  read_at<Field{1}, 1>(w, s, address, &offset);
}
void write_add_lane(Wave& w, const Step& s) {
  u32 address[kLanes];
  lane_addresses(w, address);
  const u32 offset = static_cast<u32>(s.imm0);
  write_at<Field{1}, 1>(w, s, address, &offset);
}

void nothing(Wave& w, const Step&) { w.issue_lgkm(1).kind = Pending::Kind::kStore; }

#define READ(suffix, field) \
  {"ds_read_" suffix, Shape::kLds, Field(field).words, {1, 0, 0}, kNoTraits, lds_read<field>}
#define WRITE(suffix, field) \
  {"ds_write_" suffix, Shape::kLds, 0, {1, Field(field).words, 0}, kNoTraits, lds_write<field>}
#define BOTH(suffix, field) READ(suffix, field), WRITE(suffix, field)
#define TWO(infix, suffix, n, scale) \
  {"ds_read2" infix suffix, Shape::kLds, 2 * n, {1, 0, 0}, kNoTraits, \
   lds_read<Field{n}, 2, scale>}, \
  {"ds_write2" infix suffix, Shape::kLds, 0, {1, n, n}, kNoTraits, lds_write<Field{n}, 2, scale>}

constexpr Operation kTable[] = {
    BOTH("b32", Field{1}), BOTH("b64", Field{2}), BOTH("b96", Field{3}), BOTH("b128", Field{4}),
    TWO("_", "b32", 1, 4), TWO("_", "b64", 2, 8),
    TWO("st64_", "b32", 1, 256), TWO("st64_", "b64", 2, 512),
    READ("u8", kUbyte), READ("i8", kSbyte), READ("u16", kUshort), READ("i16", kSshort),
    READ("u8_d16", kUbyteD16), READ("u8_d16_hi", kUbyteD16Hi),
    READ("i8_d16", kSbyteD16), READ("i8_d16_hi", kSbyteD16Hi),
    READ("u16_d16", kShortD16), READ("u16_d16_hi", kShortD16Hi),
    WRITE("b8", kUbyte), WRITE("b8_d16_hi", kUbyteD16Hi),
    WRITE("b16", kUshort), WRITE("b16_d16_hi", kShortD16Hi),
    {"ds_read_addtid_b32", Shape::kLds, 1, {0, 0, 0}, kNoTraits, read_add_lane},
    {"ds_write_addtid_b32", Shape::kLds, 0, {0, 1, 0}, kNoTraits, write_add_lane},
    {"ds_nop", Shape::kCache, 0, {0, 0, 0}, kNoTraits, nothing},
};

}  // namespace

std::span<const Operation> lds_operations() { return kTable; }

}  // namespace asmevo
