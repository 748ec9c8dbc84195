#include "timing.hpp"

#include <algorithm>
#include <deque>
#include <map>

#include "timing_memory.hpp"
#include "timing_sharing.hpp"
#include "timing_unit.hpp"
#include "timing_validate.hpp"

namespace asmevo::timing {
namespace {

// How far a compute unit may be ahead of the others: what they share is booked in slices of time.
constexpr std::uint64_t kAhead = 64;
constexpr std::uint64_t kAlone = 1 << 16;  // clk
constexpr std::uint32_t kTurnsToPoll = 1024;

// The compute units of an XCD that are simulated, and their dispatcher.
class Xcd final : Dispatcher {
 public:
  Xcd(std::span<const InstructionTiming> program, const Trace& trace, const Parameters& parameters,
      const Launch& launch, std::vector<std::uint32_t> groups, const Sharing& sharing)
      : trace_(trace),
        p_(parameters),
        groups_(std::move(groups)),
        poll_(launch.poll),
        shared_(parameters, launch, sharing) {
    result_.issued.assign(program.size(), 0);
    result_.stalls.assign(program.size() * kStallCauses, 0);
    result_.lines.assign(program.size() * kMemoryLevels, 0);
    result_.bytes.assign(program.size(), 0);
    result_.conflicts.assign(program.size(), 0);
    result_.waves.reserve(groups_.size() * trace.waves_per_workgroup);  // units point into it
    for (std::uint32_t unit = 0; unit < launch.units; ++unit) {
      units_.emplace_back(unit, program, trace, parameters, launch, shared_,
                          static_cast<Dispatcher&>(*this), result_);
    }
  }

  Result run() {
    fill();
    for (;;) {
      std::uint32_t soonest = 0;
      std::uint64_t event = kNever, second = kNever;
      for (std::uint32_t unit = 0; unit < units_.size(); ++unit) {
        const std::uint64_t at = units_[unit].event();
        if (at < event) {
          second = event;
          event = at;
          soonest = unit;
        } else {
          second = std::min(second, at);
        }
      }
      if (event == kNever) break;
      if (poll_ && --until_poll_ == 0) {
        until_poll_ = kTurnsToPoll;
        poll_();
      }
      // One unit alone also comes back now and then.
      units_[soonest].run(std::min(second, event + kAlone) + kAhead);
    }
    result_.cycles = std::max(result_.cycles, shared_.drained());
    result_.written = shared_.written();
    return std::move(result_);
  }

 private:
  // Deals the first workgroups, each to the unit that has the fewest.
  void fill() {
    while (next_ < groups_.size()) {
      std::uint32_t emptiest = 0;
      for (std::uint32_t unit = 1; unit < units_.size(); ++unit) {
        if (units_[unit].resident() < units_[emptiest].resident()) emptiest = unit;
      }
      if (!units_[emptiest].has_room()) return;
      launch_on(emptiest, 0);
    }
  }

  void room(std::uint32_t unit, std::uint64_t clk) override {
    while (next_ < groups_.size() && units_[unit].has_room()) launch_on(unit, clk);
  }

  void launch_on(std::uint32_t unit, std::uint64_t clk) {
    clks_.resize(trace_.waves_per_workgroup);
    for (std::uint64_t& wave : clks_) {
      wave = std::max(clk, launcher_free_);
      launcher_free_ = wave + p_.wave_launch;
    }
    units_[unit].launch(groups_[next_++], clks_);
  }

  const Trace& trace_;
  const Parameters& p_;
  std::vector<std::uint32_t> groups_;  // of the trace, in the order of dispatch
  std::size_t next_ = 0;
  std::uint64_t launcher_free_ = 0;
  std::vector<std::uint64_t> clks_;
  const std::function<void()>& poll_;
  std::uint32_t until_poll_ = kTurnsToPoll;
  SharedMemory shared_;
  Result result_;
  std::deque<ComputeUnit> units_;  // never moved
};

// Places in the trace of the workgroups of a launch.
std::vector<std::uint32_t> groups_of(const Trace& trace, const Launch& launch) {
  const std::size_t count = trace.waves.size() / trace.waves_per_workgroup;
  std::vector<std::uint32_t> groups;
  if (launch.workgroups.empty()) {
    for (std::uint32_t group = 0; group < count; ++group) groups.push_back(group);
    return groups;
  }
  std::map<std::uint32_t, std::uint32_t> place;
  for (std::uint32_t group = 0; group < count; ++group) {
    place[trace.waves[std::size_t{group} * trace.waves_per_workgroup].workgroup] = group;
  }
  for (const std::uint32_t id : launch.workgroups) {
    const auto at = place.find(id);
    require(at != place.end(), "the trace does not hold a workgroup of the launch");
    groups.push_back(at->second);
  }
  return groups;
}

}  // namespace

Result simulate(std::span<const InstructionTiming> program, const Trace& trace,
                const Parameters& parameters, const Launch& launch) {
  validate(program);
  validate(parameters);
  validate(trace, program.size());
  const auto [slots, workgroups] = launch.residency;
  require(slots >= 1 && slots <= kMaxSlots && workgroups >= 1 && workgroups <= kMaxWorkgroups &&
              trace.waves_per_workgroup <= slots * kSimds,
          "a workgroup does not fit on a compute unit");
  require(launch.units >= 1 && launch.units <= launch.busy_units_of_xcd &&
              launch.busy_units_of_xcd <= launch.busy_units && launch.busy_units <= kMaxUnits,
          "a launch keeps more compute units busy than there are");
  std::vector<std::uint32_t> groups = groups_of(trace, launch);
  std::vector<std::uint32_t> unit_of(trace.waves.size() / trace.waves_per_workgroup, kMaxUnits);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    unit_of[groups[i]] = static_cast<std::uint32_t>(i % launch.units);
  }
  const Sharing sharing(trace, unit_of, launch);
  return Xcd(program, trace, parameters, launch, std::move(groups), sharing).run();
}

}  // namespace asmevo::timing
