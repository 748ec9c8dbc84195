#include "timing.hpp"

#include <algorithm>
#include <utility>

#include "timing_counters.hpp"
#include "timing_memory.hpp"
#include "timing_validate.hpp"

namespace asmevo::timing {
namespace {

constexpr std::uint64_t kNever = ~0ull;
// The instruction buffer drops what VSKIP skips: a turn, and no unit.
constexpr InstructionTiming kSkippedTiming{.unit = IssueClass::Wait};

struct Wave {
  const WaveTrace* trace = nullptr;
  std::size_t position = 0;
  std::uint32_t group = 0;
  std::uint32_t fetch_debt = 0;
  std::uint64_t next = 0;  // first turn after the previous instruction
  std::uint64_t lds_done = 0;
  std::uint64_t matrix_done = 0;  // when its last matrix operation has left the pipe
  VmQueue vm;
  LgkmQueue lgkm;
};

struct Simd {
  std::array<Wave, kMaxSlots> waves;
  std::array<std::uint64_t, kMaxSlots> ready;  // kNever: at a barrier, or slot empty
  std::array<IssueClass, kMaxSlots> unit{};
  std::array<bool, kMaxSlots> occupied{};
  std::array<bool, kMaxSlots> whole{};  // what is next needs the matrix pipe idle
  std::array<std::uint8_t, kMaxSlots> priority{};
  bool prioritised = false;  // some wave has ever had a priority above 0
  std::uint32_t free = 0;
  std::uint32_t first = 0;  // where the next round-robin scan starts
  std::uint64_t alu_free = 0;
  std::uint64_t matrix_free = 0;
  std::uint64_t event = kNever;

  Simd() { ready.fill(kNever); }
};

struct Place {
  std::uint32_t simd;
  std::uint32_t slot;
};

struct Group {
  std::uint32_t live = 0;
  std::vector<Place> at_barrier;
  std::uint64_t last_arrival = 0;
};

// Classes that share one issue port of a turn; 0: handled by the instruction buffer, no port.
constexpr std::uint32_t port(IssueClass unit) {
  switch (unit) {
    case IssueClass::Salu:
    case IssueClass::Smem: return 1;
    case IssueClass::Valu: return 2;
    case IssueClass::Vmem: return 4;
    case IssueClass::Lds: return 8;
    case IssueClass::Branch: return 16;
    default: return 0;
  }
}

class ComputeUnit {
 public:
  ComputeUnit(std::span<const InstructionTiming> program, const Trace& trace,
              const Parameters& parameters, const Residency& residency)
      : program_(program),
        trace_(trace),
        p_(parameters),
        groups_(trace.waves.size() / trace.waves_per_workgroup),
        room_(residency.workgroups),
        vmem_starts_(parameters.vmem_queue, 0),
        memory_(parameters) {
    for (Simd& simd : simds_) simd.free = residency.slots;
    result_.issued.assign(program.size(), 0);
    result_.stalls.assign(program.size() * kStallCauses, 0);
  }

  Result run() {
    dispatch(0);
    for (;;) {
      std::uint32_t soonest = 0;
      for (std::uint32_t s = 1; s < kSimds; ++s) {
        if (simds_[s].event < simds_[soonest].event) soonest = s;
      }
      if (simds_[soonest].event == kNever) return std::move(result_);
      turn(soonest, simds_[soonest].event);
    }
  }

 private:
  const InstructionTiming& timing_of(const TraceEntry& entry) const {
    return entry.access == kSkipped ? kSkippedTiming : program_[entry.instruction];
  }

  // First turn of a SIMD at or after `clk`.
  static std::uint64_t align(std::uint64_t clk, std::uint32_t simd) {
    return clk + ((simd - clk) & (kTurn - 1));
  }

  void stall(std::uint32_t instruction, StallCause cause, std::uint64_t clk) {
    result_.stalls[static_cast<std::size_t>(cause) * program_.size() + instruction] += clk;
  }

  void complete(std::uint64_t clk) { result_.cycles = std::max(result_.cycles, clk); }

  // Launches workgroups in order while the CU has room for a whole one.
  void dispatch(std::uint64_t clk) {
    while (next_group_ < groups_.size() && room_ > 0) {
      std::uint32_t free = 0;
      for (const Simd& simd : simds_) free += simd.free;
      if (free < trace_.waves_per_workgroup) return;
      --room_;
      groups_[next_group_].live = trace_.waves_per_workgroup;
      for (std::uint32_t w = 0; w < trace_.waves_per_workgroup; ++w) {
        launch(trace_.waves[next_group_ * trace_.waves_per_workgroup + w], clk);
      }
      ++next_group_;
    }
  }

