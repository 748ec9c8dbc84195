#include "program.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "early_return.hpp"
#include "live_rows.hpp"
#include "permuted_sources.hpp"

namespace asmevo {

namespace {

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument(what); }

void ran_off_the_end(Wave&, const Step&) {
  throw Fault(FaultKind::kIllegal, "execution ran past the last instruction");
}

void cannot_run(Wave&, const Step&) {
  throw Fault(FaultKind::kIllegal, "an instruction that this kernel cannot run");
}

// What control flow sees of a record that cannot run: nothing comes after it.
Record dead_end(std::size_t count) {
  const auto table = operations();
  const auto at = std::ranges::find(table, std::string_view("s_branch"), &Operation::name);
  Record r{};
  r.op = static_cast<u16>(at - table.begin());
  r.target = static_cast<i32>(count);
  return r;
}

void require(bool condition, const char* what) {
  if (!condition) refuse(what);
}

// Sources that are VCCZ, EXECZ or SCC find their value behind the scalar registers.
void run_status(Wave& w, const Step& s) {
  for (u16 k = 0; k < 3; ++k) {
    if (s.src[k].kind != Operand::Kind::kStatus) continue;
    const u16 which = s.src[k].index;
    const u32 value = which == kVccz    ? w.scalar64(kVcc) == 0
                      : which == kExecz ? w.exec() == 0
                                        : w.scc;
    w.set_scalar64(kScalarFile + 2 * k, value);
  }
  s.inner->handler(w, *s.inner);
}

}  // namespace

std::size_t CodeMap::find(u64 address) const {
  const auto at = std::lower_bound(addresses.begin(), addresses.end(), address);
  if (at == addresses.end() || *at != address) {
    throw Fault(FaultKind::kIllegal, "a jump to an address where the kernel has no instruction", -1,
                address);
  }
  return static_cast<std::size_t>(at - addresses.begin());
}

Program::Program(std::span<const Record> records, u32 vgprs, u32 agprs, FpMode fp,
                 Choices choices,
                 std::vector<u64> addresses, RecordRange own)
    : code_{std::move(addresses)},
      count_(records.size()),
      vgprs_(vgprs),
      agprs_(agprs),
      fp_(fp),
      choices_(choices) {
  require(code_.addresses.empty() ||
              (code_.addresses.size() == records.size() &&
               std::is_sorted(code_.addresses.begin(), code_.addresses.end())),
          "one ascending address a record");
  require(vgprs >= 1 && vgprs <= 256, "a wave has 1 to 256 VGPRs");
  require(agprs <= 256, "a wave has at most 256 AGPRs");
  steps_.reserve(records.size() + 1);
  for (std::size_t i = 0; i < records.size(); ++i) {
    try {
      append(records[i]);
    } catch (const std::invalid_argument& error) {
      if (i >= own.first && i < own.end) throw InvalidRecord(i, error.what());
      refused_.emplace_back(i, error.what());
      append(dead_end(count_));
      steps_.back().handler = cannot_run;
    }
  }
  if (!indexes_gprs_) find_early_returns(steps_, operations_, rows());
  rows_read_ = asmevo::rows_read(steps_, operations_, rows());
  Step end{};
  end.handler = ran_off_the_end;
  steps_.push_back(end);
}

void Program::append(const Record& r) {
  steps_.push_back(resolve(r));
  operations_.push_back(&asmevo::operations()[r.op]);
  indexes_gprs_ |= (operations_.back()->traits & kIndexesGprs) != 0;
}

// Readable and writable scalar registers: SGPRs, the special pairs 102 to 107, M0, EXEC.
u16 Program::scalar(u16 reg, u8 words) const {
  const u32 end = u32{reg} + words;
  const bool general = end <= 108;
  const bool m0 = reg == kM0 && words == 1;
  const bool exec = reg >= kExec && end <= kScalarFile;
  require(general || m0 || exec, "scalar register out of range");
  return reg;
}

