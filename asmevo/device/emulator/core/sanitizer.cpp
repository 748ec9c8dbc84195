#include "sanitizer.hpp"

#include <algorithm>

#include "launch.hpp"
#include "sanitizer_step.hpp"

namespace asmevo {

namespace {

constexpr std::size_t kVmLimit = 63, kLgkmLimit = 15;
// Of those that return out of order a counter does not say which are done. Like the emulator, take
// the oldest for done when there are many more than it can count.
constexpr std::size_t kUnorderedLimit = 64;

void require(bool condition, std::size_t index, const char* what) {
  if (!condition) throw InvalidRecord(index, what);
}

}  // namespace

Sanitizer::Sanitizer(const Program& program, std::span<const CheckRecord> records,
                     std::vector<HazardPair> hazards, std::vector<CheckedRegion> regions,
                     u32 lds_bytes)
    : program_(program), hazards_(std::move(hazards)), memory_(regions), lds_bytes_(lds_bytes) {
  if (records.size() != program.size() || records.size() > MemoryWord::kPcMask) {
    throw std::invalid_argument("the sanitizer needs one record an instruction, at most 2^24");
  }
  if (lds_bytes > 65536) throw std::invalid_argument("a workgroup has at most 64 KiB of LDS");
  items_.reserve(records.size());
  for (std::size_t i = 0; i < records.size(); ++i) items_.push_back(resolve(records[i], i));
  std::sort(hazards_.begin(), hazards_.end(), [](const HazardPair& a, const HazardPair& b) {
    return std::tie(a.consumer, a.producer) < std::tie(b.consumer, b.producer);
  });
  if (hazards_.size() > 0xffff) throw std::invalid_argument("more than 65535 hazards");
  for (std::size_t h = 0; h < hazards_.size(); ++h) {
    const HazardPair& pair = hazards_[h];
    if (pair.producer >= items_.size() || pair.consumer >= items_.size()) {
      throw std::invalid_argument("a hazard lies outside the program");
    }
    Item& consumer = items_[pair.consumer];
    if (consumer.hazards++ == 0) consumer.first_hazard = static_cast<u16>(h);
    items_[pair.producer].starts_hazard = true;
  }
}

Sanitizer::Item Sanitizer::resolve(const CheckRecord& r, std::size_t index) const {
  Item item{};
  item.record = r;
  require(r.flow < kFlowNames.size() && r.space < kSpaceNames.size(), index, "unknown check");
  const bool is_memory = static_cast<Space>(r.space) != Space::kNone;
  require(!is_memory || (r.parts >= 1 && r.parts <= 2 && r.bytes <= 64), index, "access size");
  require(r.shift <= 16 && (r.tile == 0 || r.tile == 16 || r.tile == 32), index, "check fields");
  for (std::size_t k = 0; k < kCheckOperands; ++k) {
    const CheckOperand& o = r.operands[k];
    if (o.reg == kAbsent || o.reg == kConstant) continue;
    item.has_uses |= (o.flags & kOperandUse) != 0;
    item.register_at[item.registers++] = static_cast<u8>(k);
    require(o.words >= 1 && o.words <= 32, index, "operand size");
    if (o.reg <= kShadowScc) {
      require(o.reg + o.words <= kShadowScc + (o.reg == kShadowScc ? 1 : 0), index, "scalar out of range");
      continue;
    }
    require(o.reg >= kVgpr0 && o.reg < kRegisterEnd, index, "no such register");
    const u32 row = o.reg < kAgpr0 ? o.reg - kVgpr0 : program_.vgprs() + (o.reg - kAgpr0);
    require(row + o.words <= program_.rows(), index, "vector register out of range");
  }
  if (is_memory) check_memory(r, program_.steps()[index], index);
  const auto is_vector = [&](std::size_t k) {
    return r.operands[k].reg >= kVgpr0 && r.operands[k].reg < kRegisterEnd;
  };
  switch (static_cast<Flow>(r.flow)) {
    case Flow::kMatrix:
      require(is_vector(kDst), index, "matrix result");
      require(r.tile == 0 || r.operands[kDst].words == u32{r.tile} * r.tile / kLanes, index,
              "matrix result");
      break;
    case Flow::kReadLane:
    case Flow::kReadFirstLane:
      require(is_vector(kSource), index, "lane source");
      require(r.operands[kDst].reg <= kShadowScc, index, "lane result");
      break;
    case Flow::kWriteLane: require(is_vector(kDst), index, "lane result"); break;
    default: break;
  }
  return item;
}

// Accesses move through their address and data operands: these must be there, and the step must be
// one whose addresses the operations' own functions can work out.
void Sanitizer::check_memory(const CheckRecord& r, const Step& s, std::size_t index) const {
  const auto vector_words = [&](std::size_t k) {
    const u16 reg = r.operands[k].reg;
    return reg >= kVgpr0 && reg < kRegisterEnd ? r.operands[k].words : 0u;
  };
  const u32 words = (r.bytes + 3u) / 4;
  const auto space = static_cast<Space>(r.space);
  if (space == Space::kScalar) {
    const CheckOperand& base = r.operands[kBase];
    require(base.reg < kShadowScc && base.words >= 2, index, "scalar base");
    return;
  }
  if (space == Space::kUnchecked) return;
  require(r.bytes != 0 && (r.bytes % 4 == 0 || r.bytes < 4), index, "access size");
  if (space == Space::kBuffer) {
    const int address = ((s.flags & kFlagOffen) ? 1 : 0) + ((s.flags & kFlagIdxen) ? 1 : 0);
    require(s.src[1].kind == Operand::Kind::kScalar && s.src_words[1] == 4 &&
                s.src_words[0] == address && s.src_words[2] == 1,
            index, "not a buffer operation");
  } else if (space == Space::kGlobal || space == Space::kFlat) {
    const bool scalar = s.src[1].kind == Operand::Kind::kScalar;
    require(s.src[0].kind == Operand::Kind::kVector && s.src_words[0] == (scalar ? 1 : 2) &&
                (!scalar || s.src_words[1] == 2),
            index, "not a global operation");
  } else {
    require(vector_words(kAddress) >= 1, index, "LDS address");
    require(space == Space::kLds || (vector_words(kDst) >= 1 && vector_words(kData) >= 1), index,
            "exchanged lanes");
  }
  const bool load =
      r.operands[kDst].reg != kAbsent && (r.flags & (kCheckLoad | kCheckAtomic)) != 0;
  require(!load || vector_words(kDst) >= words * r.parts, index, "loaded data");
  for (std::size_t part = 0; part < r.parts; ++part) {
    const u16 reg = r.operands[kData + part].reg;
    require(reg == kAbsent || vector_words(kData + part) >= words, index, "stored data");
  }
}

void Sanitizer::begin_workgroup(ShadowGroup& group, u32 id, std::size_t waves,
                                const Launch& launch) {
  group.id = id;
  group.barriers = 0;
  group.lds.reset(lds_bytes_, waves);
  group.waves.resize(waves);
  for (std::size_t n = 0; n < waves; ++n) {
    WaveShadow& w = group.waves[n];
    w.group = &group;
    w.number = static_cast<u16>(n);
    w.reset(program_.rows(), items_.size(), !hazards_.empty());
    for (u16 row = 0; row < program_.rows(); ++row) {
      const auto reg = row < program_.vgprs() ? kVgpr0 + row : kAgpr0 + row - program_.vgprs();
      w.row_origin[row] = {Origin::Kind::kLaunch, static_cast<u16>(reg), 0};
    }
    w.set(0, WaveShadow::Row::kDefined);
    for (std::size_t i = 0; i < launch.user_sgprs.size(); ++i) w.scalar[i] = 0;
    for (const int at : launch.group_id_sgprs) {
      if (at >= 0) w.scalar[at] = 0;
    }
    w.scalar[kExec] = w.scalar[kExec + 1] = 0;
  }
}

void Sanitizer::restart() {
  findings_ = {};
  memory_.clear();
}

void Sanitizer::before(Wave& w, std::size_t pc, const Step& s) {
  if (pc >= items_.size() || (w.vskip && s.skippable)) return;
  WaveShadow& shadow = *w.shadow;
  Item moved;
  const Item* item = &items_[pc];
  if (w.gpr_index_enabled && s.is_vector) {
    moved = *item;
    const u32 m0 = w.s[kM0];
    for (CheckOperand& o : moved.record.operands) {
      if (o.slot > 3 || o.reg < kVgpr0 || o.reg >= kAgpr0 || !((m0 >> (12 + o.slot)) & 1)) continue;
      const u32 reg = o.reg + (m0 & 0xff);
      // The instruction itself faults.
      if (reg + o.words > kVgpr0 + program_.vgprs()) return;
      o.reg = static_cast<u16>(reg);
    }
    item = &moved;
  }
  const CheckRecord& r = item->record;
  CheckedStep step(*this, w, pc, *item, s);
  if (shadow.at_barrier) step.pass_barrier();
  if (item->hazards != 0) step.check_hazards();
  shadow.clock += r.states;
  if (item->starts_hazard) shadow.issued[pc] = shadow.clock;
  if (shadow.register_flights != 0) step.check_flights();
  if (static_cast<Space>(r.space) != Space::kNone) {
    step.memory();
  } else if (r.wait_vm >= 0 || r.wait_lgkm >= 0) {
    step.wait();
  } else if (r.flags & (kCheckBarrier | kCheckEnd)) {
    shadow.at_barrier = r.flags & kCheckBarrier;
    shadow.barriers += shadow.at_barrier;
    shadow.arrived = shadow.done;
    // What an ended wave left outstanding completes by itself.
    if (r.flags & kCheckEnd) shadow.arrived = {~0u, ~0u};
  } else {
    step.values();
  }
}

Report CheckedStep::report(Finding kind) const {
  Report r{};
  r.kind = kind;
  r.pc = pc_;
  r.producer = kProducedByLaunch;
  r.workgroup = group_.id;
  r.wave = static_cast<u16>(number_);
  r.lane = -1;
  r.reg = r.origin = kAbsent;
  r.other_workgroup = ~0u;
  r.other_wave = 0xffff;
  r.count = 1;
  return r;
}

void CheckedStep::check_hazards() {
  for (u32 h = item_.first_hazard; h < u32{item_.first_hazard} + item_.hazards; ++h) {
    const HazardPair& pair = sanitizer_.hazards_[h];
    const u64 issued = shadow_.issued[pair.producer];
    if (issued == 0 || shadow_.clock - issued >= pair.needed) continue;
    Report r = report(Finding::kHazard);
    r.producer = static_cast<i32>(pair.producer);
    r.needed = pair.needed;
    r.found = static_cast<u16>(shadow_.clock - issued);
    sanitizer_.findings_.add(r);
  }
}

// Behind a barrier that all waves have reached, each may rely on what the others had waited for.
void CheckedStep::pass_barrier() {
  shadow_.at_barrier = false;
  if (shadow_.barriers <= group_.barriers) return;
  group_.barriers = shadow_.barriers;
  for (WaveShadow& w : group_.waves) w.visible = w.arrived;
}

void CheckedStep::check_flights() {
  for (u32 k = 0; k < item_.registers; ++k) {
    const CheckOperand& o = operand(item_.register_at[k]);
    if (o.flags & kOperandRead) check_registers(o, false);
    if (o.flags & kOperandWrite) check_registers(o, true);
  }
}

void CheckedStep::check_registers(const CheckOperand& o, bool writes) {
  const bool vector = is_vector(o);
  if (!vector && !is_scalar(o)) return;
  const u16 first = vector ? row_of(o) : o.reg;
  if (vector) {
    if (!shadow_.flying.any(first, o.words)) return;
  } else {
    u32 any = 0;
    for (u32 i = 0; i < o.words; ++i) any |= shadow_.scalar_flights[first + i];
    if (any == 0) return;
  }
  // Two loads of one kind that returns in order write their common destination in order.
  const bool ordered = !(record_.flags & kCheckUnordered);
  for (const auto* queue : {&shadow_.vm, &shadow_.lgkm}) {
    for (const Flight& f : *queue) {
      if (f.reg == kAbsent || f.vector != vector || f.reg >= first + o.words ||
          first >= f.reg + f.words) {
        continue;
      }
      if (vector && (f.lanes & active_) == 0) continue;
      if (writes && ordered && f.ordered && (f.vm ? record_.vmcnt : record_.lgkmcnt) != 0) continue;
      Report r = report(Finding::kUseBeforeWait);
      r.producer = static_cast<i32>(f.pc);
      r.reg = static_cast<u16>(o.reg + (std::max(first, f.reg) - first));
      r.lane = static_cast<std::int16_t>(
          vector ? std::countr_zero(f.lanes & active_) : -1);
      r.write = writes;
      sanitizer_.findings_.add(r);
    }
  }
}

void CheckedStep::retire(const Flight& f) {
  if (f.lds_op != 0) {
    u32& done = f.vm ? shadow_.done.dma : shadow_.done.lds;
    done = std::max(done, f.lds_op);
  }
  if (f.reg == kAbsent) return;
  for (std::size_t at = f.reg; at < f.reg + std::size_t{f.words}; ++at) {
    if (!f.vector) {
      --shadow_.scalar_flights[at];
    } else if (--shadow_.row_flights[at] == 0) {
      shadow_.flying.remove(at);
    }
  }
  --shadow_.register_flights;
}

void CheckedStep::issue(bool vm, Flight f) {
  f.vm = vm;
  if (f.reg != kAbsent) {
    for (std::size_t at = f.reg; at < f.reg + std::size_t{f.words}; ++at) {
      ++(f.vector ? shadow_.row_flights[at] : shadow_.scalar_flights[at]);
      if (f.vector) shadow_.flying.add(at);
    }
    ++shadow_.register_flights;
  }
  auto& queue = vm ? shadow_.vm : shadow_.lgkm;
  queue.push_back(f);
  if (!f.ordered) {
    if (queue.size() - queue.ordered > kUnorderedLimit) {
      const auto oldest = std::find_if(queue.begin(), queue.end(),
                                       [](const Flight& other) { return !other.ordered; });
      retire(*oldest);
      queue.erase(oldest);
    }
    return;
  }
  // The counter cannot exceed its maximum: an older operation has completed.
  if (++queue.ordered > (vm ? kVmLimit : kLgkmLimit)) {
    const auto oldest = std::find_if(queue.begin(), queue.end(),
                                     [](const Flight& other) { return other.ordered; });
    retire(*oldest);
    queue.erase(oldest);
    --queue.ordered;
  }
}

// An operation of an in-order kind is done once its counter is at most the number of younger ones
// of its kind; anything else only at zero (CDNA3 ISA, "S_WAITCNT"; asmevo/isa/waits.py).
void CheckedStep::wait() {
  const auto apply = [&](WaveShadow::Queue& queue, int bound) {
    if (bound < 0 || queue.empty()) return;
    if (bound == 0) {
      for (const Flight& f : queue) retire(f);
      queue.clear();
      queue.ordered = 0;
      return;
    }
    for (auto at = queue.begin();
         at != queue.end() && queue.ordered > static_cast<std::size_t>(bound);) {
      if (!at->ordered) {
        ++at;
        continue;
      }
      --queue.ordered;
      retire(*at);
      if (at == queue.begin()) {
        queue.pop_front();
        at = queue.begin();
      } else {
        at = queue.erase(at);
      }
    }
  };
  apply(shadow_.vm, record_.wait_vm);
  apply(shadow_.lgkm, record_.wait_lgkm);
}

}  // namespace asmevo