  // Puts a wave on the emptiest SIMD.
  void launch(const WaveTrace& trace, std::uint64_t clk) {
    std::uint32_t s = 0;
    for (std::uint32_t other = 1; other < kSimds; ++other) {
      if (simds_[other].free > simds_[s].free) s = other;
    }
    Simd& simd = simds_[s];
    std::uint32_t slot = 0;
    while (simd.occupied[slot]) ++slot;
    --simd.free;
    simd.occupied[slot] = true;
    simd.priority[slot] = 0;
    simd.waves[slot] = Wave{};
    simd.waves[slot].trace = &trace;
    simd.waves[slot].group = next_group_;
    prepare(s, slot, align(clk, s));
  }

  // When the unit that a slot's instruction needs can take another.
  std::uint64_t unit_free(const Simd& simd, std::uint32_t slot) const {
    const IssueClass unit = simd.unit[slot];
    if (unit == IssueClass::Valu) {
      return simd.whole[slot] ? std::max(simd.alu_free, simd.matrix_free) : simd.alu_free;
    }
    if (unit == IssueClass::Vmem) return vmem_starts_[vmem_count_ % vmem_starts_.size()];
    return 0;
  }

  void turn(std::uint32_t s, std::uint64_t clk) {
    Simd& simd = simds_[s];
    std::uint32_t ports = 0;
    bool issued = false;
    const std::uint32_t begin = simd.first;
    const auto scan = [&](int priority) {
      for (std::uint32_t k = 0; k < kMaxSlots; ++k) {
        const std::uint32_t slot = (begin + k) % kMaxSlots;
        const IssueClass unit = simd.unit[slot];
        if (simd.ready[slot] > clk || (priority >= 0 && simd.priority[slot] != priority)) continue;
        if ((ports & port(unit)) || unit_free(simd, slot) > clk) continue;
        ports |= port(unit);
        if (!issued) simd.first = (slot + 1) % kMaxSlots;
        issued = true;
        issue(s, slot, clk);
      }
    };
    if (simd.prioritised) {
      // The waves of a higher priority choose first (CDNA3 ISA, "S_SETPRIO").
      for (int priority = kPriorities - 1; priority >= 0; --priority) scan(priority);
    } else {
      scan(-1);
    }
    simd.event = kNever;
    for (std::uint32_t slot = 0; slot < kMaxSlots; ++slot) {
      if (simd.ready[slot] == kNever) continue;
      wake(s, std::max(simd.ready[slot], unit_free(simd, slot)), clk + kTurn);
    }
  }

  void wake(std::uint32_t s, std::uint64_t clk, std::uint64_t earliest) {
    simds_[s].event = std::min(simds_[s].event, align(std::max(clk, earliest), s));
  }

  // Works out when the wave's instruction at `position` may issue, its unit apart.
  void prepare(std::uint32_t s, std::uint32_t slot, std::uint64_t next) {
    Simd& simd = simds_[s];
    Wave& wave = simd.waves[slot];
    const std::uint32_t index = wave.trace->entries[wave.position].instruction;
    const InstructionTiming& in = timing_of(wave.trace->entries[wave.position]);
    wave.next = next;
    std::uint64_t ready = next;
    StallCause cause = StallCause::Fetch;
    const auto hold = [&](std::uint64_t until, StallCause why) {
      if (until <= ready) return;
      ready = until;
      cause = why;
    };

    wave.fetch_debt += in.fetch_debt;
    if (wave.fetch_debt >= kTurn) {
      wave.fetch_debt -= kTurn;
      hold(next + kTurn, StallCause::Fetch);
    }
    if (in.wait_vmcnt < kVmcntMax) hold(wave.vm.bounded(in.wait_vmcnt, next), StallCause::Vmcnt);
    if (in.wait_lgkmcnt < kLgkmcntMax) {
      hold(wave.lgkm.bounded(in.wait_lgkmcnt, next), StallCause::Lgkmcnt);
    }
    if (!in.beside_matrix && wave.matrix_done != 0) {
      hold(wave.matrix_done + p_.after_matrix, StallCause::UnitBusy);
    }
    if (in.vmcnt) hold(wave.vm.bounded(kVmcntMax - 1, next), StallCause::Vmcnt);
    if (in.lgkmcnt) hold(wave.lgkm.counted(kLgkmcntMax - in.lgkmcnt, next), StallCause::Lgkmcnt);

    ready = align(ready, s);
    if (ready > next) stall(index, cause, ready - next);
    simd.ready[slot] = ready;
    simd.unit[slot] = in.unit;
    simd.whole[slot] = in.matrix != 0 || !in.beside_matrix;
    wake(s, ready, 0);
  }

