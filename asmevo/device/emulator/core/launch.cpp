#include "launch.hpp"

#include <algorithm>
#include <memory>
#include <string>

namespace asmevo {

namespace {

constexpr u64 kSlice = 4'000'000;  // wave-instructions between two polls
// Wave-instructions of a turn. Hardware issues the waves of a workgroup almost in step, and kernels
// rely on it: AITER's layer_norm.co writes the LDS words of its second row without a barrier after
// other waves' reads of the first, some 300 instructions earlier.
constexpr u64 kTurn = 64;

// Finaliser of a 32-bit hash (multiply-xorshift).
inline u32 mix(u32 x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

u32 wave_seed(u64 poison, u64 wave) {
  const u64 x = (poison + 1) * 0x9e3779b97f4a7c15ull + wave * 0xd1b54a32d192ed03ull;
  return mix(static_cast<u32>(x) ^ mix(static_cast<u32>(x >> 32)));
}

// Undefined state: word n of a wave or workgroup is a hash of the seed and n, so every register and
// lane holds a different pattern and each seed gives another. One multiplication: this fills every
// register of every wave.
void fill_poison(u32* words, std::size_t count, u32 seed) {
  for (u32 i = 0; i < static_cast<u32>(count); ++i) {
    u32 x = seed + i * 0x9e3779b9u;
    x = (x ^ (x >> 15)) * 0x2c1b3c6du;
    words[i] = x ^ (x >> 13);
  }
}

// Source and destination registers under GPR indexing move by M0[7:0]; one that leaves the wave's
// registers is a fault, because hardware then silently uses another register.
void run_indexed(Wave& w, const Step& s) {
  if (s.inner != nullptr) {
    throw Fault(FaultKind::kIllegal, "DPP or SDWA under GPR indexing is not modelled");
  }
  const u32 m0 = w.s[kM0];
  const u32 index = m0 & 0xff, mode = (m0 >> 12) & 15;
  Step moved = s;
  const auto move = [&](u16& row, u32 words) {
    if (row >= w.vgprs) throw Fault(FaultKind::kIllegal, "GPR indexing of an AGPR is not modelled");
    if (row + index + words > w.vgprs) {
      throw Fault(FaultKind::kIllegal, "GPR index " + std::to_string(index) + " from v" +
                                           std::to_string(row) + " leaves the " +
                                           std::to_string(w.vgprs) + " VGPRs of the wave");
    }
    row = static_cast<u16>(row + index);
  };
  for (std::size_t k = 0; k < 3; ++k) {
    if (((mode >> k) & 1) && s.src[k].kind == Operand::Kind::kVector) {
      move(moved.src[k].index, s.src_words[k]);
    }
  }
  if ((mode & kGprIndexDst) && s.dst_is_vector) move(moved.dst, s.dst_words);
  s.handler(w, moved);
}

class Runner {
 public:
  Runner(const Program& program, Memory& memory, const Launch& launch, Trace* trace,
         const std::function<void()>& poll)
      : program_(program), memory_(memory), launch_(launch), trace_(trace), poll_(poll),
        items_(launch.workgroup[0] * launch.workgroup[1] * launch.workgroup[2]),
        budget_(launch.instruction_budget) {
    const std::size_t count = (items_ + kLanes - 1) / kLanes;
    for (std::size_t i = 0; i < count; ++i) {
      waves_.push_back(std::make_unique<Wave>());
      // std::allocator honours the alignment of the row type.
      registers_.emplace_back(program.rows());
      waves_.back()->v = registers_.back().front().lane;
      waves_.back()->private_words = (launch.private_bytes + 3) / 4;
      private_segments_.emplace_back(waves_.back()->private_words * kLanes);
      waves_.back()->private_segment = private_segments_.back().data();
    }
    group_.words.resize((launch.lds_bytes + 3) / 4);
  }

  // Waves take turns. Which is first, and how far each gets in its first turn, follow from the
  // poison, so that code without a needed barrier meets another interleaving with every seed.
  void run_workgroup(u32 id) {
    begin(id);
    const std::size_t count = waves_.size();
    const u32 seed = wave_seed(launch_.poison ^ 0x5eedull, id);
    const std::size_t first = seed % count;
    std::size_t ended = 0, waiting = 0;
    bool first_round = true;
    while (ended < count) {
      for (std::size_t i = 0; i < count; ++i) {
        Wave& w = *waves_[(first + i) % count];
        if (w.stop != Stop::kNone) continue;
        run_wave(w, id, first_round ? 1 + mix(seed + static_cast<u32>(i)) % kTurn : kTurn);
        ended += w.stop == Stop::kEnd;
        waiting += w.stop == Stop::kBarrier;
      }
      first_round = false;
      // A barrier waits for the waves that have not ended.
      if (waiting != 0 && waiting + ended == count) {
        for (auto& w : waves_) {
          if (w->stop == Stop::kBarrier) w->stop = Stop::kNone;
        }
        waiting = 0;
      }
    }
    if (trace_ != nullptr) {
      for (WaveTrace& t : traces_) trace_->waves.push_back(std::move(t));
    }
  }

  u64 instructions() const { return launch_.instruction_budget - budget_; }

 private:
  struct alignas(64) Row {
    u32 lane[kLanes];
  };

  void begin(u32 id) {
    const u32 ids[3] = {id % launch_.grid[0], id / launch_.grid[0] % launch_.grid[1],
                        id / launch_.grid[0] / launch_.grid[1]};
    fill_poison(group_.words.data(), group_.words.size(), wave_seed(~launch_.poison, id));
    traces_.assign(trace_ != nullptr ? waves_.size() : 0, WaveTrace{});
    for (std::size_t i = 0; i < waves_.size(); ++i) {
      Wave& w = *waves_[i];
      const u32 seed = wave_seed(launch_.poison, u64{id} * waves_.size() + i);
      const std::size_t agpr_row = program_.vgprs();
      fill_poison(w.v, program_.reachable_vgprs() * kLanes, seed);
      fill_poison(w.v + agpr_row * kLanes, program_.reachable_agprs() * kLanes,
                  seed + static_cast<u32>(agpr_row * kLanes));
      fill_poison(w.private_segment, w.private_words * kLanes, mix(seed ^ 0x5c7a7c4u));
      fill_poison(w.s, kScalarFile, mix(~seed));
      w.scc = w.s[0] & 1;
      std::copy(launch_.user_sgprs.begin(), launch_.user_sgprs.end(), w.s);
      for (std::size_t d = 0; d < 3; ++d) {
        if (const int at = launch_.group_id_sgprs[d]; at >= 0) w.s[at] = ids[d];
      }
      const std::size_t first = i * kLanes;
      const std::size_t lanes = std::min<std::size_t>(kLanes, items_ - first);
      w.set_scalar64(kExec, lanes == kLanes ? kAllLanes : (u64{1} << lanes) - 1);
      for (std::size_t lane = 0; lane < kLanes; ++lane) w.v[lane] = packed_item(first + lane);
      w.pc = launch_.entry;
      w.stop = Stop::kNone;
      w.gpr_index_enabled = false;
      w.vskip = false;
      w.lds_loads = 0;
      w.flat_accesses = 0;
      w.flat_arrived.clear();
      w.turns_clock = w.timer_reads = 0;
      w.write_mask = kAllLanes;
      w.vgprs = program_.vgprs();
      w.fp = program_.fp();
      w.memory = &memory_;
      w.group = &group_;
      w.vm.clear();
      w.lgkm.clear();
      w.trace = nullptr;
      if (trace_ != nullptr) {
        traces_[i].workgroup = id;
        traces_[i].wave = static_cast<u32>(i);
        w.trace = &traces_[i];
      }
    }
  }

  // v0 of gfx90a and later: x | y << 10 | z << 20 (LLVM AMDGPUUsage, "Initial Kernel Execution
  // State").
  u32 packed_item(std::size_t item) const {
    const auto flat = static_cast<u32>(item);
    const u32 x = flat % launch_.workgroup[0];
    const u32 y = flat / launch_.workgroup[0] % launch_.workgroup[1];
    const u32 z = flat / launch_.workgroup[0] / launch_.workgroup[1];
    u32 packed = x & 0x3ff;
    if (launch_.work_item_dimensions >= 2) packed |= (y & 0x3ff) << 10;
    if (launch_.work_item_dimensions >= 3) packed |= (z & 0x3ff) << 20;
    return packed;
  }

  void run_wave(Wave& w, u32 id, u64 turn) {
    try {
      const u64 limit = std::min(budget_, turn);
      const u64 used = w.trace != nullptr ? execute<true>(w, limit) : execute<false>(w, limit);
      budget_ -= used;
      w.end_turn(used);
      since_poll_ += used;
      if (since_poll_ >= kSlice) {
        since_poll_ = 0;
        poll_();
      }
      if (budget_ == 0 && w.stop != Stop::kEnd) {
        throw Fault(FaultKind::kBudget, "the launch exceeded its budget of " +
                                            std::to_string(launch_.instruction_budget) +
                                            " wave-instructions");
      }
    } catch (Fault& fault) {
      // Handlers run after the program counter moved on, and none faults after a jump.
      fault.instruction = w.pc == 0 ? 0 : w.pc - 1;
      fault.workgroup = id;
      throw;
    }
  }

  template <bool Traced>
  u64 execute(Wave& w, u64 limit) {
    const Step* steps = program_.steps().data();
    u64 left = limit;
    while (left != 0) {
      --left;
      const std::size_t pc = w.pc++;
      const Step& s = steps[pc];
      if constexpr (Traced) {
        if (pc < program_.size()) w.trace->entries.push_back({static_cast<u32>(pc), kNoAccess});
      }
      if (w.vskip && s.skippable) [[unlikely]] {
        // Not issued: it raises no counter either.
      } else if (w.gpr_index_enabled && s.is_vector) [[unlikely]] {
        run_indexed(w, s);
      } else {
        s.handler(w, s);
      }
      if (w.stop != Stop::kNone) break;
    }
    return limit - left;
  }

  const Program& program_;
  Memory& memory_;
  const Launch& launch_;
  Trace* trace_;
  const std::function<void()>& poll_;
  std::size_t items_;
  u64 budget_;
  u64 since_poll_ = 0;
  Workgroup group_;
  std::vector<std::unique_ptr<Wave>> waves_;
  std::vector<std::vector<Row>> registers_;
  std::vector<std::vector<u32>> private_segments_;
  std::vector<WaveTrace> traces_;
};

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
  for (const u32 id : order) {
    if (id >= groups) throw std::invalid_argument("workgroup id outside the grid");
  }
}

}  // namespace

u64 run(const Program& program, Memory& memory, const Launch& launch, std::span<const u32> order,
        Trace* trace, const std::function<void()>& poll) {
  check(launch, order);
  if (launch.entry > program.size()) throw std::invalid_argument("entry outside the program");
  Runner runner(program, memory, launch, trace, poll);
  if (trace != nullptr) {
    const u32 items = launch.workgroup[0] * launch.workgroup[1] * launch.workgroup[2];
    trace->waves_per_workgroup = static_cast<u32>((items + kLanes - 1) / kLanes);
  }
  for (const u32 id : order) runner.run_workgroup(id);
  return runner.instructions();
}

}  // namespace asmevo
