#include "launch.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "independent_run.hpp"
#include "resident_workgroup.hpp"
#include "sanitizer.hpp"

namespace asmevo {

namespace {

constexpr u32 kMaxThreads = 256;
// The caller's poll may have to wait for a lock of its own, so it is not asked with every look at
// the clock.
constexpr auto kPollInterval = std::chrono::milliseconds(20);

void check(const Launch& launch, std::span<const u32> order) {
  u64 groups = 1, items = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    if (launch.grid[d] == 0 || launch.workgroup[d] == 0) {
      throw std::invalid_argument("grid and workgroup dimensions must be positive");
    }
    if (launch.workgroup[d] > 1024) throw std::invalid_argument("workgroup dimension above 1024");
    groups *= launch.grid[d];
    if (groups > 0xffffffffull) throw std::invalid_argument("more than 2^32 - 1 workgroups");
    items *= launch.workgroup[d];
    if (launch.group_id_sgprs[d] >= 102) throw std::invalid_argument("workgroup id register");
  }
  if (items > 1024) throw std::invalid_argument("a workgroup has at most 1024 work-items");
  if (launch.lds_bytes > 65536) throw std::invalid_argument("a workgroup has at most 64 KiB of LDS");
  // COMPUTE_TMPRING_SIZE.WAVESIZE of gfx9 holds up to 8 MiB a wave.
  if (launch.private_bytes > 131072) {
    throw std::invalid_argument("a work-item has at most 128 KiB of scratch");
  }
  if (launch.user_sgprs.size() > 102) throw std::invalid_argument("more than 102 user SGPRs");
  if (launch.work_item_dimensions < 1 || launch.work_item_dimensions > 3) {
    throw std::invalid_argument("v0 holds 1 to 3 work-item dimensions");
  }
  if (launch.resident == 0) throw std::invalid_argument("at least one workgroup is resident");
  if (launch.threads == 0 || launch.threads > kMaxThreads) {
    throw std::invalid_argument("a launch takes 1 to 256 host threads");
  }
  for (const u32 id : order) {
    if (id >= groups) throw std::invalid_argument("workgroup id outside the grid");
  }
}

// The bytes of the writable regions, to start over from.
class Snapshot {
 public:
  explicit Snapshot(const Memory& memory) {
    for (const MappedRegion& r : memory.regions()) {
      if (!r.writable) continue;
      if (r.initial == nullptr) saved_.emplace_back(r.bytes, r.bytes + r.size);
      regions_.push_back({&r, r.initial != nullptr ? r.initial : saved_.back().data()});
    }
  }
  void restore() const {
    for (const auto& [region, bytes] : regions_) std::copy_n(bytes, region->size, region->bytes);
  }

 private:
  std::deque<std::vector<u8>> saved_;
  std::vector<std::pair<const MappedRegion*, const u8*>> regions_;
};

struct OutOfPatience {};

// What is traced of workgroups that run at the same time, in the order they were asked for.
class Traces {
 public:
  Traces(std::span<const u32> order, std::size_t limit_in_bytes)
      : order_(order), limit_in_bytes_(limit_in_bytes) {
    for (const u32 id : order) waves_[id];
  }
  bool wants(u32 id) const { return waves_.contains(id); }

  // Throws `Fault` when everything traced so far, this workgroup's part included, is too large.
  void check(const std::vector<WaveTrace>& running) {
    if (running.empty()) return;
    std::size_t bytes = 0;
    for (const WaveTrace& t : running) bytes += t.size_in_bytes();
    std::size_t& known = bytes_[running.front().workgroup];
    total_ += bytes - known;
    known = bytes;
    if (total_ <= limit_in_bytes_) return;
    Fault fault(FaultKind::kBudget, "the trace of the launch takes more than " +
                                        std::to_string(limit_in_bytes_) + " bytes");
    fault.workgroup = running.front().workgroup;
    throw fault;
  }
  void finish(std::vector<WaveTrace>& traces) {
    if (!traces.empty()) waves_[traces.front().workgroup] = std::move(traces);
  }
  void move_to(Trace& trace) {
    for (const u32 id : order_) {
      std::vector<WaveTrace>& waves = waves_[id];
      std::move(waves.begin(), waves.end(), std::back_inserter(trace.waves));
      waves.clear();
    }
  }