  void issue(std::uint32_t s, std::uint32_t slot, std::uint64_t clk) {
    Simd& simd = simds_[s];
    Wave& wave = simd.waves[slot];
    const TraceEntry& entry = wave.trace->entries[wave.position];
    const InstructionTiming& in = timing_of(entry);
    ++result_.issued[entry.instruction];
    if (clk > simd.ready[slot]) {
      stall(entry.instruction, StallCause::UnitBusy, clk - simd.ready[slot]);
    }
    // A wave that waits a turn has its instruction buffer filled meanwhile.
    if (clk > wave.next) wave.fetch_debt = 0;
    ++wave.position;
    if (in.priority != kNoPriority) {
      simd.priority[slot] = in.priority;
      simd.prioritised |= in.priority != 0;
    }

    std::uint64_t next = clk + kTurn;
    switch (in.unit) {
      case IssueClass::Valu:
        simd.alu_free = clk + in.busy;
        complete(simd.alu_free);
        if (in.matrix != 0) {
          wave.matrix_done = simd.matrix_free = clk + in.matrix;
          complete(simd.matrix_free);
        }
        break;
      case IssueClass::Smem: scalar_memory(wave, in, access_of(wave, entry), clk); break;
      case IssueClass::Vmem: vector_memory(wave, in, access_of(wave, entry), clk); break;
      case IssueClass::Lds: local_memory(s, wave, in, access_of(wave, entry), clk); break;
      case IssueClass::Branch:
        next = align(clk + (taken(wave, entry) ? p_.branch_taken : p_.branch_not_taken), s);
        stall(entry.instruction, StallCause::Fetch, next - clk - kTurn);
        break;
      case IssueClass::Nop:
        next = align(clk + in.busy, s);
        stall(entry.instruction, StallCause::Nop, next - clk - kTurn);
        break;
      default: break;
    }
    if (next > clk + kTurn) wave.fetch_debt = 0;
    complete(next);
    if (in.unit == IssueClass::Barrier) {
      arrive(s, slot, next);
    } else if (wave.position == wave.trace->entries.size()) {
      finish(s, slot, next);
    } else {
      prepare(s, slot, next);
    }
  }

  static bool taken(const Wave& wave, const TraceEntry& entry) {
    return wave.position < wave.trace->entries.size() &&
           wave.trace->entries[wave.position].instruction != entry.instruction + 1;
  }

  // An instruction with EXEC = 0 moves nothing: an access without lines.
  static Access access_of(const Wave& wave, const TraceEntry& entry) {
    return entry.access == kNoAccess ? Access{} : wave.trace->accesses[entry.access];
  }

  void scalar_memory(Wave& wave, const InstructionTiming& in, const Access& access,
                     std::uint64_t clk) {
    if (in.access == AccessKind::Invalidate) memory_.invalidate_scalar();
    std::uint64_t done = clk + p_.sl1d_latency;
    for (std::uint32_t i = 0; i < access.line_count; ++i) {
      const std::uint64_t line = wave.trace->lines[access.first_line + i];
      done = std::max(done, in.access == AccessKind::Load ? memory_.load_scalar(line, clk)
                                                          : move_line(in.access, line, clk));
    }
    complete(done);
    if (in.lgkmcnt) wave.lgkm.push(clk, done, in.lgkmcnt, true);
  }

  void vector_memory(Wave& wave, const InstructionTiming& in, const Access& access,
                     std::uint64_t clk) {
    const std::uint64_t start = std::max(clk, vmem_free_);
    std::uint64_t cycles = std::max<std::uint64_t>(
        {p_.vmem_minimum, ceil_div(access.bytes, p_.vmem_bytes_per_clk),
         ceil_div(access.line_count * kLineBytes, p_.vl1d_bytes_per_clk)});
    std::uint64_t latency = p_.vl1d_latency;
    switch (in.access) {
      case AccessKind::Store:
      case AccessKind::WriteBack: latency = p_.store_latency; break;
      case AccessKind::Atomic:
        cycles *= p_.atomic_factor;
        latency = p_.atomic_latency;
        break;
      case AccessKind::LoadToLds:
        cycles = std::max<std::uint64_t>(cycles, p_.vmem_to_lds);
        // Booked at issue although the data arrives later: what counts is the share of the banks.
        lds_free_ = std::max(clk, lds_free_) + ceil_div(access.bytes, p_.lds_bytes_per_clk);
        break;
      case AccessKind::Invalidate: memory_.invalidate_vector(); break;
      case AccessKind::Load: break;
    }
    vmem_free_ = start + cycles;
    vmem_starts_[vmem_count_++ % vmem_starts_.size()] = start;

    std::uint64_t done = start + latency;
    for (std::uint32_t i = 0; i < access.line_count; ++i) {
      const std::uint64_t line = wave.trace->lines[access.first_line + i];
      const std::uint64_t lookup = start + i * cycles / access.line_count;
      done = std::max(done, move_line(in.access, line, lookup));
    }
    if (in.vmcnt) done = wave.vm.push(done);
    // A flat access raises both counters; it returns in no order with LDS operations.
    if (in.lgkmcnt) wave.lgkm.push(clk, done, in.lgkmcnt, true);
    complete(done);
  }

