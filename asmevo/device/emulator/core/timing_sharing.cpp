#include "timing_sharing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "timing_cache.hpp"

namespace asmevo::timing {
namespace {

constexpr std::size_t kMostTouches = std::size_t{1} << 24;
constexpr std::uint32_t kMostUnits = 64;  // bits of a mask; more say nothing new

struct Touches {
  std::uint64_t line;
  std::uint64_t units;
};

// The lines of a trace by open addressing: there are millions of lookups.
class TouchedLines {
 public:
  TouchedLines() : slots_(kInitialSlots, kFree) {}

  Touches& find(std::uint64_t line) {
    std::size_t slot = hash_line(line) & (slots_.size() - 1);
    while (slots_[slot] != kFree) {
      if (touches_[slots_[slot]].line == line) return touches_[slots_[slot]];
      slot = (slot + 1) & (slots_.size() - 1);
    }
    slots_[slot] = static_cast<std::uint32_t>(touches_.size());
    touches_.push_back({line, 0});
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
  if (k <= 1) return 1e-9;  // a unit alone says nothing about sharing
  double low = 1e-9, high = 1.0;
  for (int step = 0; step < 60; ++step) {
    const double p = 0.5 * (low + high);
    const double value = -std::expm1(k * std::log1p(-p)) / p;
    (value > ratio ? low : high) = p;
  }
  return 0.5 * (low + high);
}

// Distinct lines that n units touch between them, `each` on its own, of `all` that there are.
double touched(double p, double each, double n, double all) {
  const double random = each / p * -std::expm1(n * std::log1p(-std::min(p, 1 - 1e-12)));
  return std::min(random, std::max(all, each));
}

}  // namespace

std::size_t Sharing::buffer(std::uint64_t line) const {
  const auto after = std::upper_bound(
      buffers_.begin(), buffers_.end(), line,
      [](std::uint64_t at, const LineRange& range) { return at < range.first; });
  if (after == buffers_.begin()) return buffers_.size();
  const auto at = after - 1;
  return line - at->first < at->count ? static_cast<std::size_t>(at - buffers_.begin())
                                      : buffers_.size();
}

Sharing::Sharing(const Trace& trace, std::span<const std::uint32_t> unit_of, const Launch& launch)
    : buffers_(launch.buffers.begin(), launch.buffers.end()) {
  std::sort(buffers_.begin(), buffers_.end(),
            [](const LineRange& a, const LineRange& b) { return a.first < b.first; });
  shares_.resize(buffers_.size() + 1);
  std::size_t touches = 1;
  for (const WaveTrace& wave : trace.waves) touches += 2 * wave.lines.size();
  touches_ = static_cast<std::uint32_t>(std::min(touches, kMostTouches));
  const std::uint32_t k = std::min(launch.units, kMostUnits);
  if (launch.busy_units <= launch.units) return;

  TouchedLines lines;
  for (std::size_t w = 0; w < trace.waves.size(); ++w) {
    const std::uint32_t unit = unit_of[w / trace.waves_per_workgroup];
    if (unit >= k) continue;
    const WaveTrace& wave = trace.waves[w];
    for (const std::uint64_t line : wave.lines) lines.find(line).units |= 1ull << unit;
  }
  std::vector<double> distinct(shares_.size(), 0), total(shares_.size(), 0);
  for (const Touches& touches : lines.all()) {
    const std::size_t at = buffer(touches.line);
    distinct[at] += 1;
    total[at] += __builtin_popcountll(touches.units);
  }
  const double simulated = launch.units, in_xcd = launch.busy_units_of_xcd,
               in_device = launch.busy_units;
  double here = 0, of_xcd = 0, of_device = 0;
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    if (distinct[i] == 0) continue;
    const double each = total[i] / k;
    const double p = probability(distinct[i] / each, k);
    const double all = i < buffers_.size() ? static_cast<double>(buffers_[i].count)
                                           : std::numeric_limits<double>::infinity();
    const double by_simulated = touched(p, each, simulated, all);
    const double by_xcd = touched(p, each, in_xcd, all);
    const double by_device = touched(p, each, in_device, all);
    // What the simulated units bring in of their own, against what they would if all shared alike.
    shares_[i].beyond_l2 = std::min(1.0, by_xcd / in_xcd / (by_simulated / simulated));
    shares_[i].from_hbm =
        std::min(shares_[i].beyond_l2, by_device / in_device / (by_simulated / simulated));
    here += by_simulated;
    of_xcd += by_xcd;
    of_device += by_device;
  }
  if (here > 0) {
    xcd_footprint_ = std::max(1.0, of_xcd / here);
    device_footprint_ = std::max(1.0, of_device / here);
  }
}

}  // namespace asmevo::timing
