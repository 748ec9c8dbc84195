// Tags of one cache of 128-byte lines, with when each line arrives.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace asmevo::timing {

inline std::uint64_t hash_line(std::uint64_t line) {
  line ^= line >> 33;
  line *= 0xff51afd7ed558ccdull;
  line ^= line >> 33;
  line *= 0xc4ceb9fe1a85ec53ull;
  return line ^ (line >> 33);
}

// Set-associative with least-recently-used replacement. Sets are chosen by a hash: strides that a
// power of two of sets would make collide are spread on hardware too.
class Cache {
 public:
  struct Line {
    std::uint64_t tag;      // line + 1; 0: empty
    std::uint64_t used;     // the higher, the more recent
    std::uint64_t arrival;  // clk of the fill: whoever hits before waits for it
    std::uint64_t dirty;
  };

  // At least one line. The memory of a large cache costs nothing until its lines are touched.
  explicit Cache(std::uint32_t lines)
      : ways_(std::min(lines, kWays)),
        sets_(std::max(lines / ways_, 1u)),
        lines_(static_cast<Line*>(std::calloc(std::size_t{sets_} * ways_, sizeof(Line)))) {
    if (!lines_) throw std::bad_alloc();
  }

  // The line, now the most recent of its set, or null.
  Line* find(std::uint64_t line) {
    Line* const set = set_of(line);
    for (std::uint32_t way = 0; way < ways_; ++way) {
      if (set[way].tag != line + 1) continue;
      set[way].used = ++clock_;
      return &set[way];
    }
    return nullptr;
  }

  // Puts a line that is not there in the place of the least recent one of its set.
  Line& insert(std::uint64_t line, std::uint64_t arrival) {
    Line* const set = set_of(line);
    std::uint32_t oldest = 0;
    for (std::uint32_t way = 1; way < ways_; ++way) {
      if (set[way].used < set[oldest].used) oldest = way;
    }
    set[oldest] = {line + 1, ++clock_, arrival, 0};
    return set[oldest];
  }

  void clear() {
    std::fill_n(lines_.get(), std::size_t{sets_} * ways_, Line{});
  }

 private:
  static constexpr std::uint32_t kWays = 16;
  struct Free {
    void operator()(Line* lines) const { std::free(lines); }
  };

  Line* set_of(std::uint64_t line) {
    const std::uint64_t set = sets_ == 1 ? 0 : ((hash_line(line) >> 32) * sets_) >> 32;
    return lines_.get() + set * ways_;
  }

  std::uint32_t ways_;
  std::uint32_t sets_;
  std::uint64_t clock_ = 0;
  std::unique_ptr<Line[], Free> lines_;
};

}  // namespace asmevo::timing