u16 Program::vector(u16 reg, u8 words) {
  const u32 end = u32{reg} + words;
  if (reg >= kVgpr0 && reg < kAgpr0) {
    // One file holds both kinds: v[ACCUM_OFFSET + n] is a[n]. AITER's forward attention uses no
    // AGPR and numbers VGPRs past its ACCUM_OFFSET.
    require(end - kVgpr0 <= rows(), "VGPR beyond those the descriptor allocates");
    reachable_vgprs_ = std::max(reachable_vgprs_, std::min(end - kVgpr0, vgprs_));
    if (end - kVgpr0 > vgprs_) {
      reachable_agprs_ = std::max(reachable_agprs_, end - kVgpr0 - vgprs_);
    }
    return static_cast<u16>(reg - kVgpr0);
  }
  require(reg >= kAgpr0 && reg < kRegisterEnd, "operand is not a vector register");
  require(end - kAgpr0 <= agprs_, "AGPR beyond those the descriptor allocates");
  reachable_agprs_ = std::max(reachable_agprs_, end - kAgpr0);
  return static_cast<u16>(vgprs_ + (reg - kAgpr0));
}

Operand Program::source(u16 reg, u64 value, u8 words) {
  Operand o;
  if (reg == kAbsent) return o;
  if (reg == kConstant) {
    o.kind = Operand::Kind::kConstant;
    o.value = value;
    auto& rows = constants_.emplace_back();
    for (std::size_t i = 0; i < kLanes; ++i) {
      rows[i] = static_cast<u32>(value);
      rows[kLanes + i] = static_cast<u32>(value >> 32);
    }
    o.rows = rows.data();
  } else if (reg == kVccz || reg == kExecz || reg == kScc) {
    require(words <= 2, "a status bit has no more than two words");
    o.kind = Operand::Kind::kStatus;
    o.index = reg;
  } else if (reg < kVgpr0) {
    o.kind = Operand::Kind::kScalar;
    o.index = scalar(reg, words);
  } else {
    o.kind = Operand::Kind::kVector;
    o.index = vector(reg, words);
  }
  return o;
}

const DppPattern* Program::dpp(const Record& r) {
  require(known_dpp(r.dpp_ctrl), "unknown DPP control value");
  DppPattern& p = patterns_.emplace_back();
  p.valid = p.write = 0;
  p.near = true;
  p.bound_ctrl = r.flags & kFlagBoundCtrl;
  for (int lane = 0; lane < static_cast<int>(kLanes); ++lane) {
    const int from = dpp_source(r.dpp_ctrl, lane);
    const auto i = static_cast<std::size_t>(lane);
    p.source[i] = from < 0 ? static_cast<u8>(lane) : static_cast<u8>(from);
    p.near &= p.source[i] / 16 == i / 16;
    if (from >= 0) p.valid |= u64{1} << i;
    const bool enabled = ((r.row_mask >> (lane / 16)) & 1) && ((r.bank_mask >> (lane / 4 % 4)) & 1);
    if (enabled) p.write |= u64{1} << i;
  }
  return &p;
}

const SdwaPattern* Program::sdwa(const Record& r) {
  const u32 c = r.dpp_ctrl;
  SdwaPattern& p = sdwa_patterns_.emplace_back();
  p = {{static_cast<u8>(c & 7), static_cast<u8>((c >> 3) & 7)},
       {((c >> 11) & 1) != 0, ((c >> 12) & 1) != 0},
       static_cast<u8>((c >> 6) & 7),
       static_cast<u8>((c >> 9) & 3)};
  require(p.select[0] <= kSelectDword && p.select[1] <= kSelectDword &&
              p.dst_select <= kSelectDword && p.dst_unused <= kUnusedPreserve && c < 1u << 13,
          "unknown SDWA control");
  return &p;
}

Handler Program::handler(const Operation& op) const {
  if (choices_.fused && op.fused != nullptr) {
    return op.wide_fused != nullptr && !choices_.narrow ? op.wide_fused : op.fused;
  }
  return op.wide != nullptr && !choices_.narrow ? op.wide : op.handler;
}

