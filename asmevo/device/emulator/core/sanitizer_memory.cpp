// Accesses to memory under the sanitizer: bounds, undefined addresses and data, and what one
// workgroup sees of another.
#include <algorithm>

#include "buffer_resource.hpp"
#include "flat_address.hpp"
#include "sanitizer_step.hpp"

namespace asmevo {

namespace {

constexpr u32 kSeveralWorkgroups = ~u32{0};

}  // namespace

// Addresses as the operations themselves work them out.
CheckedStep::Access CheckedStep::lanes() const {
  const u32 unit = record_.bytes < 4 ? record_.bytes : 4;
  const auto words = static_cast<u8>(record_.bytes / unit);
  const bool buffer = static_cast<Space>(record_.space) == Space::kBuffer;
  const LaneAccess found = buffer ? Buffer(wave_, step_).lanes(active_, words, unit)
                                  : asmevo::global_lanes(wave_, step_, words);
  Access a;
  a.lanes = 0;
  std::memcpy(a.address, found.address, sizeof a.address);
  for (std::size_t i = 0; i < kLanes; ++i) a.bytes[i] = static_cast<u8>(found.words[i] * unit);
  for (std::size_t i = 0; i < kLanes; ++i) a.lanes |= u64{a.bytes[i] != 0} << i;
  a.lanes &= active_;
  for (std::size_t i = 0; static_cast<Space>(record_.space) == Space::kFlat && i < kLanes; ++i) {
    const u64 upper = a.address[i] >> 32;
    if (upper == kSharedAperture >> 32 || upper == kPrivateAperture >> 32) {
      a.lanes &= ~(u64{1} << i);
    }
  }
  return a;
}

void CheckedStep::memory() {
  bool undefined = false;
  for (const CheckOperand& o : record_.operands) {
    if (o.flags & kOperandUse) undefined |= use(o, active_);
  }
  // What an undefined address happens to be is worth no report.
  if (undefined) {
    write_defined(operand(kDst), active_);
    return issue_flights();
  }
  switch (static_cast<Space>(record_.space)) {
    case Space::kScalar: scalar_access(); break;
    case Space::kBuffer:
    case Space::kGlobal:
    case Space::kFlat: global_access(); break;
    case Space::kLds: lds_access(); break;
    case Space::kLanes: lane_exchange(); break;
    default: write_defined(operand(kDst), active_); break;
  }
  issue_flights();
}

void CheckedStep::issue_flights() {
  Flight f;
  f.pc = pc_;
  f.lanes = active_;
  f.ordered = !(record_.flags & kCheckUnordered);
  f.lds_op = lds_op_;
  const CheckOperand& dst = operand(kDst);
  if (dst.reg != kAbsent) {
    f.vector = is_vector(dst);
    f.reg = f.vector ? row_of(dst) : dst.reg;
    f.words = dst.words;
  }
  if (record_.vmcnt != 0) issue(true, f);
  if (record_.lgkmcnt != 0) issue(false, f);
}

void CheckedStep::out_of_bounds(Finding kind, u64 address, u64 bytes, int lane, bool write) {
  Report r = report(kind);
  r.address = address;
  r.size = static_cast<u32>(bytes);
  r.lane = static_cast<std::int16_t>(lane);
  r.write = write;
  const CheckOperand& at = operand(kAddress);
  r.reg = at.reg != kAbsent && at.reg != kConstant ? at.reg : operand(kBase).reg;
  sanitizer_.findings_.add(r);
}

void CheckedStep::scalar_access() {
  u64 address = wave_.scalar64(operand(kBase).reg) + static_cast<u64>(i64{record_.offset0});
  address += scalar_bits(operand(kOffset)).value & 0xffffffffu;
  address &= ~u64{3};
  const bool write = record_.flags & (kCheckStore | kCheckAtomic);
  const u32 bytes = record_.bytes;
  const CheckOperand& dst = operand(kDst);
  write_defined(dst, kAllLanes);
  if (operand(kBase).words > 2) {  // an s_buffer operation clamps by num_records
    const u32* resource = &wave_.s[operand(kBase).reg];
    const u64 base = (resource[0] | (u64{resource[1] & 0xffffu} << 32));
    const u64 offset = address - (wave_.scalar64(operand(kBase).reg) & ~u64{3});
    if (offset + bytes > resource[2]) return;
    address = (base + offset) & ~u64{3};
  }
  ShadowMemory::Region* region = sanitizer_.memory_.find(address, bytes);
  if (region == nullptr || (region->guarded && !region->holds(address, bytes))) {
    return out_of_bounds(Finding::kOutOfBounds, address, bytes, -1, write);
  }
  if (write && !region->writable) {
    return out_of_bounds(Finding::kReadOnly, address, bytes, -1, true);
  }
  Origin origin{Origin::Kind::kMemory, kAbsent, pc_};
  for (u32 i = 0; i < bytes / 4; ++i) {
    const u64 at = address + 4 * i;
    bool undefined = !region->holds(at, 4);
    if (!undefined && region->words != nullptr) {
      MemoryWord& word = region->word(at);
      undefined = region->undefined && word.writer == 0 && !write;
      Access one;
      one.address[0] = at;
      one.bytes[0] = 4;
      one.lanes = 1;
      global_words(one, *region, 0);
    }
    if (undefined && i < dst.words && is_scalar(dst)) {
      shadow_.scalar[dst.reg + i] = kAllBits;
      shadow_.scalar_origin[dst.reg + i] = origin;
    }
  }
}

// The dwords of one lane's access, in order: who wrote and read them last.
void CheckedStep::global_words(const Access& a, ShadowMemory::Region& region, std::size_t lane) {
  const u32 me = group_.id + 1;
  const bool atomic = record_.flags & kCheckAtomic, write = record_.flags & (kCheckStore | kCheckAtomic);
  const auto conflict = [&](Finding kind, u32 other, u32 pc, u64 address, bool other_write) {
    Report r = report(kind);
    r.producer = static_cast<i32>(pc & MemoryWord::kPcMask);
    r.lane = static_cast<std::int16_t>(lane);
    r.address = address;
    r.size = 4;
    r.other_workgroup = other == kSeveralWorkgroups ? ~0u : other - 1;
    r.write = write;
    r.other_write = other_write;
    sanitizer_.findings_.add(r);
  };
  const u64 first = a.address[lane], end = first + a.bytes[lane];
  for (u64 at = first & ~u64{3}; at < end; at += 4) {
    const u64 from = std::max(at, first), to = std::min(at + 4, end);
    MemoryWord& word = region.word(std::max(at, region.data));
    const u32 bytes = static_cast<u32>(((1u << (to - from)) - 1) << (from - at));
    const u32 written = (word.write_pc >> 24) & 15;
    const bool foreign = word.writer != 0 && word.writer != me && (written & bytes) != 0;
    const bool was_atomic = word.write_pc & MemoryWord::kAtomic;
    if (atomic) {
      if (foreign && !was_atomic) {
        conflict(Finding::kCrossWorkgroup, word.writer, word.write_pc, at, true);
      } else if (foreign && (record_.flags & kCheckFloat)) {
        conflict(Finding::kAtomicOrder, word.writer, word.write_pc, at, true);
      }
    } else if (write) {
      if (foreign) {
        const u8* before = wave_.memory->range(from, to - from, false);
        u32 old = 0;
        if (before != nullptr) std::memcpy(&old, before, to - from);
        const u64 data = stored_bytes(lane, from - first);
        const u32 size_mask = to - from == 4 ? kAllBits : (1u << (8 * (to - from))) - 1;
        if (was_atomic || ((old ^ static_cast<u32>(data)) & size_mask) != 0) {
          conflict(Finding::kCrossWorkgroup, word.writer, word.write_pc, at, true);
        }
      } else if (word.reader != 0 && word.reader != me) {
        conflict(Finding::kCrossWorkgroup, word.reader, word.read_pc, at, false);
      }
    } else {
      if (foreign) conflict(Finding::kCrossWorkgroup, word.writer, word.write_pc, at, true);
      word.reader = word.reader == 0 || word.reader == me ? me : kSeveralWorkgroups;
      word.read_pc = pc_;
    }
    if (write) {
      const u32 kept = word.writer == me ? written : 0;
      word.writer = atomic && foreign && was_atomic ? kSeveralWorkgroups : me;
      word.write_pc = pc_ | ((kept | bytes) << 24) | (atomic ? MemoryWord::kAtomic : 0);
    }
  }
}

// Up to four bytes of what a lane stores, from byte `at` of the access.
u64 CheckedStep::stored_bytes(std::size_t lane, u64 at) const {
  const CheckOperand& data = operand(kData);
  if (is_scalar(data)) {
    return at / 4 < data.words ? wave_.s[data.reg + at / 4] >> (8 * (at % 4)) : 0;
  }
  if (!is_vector(data) || at / 4 >= data.words) return 0;
  const u32* rows = wave_.v + row_of(data) * kLanes + lane;
  u64 value = rows[at / 4 * kLanes];
  if (at / 4 + 1 < data.words) value |= u64{rows[(at / 4 + 1) * kLanes]} << 32;
  return value >> (8 * (at % 4) + record_.shift);
}

void CheckedStep::check_store_data(const CheckOperand& data, u64 lanes) {
  if (data.reg == kAbsent || !is_dirty(data)) return;
  CheckOperand looked_at = data;
  if (record_.bytes < 4) looked_at.bits = ((1u << (8 * record_.bytes)) - 1) << record_.shift;
  use(looked_at, lanes);
}

void CheckedStep::global_access() {
  const Access a = lanes();
  const bool write = record_.flags & (kCheckStore | kCheckAtomic);
  if (write) check_store_data(operand(kData), a.lanes);
  if (record_.flags & kCheckToLds) {
    load_to_lds();
  } else {
    // A buffer's bounds give zeros; what was undefined before the launch stays so below.
    write_defined(operand(kDst), active_);
  }
  if (a.lanes == 0) return;
  u64 low = ~u64{0}, high = 0;
  for (std::size_t i = 0; i < kLanes; ++i) {
    const bool takes_part = (a.lanes >> i) & 1;
    low = std::min(low, takes_part ? a.address[i] : ~u64{0});
    high = std::max(high, takes_part ? a.address[i] + a.bytes[i] : 0);
  }
  ShadowMemory::Region* region = low < high ? sanitizer_.memory_.find(low, high - low) : nullptr;
  const bool inside = region != nullptr && region->holds(low, high - low);
  if (inside && region->words == nullptr && !write) return;
  bool undefined = false;
  for (u64 m = a.lanes; m != 0; m &= m - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(m));
    const u64 address = a.address[lane], bytes = a.bytes[lane];
    ShadowMemory::Region* here = inside ? region : sanitizer_.memory_.find(address, bytes);
    if (here == nullptr || !here->holds(address, bytes)) {
      out_of_bounds(Finding::kOutOfBounds, address, bytes, static_cast<int>(lane), write);
      continue;
    }
    if (here->words == nullptr) {
      if (write) {
        out_of_bounds(Finding::kReadOnly, address, bytes, static_cast<int>(lane), true);
      }
      continue;
    }
    if (here->undefined && !(record_.flags & kCheckStore)) {
      for (u64 at = address; at < address + bytes; at += 4) {
        undefined |= here->word(at).writer == 0;
      }
    }
    if (!undefined || (record_.flags & kCheckAtomic)) global_words(a, *here, lane);
  }
  if (undefined) write_loaded(a);
}

