// How undefined bits travel through registers, and where they are reported.
#include <algorithm>

#include "sanitizer_flow.hpp"
#include "sanitizer_step.hpp"

namespace asmevo {

bool CheckedStep::is_dirty(const CheckOperand& o) const {
  if (is_vector(o)) return shadow_.dirty.any(row_of(o), o.words);
  if (!is_scalar(o)) return false;
  u32 any = 0;
  for (u32 i = 0; i < o.words; ++i) any |= shadow_.scalar[o.reg + i];
  return any != 0;
}

u32 CheckedStep::undefined_bits(u16 row, std::size_t lane) const {
  switch (shadow_.rows[row]) {
    case WaveShadow::Row::kDefined: return 0;
    case WaveShadow::Row::kUndefined: return kAllBits;
    case WaveShadow::Row::kMixed: break;
  }
  return shadow_.bits[row * kLanes + lane];
}

Bits CheckedStep::scalar_bits(const CheckOperand& o) const {
  Bits b;
  if (o.reg == kConstant) {
    b.value = o.value | (u64{o.bits} << 32);
  } else if (is_scalar(o)) {
    b.value = scalar_value(o.reg);
    b.undefined = shadow_.scalar[o.reg];
    if (o.words == 1) {
      b.undefined &= o.bits;
    } else if (o.words == 2) {
      b.value |= u64{scalar_value(static_cast<u16>(o.reg + 1))} << 32;
      b.undefined |= u64{shadow_.scalar[o.reg + 1]} << 32;
    } else {
      for (u32 i = 1; i < o.words; ++i) b.undefined |= shadow_.scalar[o.reg + i];
    }
  }
  if (o.flags & kOperandInvert) b.value = ~b.value;
  return b;
}

Bits CheckedStep::lane_bits(const CheckOperand& o, std::size_t lane) const {
  if (!is_vector(o)) {
    Bits b = scalar_bits(o);
    if (o.flags & kOperandLaneMask) {
      b.value = (b.value >> lane) & 1;
      b.undefined = (b.undefined >> lane) & 1;
    }
    return b;
  }
  const u16 row = row_of(o);
  Bits b{wave_.v[row * kLanes + lane], undefined_bits(row, lane)};
  if (o.words == 1) {
    b.undefined &= o.bits;
  } else {
    b.value |= u64{wave_.v[(row + 1) * kLanes + lane]} << 32;
    b.undefined |= u64{undefined_bits(static_cast<u16>(row + 1), lane)} << 32;
    for (u32 i = 2; i < o.words; ++i) {
      b.undefined |= undefined_bits(static_cast<u16>(row + i), lane);
    }
  }
  if (o.flags & kOperandInvert) b.value = ~b.value;
  return b;
}

Origin CheckedStep::origin_of(const CheckOperand& o) const {
  if (is_vector(o)) {
    const u16 row = row_of(o);
    for (u32 i = 0; i < o.words; ++i) {
      if (shadow_.rows[row + i] != WaveShadow::Row::kDefined) return shadow_.row_origin[row + i];
    }
  } else if (is_scalar(o)) {
    for (u32 i = 0; i < o.words; ++i) {
      if (shadow_.scalar[o.reg + i] != 0) return shadow_.scalar_origin[o.reg + i];
    }
  }
  return {};
}

Origin CheckedStep::origin_of_sources() const {
  for (const CheckOperand& o : record_.operands) {
    if ((o.flags & kOperandRead) && is_dirty(o)) return origin_of(o);
  }
  return {};
}

void CheckedStep::report_undefined(const CheckOperand& o, const Origin& origin, int lane) {
  Report r = report(Finding::kUninitialisedRegister);
  r.reg = o.reg;
  r.lane = static_cast<std::int16_t>(lane);
  if (origin.kind == Origin::Kind::kLaunch) {
    r.origin = origin.reg;
  } else {
    r.kind = origin.kind == Origin::Kind::kLds ? Finding::kUninitialisedLds
                                               : Finding::kUninitialisedMemory;
    r.producer = static_cast<i32>(origin.pc);
  }
  sanitizer_.findings_.add(r);
}

bool CheckedStep::use(const CheckOperand& o, u64 lanes) {
  if (!is_dirty(o)) return false;
  if (!is_vector(o)) {
    u64 undefined = scalar_bits(o).undefined;
    if (o.flags & kOperandLaneMask) undefined &= lanes;
    if (undefined == 0) return false;
    report_undefined(o, origin_of(o), -1);
    // Once is enough: what follows would only repeat it.
    for (u32 i = 0; i < o.words; ++i) shadow_.scalar[o.reg + i] = 0;
    return true;
  }
  for (u64 m = lanes; m != 0; m &= m - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(m));
    for (u32 i = 0; i < o.words; ++i) {
      const auto row = static_cast<u16>(row_of(o) + i);
      if ((undefined_bits(row, lane) & (o.words == 1 ? o.bits : kAllBits)) == 0) continue;
      CheckOperand at = o;
      at.reg = static_cast<u16>(o.reg + i);
      report_undefined(at, shadow_.row_origin[row], static_cast<int>(lane));
      return true;
    }
  }
  return false;
}

