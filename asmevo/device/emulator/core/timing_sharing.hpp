// How many of the lines that the simulated compute units touch others bring in for them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "timing.hpp"
#include "trace.hpp"

namespace asmevo::timing {

// Of the lines that an instruction is the first to touch, the shares that come from beyond L2 and
// from HBM; the others were brought in by compute units and XCDs that are not simulated.
struct ColdShares {
  double beyond_l2 = 1.0;
  double from_hbm = 1.0;  // never above `beyond_l2`
};

// Estimates by instruction from the overlap between the simulated compute units. The lines that an
// instruction touches are taken as N lines, each touched by a compute unit with a probability p of
// its own: k units that touch T lines each, U of them distinct, have p from
// U / T = (1 - (1 - p)^k) / p, and n units touch N (1 - (1 - p)^n) distinct lines. One unit alone
// says nothing about sharing: its lines count as its own.
// `unit_of` is the simulated compute unit that each workgroup of the trace is dealt to.
std::vector<ColdShares> cold_shares(const Trace& trace, std::span<const std::uint32_t> unit_of,
                                    std::size_t instructions, const Launch& launch);

}  // namespace asmevo::timing
