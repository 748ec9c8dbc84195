// LDS under the sanitizer. Waves of a workgroup are ordered by barriers alone, and a barrier orders
// only what its waves have waited for: ds operations by lgkmcnt, loads to LDS by vmcnt.
#include <algorithm>

#include "sanitizer_step.hpp"

namespace asmevo {

u32 CheckedStep::new_lds_op() {
  lds_op_ = static_cast<u32>(shadow_.lds_ops.size());
  shadow_.lds_ops.push_back({pc_, group_.barriers});
  return lds_op_;
}

// Up to which of each wave's operations this wave may rely on, by ShadowLds::Write::source.
CheckedStep::Horizon CheckedStep::horizon() const {
  Horizon h;
  for (std::size_t wave = 0; wave < group_.waves.size(); ++wave) {
    const WaveShadow::Progress& visible = group_.waves[wave].visible;
    h.until[2 * wave] = visible.lds;
    h.until[2 * wave + 1] = visible.dma;
  }
  // ds operations of a wave take effect in order, its loads to LDS once they are waited for.
  h.until[2 * number_] = ~u32{0};
  h.until[2 * number_ + 1] = shadow_.done.dma;
  return h;
}

void CheckedStep::race(std::size_t word, std::size_t other, u32 op, std::size_t lane, bool write,
                       bool other_write) {
  const LdsOp& producer = group_.waves[other].lds_ops[op];
  // Behind a barrier, and within a wave, only a wait is missing.
  const bool wait = other == number_ || producer.barriers < group_.barriers;
  Report r = report(wait ? Finding::kUseBeforeWait : Finding::kLdsRace);
  r.producer = static_cast<i32>(producer.pc);
  r.lane = static_cast<std::int16_t>(lane);
  r.address = 4 * word;
  r.size = 4;
  r.other_wave = static_cast<u16>(other);
  r.write = write;
  r.other_write = other_write;
  sanitizer_.findings_.add(r);
}

u32 CheckedStep::lds_undefined(u64 at, u32 bytes, Origin& origin) const {
  const ShadowLds& lds = group_.lds;
  const std::size_t word = at / 4;
  u64 undefined = word < lds.words ? lds.undefined[word] : 0;
  if (at % 4 + bytes > 4 && word + 1 < lds.words) undefined |= u64{lds.undefined[word + 1]} << 32;
  const u64 mask = bytes >= 4 ? 0xffffffffu : (u64{1} << (8 * bytes)) - 1;
  const u64 found = (undefined >> (8 * (at % 4))) & mask;
  if (found != 0) {
    const Origin& from = lds.origin[word];
    // Nobody has written it: this instruction is the first to see it.
    origin = from.kind == Origin::Kind::kLaunch && from.reg == kAbsent
                 ? Origin{Origin::Kind::kLds, kAbsent, pc_} : from;
  }
  return static_cast<u32>(found);
}

void CheckedStep::lds_read(u64 at, u32 bytes, std::size_t lane, u32 op, const Horizon& horizon) {
  ShadowLds& lds = group_.lds;
  for (std::size_t word = at / 4; word <= (at + bytes - 1) / 4; ++word) {
    if (word >= lds.words) return;
    const ShadowLds::Write& last = lds.last_write[word];
    if (last.op > horizon.until[last.source]) [[unlikely]] {
      const u64 first = std::max<u64>(at, 4 * word), end = std::min<u64>(at + bytes, 4 * word + 4);
      const u32 mask = ((1u << (end - first)) - 1) << (first - 4 * word);
      if (last.bytes & mask) race(word, last.wave(), last.op, lane, false, true);
    }
    lds.read_by(number_, word) = op;
  }
}

// A read of whole dwords that are all there, defined and visible, which most are; false without
// effect on the findings when there is more to say.
bool CheckedStep::lds_reads_quietly(const u32* base, u32 op, const Horizon& horizon) {
  ShadowLds& lds = group_.lds;
  if (record_.bytes % 4 != 0 || lds.words == 0) return false;
  const u32 words = record_.bytes / 4u;
  u32 undefined = 0;
  bool unseen = false;
  u32* reads = &lds.read_by(number_, 0);
  const auto look = [&](u64 at) {
    if (at % 4 != 0 || at + record_.bytes > lds.limit) {
      unseen = true;
      return;
    }
    for (std::size_t word = at / 4, end = word + words; word != end; ++word) {
      const ShadowLds::Write& last = lds.last_write[word];
      undefined |= lds.undefined[word];
      unseen |= last.op > horizon.until[last.source];
      reads[word] = op;
    }
  };
  for (u32 part = 0; part < record_.parts; ++part) {
    const u32 offset = static_cast<u32>(part == 0 ? record_.offset0 : record_.offset1);
    if (active_ == kAllLanes) {
      for (std::size_t i = 0; i < kLanes; ++i) look(base[i] + offset);
    } else {
      for (u64 m = active_; m != 0; m &= m - 1) look(base[std::countr_zero(m)] + offset);
    }
  }
  return undefined == 0 && !unseen;
}

// Whether a ds_write stores in [first, end) what LDS holds there: writing a value twice is no race.
bool CheckedStep::lds_keeps(u64 first, u64 end, u64 at, std::size_t lane) const {
  if (end > wave_.group->lds_bytes() || record_.parts != 1) return false;
  u32 old = 0;
  std::memcpy(&old, wave_.group->lds() + first, end - first);
  const u32 mask = end - first == 4 ? kAllBits : (1u << (8 * (end - first))) - 1;
  return ((old ^ static_cast<u32>(stored_bytes(lane, first - at))) & mask) == 0;
}

void CheckedStep::lds_write(u64 at, u32 bytes, std::size_t lane, u32 op, bool dma, bool atomic,
                            const Horizon& horizon) {
  ShadowLds& lds = group_.lds;
  for (std::size_t word = at / 4; word <= (at + bytes - 1) / 4; ++word) {
    if (word >= lds.words) return;
    const u64 first = std::max<u64>(at, 4 * word), end = std::min<u64>(at + bytes, 4 * word + 4);
    const auto mask = static_cast<u8>(((1u << (end - first)) - 1) << (first - 4 * word));
    ShadowLds::Write& last = lds.last_write[word];
    const bool overlaps = (last.bytes & mask) != 0;
    if (overlaps && last.op > horizon.until[last.source] && !(atomic && last.atomic)) {
      if (last.wave() != number_) {
        if (dma || atomic || !lds_keeps(first, end, at, lane)) {
          race(word, last.wave(), last.op, lane, true, true);
        }
      } else if (!dma) {
        Report r = report(Finding::kLdsOrder);
        r.producer = static_cast<i32>(shadow_.lds_ops[last.op].pc);
        r.lane = static_cast<std::int16_t>(lane);
        r.address = 4 * word;
        r.size = 4;
        r.write = r.other_write = true;
        sanitizer_.findings_.add(r);
      }
    }
    for (std::size_t wave = 0; !atomic && wave < group_.waves.size(); ++wave) {
      const u32 read = lds.read_by(wave, word);
      // The wave's own reads come first, unless the write is a load that does not wait for them.
      const u32 until = wave == number_ && dma ? shadow_.done.lds : horizon.until[2 * wave];
      if (read > until) race(word, wave, read, lane, true, false);
    }
    const u8 kept = last.wave() == number_ && last.op == op ? last.bytes : u8{0};
    last = {op, static_cast<u8>(2 * number_ + dma), static_cast<u8>(kept | mask), atomic};
  }
}

void CheckedStep::lds_access() {
  const CheckOperand &address = operand(kAddress), &dst = operand(kDst);
  const u32* base = wave_.v + row_of(address) * kLanes;
  const u32 op = new_lds_op();
  const u32 bytes = record_.bytes, words = (bytes + 3) / 4;
  const bool reads = record_.flags & (kCheckLoad | kCheckAtomic);
  const bool atomic = record_.flags & kCheckAtomic, writes = record_.flags & (kCheckStore | kCheckAtomic);
  ShadowLds& lds = group_.lds;
  const Horizon horizon = this->horizon();
  if (!atomic) write_defined(dst, active_);
  if (!writes && lds_reads_quietly(base, op, horizon)) return;
  bool dirty = false;
  Origin origin;
  for (u32 part = 0; part < record_.parts; ++part) {
    const u32 offset = static_cast<u32>(part == 0 ? record_.offset0 : record_.offset1);
    const CheckOperand& data = operand(kData + part);
    const bool dirty_data = writes && is_dirty(data);
    for (u64 m = active_; m != 0; m &= m - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(m));
      const u64 at = base[lane] + offset;  // wraps, as in lds_operations.cpp
      if (at + bytes > lds.limit) {
        out_of_bounds(Finding::kLdsOutOfBounds, at, bytes, static_cast<int>(lane), writes);
        if (at + bytes > 4 * lds.words) continue;
      }
      if (reads) {
        for (u32 i = 0; i < words && is_vector(dst); ++i) {
          const u32 size = std::min(bytes - 4 * i, 4u);
          u32 undefined = lds_undefined(at + 4 * i, size, origin);
          if (undefined == 0) continue;
          dirty = true;
          if (record_.flags & kCheckExtend) undefined = kAllBits;
          if (size < 4) undefined <<= record_.shift;
          write_lane(dst, part * words + i, lane, undefined);
        }
        if (!atomic) lds_read(at, bytes, lane, op, horizon);
      }
      if (!writes) continue;
      lds_write(at, bytes, lane, op, false, atomic, horizon);
      for (u32 i = 0; i < words; ++i) {
        const u32 size = std::min(bytes - 4 * i, 4u);
        u32 undefined = 0;
        if (dirty_data && is_vector(data)) {
          undefined = undefined_bits(static_cast<u16>(row_of(data) + i), lane);
        }
        if (size < 4) undefined >>= record_.shift;
        for (u64 byte = at + 4 * i; byte < at + 4 * i + size; ++byte, undefined >>= 8) {
          const u32 field = 0xffu << (8 * (byte % 4));
          u32& bits = lds.undefined[byte / 4];
          const u32 now = (undefined << (8 * (byte % 4))) & field;
          // What an atomic adds to has to be defined too.
          bits = atomic ? bits | now : (bits & ~field) | now;
          if (now != 0) lds.origin[byte / 4] = origin_of(data);
        }
      }
    }
  }
  if (dirty) {
    finish_rows(dst, origin);
  } else if (atomic) {
    write_defined(dst, active_);
  }
}

