// A path that lines share: each takes it for some time, and waits while others do.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace asmevo::timing {

// Books time on a path in slices of 64 clk. Compute units are simulated some way ahead of one
// another, so lines do not come in the order of time: one that comes late finds the slices that
// nobody has used. Only the last slices are remembered; what is older counts as taken.
class Channel {
 public:
  Channel() : used_(kSlices, 0) {}

  // Takes the path for `clk_q8` (1/256 clk) from `clk` on; gives the clk at which it begins.
  std::uint64_t serve(std::uint64_t clk, std::uint64_t clk_q8) {
    if (clk_q8 == 0) return clk;
    std::uint64_t slice = std::max(clk / kSliceClk, first_free_);
    std::uint64_t begin = 0;
    bool begun = false;
    for (;; ++slice) {
      remember(slice);
      std::uint32_t& used = used_[slice % kSlices];
      const std::uint32_t room = kCapacity - used;
      if (room == 0) continue;
      if (!begun) {
        begin = std::max(clk, slice * kSliceClk + used / 256);
        begun = true;
      }
      const auto taken = static_cast<std::uint32_t>(std::min<std::uint64_t>(room, clk_q8));
      used += taken;
      clk_q8 -= taken;
      if (clk_q8 == 0) break;
    }
    end_ = std::max(end_, slice * kSliceClk + used_[slice % kSlices] / 256);
    while (first_free_ < base_ + kSlices && used_[first_free_ % kSlices] == kCapacity) {
      ++first_free_;
    }
    return begin;
  }

  // When the last booking ends.
  std::uint64_t end() const { return end_; }

 private:
  static constexpr std::uint32_t kSliceClk = 64;
  static constexpr std::uint32_t kCapacity = kSliceClk * 256;
  static constexpr std::uint64_t kSlices = 4096;

  void remember(std::uint64_t slice) {
    if (slice < base_ + kSlices) return;
    const std::uint64_t base = slice - kSlices + 1;
    if (base - base_ >= kSlices) {
      std::fill(used_.begin(), used_.end(), 0);
    } else {
      for (; base_ < base; ++base_) used_[base_ % kSlices] = 0;
    }
    base_ = base;
    first_free_ = std::max(first_free_, base_);
  }

  std::vector<std::uint32_t> used_;
  std::uint64_t base_ = 0;        // the oldest slice that is remembered
  std::uint64_t first_free_ = 0;  // every slice before it is full or forgotten
  std::uint64_t end_ = 0;
};

}  // namespace asmevo::timing
