#include "timing_sharing.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "timing_cache.hpp"

namespace asmevo::timing {
namespace {

constexpr std::uint32_t kMostUnits = 64;  // bits of a mask; more say nothing new

struct Touches {
  std::uint64_t line;
  std::uint64_t units;
  std::uint32_t instruction;  // the first to touch the line
};

// The lines of a trace by open addressing: there are millions of lookups.
class TouchedLines {
 public:
  TouchedLines() : slots_(kInitialSlots, kFree) {}

  Touches& find(std::uint64_t line, std::uint32_t instruction) {
    std::size_t slot = hash_line(line) & (slots_.size() - 1);
    while (slots_[slot] != kFree) {
      if (touches_[slots_[slot]].line == line) return touches_[slots_[slot]];
      slot = (slot + 1) & (slots_.size() - 1);
    }
    slots_[slot] = static_cast<std::uint32_t>(touches_.size());
    touches_.push_back({line, 0, instruction});
    if (touches_.size() * 2 > slots_.size()) grow();
    return touches_.back();
  }

  const std::vector<Touches>& all() const { return touches_; }

 private:
  static constexpr std::uint32_t kFree = 0xffffffffu;
  static constexpr std::size_t kInitialSlots = 1024;

  void grow() {
    std::vector<std::uint32_t> wider(slots_.size() * 2, kFree);
    for (std::uint32_t number = 0; number < touches_.size(); ++number) {
      std::size_t slot = hash_line(touches_[number].line) & (wider.size() - 1);
      while (wider[slot] != kFree) slot = (slot + 1) & (wider.size() - 1);
      wider[slot] = number;
    }
    slots_ = std::move(wider);
  }

  std::vector<std::uint32_t> slots_;
  std::vector<Touches> touches_;
};

// p with (1 - (1 - p)^k) / p = ratio, for a ratio in [1, k]: the left side falls with p.
double probability(double ratio, double k) {
  double low = 1e-9, high = 1.0;
  for (int step = 0; step < 60; ++step) {
    const double p = 0.5 * (low + high);
    const double value = -std::expm1(k * std::log1p(-p)) / p;
    (value > ratio ? low : high) = p;
  }
  return 0.5 * (low + high);
}

// Share of all lines that n units touch between them.
double touched(double p, double n) { return -std::expm1(n * std::log1p(-std::min(p, 1 - 1e-12))); }

}  // namespace

std::vector<ColdShares> cold_shares(const Trace& trace, std::span<const std::uint32_t> unit_of,
                                    std::size_t instructions, const Launch& launch) {
  std::vector<ColdShares> shares(instructions);
  const std::uint32_t k = std::min(launch.units, kMostUnits);
  if (k < 2 || launch.busy_units <= launch.units) return shares;

  TouchedLines lines;
  for (std::size_t w = 0; w < trace.waves.size(); ++w) {
    const std::uint32_t unit = unit_of[w / trace.waves_per_workgroup];
    if (unit >= k) continue;
    const WaveTrace& wave = trace.waves[w];
    for (const TraceEntry& entry : wave.entries) {
      if (entry.access == kNoAccess || entry.access == kSkipped) continue;
      const Access& access = wave.accesses[entry.access];
      for (std::uint32_t i = 0; i < access.line_count; ++i) {
        lines.find(wave.lines[access.first_line + i], entry.instruction).units |= 1ull << unit;
      }
    }
  }
  std::vector<double> distinct(instructions, 0), total(instructions, 0);
  for (const Touches& touches : lines.all()) {
    distinct[touches.instruction] += 1;
    total[touches.instruction] += __builtin_popcountll(touches.units);
  }
  const double simulated = launch.units, in_xcd = launch.busy_units_of_xcd,
               in_device = launch.busy_units;
  for (std::size_t i = 0; i < instructions; ++i) {
    if (distinct[i] == 0) continue;
    const double p = probability(distinct[i] / (total[i] / k), k);
    // What the simulated units bring in of their own, against what they would if all shared alike.
    const double here = touched(p, simulated) / simulated;
    shares[i].beyond_l2 = std::min(1.0, touched(p, in_xcd) / in_xcd / here);
    shares[i].from_hbm = std::min(shares[i].beyond_l2, touched(p, in_device) / in_device / here);
  }
  return shares;
}

}  // namespace asmevo::timing