// Lanes of the destination that an instruction writes; DPP as in run_dpp.
u64 CheckedStep::written_lanes() const {
  if (step_.dpp == nullptr) return active_;
  const DppPattern& pattern = *step_.dpp;
  u64 lanes = active_ & pattern.write;
  if (!pattern.bound_ctrl) {
    std::size_t from;
    for (std::size_t i = 0; i < kLanes; ++i) {
      if (!permuted_lane(i, from)) lanes &= ~(u64{1} << i);
    }
  }
  return lanes;
}

bool CheckedStep::permuted_lane(std::size_t lane, std::size_t& from) const {
  from = step_.dpp->source[lane];
  return ((step_.dpp->valid >> lane) & 1) && ((wave_.exec() >> from) & 1);
}

void CheckedStep::settle(u16 row) {
  if (shadow_.rows[row] != WaveShadow::Row::kMixed) return;
  const u32* bits = &shadow_.bits[row * kLanes];
  u32 any = 0;
  for (std::size_t i = 0; i < kLanes; ++i) any |= bits[i];
  if (any == 0) shadow_.set(row, WaveShadow::Row::kDefined);
}

void CheckedStep::write_defined(const CheckOperand& o, u64 lanes) {
  if (!is_vector(o)) {
    if (!is_scalar(o)) return;
    for (u32 i = 0; i < o.words; ++i) shadow_.scalar[o.reg + i] = 0;
    return;
  }
  if (!shadow_.dirty.any(row_of(o), o.words)) return;
  const u32 keep = o.words == 1 ? ~record_.field : 0;
  for (u32 i = 0; i < o.words; ++i) {
    const auto row = static_cast<u16>(row_of(o) + i);
    if (shadow_.rows[row] == WaveShadow::Row::kDefined) continue;
    if (lanes == kAllLanes && keep == 0) {
      shadow_.set(row, WaveShadow::Row::kDefined);
      continue;
    }
    u32* bits = shadow_.mixed(row);
    for (u64 m = lanes; m != 0; m &= m - 1) bits[std::countr_zero(m)] &= keep;
    settle(row);
  }
}

void CheckedStep::write_lane(const CheckOperand& o, std::size_t word, std::size_t lane,
                             u32 undefined) {
  u32& bits = shadow_.mixed(static_cast<u16>(row_of(o) + word))[lane];
  const u32 field = o.words == 1 ? record_.field : kAllBits;
  bits = (bits & ~field) | (undefined & field);
}

void CheckedStep::finish_rows(const CheckOperand& o, const Origin& origin) {
  for (u32 i = 0; i < o.words; ++i) {
    const auto row = static_cast<u16>(row_of(o) + i);
    settle(row);
    if (shadow_.rows[row] != WaveShadow::Row::kDefined) shadow_.row_origin[row] = origin;
  }
}

void CheckedStep::write_scalar(const CheckOperand& o, u64 undefined, const Origin& origin) {
  if (o.flags & kOperandDefined) undefined = 0;
  if (undefined != 0 && o.reg <= kExec + 1 && o.reg + o.words > kExec) {
    report_undefined(o, origin, -1);
    undefined = 0;
  }
  for (u32 i = 0; i < o.words; ++i) {
    const u64 part = i < 2 ? undefined >> (32 * i) : (undefined != 0 ? ~u64{0} : 0);
    shadow_.scalar[o.reg + i] = static_cast<u32>(part);
    if (shadow_.scalar[o.reg + i] != 0) shadow_.scalar_origin[o.reg + i] = origin;
  }
}

