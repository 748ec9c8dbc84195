// Caches and bandwidth of one compute unit, as the cycle model sees them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "timing.hpp"
#include "trace.hpp"

namespace asmevo::timing {

// Dense numbers for the lines of a launch, in order of first touch.
class LineNumbers {
 public:
  LineNumbers() : slots_(kInitialSlots, kFree) {}

  std::uint32_t number(std::uint64_t line) {
    std::size_t slot = hash(line) & (slots_.size() - 1);
    while (slots_[slot] != kFree) {
      if (lines_[slots_[slot]] == line) return slots_[slot];
      slot = (slot + 1) & (slots_.size() - 1);
    }
    const auto fresh = static_cast<std::uint32_t>(lines_.size());
    slots_[slot] = fresh;
    lines_.push_back(line);
    if (lines_.size() * 2 > slots_.size()) grow();
    return fresh;
  }

  std::size_t size() const { return lines_.size(); }

 private:
  static constexpr std::uint32_t kFree = 0xffffffffu;
  static constexpr std::size_t kInitialSlots = 1024;

  static std::size_t hash(std::uint64_t line) {
    line *= 0x9e3779b97f4a7c15ull;
    return static_cast<std::size_t>(line ^ (line >> 32));
  }

  void grow() {
    std::vector<std::uint32_t> wider(slots_.size() * 2, kFree);
    for (std::uint32_t number = 0; number < lines_.size(); ++number) {
      std::size_t slot = hash(lines_[number]) & (wider.size() - 1);
      while (wider[slot] != kFree) slot = (slot + 1) & (wider.size() - 1);
      wider[slot] = number;
    }
    slots_ = std::move(wider);
  }

  std::vector<std::uint32_t> slots_;
  std::vector<std::uint64_t> lines_;
};

// Fully associative cache of line numbers with least-recently-used replacement.
class LruCache {
 public:
  explicit LruCache(std::uint32_t capacity) : capacity_(capacity) {}

  // Makes `line` the most recent entry; true if it was present.
  bool touch(std::uint32_t line) {
    if (line >= links_.size()) links_.resize(line + 1);
    const bool hit = links_[line].present;
    if (hit) {
      if (line == newest_) return true;
      unlink(line);
    } else if (size_ == capacity_) {
      links_[oldest_].present = false;
      unlink(oldest_);
    } else {
      ++size_;
    }
    link(line);
    return hit;
  }

  // Forgets every line, oldest first.
  void clear() {
    for (; size_ != 0; --size_) {
      const std::uint32_t line = oldest_;
      links_[line].present = false;
      unlink(line);
    }
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffffu;
  struct Link {
    std::uint32_t older = kNone;
    std::uint32_t newer = kNone;
    bool present = false;
  };

  void unlink(std::uint32_t line) {
    const Link at = links_[line];
    (at.older == kNone ? oldest_ : links_[at.older].newer) = at.newer;
    (at.newer == kNone ? newest_ : links_[at.newer].older) = at.older;
  }

  void link(std::uint32_t line) {
    links_[line] = {newest_, kNone, true};
    (newest_ == kNone ? oldest_ : links_[newest_].newer) = line;
    newest_ = line;
  }

  std::uint32_t capacity_;
  std::uint32_t size_ = 0;
  std::uint32_t oldest_ = kNone;
  std::uint32_t newest_ = kNone;
  std::vector<Link> links_;
};

// A resource that takes one line after another, each for a fixed time in 1/256 clk.
class Channel {
 public:
  explicit Channel(std::uint32_t clk_per_line_q8) : cost_(clk_per_line_q8) {}

  // When a line that arrives at `clk` starts to be served, for `times` as long as usual.
  std::uint64_t serve(std::uint64_t clk, std::uint32_t times = 1) {
    const std::uint64_t start = std::max(clk << 8, free_);
    free_ = start + cost_ * times;
    return (start + 255) >> 8;
  }

 private:
  std::uint64_t cost_;
  std::uint64_t free_ = 0;
};

// Where a line is found, and when: vL1D or sL1D, then L2 if the launch touched the line before,
// else HBM.
class MemoryHierarchy {
 public:
  explicit MemoryHierarchy(const Parameters& parameters)
      : p_(parameters),
        vl1d_(parameters.vl1d_lines),
        sl1d_(parameters.sl1d_lines),
        l2_channel_(parameters.l2_clk_per_line_q8),
        hbm_channel_(parameters.hbm_clk_per_line_q8) {}

  // Arrival of a vector load's line whose tag is looked up at `clk`.
  std::uint64_t load(std::uint64_t line, std::uint64_t clk) {
    return read(line, clk, vl1d_, p_.vl1d_latency, p_.l2_latency, p_.hbm_latency);
  }

  // Arrival of a scalar load's line.
  std::uint64_t load_scalar(std::uint64_t line, std::uint64_t clk) {
    return read(line, clk, sl1d_, p_.sl1d_latency, p_.sl1d_latency + p_.sl1d_miss_latency,
                p_.hbm_latency);
  }

  // When a stored line is in L2. A line pays its way to HBM once, however often it is written.
  std::uint64_t store(std::uint64_t line, std::uint64_t clk) {
    State& state = state_of(numbers_.number(line));
    std::uint64_t start = l2_channel_.serve(clk);
    if (!state.dirty) {
      state.dirty = true;
      start = std::max(start, hbm_channel_.serve(clk));
    }
    state.touched = true;
    return start + p_.store_latency;
  }

  // When an atomic's line has been read, changed and written in L2, where atomics are done.
  std::uint64_t atomic(std::uint64_t line, std::uint64_t clk) {
    State& state = state_of(numbers_.number(line));
    std::uint64_t start = l2_channel_.serve(clk, p_.atomic_factor);
    if (!state.touched) {
      start = std::max(start, hbm_channel_.serve(clk)) +
              (p_.hbm_latency - std::min(p_.l2_latency, p_.hbm_latency));
      state.arrival = start;
    }
    if (!state.dirty) hbm_channel_.serve(clk);
    state.touched = state.dirty = true;
    return std::max(start, state.arrival) + p_.atomic_latency;
  }

  void invalidate_vector() { vl1d_.clear(); }
  void invalidate_scalar() { sl1d_.clear(); }

 private:
  struct State {
    std::uint64_t arrival = 0;  // of the most recent fill: a second miss waits for the first
    bool touched = false;
    bool dirty = false;
  };

  State& state_of(std::uint32_t number) {
    if (number >= states_.size()) states_.resize(numbers_.size());
    return states_[number];
  }

  std::uint64_t read(std::uint64_t line, std::uint64_t clk, LruCache& cache, std::uint32_t hit,
                     std::uint32_t miss, std::uint32_t first_touch) {
    const std::uint32_t number = numbers_.number(line);
    State& state = state_of(number);
    if (cache.touch(number)) return std::max(clk + hit, state.arrival);
    std::uint64_t arrival = l2_channel_.serve(clk);
    if (state.touched) {
      arrival = std::max(arrival + miss, state.arrival);
    } else {
      arrival = std::max(arrival, hbm_channel_.serve(clk)) + first_touch;
    }
    state.touched = true;
    state.arrival = arrival;
    return arrival;
  }

  const Parameters& p_;
  LineNumbers numbers_;
  std::vector<State> states_;
  LruCache vl1d_;
  LruCache sl1d_;
  Channel l2_channel_;
  Channel hbm_channel_;
};

}  // namespace asmevo::timing
