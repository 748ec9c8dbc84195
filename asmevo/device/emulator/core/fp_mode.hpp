// The MODE register's floating-point fields (CDNA3 ISA, "Mode Register") and what handlers need of
// them, derived once when the mode changes.
#pragma once

#include <cstdint>

namespace asmevo {

enum class Round : std::uint8_t { kNearest, kUp, kDown, kZero };

inline constexpr std::uint32_t kModeDx10Clamp = 1u << 8;
inline constexpr std::uint32_t kModeIeee = 1u << 9;
inline constexpr std::uint32_t kModeFp16Overflow = 1u << 23;
inline constexpr std::uint32_t kModeGprIndex = 1u << 27;
inline constexpr std::uint32_t kModeVskip = 1u << 28;
// FP_ROUND, FP_DENORM and the three flags; the other fields (exceptions, debugging) are stored and
// have no effect: exceptions are not modelled.
inline constexpr std::uint32_t kModeFloat = 0xffu | kModeDx10Clamp | kModeIeee | kModeFp16Overflow;

// Which quiet NaN arithmetic and conversions give: a launch chooses, because hardware hands on an
// operand's payload and neither the ISA nor its pseudo-code says which operand's, or which NaN an
// invalid operation makes. A kernel must not depend on it, just as on undefined registers.
inline constexpr std::uint8_t kNanNegative = 1;  // the sign is set
inline constexpr std::uint8_t kNanFull = 2;      // every bit of the payload is

// How one format is treated.
struct FpControl {
  Round round = Round::kNearest;
  bool keep_in = true;     // denormal operands keep their value
  bool keep_out = true;    // denormal results keep their value
  bool saturate = false;   // an overflow gives the largest finite value (FP16_OVFL)
  std::uint8_t nan = 0;    // see kNanNegative and kNanFull
};

struct FpMode {
  std::uint32_t bits = 0;
  // f32: a denormal is and-ed with the mask: all ones keeps it, the sign bit alone flushes it to a
  // signed zero.
  std::uint32_t keep_in = 0x80000000u;
  std::uint32_t keep_out = 0x80000000u;
  bool dx10_clamp = false;
  bool ieee = false;
  bool directed = false;  // f32 rounds other than to nearest
  bool plain_wide = false;  // f64 rounds to nearest and keeps denormals
  bool plain_half = false;  // f16 likewise, and overflows to infinity
  std::uint32_t nan = 0x7fc00000u;  // what f32 arithmetic gives
  std::uint32_t nan_half = 0x7e00u;
  std::uint64_t nan_wide = 0x7ff8000000000000u;
  FpControl single;
  FpControl half;
  FpControl wide;  // f64: half's rounding and denormals, no saturation

  static FpMode from(std::uint32_t mode, std::uint8_t nan = 0) {
    FpMode m;
    m.bits = mode;
    m.single = {static_cast<Round>(mode & 3), (mode & 0x10) != 0, (mode & 0x20) != 0, false, nan};
    m.wide = {static_cast<Round>((mode >> 2) & 3), (mode & 0x40) != 0, (mode & 0x80) != 0, false, nan};
    m.half = m.wide;
    m.half.saturate = (mode & kModeFp16Overflow) != 0;
    m.keep_in = m.single.keep_in ? ~0u : 0x80000000u;
    m.keep_out = m.single.keep_out ? ~0u : 0x80000000u;
    m.dx10_clamp = (mode & kModeDx10Clamp) != 0;
    m.ieee = (mode & kModeIeee) != 0;
    m.directed = m.single.round != Round::kNearest;
    m.plain_wide = (mode & 0xcc) == 0xc0;
    m.plain_half = m.plain_wide && !m.half.saturate;
    m.choose_nan(nan);
    return m;
  }

  void choose_nan(std::uint8_t choice) {
    single.nan = half.nan = wide.nan = choice;
    const bool negative = (choice & kNanNegative) != 0, full = (choice & kNanFull) != 0;
    nan = (negative ? 0xffc00000u : 0x7fc00000u) | (full ? 0x3fffffu : 0);
    nan_half = (negative ? 0xfe00u : 0x7e00u) | (full ? 0x1ffu : 0);
    nan_wide = (negative ? 0xfff8000000000000u : 0x7ff8000000000000u) | (full ? 0x7ffffffffffffu : 0);
  }
};

}  // namespace asmevo