void CheckedStep::values() {
  if (item_.has_uses) {
    for (const CheckOperand& o : record_.operands) {
      if (o.flags & kOperandUse) use(o, active_);
    }
  }
  const auto flow = static_cast<Flow>(record_.flow);
  if (flow == Flow::kNone) return;
  bool dirty = false;
  for (std::size_t k = kSource; k <= kExtraSource; ++k) {
    if (operand(k).flags & kOperandRead) dirty |= is_dirty(operand(k));
  }
  // Taking a register from itself gives zero.
  const CheckOperand &a = operand(kSource), &b = operand(kSource + 1);
  if (flow == Flow::kXor && a.reg == b.reg && a.reg != kConstant) dirty = false;
  if (!dirty) {
    const u64 lanes = flow == Flow::kWriteLane
                          ? u64{1} << (scalar_bits(operand(kSource + 1)).value & 63)
                          : written_lanes();
    for (const std::size_t k : {kDst, kSecondDst, kExtraDst}) write_defined(operand(k), lanes);
    return;
  }
  switch (flow) {
    case Flow::kMatrix: return matrix_values();
    case Flow::kReadLane:
    case Flow::kReadFirstLane: return read_lane();
    case Flow::kWriteLane: return write_one_lane();
    default: break;
  }
  const bool vector = is_vector(operand(kDst)) || (operand(kDst).flags & kOperandLaneMask);
  if (vector) lane_values(); else scalar_values();
}

void CheckedStep::scalar_values() {
  const Bits a = scalar_bits(operand(kSource)), b = scalar_bits(operand(kSource + 1)),
             c = scalar_bits(operand(kSource + 2));
  const Bits extra = scalar_bits(operand(kExtraSource));
  const Origin origin = origin_of_sources();
  const CheckOperand& dst = operand(kDst);
  const u32 width = dst.words >= 2 ? 64 : 32;
  const auto flow = static_cast<Flow>(record_.flow);
  const bool any = (a.undefined | b.undefined | c.undefined | extra.undefined) != 0;
  u64 undefined = undefined_result(flow, width, a, b, c);
  if (extra.undefined != 0) undefined = ~u64{0};
  if (is_scalar(dst)) write_scalar(dst, undefined, origin);
  for (const std::size_t k : {kSecondDst, kExtraDst}) {
    const CheckOperand& o = operand(k);
    if (!is_scalar(o)) continue;
    write_scalar(o, o.reg == kShadowScc ? any : (any ? ~u64{0} : 0), origin);
  }
}

void CheckedStep::lane_values() {
  const auto flow = static_cast<Flow>(record_.flow);
  const CheckOperand& dst = operand(kDst);
  const Origin origin = origin_of_sources();
  const u64 lanes = written_lanes();
  const u32 width = dst.words >= 2 ? 64 : 32;
  u64 mask = 0;  // lanes with an undefined result
  u64 undefined_mask = 0;
  // The destination may be what DPP permutes.
  Bits first[kLanes];
  for (u64 m = lanes; m != 0; m &= m - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(m));
    std::size_t from = lane;
    const bool readable = step_.dpp == nullptr || permuted_lane(lane, from);
    if (readable) first[lane] = lane_bits(operand(kSource), from);
  }
  for (u64 m = lanes; m != 0; m &= m - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(m));
    const Bits& a = first[lane];
    const Bits b = lane_bits(operand(kSource + 1), lane);
    const Bits c = lane_bits(operand(kSource + 2), lane);
    const Bits extra = lane_bits(operand(kExtraSource), lane);
    u64 undefined;
    if (flow == Flow::kPacked) {
      undefined = 0;
      const Bits* sources[3] = {&a, &b, &c};
      for (u32 k = 0; k < 3; ++k) {
        const u64 lo = sources[k]->undefined >> (32 * ((record_.op_sel >> k) & 1));
        const u64 hi = sources[k]->undefined >> (32 * ((record_.op_sel_hi >> k) & 1));
        if (static_cast<u32>(lo) != 0) undefined |= 0xffffffffu;
        if (static_cast<u32>(hi) != 0) undefined |= ~u64{0xffffffffu};
      }
    } else if (flow == Flow::kPackedMove) {
      const u64 lo = a.undefined >> (32 * (record_.op_sel & 1));
      const u64 hi = b.undefined >> (32 * ((record_.op_sel >> 1) & 1));
      undefined = static_cast<u32>(lo) | (hi << 32);
    } else {
      undefined = undefined_result(flow, width, a, b, c);
    }
    if (extra.undefined != 0) undefined = ~u64{0};
    if (is_vector(dst)) {
      for (u32 i = 0; i < dst.words; ++i) {
        const u64 part = i < 2 ? undefined >> (32 * i) : (undefined != 0 ? ~u64{0} : 0);
        write_lane(dst, i, lane, static_cast<u32>(part));
      }
    }
    const bool any = (a.undefined | b.undefined | c.undefined | extra.undefined) != 0;
    undefined_mask |= u64{any} << lane;
    mask |= u64{undefined != 0} << lane;
  }
  if (is_vector(dst)) {
    finish_rows(dst, origin);
  } else if (is_scalar(dst)) {
    write_scalar(dst, mask, origin);
  }
  for (const std::size_t k : {kSecondDst, kExtraDst}) {
    const CheckOperand& o = operand(k);
    if (is_vector(o)) {  // the second register of a swap
      write_defined(o, lanes);
    } else if (is_scalar(o)) {
      write_scalar(o, undefined_mask, origin);
    }
  }
}

