// Data cycles of one LDS instruction. 32 banks of 4 bytes; the lanes of a group are served together,
// distinct dwords in one bank one after another, the same dword once for all. Lane groups by width:
// AMD's blog post on LDS bank conflicts.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "record.hpp"

namespace asmevo {

inline constexpr std::size_t kBanks = 32;

// The group that serves a lane.
inline std::size_t lds_group(std::size_t lane, std::uint32_t words, bool write) {
  if (words == 1) return lane / 32;
  if (words == 2) return lane / 16;
  if (write) return lane / 8;
  // Quads of lanes pair up as {0,5} {1,4} {2,7} {3,6} within each half.
  constexpr std::array<std::size_t, 8> kQuadGroup{0, 1, 2, 3, 1, 0, 3, 2};
  return lane / 32 * 4 + kQuadGroup[lane % 32 / 4];
}

inline std::uint32_t lds_cycles(const std::uint32_t* address, std::uint32_t offset,
                                std::uint64_t active, std::uint32_t words, bool write,
                                bool atomic = false) {
  // Up to 32 dwords of a group; a group's cost is that of its busiest bank.
  std::array<std::array<std::uint32_t, 33>, 8> dwords;
  std::array<std::uint32_t, 8> counts{};
  for (std::uint64_t m = active; m != 0; m &= m - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(m));
    const std::size_t group = lds_group(lane, words, write);
    for (std::uint32_t k = 0; k < words; ++k) {
      dwords[group][counts[group]++] = (address[lane] + offset) / 4 + k;
    }
  }
  std::uint32_t cycles = 0;
  for (std::size_t group = 0; group < 8; ++group) {
    std::array<std::uint32_t, kBanks> load{};
    std::uint32_t worst = 0;
    for (std::uint32_t i = 0; i < counts[group]; ++i) {
      const std::uint32_t dword = dwords[group][i];
      bool seen = false;
      // Atomics on the same dword take effect one after another.
      for (std::uint32_t j = 0; !atomic && j < i && !seen; ++j) seen = dwords[group][j] == dword;
      if (seen) continue;
      const std::uint32_t n = ++load[dword % kBanks];
      worst = n > worst ? n : worst;
    }
    cycles += worst;
  }
  return cycles;
}

}  // namespace asmevo
