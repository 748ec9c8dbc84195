// What functional execution tells the cycle model: which instructions each wave issued and which
// memory lines they touched. The two sides share nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace asmevo {

inline constexpr std::uint32_t kNoAccess = 0xffffffffu;
inline constexpr std::uint32_t kSkipped = 0xfffffffeu;  // a vector instruction that VSKIP skips
inline constexpr std::uint64_t kLineBytes = 128;  // vL1D and L2 line of gfx942 (CDNA3 white paper)

// One memory instruction: the distinct 128-byte lines it touches, in first-touch order.
struct Access {
  std::uint32_t first_line = 0;  // index into WaveTrace::lines
  std::uint16_t line_count = 0;  // 0 for LDS
  std::uint16_t lds_cycles = 0;  // data cycles in the LDS, bank conflicts included; 0 for memory
  std::uint32_t bytes = 0;       // bytes moved over all active lanes
};

// One issued wave-instruction.
struct TraceEntry {
  std::uint32_t instruction;  // index into the program
  std::uint32_t access;       // index into WaveTrace::accesses, kNoAccess, or kSkipped
};

struct WaveTrace {
  std::uint32_t workgroup = 0;  // linear workgroup id
  std::uint32_t wave = 0;       // wave within the workgroup
  std::vector<TraceEntry> entries;
  std::vector<Access> accesses;
  std::vector<std::uint64_t> lines;  // address / kLineBytes

  std::size_t size_in_bytes() const {
    return entries.size() * sizeof(TraceEntry) + accesses.size() * sizeof(Access) +
           lines.size() * sizeof lines[0];
  }
};

struct Trace {
  // A launch whose trace grows beyond this is given up: an endless loop would take all memory.
  std::size_t limit_in_bytes = std::size_t{2} << 30;
  std::uint32_t waves_per_workgroup = 0;
  std::vector<WaveTrace> waves;  // by workgroup, then wave
};

}  // namespace asmevo