// An element of the result takes a row of A, a column of B and an element of C; see
// matrix_operations.cpp for the layout. Of operations with several blocks everything is undefined.
void CheckedStep::matrix_values() {
  const CheckOperand &dst = operand(kDst), &c = operand(kSource + 2);
  const Origin origin = origin_of_sources();
  const auto lanes_of = [&](const CheckOperand& o) {
    u64 lanes = 0;
    if (!is_vector(o) || !is_dirty(o)) return lanes;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      u32 any = 0;
      for (u32 i = 0; i < o.words; ++i) any |= undefined_bits(static_cast<u16>(row_of(o) + i), lane);
      lanes |= u64{any != 0} << lane;
    }
    return lanes;
  };
  const std::size_t m = record_.tile == 0 ? kLanes : record_.tile;
  const auto folded = [&](u64 lanes) {
    u64 out = 0;
    for (std::size_t at = 0; at < kLanes; at += m) out |= lanes >> at;
    return m == kLanes ? out : out & ((u64{1} << m) - 1);
  };
  u64 rows = folded(lanes_of(operand(kSource))), columns = folded(lanes_of(operand(kSource + 1)));
  const CheckOperand& extra = operand(kExtraSource);  // the index of an SMFMAC
  const bool all = (record_.tile == 0 && (rows | columns | lanes_of(c)) != 0) || lanes_of(extra) != 0;
  std::vector<u32> result(dst.words * kLanes);
  const std::size_t groups = kLanes / m;
  for (u32 word = 0; word < dst.words; ++word) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      u32& out = result[word * kLanes + lane];
      if (all) {
        out = kAllBits;
        continue;
      }
      if (record_.tile == 0) continue;
      const std::size_t row = 4 * ((word / 4) * groups + lane / m) + word % 4;
      if (((rows >> row) | (columns >> (lane % m))) & 1) {
        out = kAllBits;
      } else if (is_vector(c) && word < c.words) {
        out = undefined_bits(static_cast<u16>(row_of(c) + word), lane) != 0 ? kAllBits : 0;
      }
    }
  }
  for (u32 word = 0; word < dst.words; ++word) {
    u32* bits = shadow_.mixed(static_cast<u16>(row_of(dst) + word));
    std::copy_n(&result[word * kLanes], kLanes, bits);
  }
  finish_rows(dst, origin);
}

void CheckedStep::read_lane() {
  const CheckOperand& source = operand(kSource);
  const Bits select = scalar_bits(operand(kSource + 1));
  std::size_t lane = select.value & 63;
  if (static_cast<Flow>(record_.flow) == Flow::kReadFirstLane) {
    lane = wave_.exec() == 0 ? 0 : static_cast<std::size_t>(std::countr_zero(wave_.exec()));
  }
  const Origin origin = origin_of_sources();
  const u64 undefined = select.undefined != 0 ? ~u64{0} : undefined_bits(row_of(source), lane);
  write_scalar(operand(kDst), undefined, origin);
}

void CheckedStep::write_one_lane() {
  const CheckOperand& dst = operand(kDst);
  const Bits value = scalar_bits(operand(kSource)), select = scalar_bits(operand(kSource + 1));
  const Origin origin = origin_of_sources();
  const u64 undefined = select.undefined != 0 ? ~u64{0} : value.undefined;
  write_lane(dst, 0, select.value & 63, static_cast<u32>(undefined));
  finish_rows(dst, origin);
}

}  // namespace asmevo