// A load of one dword into each of kLanes words from `first` that no one else has in use; false
// without effect when that is not so.
bool CheckedStep::lds_fills_quietly(std::size_t first, u32 op, const Horizon& horizon) {
  ShadowLds& lds = group_.lds;
  if (active_ != kAllLanes || 4 * (first + kLanes) > lds.limit) return false;
  bool in_use = false;
  for (std::size_t wave = 0; wave < group_.waves.size(); ++wave) {
    const u32* read = &lds.read_by(wave, first);
    const u32 until = wave == number_ ? shadow_.done.lds : horizon.until[2 * wave];
    u32 newest = 0;
    for (std::size_t i = 0; i < kLanes; ++i) newest = std::max(newest, read[i]);
    in_use |= newest > until;
  }
  ShadowLds::Write* last = &lds.last_write[first];
  for (std::size_t i = 0; i < kLanes; ++i) in_use |= last[i].op > horizon.until[last[i].source];
  if (in_use) return false;
  std::fill_n(last, kLanes,
              ShadowLds::Write{op, static_cast<u8>(2 * number_ + 1), 15, false});
  std::fill_n(&lds.undefined[first], kLanes, 0u);
  return true;
}

// One dword a lane to LDS at M0[15:0] plus the instruction's offset plus 4 times the lane; lanes
// outside the buffer's bounds bring zeros.
void CheckedStep::load_to_lds() {
  const u32 op = new_lds_op();
  const Horizon horizon = this->horizon();
  ShadowLds& lds = group_.lds;
  const u64 base = (wave_.s[kM0] & 0xffffu) + static_cast<u32>(record_.offset0);
  if (base % 4 == 0 && lds_fills_quietly(base / 4, op, horizon)) return;
  for (u64 m = active_; m != 0; m &= m - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(m));
    const u64 at = base + 4 * lane;
    if (at + 4 > lds.limit) {
      out_of_bounds(Finding::kLdsOutOfBounds, at, 4, static_cast<int>(lane), true);
      if (at + 4 > 4 * lds.words) continue;
    }
    lds_write(at, 4, lane, op, true, false, horizon);
    lds.undefined[at / 4] = 0;
  }
}

void CheckedStep::lane_exchange() {
  const CheckOperand &dst = operand(kDst), &data = operand(kData);
  if (!is_dirty(data)) return write_defined(dst, active_);
  const Origin origin = origin_of(data);
  const u16 row = row_of(data);
  const u32* address = wave_.v + row_of(operand(kAddress)) * kLanes;
  u32 sent[kLanes] = {};
  const bool forward = record_.flags & kCheckForward;
  for (u64 m = active_; m != 0; m &= m - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(m));
    const std::size_t other = ((address[lane] + static_cast<u32>(record_.offset0)) / 4) & 63;
    if (forward) {
      sent[other] = undefined_bits(row, lane);
    } else if ((active_ >> other) & 1) {
      sent[lane] = undefined_bits(row, other);
    }
  }
  for (u64 m = active_; m != 0; m &= m - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(m));
    write_lane(dst, 0, lane, sent[lane]);
  }
  finish_rows(dst, origin);
}

}  // namespace asmevo
