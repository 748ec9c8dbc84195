#include "launch.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
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

// `before`: bytes of the workgroups that have ended.
void check_size(const Trace& trace, std::size_t before, const std::vector<WaveTrace>& running) {
  std::size_t bytes = before;
  for (const WaveTrace& t : running) bytes += t.size_in_bytes();
  if (bytes <= trace.limit_in_bytes) return;
  Fault fault(FaultKind::kBudget, "the trace of the launch takes more than " +
                                      std::to_string(trace.limit_in_bytes) + " bytes");
  fault.workgroup = running.front().workgroup;
  throw fault;
}

// Up to `resident` workgroups take turns; the next one starts where one has ended.
u64 run_resident(const Program& program, Memory& memory, const Launch& launch,
                 std::span<const u32> order, Trace* trace, const Poll& poll) {
  const std::size_t resident = trace != nullptr ? 1 : std::min<std::size_t>(launch.resident, order.size());
  std::vector<std::unique_ptr<ResidentWorkgroup>> running;
  Allowance allowance{launch.instruction_budget, poll};
  std::size_t next = 0, traced = 0;
  for (; next < resident; ++next) {
    running.push_back(std::make_unique<ResidentWorkgroup>(program, launch));
    running.back()->begin(order[next], memory, trace != nullptr, allowance);
  }
  while (!running.empty()) {
    for (auto& group : running) {
      group->take_turns(allowance);
      if (trace != nullptr) check_size(*trace, traced, group->traces());
      if (!group->ended()) continue;
      if (trace != nullptr) {
        for (const WaveTrace& t : group->traces()) traced += t.size_in_bytes();
        std::move(group->traces().begin(), group->traces().end(), std::back_inserter(trace->waves));
      }
      if (next < order.size()) {
        group->begin(order[next++], memory, trace != nullptr, allowance);
      } else {
        group.reset();
      }
    }
    std::erase(running, nullptr);
  }
  return launch.instruction_budget - allowance.instructions;
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
    return run_resident(program, memory, launch, order, trace, watched);
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
  return run_resident(program, memory, launch, order, nullptr, watched);
}

}  // namespace asmevo