// Once more over the lanes, for a load that met content which no one has defined.
void CheckedStep::write_loaded(const Access& a) {
  const CheckOperand& dst = operand(kDst);
  const Origin origin{Origin::Kind::kMemory, kAbsent, pc_};
  for (u64 m = a.lanes; m != 0; m &= m - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(m));
    ShadowMemory::Region* region = sanitizer_.memory_.find(a.address[lane], a.bytes[lane]);
    if (region == nullptr || region->words == nullptr || !region->undefined) continue;
    if (!region->holds(a.address[lane], a.bytes[lane])) continue;
    u32 undefined_words = 0;
    for (u32 i = 0; 4 * i < a.bytes[lane]; ++i) {
      if (region->word(a.address[lane] + 4 * i).writer == 0) undefined_words |= 1u << i;
    }
    if (undefined_words == 0) continue;
    if (record_.flags & kCheckAtomic) {
      CheckOperand at = operand(kAddress);
      report_undefined(at, origin, static_cast<int>(lane));
      return;
    }
    if (!is_vector(dst)) return;
    for (u32 i = 0; i < dst.words; ++i) {
      if ((undefined_words >> i) & 1) write_lane(dst, i, lane, kAllBits);
    }
  }
  if (is_vector(dst)) finish_rows(dst, origin);
}

}  // namespace asmevo
