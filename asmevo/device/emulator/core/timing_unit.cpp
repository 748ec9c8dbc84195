#include "timing_unit.hpp"

#include <algorithm>
#include <utility>

namespace asmevo::timing {
namespace {

// The instruction buffer drops what VSKIP skips: a turn, and no unit.
constexpr InstructionTiming kSkippedTiming{.unit = IssueClass::Wait};

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

// First turn of a SIMD at or after `clk`.
constexpr std::uint64_t align(std::uint64_t clk, std::uint32_t simd) {
  return clk + ((simd - clk) & (kTurn - 1));
}

constexpr std::uint64_t ceil_div(std::uint64_t amount, std::uint64_t rate) {
  return (amount + rate - 1) / rate;
}

// An instruction with EXEC = 0 moves nothing: an access without lines.
Access access_of(const WaveTrace& wave, const TraceEntry& entry) {
  return entry.access == kNoAccess ? Access{} : wave.accesses[entry.access];
}

}  // namespace

ComputeUnit::ComputeUnit(std::uint32_t number, std::span<const InstructionTiming> program,
                         const Trace& trace, const Parameters& parameters, const Launch& launch,
                         SharedMemory& shared, Dispatcher& dispatcher, Result& result)
    : number_(number),
      program_(program),
      trace_(trace),
      p_(parameters),
      launch_(launch),
      dispatcher_(dispatcher),
      result_(result),
      memory_(parameters, shared),
      groups_(launch.residency.workgroups),
      vmem_starts_(parameters.vmem_queue, 0) {
  for (Simd& simd : simds_) simd.free = launch.residency.slots;
}

bool ComputeUnit::has_room() const {
  std::uint32_t free = 0;
  for (const Simd& simd : simds_) free += simd.free;
  return resident_ < launch_.residency.workgroups && free >= trace_.waves_per_workgroup;
}

void ComputeUnit::launch(std::uint32_t group, std::span<const std::uint64_t> clks) {
  std::uint32_t place = 0;
  while (groups_[place].live != 0) ++place;
  groups_[place] = Group{trace_.waves_per_workgroup, {}, 0};
  ++resident_;
  for (std::uint32_t w = 0; w < trace_.waves_per_workgroup; ++w) {
    launch_wave(trace_.waves[std::size_t{group} * trace_.waves_per_workgroup + w], place, clks[w]);
  }
}

std::uint64_t ComputeUnit::event() const {
  std::uint64_t soonest = kNever;
  for (const Simd& simd : simds_) soonest = std::min(soonest, simd.event);
  return soonest;
}

void ComputeUnit::run(std::uint64_t clk) {
  for (;;) {
    std::uint32_t soonest = 0;
    for (std::uint32_t s = 1; s < kSimds; ++s) {
      if (simds_[s].event < simds_[soonest].event) soonest = s;
    }
    if (simds_[soonest].event >= clk) return;
    turn(soonest, simds_[soonest].event);
  }
}

const InstructionTiming& ComputeUnit::timing_of(const TraceEntry& entry) const {
  return entry.access == kSkipped ? kSkippedTiming : program_[entry.instruction];
}

void ComputeUnit::stall(Wave& wave, std::uint32_t instruction, StallCause cause,
                        std::uint64_t clk) {
  const auto row = static_cast<std::size_t>(cause);
  result_.stalls[row * program_.size() + instruction] += clk;
  wave.result->stalls[row] += clk;
}

void ComputeUnit::complete(std::uint64_t clk) { result_.cycles = std::max(result_.cycles, clk); }

// Puts a wave on the emptiest SIMD.
void ComputeUnit::launch_wave(const WaveTrace& trace, std::uint32_t group, std::uint64_t clk) {
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
  Wave& wave = simd.waves[slot] = Wave{};
  wave.trace = &trace;
  wave.group = group;
  const std::uint64_t start = align(clk, s);
  wave.result = &result_.waves.emplace_back();
  wave.result->unit = number_;
  wave.result->simd = s;
  wave.result->slot = slot;
  wave.result->workgroup = trace.workgroup;
  wave.result->wave = trace.wave;
  wave.result->start = start;
  wave.result->stalls[static_cast<std::size_t>(StallCause::Occupancy)] = start;
  prepare(s, slot, start);
}

// When the unit that a slot's instruction needs can take another.
std::uint64_t ComputeUnit::unit_free(const Simd& simd, std::uint32_t slot) const {
  const IssueClass unit = simd.unit[slot];
  if (unit == IssueClass::Valu) {
    return simd.whole[slot] ? std::max(simd.alu_free, simd.matrix_free) : simd.alu_free;
  }
  if (unit == IssueClass::Vmem) return vmem_starts_[vmem_count_ % vmem_starts_.size()];
  return 0;
}

void ComputeUnit::turn(std::uint32_t s, std::uint64_t clk) {
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

void ComputeUnit::wake(std::uint32_t s, std::uint64_t clk, std::uint64_t earliest) {
  simds_[s].event = std::min(simds_[s].event, align(std::max(clk, earliest), s));
}

// Works out when the wave's instruction at `position` may issue, its unit apart.
void ComputeUnit::prepare(std::uint32_t s, std::uint32_t slot, std::uint64_t next) {
  Simd& simd = simds_[s];
  Wave& wave = simd.waves[slot];
  const TraceEntry& entry = wave.trace->entries[wave.position];
  const InstructionTiming& in = timing_of(entry);
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
  if (in.code_line != wave.code_line) {
    wave.code_line = in.code_line;
    hold(memory_.fetch(in.code_line, next), StallCause::Fetch);
  }
  if (in.wait_vmcnt < kVmcntMax) hold(wave.vm.bounded(in.wait_vmcnt, next), StallCause::Vmcnt);
  if (in.wait_lgkmcnt < kLgkmcntMax) {
    hold(wave.lgkm.bounded(in.wait_lgkmcnt, next), StallCause::Lgkmcnt);
  }
  if (!in.beside_matrix) hold(wave.matrix_result, StallCause::UnitBusy);
  if (in.uses_matrix) hold(wave.matrix_result, StallCause::Dependency);
  if (in.vmcnt) hold(wave.vm.bounded(kVmcntMax - 1, next), StallCause::Vmcnt);
  if (in.lgkmcnt) hold(wave.lgkm.counted(kLgkmcntMax - in.lgkmcnt, next), StallCause::Lgkmcnt);

  ready = align(ready, s);
  wave.cause = kNoCause;
  if (ready > next) {
    stall(wave, entry.instruction, cause, ready - next);
    wave.cause = static_cast<std::uint8_t>(cause);
  }
  simd.ready[slot] = ready;
  simd.unit[slot] = in.unit;
  simd.whole[slot] = in.matrix != 0 || !in.beside_matrix;
  wake(s, ready, 0);
}

void ComputeUnit::issue(std::uint32_t s, std::uint32_t slot, std::uint64_t clk) {
  Simd& simd = simds_[s];
  Wave& wave = simd.waves[slot];
  const TraceEntry& entry = wave.trace->entries[wave.position];
  const InstructionTiming& in = timing_of(entry);
  const std::uint64_t held = simd.ready[slot];
  ++result_.issued[entry.instruction];
  ++wave.result->issued;
  if (clk > held) stall(wave, entry.instruction, StallCause::UnitBusy, clk - held);
  // A wave that waits a turn has its instruction buffer filled meanwhile.
  if (clk > wave.next) wave.fetch_debt = 0;
  ++wave.position;
  if (in.priority != kNoPriority) {
    simd.priority[slot] = in.priority;
    simd.prioritised |= in.priority != 0;
  }

  std::uint64_t next = clk + kTurn;
  std::uint8_t after = kNoCause;
  const auto wait = [&](std::uint64_t clks, StallCause cause) {
    next = align(clk + clks, s);
    stall(wave, entry.instruction, cause, next - clk - kTurn);
    if (next > clk + kTurn) after = static_cast<std::uint8_t>(cause);
  };
  switch (in.unit) {
    case IssueClass::Valu:
      simd.alu_free = clk + in.busy;
      if (!in.beside_matrix && simd.matrix_free != 0 && simd.matrix_slot != slot) {
        simd.alternation += p_.beside_other;
        simd.alu_free += simd.alternation / kTurn * kTurn;
        simd.alternation %= kTurn;
      }
      complete(simd.alu_free);
      if (in.matrix != 0) {
        simd.matrix_free = clk + in.matrix;
        wave.matrix_result = clk + std::max<std::uint64_t>(in.matrix, p_.matrix_latency);
        simd.matrix_slot = slot;
        complete(simd.matrix_free);
      }
      break;
    case IssueClass::Smem: scalar_memory(wave, entry, in, clk); break;
    case IssueClass::Vmem: vector_memory(wave, entry, in, clk); break;
    case IssueClass::Lds: local_memory(s, wave, entry, in, clk); break;
    case IssueClass::Branch: {
      const auto& entries = wave.trace->entries;
      const bool taken = wave.position < entries.size() &&
                         entries[wave.position].instruction != entry.instruction + 1;
      wait(taken ? p_.branch_taken : p_.branch_not_taken, StallCause::Fetch);
      break;
    }
    case IssueClass::Nop: wait(in.busy, StallCause::Nop); break;
    default: break;
  }
  if (next > clk + kTurn) wave.fetch_debt = 0;
  complete(next);
  record(wave, entry.instruction, held, clk, next, after);
  if (in.unit == IssueClass::Barrier) {
    arrive(s, slot, next);
  } else if (wave.position == wave.trace->entries.size()) {
    finish(s, slot, next);
  } else {
    prepare(s, slot, next);
  }
}

void ComputeUnit::record(Wave& wave, std::uint32_t instruction, std::uint64_t held,
                         std::uint64_t clk, std::uint64_t resume, std::uint8_t after) {
  if (launch_.timeline_limit == 0) return;
  if (result_.events == launch_.timeline_limit) {
    result_.timeline_complete = false;
    return;
  }
  ++result_.events;
  wave.result->events.push_back({wave.next, held, clk, resume, instruction, wave.cause, after});
}

void ComputeUnit::count(std::uint32_t instruction, MemoryLevel level) {
  ++result_.lines[static_cast<std::size_t>(level) * program_.size() + instruction];
}

void ComputeUnit::scalar_memory(Wave& wave, const TraceEntry& entry, const InstructionTiming& in,
                                std::uint64_t clk) {
  const Access access = access_of(*wave.trace, entry);
  if (in.access == AccessKind::Invalidate) memory_.invalidate_scalar();
  std::uint64_t done = clk + p_.sl1d_latency;
  for (std::uint32_t i = 0; i < access.line_count; ++i) {
    const std::uint64_t line = wave.trace->lines[access.first_line + i];
    const auto found = in.access == AccessKind::Load
                           ? memory_.load_scalar(line, clk)
                           : move_line(in.access, line, clk);
    count(entry.instruction, found.level);
    done = std::max(done, found.arrival);
  }
  result_.bytes[entry.instruction] += access.bytes;
  complete(done);
  if (in.lgkmcnt) wave.lgkm.push(clk, done, in.lgkmcnt, true);
}

void ComputeUnit::vector_memory(Wave& wave, const TraceEntry& entry, const InstructionTiming& in,
                                std::uint64_t clk) {
  const Access access = access_of(*wave.trace, entry);
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
    memory_.prefetch(wave.trace->lines[access.first_line + i]);
  }
  for (std::uint32_t i = 0; i < access.line_count; ++i) {
    const std::uint64_t line = wave.trace->lines[access.first_line + i];
    const std::uint64_t lookup = start + i * cycles / access.line_count;
    const auto found = move_line(in.access, line, lookup);
    count(entry.instruction, found.level);
    done = std::max(done, found.arrival);
  }
  result_.bytes[entry.instruction] += access.bytes;
  if (in.vmcnt) done = wave.vm.push(done);
  // A flat access raises both counters; it returns in no order with LDS operations.
  if (in.lgkmcnt) wave.lgkm.push(clk, done, in.lgkmcnt, true);
  complete(done);
}

SharedMemory::Found ComputeUnit::move_line(AccessKind kind, std::uint64_t line, std::uint64_t clk) {
  switch (kind) {
    case AccessKind::Store: return memory_.store(line, clk);
    case AccessKind::Atomic: return memory_.atomic(line, clk);
    default: return memory_.load(line, clk);
  }
}

// Two SIMDs share a path to the LDS, and the two paths share its banks.
void ComputeUnit::local_memory(std::uint32_t s, Wave& wave, const TraceEntry& entry,
                               const InstructionTiming& in, std::uint64_t clk) {
  const Access access = access_of(*wave.trace, entry);
  std::uint64_t& path = lds_path_free_[s / 2];
  const std::uint64_t start = std::max({clk, path, lds_free_});
  const std::uint64_t banks = ceil_div(access.bytes, p_.lds_bytes_per_clk);
  const std::uint64_t cycles =
      std::max<std::uint64_t>(
          {kTurn, ceil_div(access.bytes, p_.lds_pair_bytes_per_clk), access.lds_cycles}) +
      (in.access == AccessKind::Store || in.access == AccessKind::Atomic ? p_.lds_store_overhead
                                                                         : 0);
  path = start + cycles;
  // Counted from issue: a request that waits for its path leaves the banks to the other path.
  lds_free_ = std::max(clk, lds_free_) + std::max<std::uint64_t>(banks, access.lds_cycles);
  result_.bytes[entry.instruction] += access.bytes;
  if (access.lds_cycles > banks) result_.conflicts[entry.instruction] += access.lds_cycles - banks;
  wave.lds_done = std::max(wave.lds_done, path + p_.lds_latency);
  complete(wave.lds_done);
  if (in.lgkmcnt) wave.lgkm.push(clk, wave.lds_done, in.lgkmcnt, false);
}

void ComputeUnit::arrive(std::uint32_t s, std::uint32_t slot, std::uint64_t clk) {
  Simd& simd = simds_[s];
  Group& group = groups_[simd.waves[slot].group];
  simd.ready[slot] = kNever;
  simd.waves[slot].next = clk;
  group.at_barrier.push_back({s, slot});
  group.last_arrival = std::max(group.last_arrival, clk);
  release(group);
}

// Lets a workgroup go on once every wave that has not ended is at the barrier.
void ComputeUnit::release(Group& group) {
  if (group.at_barrier.empty() || group.at_barrier.size() < group.live) return;
  const std::vector<Place> waiting = std::exchange(group.at_barrier, {});
  const std::uint64_t clk = group.last_arrival + p_.barrier_release;
  for (const Place& place : waiting) {
    Wave& wave = simds_[place.simd].waves[place.slot];
    const std::uint64_t next = align(clk, place.simd);
    stall(wave, wave.trace->entries[wave.position - 1].instruction, StallCause::Barrier,
          next - wave.next);
    if (!wave.result->events.empty() && result_.timeline_complete) {
      wave.result->events.back().resume = next;
      wave.result->events.back().after = static_cast<std::uint8_t>(StallCause::Barrier);
    }
    wave.fetch_debt = 0;
    if (wave.position == wave.trace->entries.size()) {
      finish(place.simd, place.slot, next);
    } else {
      prepare(place.simd, place.slot, next);
    }
  }
}

// A slot is free at once, LDS when the whole workgroup has ended.
void ComputeUnit::finish(std::uint32_t s, std::uint32_t slot, std::uint64_t clk) {
  Simd& simd = simds_[s];
  Group& group = groups_[simd.waves[slot].group];
  simd.waves[slot].result->end = clk;
  simd.ready[slot] = kNever;
  simd.occupied[slot] = false;
  ++simd.free;
  if (--group.live == 0) {
    --resident_;
  } else {
    group.last_arrival = std::max(group.last_arrival, clk);
    release(group);
  }
  complete(clk);
  if (has_room()) dispatcher_.room(number_, clk);
}

}  // namespace asmevo::timing
