// The memory lines that an instruction touches, collected for the cycle model.
#pragma once

#include <algorithm>

#include "wave.hpp"

namespace asmevo {

// Distinct lines in first-touch order, as the cycle model wants them.
class Tracer {
 public:
  explicit Tracer(WaveTrace& trace) : trace_(trace), first_(trace.lines.size()) {}
  void touch(u64 address, u64 size) {
    bytes_ += size;
    for (u64 line = address / kLineBytes; line <= (address + size - 1) / kLineBytes; ++line) {
      const auto begin = trace_.lines.begin() + static_cast<std::ptrdiff_t>(first_);
      if (std::find(begin, trace_.lines.end(), line) == trace_.lines.end()) {
        trace_.lines.push_back(line);
      }
    }
  }
  void finish(u32 lds_cycles = 0) {
    Access access;
    access.first_line = static_cast<u32>(first_);
    access.line_count = static_cast<u16>(trace_.lines.size() - first_);
    access.lds_cycles = static_cast<u16>(lds_cycles);
    access.bytes = static_cast<u32>(bytes_);
    trace_.entries.back().access = static_cast<u32>(trace_.accesses.size());
    trace_.accesses.push_back(access);
  }
  void add_bytes(u64 bytes) { bytes_ += bytes; }

 private:
  WaveTrace& trace_;
  std::size_t first_;
  u64 bytes_ = 0;
};

}  // namespace asmevo