Step Program::resolve(const Record& r) {
  const auto table = asmevo::operations();
  require(r.op < table.size(), "unknown operation id");
  const Operation& op = table[r.op];

  Step s{};
  s.handler = handler(op);
  s.code = &code_;
  s.flags = r.flags;
  s.target = r.target;
  s.imm0 = r.imm0;
  s.imm1 = r.imm1;
  s.op_sel = r.op_sel;
  s.op_sel_hi = r.op_sel_hi;
  s.omod = r.omod;
  s.dst_words = op.dst_words;

  const u16 regs[3] = {r.src0, r.src1, r.src2};
  const u64 values[3] = {r.literal_lo0 | (u64{r.literal_hi0} << 32),
                         r.literal_lo1 | (u64{r.literal_hi1} << 32),
                         r.literal_lo2 | (u64{r.literal_hi2} << 32)};
  u8 address_words = op.src_words[0];
  if (op.shape == Shape::kBuffer) {
    address_words = static_cast<u8>(((r.flags & kFlagOffen) ? 1 : 0) + ((r.flags & kFlagIdxen) ? 1 : 0));
  } else if (op.shape == Shape::kGlobal) {
    address_words = r.src1 == kAbsent ? 2 : 1;
  } else if (op.shape == Shape::kScratch) {
    address_words = r.src0 == kAbsent ? 0 : 1;
  }
  for (std::size_t k = 0; k < 3; ++k) {
    const u8 words = k == 0 ? address_words : op.src_words[k];
    s.src_words[k] = words;
    if (words != 0) s.src[k] = source(regs[k], values[k], words);
  }
  const auto kind = [&](std::size_t k) { return s.src[k].kind; };
  const auto is_vector = [&](std::size_t k) { return kind(k) == Operand::Kind::kVector; };
  const auto is_agpr = [&](std::size_t k) { return is_vector(k) && regs[k] >= kAgpr0; };
  const auto is_status = [&](std::size_t k) { return kind(k) == Operand::Kind::kStatus; };
  const auto is_value = [&](std::size_t k) {
    return kind(k) == Operand::Kind::kScalar || kind(k) == Operand::Kind::kConstant ||
           is_status(k);
  };

  switch (op.shape) {
    case Shape::kScalar:
      for (std::size_t k = 0; k < 3; ++k) {
        require(op.src_words[k] == 0 || is_value(k), "a scalar source must be scalar or constant");
      }
      if (op.dst_words != 0) s.dst = scalar(r.dst, op.dst_words);
      break;
    case Shape::kBranch:
      require(r.target >= 0 && static_cast<std::size_t>(r.target) <= count_,
              "branch target outside the program");
      break;
    case Shape::kControl:
      require(op.src_words[0] == 0 || is_value(0), "the source must be scalar or constant");
      require(r.imm0 >= -1 && r.imm1 >= -1, "negative wait count");
      if (op.traits & kIndexesGprs) reachable_vgprs_ = vgprs_;
      break;
    case Shape::kScalarLoad:
      require(kind(0) == Operand::Kind::kScalar, "the base must be a scalar register pair");
      require(kind(1) == Operand::Kind::kAbsent || is_value(1), "the offset must be scalar");
      s.dst = scalar(r.dst, op.dst_words);
      break;
    case Shape::kVector: {
      const u16 dst_limit = op.traits & kAccDst ? kRegisterEnd : kAgpr0;
      require(r.dst >= (op.traits & kAccDst ? kAgpr0 : kVgpr0) && r.dst < dst_limit,
              "the destination is the wrong kind of register");
      s.dst = vector(r.dst, op.dst_words);
      s.dst_is_vector = s.is_vector = true;
      for (std::size_t k = 0; k < 3; ++k) {
        if (op.src_words[k] == 0) continue;
        require(kind(k) != Operand::Kind::kAbsent, "a source is missing");
        const bool acc = (op.traits & kAccSource) && k == 0;
        require(is_agpr(k) == acc, "a source is the wrong kind of register");
        // Scalars are broadcast to at most two scratch rows a source.
        require(op.src_words[k] <= 2 || is_vector(k), "a wide source must be vector registers");
      }
      if (op.traits & kCarryIn) require(is_value(2), "the mask must be scalar");
      if (op.traits & kCarryOut) s.sdst = scalar(r.sdst, 2);
      if (op.traits & kSwaps) require(is_vector(0), "the exchanged registers must be VGPRs");
      break;
    }
    case Shape::kCompare:
      s.dst = scalar(r.dst, 2);
      s.is_vector = true;
      for (std::size_t k = 0; k < 2; ++k) {
        require(kind(k) != Operand::Kind::kAbsent && !is_agpr(k), "a source is missing");
      }
      break;
    case Shape::kReadLane:
      s.dst = scalar(r.dst, 1);
      s.is_vector = true;
      require(is_vector(0) && !is_agpr(0), "the source must be a VGPR");
      require(op.src_words[1] == 0 || is_value(1), "the lane must be scalar");
      break;
    case Shape::kWriteLane:
      require(r.dst >= kVgpr0 && r.dst < kAgpr0, "the destination must be a VGPR");
      s.dst = vector(r.dst, 1);
      s.dst_is_vector = s.is_vector = true;
      require(is_value(0) && is_value(1), "value and lane must be scalar");
      break;
    case Shape::kMatrix:
      s.dst = vector(r.dst, op.dst_words);
      s.dst_is_vector = s.is_vector = true;
      require(is_vector(0) && is_vector(1), "the inputs must be vector registers");
      require(is_vector(2) || (kind(2) == Operand::Kind::kConstant && !(op.traits & kReadsDst)),
              "the accumulator must be vector registers or a constant");
      require(r.imm0 >= 0 && r.imm0 < 8 && r.imm1 >= 0 && r.imm1 < 128, "CBSZ, ABID or BLGP");
      require((op.traits & (kBroadcastsA | kReadsDst)) || (r.imm0 == 0 && r.imm1 % 16 == 0),
              "unexpected CBSZ or ABID");
      require((op.traits & kPermutesB) || r.imm1 < 16, "unexpected BLGP");
      break;
    case Shape::kBuffer:
      if (r.flags & kFlagLds) {
        require(op.dst_words == 1 && !(op.traits & kStore), "this access has no LDS form");
        require(r.imm0 <= 0xffff, "offset out of range");
      } else {
        s.dst = vector(r.dst, op.dst_words);
      }
      require(address_words == 0 || (is_vector(0) && !is_agpr(0)), "the address must be VGPRs");
      require(kind(1) == Operand::Kind::kScalar, "the resource must be four scalar registers");
      require(is_value(2), "soffset must be scalar");
      require(r.imm0 >= 0, "negative offset");
      break;
    case Shape::kGlobal:
    case Shape::kFlat:
      if (op.dst_words != 0) s.dst = vector(r.dst, op.dst_words);
      require(is_vector(0) && !is_agpr(0), "the address must be VGPRs");
      require(kind(1) == Operand::Kind::kAbsent || kind(1) == Operand::Kind::kScalar,
              "the base must be a scalar register pair");
      break;
    case Shape::kScratch:
      if (op.dst_words != 0) s.dst = vector(r.dst, op.dst_words);
      require(address_words == 0 || (is_vector(0) && !is_agpr(0)), "the offset must be a VGPR");
      require(kind(1) == Operand::Kind::kAbsent || kind(1) == Operand::Kind::kScalar,
              "the second offset must be a scalar register");
      break;
    case Shape::kCache:
      break;
    case Shape::kProgramCounter:
      require(kind(0) == Operand::Kind::kConstant, "the address must be a constant");
      require(r.target >= 0 && static_cast<std::size_t>(r.target) <= count_,
              "call target outside the program");
      s.dst = scalar(r.dst, 2);
      break;
    case Shape::kLds:
      require(op.src_words[0] == 0 || (is_vector(0) && !is_agpr(0)), "the address must be a VGPR");
      if (op.dst_words != 0) s.dst = vector(r.dst, op.dst_words);
      for (std::size_t k = 1; k < 3; ++k) {
        require(op.src_words[k] == 0 || is_vector(k), "the data must be vector registers");
      }
      require(r.imm0 >= 0 && r.imm1 >= 0, "negative offset");
      break;
  }

  s.skippable = op.shape != Shape::kScalar && op.shape != Shape::kBranch &&
                op.shape != Shape::kControl && op.shape != Shape::kScalarLoad &&
                op.shape != Shape::kCache && op.shape != Shape::kProgramCounter;
  if (r.flags & kFlagReturn) {
    require(op.traits & kAtomic, "only an atomic returns the old value");
    const u8 returned = op.traits & kReturnsHalf ? op.dst_words / 2 : op.dst_words;
    if (op.shape != Shape::kScalarLoad) s.sdst = vector(r.sdst, returned);
  }
  if (op.traits & kPacked) {
    require(r.abs == 0, "packed operations take no abs");
    s.neg_lo = r.neg;
    s.neg_hi = r.neg_hi;
  } else {
    require(((op.traits & kOpSel) || r.op_sel == 0) && r.op_sel < 16 && r.op_sel_hi == 0 &&
                r.neg_hi == 0,
            "unexpected packed modifier");
    require((op.traits & kMods) || (r.neg == 0 && r.abs == 0), "unexpected neg or abs");
    for (std::size_t k = 0; k < 3; ++k) {
      s.src[k].neg = (r.neg >> k) & 1;
      s.src[k].abs = (r.abs >> k) & 1;
    }
  }
  require((op.traits & kClamp) || !(r.flags & kFlagClamp), "unexpected clamp");
  require(((op.traits & kOmod) || r.omod == 0) && r.omod < 4, "unexpected output modifier");
  if (r.flags & kFlagDpp) {
    const bool wide = op.dst_words == 2 || op.src_words[0] == 2;
    require(op.shape == Shape::kVector && op.dst_words <= 2 && op.src_words[0] >= 1 &&
                op.src_words[0] <= 2 && !(op.traits & (kAccSource | kAccDst | kSwaps | kPacked)) &&
                is_vector(0),
            "DPP is not modelled for this operation");
    // CDNA3 ISA, "DPP": 64-bit operations have row_newbcast only.
    require(!wide || (r.dpp_ctrl & 0xfff0u) == 0x150, "64-bit DPP takes row_newbcast only");
    s.dpp = dpp(r);
    Step& inner = inner_.emplace_back(s);
    inner.src[0].kind = Operand::Kind::kPermuted;
    inner.src[0].index = 0;
    s.inner = &inner;
    s.handler = run_dpp;
  }
  if (r.flags & kFlagSdwa) {
    s.sdwa = sdwa(r);
    require((op.shape == Shape::kVector || op.shape == Shape::kCompare) && op.src_words[0] == 1 &&
                !(r.flags & kFlagDpp) &&
                ((op.dst_words == 1 && op.shape == Shape::kVector) ||
                 s.sdwa->dst_select == kSelectDword) &&
                !(op.traits & (kAccSource | kAccDst | kPacked | kSwaps)),
            "SDWA is not modelled for this operation");
    Step& inner = inner_.emplace_back(s);
    for (std::size_t k = 0; k < 2; ++k) {
      if (op.src_words[k] == 0 || s.sdwa->select[k] == kSelectDword) continue;
      require(op.src_words[k] == 1 && !is_status(k), "this part cannot be selected");
      inner.src[k].kind = Operand::Kind::kPermuted;
      inner.src[k].index = static_cast<u16>(k);
    }
    s.inner = &inner;
    s.handler = run_sdwa;
  }
  if (is_status(0) || is_status(1) || is_status(2)) {
    require((op.shape == Shape::kScalar || op.shape == Shape::kVector ||
             op.shape == Shape::kCompare || op.shape == Shape::kReadLane ||
             op.shape == Shape::kWriteLane) && s.inner == nullptr,
            "a status bit is not modelled as a source here");
    Step& inner = inner_.emplace_back(s);
    for (u16 k = 0; k < 3; ++k) {
      if (!is_status(k)) continue;
      inner.src[k].kind = Operand::Kind::kScalar;
      inner.src[k].index = kScalarFile + 2 * k;
    }
    s.inner = &inner;
    s.handler = run_status;
  }
  return s;
}

}  // namespace asmevo
