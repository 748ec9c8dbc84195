// How many of the lines that the simulated compute units touch others bring in for them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "timing.hpp"
#include "trace.hpp"

namespace asmevo::timing {

// Of the lines of a buffer that are touched for the first time, the shares that come from beyond L2
// and from HBM; compute units and XCDs that are not simulated bring in the others.
struct ColdShares {
  double beyond_l2 = 1.0;
  double from_hbm = 1.0;  // never above `beyond_l2`
};

// Estimates by buffer. Each compute unit touches T of its lines, each line with the same
// probability p: n units touch T / p (1 - (1 - p)^n) distinct lines, but no more than the buffer has.
// The k simulated units, which touch U distinct lines, give p from U / T = (1 - (1 - p)^k) / p. So
// lines are shared as far as the simulated units share theirs, and as far as they have to be.
class Sharing {
 public:
  // `unit_of` is the simulated compute unit that each workgroup of the trace is dealt to.
  Sharing(const Trace& trace, std::span<const std::uint32_t> unit_of, const Launch& launch);

  // Of the buffer that a line belongs to; what belongs to none counts as one buffer.
  const ColdShares& of(std::uint64_t line) const { return shares_[buffer(line)]; }

  // How many times as many distinct lines the busy units of the XCD, or all of the device, touch
  // as the simulated ones do.
  double xcd_footprint() const { return xcd_footprint_; }
  double device_footprint() const { return device_footprint_; }
  // More lines than the traced waves touch, at most 2^24: a larger cache would only take memory.
  std::uint32_t touches() const { return touches_; }

 private:
  std::size_t buffer(std::uint64_t line) const;

  std::vector<LineRange> buffers_;  // by first line
  std::vector<ColdShares> shares_;  // of the buffers, then of what is in none
  double xcd_footprint_ = 1.0;
  double device_footprint_ = 1.0;
  std::uint32_t touches_ = 1;
};

}  // namespace asmevo::timing