  std::uint64_t move_line(AccessKind kind, std::uint64_t line, std::uint64_t clk) {
    switch (kind) {
      case AccessKind::Store: return memory_.store(line, clk);
      case AccessKind::Atomic: return memory_.atomic(line, clk);
      default: return memory_.load(line, clk);
    }
  }

  // Two SIMDs share a path to the LDS, and the two paths share its banks.
  void local_memory(std::uint32_t s, Wave& wave, const InstructionTiming& in,
                    const Access& access, std::uint64_t clk) {
    std::uint64_t& path = lds_path_free_[s / 2];
    const std::uint64_t start = std::max({clk, path, lds_free_});
    const std::uint64_t conflicts = access.lds_cycles;
    const std::uint64_t cycles =
        std::max<std::uint64_t>(
            {kTurn, ceil_div(access.bytes, p_.lds_pair_bytes_per_clk), conflicts}) +
        (in.access == AccessKind::Store || in.access == AccessKind::Atomic ? p_.lds_store_overhead
                                                                           : 0);
    path = start + cycles;
    // Counted from issue: a request that waits for its path leaves the banks to the other path.
    lds_free_ = std::max(clk, lds_free_) +
                std::max(ceil_div(access.bytes, p_.lds_bytes_per_clk), conflicts);
    wave.lds_done = std::max(wave.lds_done, path + p_.lds_latency);
    complete(wave.lds_done);
    if (in.lgkmcnt) wave.lgkm.push(clk, wave.lds_done, in.lgkmcnt, false);
  }

  static std::uint64_t ceil_div(std::uint64_t amount, std::uint64_t rate) {
    return (amount + rate - 1) / rate;
  }

  void arrive(std::uint32_t s, std::uint32_t slot, std::uint64_t clk) {
    Simd& simd = simds_[s];
    Group& group = groups_[simd.waves[slot].group];
    simd.ready[slot] = kNever;
    simd.waves[slot].next = clk;
    group.at_barrier.push_back({s, slot});
    group.last_arrival = std::max(group.last_arrival, clk);
    release(group);
  }

  // Lets a workgroup go on once every wave that has not ended is at the barrier.
  void release(Group& group) {
    if (group.at_barrier.empty() || group.at_barrier.size() < group.live) return;
    const std::vector<Place> waiting = std::move(group.at_barrier);
    const std::uint64_t clk = group.last_arrival + p_.barrier_release;
    group.at_barrier.clear();
    for (const Place& place : waiting) {
      Wave& wave = simds_[place.simd].waves[place.slot];
      const std::uint64_t next = align(clk, place.simd);
      stall(wave.trace->entries[wave.position - 1].instruction, StallCause::Barrier,
            next - wave.next);
      wave.fetch_debt = 0;
      if (wave.position == wave.trace->entries.size()) {
        finish(place.simd, place.slot, next);
      } else {
        prepare(place.simd, place.slot, next);
      }
    }
  }

  // A slot is free at once, LDS when the whole workgroup has ended.
  void finish(std::uint32_t s, std::uint32_t slot, std::uint64_t clk) {
    Simd& simd = simds_[s];
    Group& group = groups_[simd.waves[slot].group];
    simd.ready[slot] = kNever;
    simd.occupied[slot] = false;
    ++simd.free;
    if (--group.live == 0) {
      ++room_;
    } else {
      group.last_arrival = std::max(group.last_arrival, clk);
      release(group);
    }
    complete(clk);
    dispatch(clk);
  }

  std::span<const InstructionTiming> program_;
  const Trace& trace_;
  const Parameters& p_;
  std::array<Simd, kSimds> simds_;
  std::vector<Group> groups_;
  std::uint32_t next_group_ = 0;
  std::uint32_t room_;
  std::uint64_t vmem_free_ = 0;
  std::vector<std::uint64_t> vmem_starts_;  // of the last instructions, a ring
  std::uint64_t vmem_count_ = 0;
  std::array<std::uint64_t, kSimds / 2> lds_path_free_{};
  std::uint64_t lds_free_ = 0;
  MemoryHierarchy memory_;
  Result result_;
};

}  // namespace

Result simulate(std::span<const InstructionTiming> program, const Trace& trace,
                const Parameters& parameters, const Residency& residency) {
  validate(program);
  validate(parameters);
  validate(trace, program.size());
  require(residency.slots >= 1 && residency.slots <= kMaxSlots && residency.workgroups >= 1 &&
              trace.waves_per_workgroup <= residency.slots * kSimds,
          "a workgroup does not fit on a compute unit");
  return ComputeUnit(program, trace, parameters, residency).run();
}

}  // namespace asmevo::timing
