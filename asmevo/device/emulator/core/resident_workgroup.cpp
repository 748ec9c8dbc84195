#include "resident_workgroup.hpp"

#include <algorithm>
#include <string>

#include "sanitizer.hpp"

namespace asmevo {

namespace {

// Wave-instructions of a turn. Hardware issues the waves of a workgroup almost in step, and kernels
// rely on it: AITER's layer_norm.co writes the LDS words of its second row without a barrier after
// other waves' reads of the first, some 300 instructions earlier.
constexpr u64 kTurn = 64;
// With prompt returns, so that few instructions are enough for something to return.
constexpr u64 kPromptTurn = 16;

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
void fill_poison(u32* words, std::size_t count, u32 seed, std::size_t first = 0) {
  const u32 start = seed + static_cast<u32>(first) * 0x9e3779b9u;
  for (u32 i = 0; i < static_cast<u32>(count); ++i) {
    u32 x = start + i * 0x9e3779b9u;
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

}  // namespace

ResidentWorkgroup::ResidentWorkgroup(const Program& program, const Launch& launch)
    : program_(program), launch_(launch),
      items_(launch.workgroup[0] * launch.workgroup[1] * launch.workgroup[2]),
      live_rows_(live_rows(program, launch.entry, false)),
      live_rows_if_full_(live_rows(program, launch.entry, true)) {
  const std::size_t count = (items_ + kLanes - 1) / kLanes;
  for (std::size_t i = 0; i < count; ++i) {
    // Not cleared: most of the room for outstanding operations is never touched.
    waves_.push_back(std::make_unique_for_overwrite<Wave>());
    registers_.push_back(std::make_unique_for_overwrite<Row[]>(program.rows()));
    waves_.back()->v = registers_.back()[0].lane;
    waves_.back()->private_words = (launch.private_bytes + 3) / 4;
    private_segments_.emplace_back(waves_.back()->private_words * kLanes);
    waves_.back()->private_segment = private_segments_.back().data();
  }
  group_.words.resize((launch.lds_bytes + 3) / 4);
  if (launch.sanitizer != nullptr) shadow_ = std::make_unique<ShadowGroup>();
}

ResidentWorkgroup::~ResidentWorkgroup() = default;

void ResidentWorkgroup::begin(u32 id, Memory& memory, bool traced, Allowance& allowance) {
  id_ = id;
  seed_ = wave_seed(launch_.poison ^ 0x5eedull, id);
  first_turn_ = true;
  ended_ = waiting_ = 0;
  executed_ = 0;
  traces_.assign(traced ? waves_.size() : 0, WaveTrace{});
  fill_poison(group_.words.data(), group_.words.size(), wave_seed(~launch_.poison, id));
  if (shadow_) launch_.sanitizer->begin_workgroup(*shadow_, id, waves_.size(), launch_);
  const u64 rows = u64{program_.reachable_vgprs()} + program_.reachable_agprs() +
                   (launch_.private_bytes + 3) / 4;
  for (std::size_t i = 0; i < waves_.size(); ++i) {
    begin_wave(i, memory);
    allowance.pass(rows);
  }
}

void ResidentWorkgroup::begin_wave(std::size_t i, Memory& memory) {
  const u32 ids[3] = {id_ % launch_.grid[0], id_ / launch_.grid[0] % launch_.grid[1],
                      id_ / launch_.grid[0] / launch_.grid[1]};
  Wave& w = *waves_[i];
  const u32 seed = wave_seed(launch_.poison, u64{id_} * waves_.size() + i);
  const std::size_t first = i * kLanes;
  const std::size_t lanes = std::min<std::size_t>(kLanes, items_ - first);
  const u32 vgprs = program_.vgprs();
  for (const Rows& rows : lanes == kLanes ? live_rows_if_full_ : live_rows_) {
    const bool is_agpr = rows.first >= vgprs;
    fill_poison(w.v + rows.first * kLanes, rows.count * kLanes,
                is_agpr ? seed + static_cast<u32>(vgprs * kLanes) : seed,
                (rows.first - (is_agpr ? vgprs : 0)) * kLanes);
  }
  fill_poison(w.private_segment, w.private_words * kLanes, mix(seed ^ 0x5c7a7c4u));
  fill_poison(w.s, kScalarFile, mix(~seed));
  w.scc = w.s[0] & 1;
  std::copy(launch_.user_sgprs.begin(), launch_.user_sgprs.end(), w.s);
  for (std::size_t d = 0; d < 3; ++d) {
    if (const int at = launch_.group_id_sgprs[d]; at >= 0) w.s[at] = ids[d];
  }
  w.set_scalar64(kExec, lanes == kLanes ? kAllLanes : (u64{1} << lanes) - 1);
  for (std::size_t lane = 0; lane < kLanes; ++lane) w.v[lane] = packed_item(first + lane);
  w.pc = launch_.entry;
  w.stop = Stop::kNone;
  w.gpr_index_enabled = false;
  w.vskip = false;
  w.flat_accesses = 0;
  w.flat_arrived.clear();
  w.turns_clock = w.timer_reads = 0;
  w.turn = 0;
  w.write_mask = kAllLanes;
  w.vgprs = program_.vgprs();
  w.fp = program_.fp();
  w.fp.choose_nan(launch_.nan);
  w.memory = &memory;
  w.group = &group_;
  w.vm.clear();
  w.lgkm.clear();
  w.trace = nullptr;
  w.shadow = shadow_ ? &shadow_->waves[i] : nullptr;
  if (!traces_.empty()) {
    traces_[i].workgroup = id_;
    traces_[i].wave = static_cast<u32>(i);
    w.trace = &traces_[i];
  }
}

// v0 of gfx90a and later: x | y << 10 | z << 20 (LLVM AMDGPUUsage, "Initial Kernel Execution
// State").
u32 ResidentWorkgroup::packed_item(std::size_t item) const {
  const auto flat = static_cast<u32>(item);
  const u32 x = flat % launch_.workgroup[0];
  const u32 y = flat / launch_.workgroup[0] % launch_.workgroup[1];
  const u32 z = flat / launch_.workgroup[0] / launch_.workgroup[1];
  u32 packed = x & 0x3ff;
  if (launch_.work_item_dimensions >= 2) packed |= (y & 0x3ff) << 10;
  if (launch_.work_item_dimensions >= 3) packed |= (z & 0x3ff) << 20;
  return packed;
}

// Whether every wave that can go on has come as far in time.
bool ResidentWorkgroup::in_step(const Wave& w) const {
  return std::none_of(waves_.begin(), waves_.end(), [&](const auto& other) {
    return other->stop == Stop::kNone && other->turns_clock < w.turns_clock;
  });
}

// Which wave is first, and how far each gets in its first turn, follow from the poison, so that code
// without a needed barrier meets another interleaving with every seed.
void ResidentWorkgroup::take_turns(Allowance& allowance) {
  const std::size_t count = waves_.size();
  const std::size_t first = seed_ % count;
  const u64 turn = launch_.prompt_returns ? kPromptTurn : kTurn;
  for (std::size_t i = 0; i < count; ++i) {
    Wave& w = *waves_[(first + i) % count];
    if (w.stop == Stop::kInStep && in_step(w)) w.stop = Stop::kNone;
    if (w.stop != Stop::kNone) continue;
    if (launch_.prompt_returns) w.deliver_prompt_returns();
    u64 left = first_turn_ ? 1 + mix(seed_ + static_cast<u32>(i)) % turn : turn;
    do {
      const u64 before = executed_;
      run_wave(w, left, allowance);
      left -= executed_ - before;
      // Only a launch that relies on time keeps its waves in step.
      if (w.stop == Stop::kInStep && !launch_.prompt_returns) w.stop = Stop::kNone;
    } while (left != 0 && w.stop == Stop::kNone);
    ended_ += w.stop == Stop::kEnd;
    waiting_ += w.stop == Stop::kBarrier;
  }
  first_turn_ = false;
  // A barrier waits for the waves that have not ended.
  if (waiting_ != 0 && waiting_ + ended_ == count) {
    for (auto& w : waves_) {
      if (w->stop == Stop::kBarrier) w->stop = Stop::kNone;
    }
    waiting_ = 0;
  }
}

void ResidentWorkgroup::run_wave(Wave& w, u64 turn, Allowance& allowance) {
  try {
    const u64 limit = std::min(allowance.instructions, turn);
    const u64 used = w.shadow != nullptr  ? execute<false, true>(w, limit)
                     : w.trace != nullptr ? execute<true, false>(w, limit)
                                          : execute<false, false>(w, limit);
    executed_ += used;
    w.end_turn(used);
    allowance.spend(used);
    if (allowance.instructions == 0 && w.stop != Stop::kEnd) {
      throw Fault(FaultKind::kBudget, "the launch exceeded its budget of " +
                                          std::to_string(launch_.instruction_budget) +
                                          " wave-instructions");
    }
  } catch (Fault& fault) {
    // Handlers run after the program counter moved on, and none faults after a jump.
    fault.instruction = w.pc == 0 ? 0 : w.pc - 1;
    fault.workgroup = id_;
    throw;
  }
}

template <bool Traced, bool Checked>
u64 ResidentWorkgroup::execute(Wave& w, u64 limit) {
  const Step* steps = program_.steps().data();
  u64 left = limit;
  while (left != 0) {
    --left;
    const std::size_t pc = w.pc++;
    const Step& s = steps[pc];
    if constexpr (Traced) {
      if (pc < program_.size()) w.trace->entries.push_back({static_cast<u32>(pc), kNoAccess});
    }
    if constexpr (Checked) launch_.sanitizer->before(w, pc, s);
    if (w.vskip && s.skippable) [[unlikely]] {
      // Not issued: it raises no counter either.
      if constexpr (Traced) w.trace->entries.back().access = kSkipped;
    } else if (w.gpr_index_enabled && s.is_vector) [[unlikely]] {
      run_indexed(w, s);
    } else {
      s.handler(w, s);
    }
    if (w.stop != Stop::kNone) break;
  }
  return limit - left;
}

}  // namespace asmevo