 private:
  std::span<const u32> order_;
  std::size_t limit_in_bytes_;
  std::size_t total_ = 0;
  std::map<u32, std::size_t> bytes_;
  std::map<u32, std::vector<WaveTrace>> waves_;
};

// Up to `resident` workgroups take turns; the next one starts where one has ended.
u64 run_resident(const Program& program, Memory& memory, const Launch& launch,
                 std::span<const u32> order, std::size_t resident, Traces* traces, u64 patience,
                 const Poll& poll) {
  const auto traced = [&](u32 id) { return traces != nullptr && traces->wants(id); };
  std::vector<std::unique_ptr<ResidentWorkgroup>> running;
  Allowance allowance{launch.instruction_budget, poll};
  std::size_t next = 0;
  for (; next < resident; ++next) {
    running.push_back(std::make_unique<ResidentWorkgroup>(program, launch));
    running.back()->begin(order[next], memory, traced(order[next]), allowance);
  }
  while (!running.empty()) {
    for (auto& group : running) {
      group->take_turns(allowance);
      if (traces != nullptr) traces->check(group->traces());
      if (!group->ended()) {
        if (group->executed() > patience) throw OutOfPatience{};
        continue;
      }
      if (traces != nullptr) traces->finish(group->traces());
      if (next < order.size()) {
        group->begin(order[next], memory, traced(order[next]), allowance);
        ++next;
      } else {
        group.reset();
      }
    }
    std::erase(running, nullptr);
  }
  return launch.instruction_budget - allowance.instructions;
}

constexpr u64 kEndless = ~u64{0};

u64 run_traced(const Program& program, Memory& memory, const Launch& launch,
               std::span<const u32> order, Trace& trace, const Poll& poll) {
  Traces traces(order, trace.limit_in_bytes);
  const bool together = launch.together && !launch.everyone.empty();
  const auto all = [&] {
    const std::size_t resident = std::min<std::size_t>(launch.resident, launch.everyone.size());
    return run_resident(program, memory, launch, launch.everyone, resident, &traces, kEndless, poll);
  };
  u64 executed = 0;
  if (together) {
    executed = all();
  } else {
    std::optional<Snapshot> before;
    const bool others = launch.everyone.size() > order.size();
    if (others) before.emplace(memory);
    try {
      executed = run_resident(program, memory, launch, order, 1, &traces,
                              others ? kPatience : kEndless, poll);
    } catch (const OutOfPatience&) {
      before->restore();
      traces = Traces(order, trace.limit_in_bytes);
      executed = all();
    }
  }
  traces.move_to(trace);
  return executed;
}

}  // namespace

u64 run(const Program& program, Memory& memory, const Launch& launch, std::span<const u32> order,
        Trace* trace, const std::function<void()>& poll) {
  check(launch, order);
  if (launch.entry > program.size()) throw std::invalid_argument("entry outside the program");
  const auto started = std::chrono::steady_clock::now();
  auto polled = started;
  const Poll watched = [&] {
    const auto now = std::chrono::steady_clock::now();
    if (now - polled >= kPollInterval) {
      poll();
      polled = now;
    }
    const std::chrono::duration<double> elapsed = now - started;
    if (launch.seconds > 0 && elapsed.count() > launch.seconds) {
      throw Fault(FaultKind::kTimeout, "the launch took longer than its watchdog's " +
                                           std::to_string(std::lround(launch.seconds)) +
                                           " s of host time");
    }
  };
  if (trace != nullptr) {
    const u32 items = launch.workgroup[0] * launch.workgroup[1] * launch.workgroup[2];
    trace->waves_per_workgroup = static_cast<u32>((items + kLanes - 1) / kLanes);
    check(launch, launch.everyone);
    return run_traced(program, memory, launch, order, *trace, watched);
  }
  if (launch.sanitizer != nullptr && &launch.sanitizer->program() != &program) {
    throw std::invalid_argument("the sanitizer was made for another program");
  }
  const auto restart = [&](const Snapshot& before) {
    before.restore();
    if (launch.sanitizer != nullptr) launch.sanitizer->restart();
  };
  std::optional<Snapshot> before;
  if (order.size() > 1) before.emplace(memory);
  if (launch.threads > 1 && launch.sanitizer == nullptr && order.size() > 1) {
    const auto threads = static_cast<u32>(std::min<std::size_t>(launch.threads, order.size()));
    if (auto n = run_independently(program, memory, launch, order, threads, watched)) return *n;
    before->restore();
  }
  if (auto n = run_independently(program, memory, launch, order, 1, watched)) return *n;
  restart(*before);
  const std::size_t resident = std::min<std::size_t>(launch.resident, order.size());
  return run_resident(program, memory, launch, order, resident, nullptr, kEndless, watched);
}

}  // namespace asmevo
