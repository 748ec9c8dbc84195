// Undefined bits of a result from those of its sources: the rules of Memcheck and MemorySanitizer
// (Seward and Nethercote, "Using Valgrind to detect undefined value errors with bit-precision",
// USENIX 2005) for the operations of gfx942 that move bits about.
#pragma once

#include "sanitizer_step.hpp"

namespace asmevo {

// Bits from the lowest undefined one upwards: what a carry may reach.
constexpr u64 smeared(u64 undefined) { return undefined | (0 - undefined); }

constexpr Bits bits_and(const Bits& a, const Bits& b) {
  return {a.value & b.value, (a.undefined & b.undefined) | (a.undefined & b.value) |
                                 (b.undefined & a.value)};
}
constexpr Bits bits_or(const Bits& a, const Bits& b) {
  return {a.value | b.value, (a.undefined & b.undefined) | (a.undefined & ~b.value) |
                                 (b.undefined & ~a.value)};
}

// `width` is 32 or 64; sources hold no bits beyond it, except 64-bit ones of a 32-bit result.
inline u64 undefined_result(Flow flow, u32 width, const Bits& a, const Bits& b, const Bits& c) {
  const u64 full = width == 64 ? ~u64{0} : 0xffffffffu;
  const u64 any = (a.undefined | b.undefined | c.undefined) != 0 ? full : 0;
  const u64 amount = b.value & (width - 1);
  switch (flow) {
    case Flow::kMove: return a.undefined & full;
    case Flow::kAnd: return bits_and(a, b).undefined & full;
    case Flow::kOr: return bits_or(a, b).undefined & full;
    case Flow::kXor: return (a.undefined | b.undefined) & full;
    case Flow::kAdd: return smeared(a.undefined | b.undefined | c.undefined) & full;
    case Flow::kAndOr: return bits_or(bits_and(a, b), c).undefined & full;
    case Flow::kOr3: return bits_or(bits_or(a, b), c).undefined & full;
    case Flow::kShiftLeft:
      return b.undefined != 0 ? any : (a.undefined << amount) & full;
    case Flow::kShiftRight:
      return b.undefined != 0 ? any : (a.undefined & full) >> amount;
    case Flow::kShiftSigned: {
      if (b.undefined != 0) return any;
      if (width == 64) return static_cast<u64>(static_cast<i64>(a.undefined) >> amount);
      return static_cast<u32>(static_cast<i32>(a.undefined) >> amount);
    }
    case Flow::kShiftOr:
      if (b.undefined != 0) return any;
      return bits_or({(a.value << amount) & full, (a.undefined << amount) & full}, c).undefined;
    case Flow::kShiftAdd:
      if (b.undefined != 0) return any;
      return smeared(((a.undefined << amount) & full) | c.undefined) & full;
    case Flow::kBitField: {
      if ((b.undefined | c.undefined) != 0) return any;
      const u64 size = c.value & (width - 1);
      const u64 field = (a.undefined >> amount) & ((u64{1} << size) - 1);
      // A signed field copies its highest bit: without knowing which it is, everything above.
      return field == 0 ? 0 : smeared(field) & full;
    }
    case Flow::kBitSelect:
      return (a.undefined | (a.value & b.undefined) | (~a.value & c.undefined)) & full;
    case Flow::kPermute: {
      if (c.undefined != 0) return any;
      const u64 both = (a.undefined << 32) | b.undefined;
      u64 out = 0;
      for (u32 k = 0; k < 4; ++k) {
        const u64 select = (c.value >> (8 * k)) & 0xff;
        u64 byte = 0;
        if (select < 8) {
          byte = (both >> (8 * select)) & 0xff;
        } else if (select < 12) {  // the sign of a half, replicated
          byte = ((both >> (16 * (select - 8) + 15)) & 1) != 0 ? 0xff : 0;
        }
        out |= byte << (8 * k);
      }
      return out;
    }
    case Flow::kAlign:
      if (c.undefined != 0) return any;
      return (((a.undefined << 32) | b.undefined) >> (c.value & 31)) & full;
    case Flow::kHalves: {
      const auto half = [](u64 bits) { return (bits & 0xffff) | (bits >> 16); };
      return half(a.undefined) | (half(b.undefined) << 16);
    }
    case Flow::kPair:
      return (a.undefined != 0 ? 0xffffu : 0u) | (b.undefined != 0 ? 0xffff0000u : 0u);
    case Flow::kSelect:
      if (c.undefined != 0) {  // equal and defined either way counts as defined
        return a.undefined | b.undefined | (a.value ^ b.value);
      }
      return (c.value & 1) != 0 ? b.undefined : a.undefined;
    default: return any;
  }
}

}  // namespace asmevo
