// What a load or store moves between memory and registers.
#pragma once

#include "wave.hpp"

namespace asmevo {

// Which bits of a register a narrow access uses.
enum class Half : u8 { kWhole, kLow, kHigh };

// `words` units of `bytes` bytes, each in a register of its own; only dwords come in several.
struct Field {
  u8 words;
  u8 bytes = 4;
  bool extends_sign = false;
  Half half = Half::kWhole;

  constexpr u32 size() const { return u32{words} * bytes; }
};

// The register value of a narrow load. A 16-bit load clears the half it does not name: MI300 keeps
// ECC of its register file on, which allows no partial write (CDNA3 ISA, "16-bit Memory
// Operations"; LLVM's d16PreservesUnusedBits is false with sramecc for the same reason).
template <Field F>
u32 widen(u32 raw) {
  if constexpr (F.bytes == 4) return raw;
  constexpr u32 kShift = 32 - 8 * F.bytes;
  if constexpr (F.extends_sign) raw = static_cast<u32>(static_cast<i32>(raw << kShift) >> kShift);
  if constexpr (F.half == Half::kLow) return raw & 0xffffu;
  if constexpr (F.half == Half::kHigh) return raw << 16;
  return raw;
}

// The low bits are what a narrow store writes.
template <Field F>
u32 narrow(u32 value) {
  return F.half == Half::kHigh ? value >> 16 : value;
}

inline constexpr Field kUbyte{1, 1}, kSbyte{1, 1, true}, kUshort{1, 2}, kSshort{1, 2, true};
inline constexpr Field kUbyteD16{1, 1, false, Half::kLow}, kUbyteD16Hi{1, 1, false, Half::kHigh};
inline constexpr Field kSbyteD16{1, 1, true, Half::kLow}, kSbyteD16Hi{1, 1, true, Half::kHigh};
inline constexpr Field kShortD16{1, 2, false, Half::kLow}, kShortD16Hi{1, 2, false, Half::kHigh};

}  // namespace asmevo
