// SMEM, MUBUF, global and LDS operations, atomics among them. A load reads memory here, at issue, and its registers
// change when a wait delivers it; a store takes effect in memory at issue.
#include <algorithm>
#include <bit>

#include "float_bits.hpp"
#include "lds_banks.hpp"
#include "operation.hpp"

namespace asmevo {

namespace {

// Distinct lines in first-touch order, as the cycle model wants them.
class Tracer {
 public:
  explicit Tracer(WaveTrace& trace) : trace_(trace), first_(trace.lines.size()) {}
  void touch(u64 address, u64 size) {
    bytes_ += size;
    for (u64 line = address / kLineBytes; line <= (address + size - 1) / kLineBytes; ++line) {
      const auto begin = trace_.lines.begin() + static_cast<std::ptrdiff_t>(first_);
      if (std::find(begin, trace_.lines.end(), line) == trace_.lines.end()) {
        trace_.lines.push_back(line);
      }
    }
  }
  void finish(u32 lds_cycles = 0) {
    Access access;
    access.first_line = static_cast<u32>(first_);
    access.line_count = static_cast<u16>(trace_.lines.size() - first_);
    access.lds_cycles = static_cast<u16>(lds_cycles);
    access.bytes = static_cast<u32>(bytes_);
    trace_.entries.back().access = static_cast<u32>(trace_.accesses.size());
    trace_.accesses.push_back(access);
  }
  void add_bytes(u64 bytes) { bytes_ += bytes; }

 private:
  WaveTrace& trace_;
  std::size_t first_;
  u64 bytes_ = 0;
};

u64 scalar_address(Wave& w, const Step& s) {
  u64 address = w.read64(s.src[0]) + static_cast<u64>(i64{s.imm0});
  if (s.src[1].kind != Operand::Kind::kAbsent) address += w.read32(s.src[1]);
  return address & ~u64{3};
}

template <u8 Words>
void scalar_load(Wave& w, const Step& s) {
  const u64 address = scalar_address(w, s);
  const u8* bytes = w.memory->access(address, 4 * Words, false, 0);
  Pending& p = w.issue_lgkm(Words > 1 ? 2 : 1);
  p.kind = Pending::Kind::kScalar;
  p.words = Words;
  p.dst = s.dst;
  std::memcpy(p.data.data(), bytes, 4 * Words);
  if (w.trace != nullptr) {
    Tracer tracer(*w.trace);
    tracer.touch(address, 4 * Words);
    tracer.finish();
  }
}

// SMEM writes take effect at issue; like its reads they may complete in any order.
template <u8 Words>
void scalar_store(Wave& w, const Step& s) {
  u8* bytes = w.memory->access(scalar_address(w, s), 4 * Words, true, 0);
  std::memcpy(bytes, &w.s[s.dst], 4 * Words);
  Pending& p = w.issue_lgkm(Words > 1 ? 2 : 1);
  p.kind = Pending::Kind::kScalar;
  p.words = 0;
}

template <auto F>
void scalar_atomic(Wave& w, const Step& s) {
  u8* bytes = w.memory->access(scalar_address(w, s), 4, true, 0);
  u32 old;
  std::memcpy(&old, bytes, sizeof old);
  const u32 updated = F(old, w.s[s.dst]);
  std::memcpy(bytes, &updated, sizeof updated);
  Pending& p = w.issue_lgkm(1);
  p.kind = Pending::Kind::kScalar;
  p.words = s.flags & kFlagReturn ? 1 : 0;
  p.dst = s.dst;
  p.data[0] = old;
}

// Addresses of one vector memory operation; words[i] dwords of lane i are in range, the rest is
// dropped or reads 0.
struct LaneAccess {
  u64 address[kLanes];
  u8 words[kLanes];
  u64 active;
};

void trace_lanes(Wave& w, const LaneAccess& access) {
  Tracer tracer(*w.trace);
  for (u64 m = access.active; m != 0; m &= m - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(m));
    if (access.words[i] != 0) tracer.touch(access.address[i], 4 * u64{access.words[i]});
  }
  tracer.finish();
}

// All 64 lanes at 32-bit offsets from one base, every dword in range of `limit` and of one region:
// one check for the whole access. Returns the host address of offset `low`, or null.
template <u8 Words>
u8* uniform_region(Wave& w, u64 base, const u32* offsets, u64 limit, bool write, u32& low) {
  if (w.active() != kAllLanes || w.trace != nullptr || offsets == nullptr) return nullptr;
  u32 lowest = ~0u, highest = 0;
  for (std::size_t i = 0; i < kLanes; ++i) {
    lowest = std::min(lowest, offsets[i]);
    highest = std::max(highest, offsets[i]);
  }
  if (limit < 4 * Words || highest > limit - 4 * Words) return nullptr;
  const MappedRegion* region = w.memory->find(base + lowest, u64{highest} - lowest + 4 * Words);
  if (region == nullptr || (write && !region->writable)) return nullptr;
  low = lowest;
  return region->bytes + (base + lowest - region->base);
}

template <u8 Words>
bool consecutive(const u32* offsets) {
  u32 difference = 0;
  for (u32 i = 0; i < kLanes; ++i) difference |= offsets[i] - offsets[0] - i * 4 * Words;
  return difference == 0;
}

// Compilers turn one memcpy of a kilobyte into `rep movs`, which costs more than it copies.
template <std::size_t Bytes>
void copy_lines(void* to, const void* from) {
  static_assert(Bytes % 64 == 0);
  for (std::size_t at = 0; at < Bytes; at += 64) {
    std::memcpy(static_cast<u8*>(to) + at, static_cast<const u8*>(from) + at, 64);
  }
}

template <u8 Words>
void load_uniform(Wave& w, const Step& s, const u8* bytes, const u32* offsets, u32 low) {
  Pending& p = w.issue_vm();
  p.kind = Pending::Kind::kVector;
  p.words = Words;
  p.dst = s.dst;
  p.lanes = kAllLanes;
  u32* out = p.data.data();
  if (consecutive<Words>(offsets)) {
    alignas(64) u32 in[kLanes * Words];
    copy_lines<sizeof in>(in, bytes);
    for (std::size_t i = 0; i < kLanes; ++i) {
      for (std::size_t k = 0; k < Words; ++k) out[k * kLanes + i] = in[i * Words + k];
    }
    return;
  }
  for (std::size_t i = 0; i < kLanes; ++i) {
    u32 word[Words];
    std::memcpy(word, bytes + (offsets[i] - low), sizeof word);
    for (std::size_t k = 0; k < Words; ++k) out[k * kLanes + i] = word[k];
  }
}

template <u8 Words>
void store_uniform(Wave& w, const Step& s, u8* bytes, const u32* offsets, u32 low) {
  w.issue_vm().kind = Pending::Kind::kStore;
  const u32* data = w.v + s.dst * kLanes;
  if (consecutive<Words>(offsets)) {
    alignas(64) u32 out[kLanes * Words];
    for (std::size_t i = 0; i < kLanes; ++i) {
      for (std::size_t k = 0; k < Words; ++k) out[i * Words + k] = data[k * kLanes + i];
    }
    copy_lines<sizeof out>(bytes, out);
    return;
  }
  for (std::size_t i = 0; i < kLanes; ++i) {
    u32 word[Words];
    for (std::size_t k = 0; k < Words; ++k) word[k] = data[k * kLanes + i];
    std::memcpy(bytes + (offsets[i] - low), word, sizeof word);
  }
}

// Whether the access was done by the uniform path.
template <u8 Words, bool Store>
bool uniform_access(Wave& w, const Step& s, u64 base, const u32* offsets, u64 limit) {
  u32 low;
  u8* bytes = uniform_region<Words>(w, base, offsets, limit, Store, low);
  if (bytes == nullptr) return false;
  if constexpr (Store) {
    store_uniform<Words>(w, s, bytes, offsets, low);
  } else {
    load_uniform<Words>(w, s, bytes, offsets, low);
  }
  return true;
}

template <u8 Words>
void load(Wave& w, const Step& s, const LaneAccess& access) {
  Pending& p = w.issue_vm();
  p.kind = Pending::Kind::kVector;
  p.words = Words;
  p.dst = s.dst;
  p.lanes = access.active;
  for (u64 m = access.active; m != 0; m &= m - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(m));
    u32 word[Words] = {};
    if (const u64 size = 4 * u64{access.words[i]}; size != 0) {
      std::memcpy(word, w.memory->access(access.address[i], size, false, static_cast<int>(i)), size);
    }
    for (std::size_t k = 0; k < Words; ++k) p.data[k * kLanes + i] = word[k];
  }
  if (w.trace != nullptr) trace_lanes(w, access);
}

template <u8 Words>
void store(Wave& w, const Step& s, const LaneAccess& access) {
  w.issue_vm().kind = Pending::Kind::kStore;
  const u32* data = w.v + s.dst * kLanes;
  for (u64 m = access.active; m != 0; m &= m - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(m));
    u32 word[Words];
    for (std::size_t k = 0; k < Words; ++k) word[k] = data[k * kLanes + i];
    if (const u64 size = 4 * u64{access.words[i]}; size != 0) {
      std::memcpy(w.memory->access(access.address[i], size, true, static_cast<int>(i)), word, size);
    }
  }
  if (w.trace != nullptr) trace_lanes(w, access);
}

// Buffer resource of gfx9: base 48 bits, stride 14, swizzle enable bit 63, num_records 32. Bounds:
// with IDXEN and a stride, num_records counts records; otherwise it counts bytes and every dword of
// the access is checked on its own (CDNA3 ISA, "Range Checking"; LLVM AMDGPUUsage, "Buffer
// Resource"; Mesa ac_descriptors on gfx9).
struct Buffer {
  u64 base, stride, records, fixed;
  const u32* index;
  const u32* offset;

  Buffer(Wave& w, const Step& s) {
    const u32* resource = &w.s[s.src[1].index];
    base = resource[0] | (u64{resource[1] & 0xffffu} << 32);
    stride = (resource[1] >> 16) & 0x3fffu;
    records = resource[2];
    if (resource[1] >> 31) {
      throw Fault(FaultKind::kIllegal, "swizzled buffer resources are not modelled");
    }
    if (resource[3] >> 30) {
      throw Fault(FaultKind::kIllegal, "word 3 of the resource is not a buffer's");
    }
    fixed = u64{w.read32(s.src[2])} + static_cast<u32>(s.imm0);
    const bool offen = s.flags & kFlagOffen;
    const bool idxen = s.flags & kFlagIdxen;
    index = idxen ? w.v + s.src[0].index * kLanes : nullptr;
    offset = offen ? w.v + (s.src[0].index + (idxen ? 1 : 0)) * kLanes : nullptr;
  }

  template <u8 Words>
  LaneAccess lanes(u64 active) const {
    const bool structured = index != nullptr && stride != 0;
    LaneAccess access;
    access.active = active;
    for (std::size_t i = 0; i < kLanes; ++i) {
      const u64 record = index ? index[i] : 0;
      const u64 within = (offset ? u64{offset[i]} : 0) + fixed;
      const u64 total = within + record * stride;
      access.address[i] = base + total;
      if (structured) {
        access.words[i] = record < records ? Words : 0;
      } else {
        const u64 room = total < records ? (records - total) / 4 : 0;
        access.words[i] = static_cast<u8>(room < Words ? room : Words);
      }
    }
    return access;
  }
};

// One dword a lane to LDS at M0[15:0] plus the instruction's offset plus 4 times the lane; it
// arrives with vmcnt (CDNA3 ISA, "Memory Buffer Load to LDS").
void load_to_lds(Wave& w, const Step& s, const Buffer& buffer) {
  Pending& p = w.issue_vm();
  p.kind = Pending::Kind::kLds;
  ++w.lds_loads;
  p.words = 1;
  p.lanes = w.active();
  p.data[kLanes] = (w.s[kM0] & 0xffffu) + static_cast<u32>(s.imm0);
  if (buffer.index == nullptr && buffer.fixed < buffer.records) {
    u32 low;
    const u8* bytes = uniform_region<1>(w, buffer.base + buffer.fixed, buffer.offset,
                                        buffer.records - buffer.fixed, false, low);
    if (bytes != nullptr) {
      for (std::size_t i = 0; i < kLanes; ++i) {
        std::memcpy(&p.data[i], bytes + (buffer.offset[i] - low), 4);
      }
      return;
    }
  }
  const LaneAccess access = buffer.lanes<1>(p.lanes);
  for (u64 m = access.active; m != 0; m &= m - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(m));
    p.data[i] = 0;
    if (access.words[i] != 0) {
      std::memcpy(&p.data[i],
                  w.memory->access(access.address[i], 4, false, static_cast<int>(i)), 4);
    }
  }
  if (w.trace != nullptr) trace_lanes(w, access);
}

template <u8 Words, bool Store>
void buffer(Wave& w, const Step& s) {
  const Buffer view(w, s);
  if constexpr (Words == 1 && !Store) {
    if (s.flags & kFlagLds) return load_to_lds(w, s, view);
  }
  if (view.index == nullptr && view.fixed < view.records &&
      uniform_access<Words, Store>(w, s, view.base + view.fixed, view.offset,
                                   view.records - view.fixed)) {
    return;
  }
  const LaneAccess access = view.lanes<Words>(w.active());
  if constexpr (Store) store<Words>(w, s, access); else load<Words>(w, s, access);
}

template <u8 Words>
LaneAccess global_lanes(Wave& w, const Step& s) {
  const u64 immediate = static_cast<u64>(i64{s.imm0});
  LaneAccess access;
  access.active = w.active();
  std::fill_n(access.words, kLanes, Words);
  const u32* lo = w.v + s.src[0].index * kLanes;
  if (s.src[1].kind != Operand::Kind::kAbsent) {
    const u64 base = w.read64(s.src[1]) + immediate;
    for (std::size_t i = 0; i < kLanes; ++i) access.address[i] = base + lo[i];
  } else {
    const u32* hi = lo + kLanes;
    for (std::size_t i = 0; i < kLanes; ++i) {
      access.address[i] = (lo[i] | (u64{hi[i]} << 32)) + immediate;
    }
  }
  return access;
}

template <u8 Words, bool Store>
void global(Wave& w, const Step& s) {
  if (s.src[1].kind != Operand::Kind::kAbsent) {
    const u64 base = w.read64(s.src[1]) + static_cast<u64>(i64{s.imm0});
    const u32* offsets = w.v + s.src[0].index * kLanes;
    if (uniform_access<Words, Store>(w, s, base, offsets, ~u64{0})) return;
  }
  const LaneAccess access = global_lanes<Words>(w, s);
  if constexpr (Store) store<Words>(w, s, access); else load<Words>(w, s, access);
}

// The lanes of an atomic take effect one after another, in rising order, when it issues; with waves
// and workgroups in the launch's own order that makes every result reproducible.
template <class T, auto F>
void atomic(Wave& w, const Step& s, const LaneAccess& access) {
  constexpr u8 kWords = sizeof(T) / 4;
  const u32* data = w.v + s.dst * kLanes;
  Pending& p = w.issue_vm();
  const bool returns = s.flags & kFlagReturn;
  p.kind = returns ? Pending::Kind::kVector : Pending::Kind::kStore;
  p.words = kWords;
  p.dst = s.sdst;
  p.lanes = access.active;
  for (u64 m = access.active; m != 0; m &= m - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(m));
    T old = 0;
    if (access.words[i] == kWords) {
      if (access.address[i] % sizeof(T) != 0) {
        throw Fault(FaultKind::kIllegal, "an atomic's address is not a multiple of its size");
      }
      T operand = data[i];
      if constexpr (kWords == 2) operand |= T{data[kLanes + i]} << 32;
      u8* bytes = w.memory->access(access.address[i], sizeof(T), true, static_cast<int>(i));
      std::memcpy(&old, bytes, sizeof old);
      const T updated = F(old, operand);
      std::memcpy(bytes, &updated, sizeof updated);
    }
    if (returns) {
      p.data[i] = static_cast<u32>(old);
      if constexpr (kWords == 2) p.data[kLanes + i] = static_cast<u32>(old >> 32);
    }
  }
  if (w.trace != nullptr) trace_lanes(w, access);
}

template <class T, auto F>
void buffer_atomic(Wave& w, const Step& s) {
  atomic<T, F>(w, s, Buffer(w, s).lanes<sizeof(T) / 4>(w.active()));
}
template <class T, auto F>
void global_atomic(Wave& w, const Step& s) {
  atomic<T, F>(w, s, global_lanes<sizeof(T) / 4>(w, s));
}

// f32 and packed 16-bit additions round once to nearest even and keep denormals, whatever the FP
// mode. A sum of two 16-bit floats rounds to f32 first, which changes nothing: f32 has more than
// twice their precision.
u32 add_f32(u32 a, u32 b) { return canonical(as_float(a) + as_float(b)); }
template <auto Widen, auto Narrow>
u32 add_pair(u32 a, u32 b) {
  const auto half = [&](u32 shift) {
    const float sum = as_float(Widen(a >> shift)) + as_float(Widen(b >> shift));
    return (Narrow(as_bits(sum)) & 0xffffu) << shift;
  };
  return half(0) | half(16);
}
constexpr auto add_pk_f16 = add_pair<f16_to_f32, f32_to_f16>;
constexpr auto add_pk_bf16 = add_pair<bf16_to_f32, f32_to_bf16>;

template <class T>
using SignedOf = std::make_signed_t<T>;
template <class T> T atomic_add(T a, T b) { return a + b; }
template <class T> T atomic_sub(T a, T b) { return a - b; }
template <class T> T atomic_swap(T, T b) { return b; }
template <class T> T atomic_and(T a, T b) { return a & b; }
template <class T> T atomic_or(T a, T b) { return a | b; }
template <class T> T atomic_xor(T a, T b) { return a ^ b; }
template <class T> T atomic_umin(T a, T b) { return a < b ? a : b; }
template <class T> T atomic_umax(T a, T b) { return a > b ? a : b; }
template <class T> T atomic_smin(T a, T b) {
  return static_cast<SignedOf<T>>(a) < static_cast<SignedOf<T>>(b) ? a : b;
}
template <class T> T atomic_smax(T a, T b) {
  return static_cast<SignedOf<T>>(a) > static_cast<SignedOf<T>>(b) ? a : b;
}
// inc wraps to 0 past the operand, dec to the operand below 0 or above it.
template <class T> T atomic_inc(T a, T b) { return a >= b ? 0 : a + 1; }
template <class T> T atomic_dec(T a, T b) { return a == 0 || a > b ? b : a - 1; }

void trace_lds(Wave& w, const u32* address, const u64* offsets, std::size_t parts, u32 words,
               bool write) {
  Tracer tracer(*w.trace);
  u32 cycles = 0;
  for (std::size_t part = 0; part < parts; ++part) {
    cycles += lds_cycles(address, static_cast<u32>(offsets[part]), w.active(), words, write);
  }
  tracer.add_bytes(u64{static_cast<u32>(std::popcount(w.active()))} * 4 * words * parts);
  tracer.finish(cycles);
}

u64 highest(const u32* address) {
  u32 result = 0;
  for (std::size_t i = 0; i < kLanes; ++i) result = std::max(result, address[i]);
  return result;
}

// Dwords beyond the allocated LDS read 0 and are not written (CDNA3 ISA, "LDS Out of Range").
// Parts is 2 for ds_read2/ds_write2; Scale turns their offsets into bytes.
template <u8 Words, std::size_t Parts, u32 Scale>
void lds_read(Wave& w, const Step& s) {
  const u32* address = w.v + s.src[0].index * kLanes;
  const u64 offsets[2] = {u64{static_cast<u32>(s.imm0)} * Scale,
                          u64{static_cast<u32>(s.imm1)} * Scale};
  const u8* lds = w.group->lds();
  const u64 size = w.group->lds_bytes();
  Pending& p = w.issue_lgkm(1);
  p.kind = Pending::Kind::kVector;
  p.words = Words * Parts;
  p.dst = s.dst;
  p.lanes = w.active();
  if (w.trace != nullptr) trace_lds(w, address, offsets, Parts, Words, false);

  const u64 reach = std::max(offsets[0], Parts == 2 ? offsets[1] : 0) + 4 * Words;
  if (p.lanes == kAllLanes && highest(address) + reach <= size) {
    for (std::size_t k = 0; k < Words * Parts; ++k) {
      const u8* base = lds + offsets[k / Words] + 4 * (k % Words);
      u32* out = p.data.data() + k * kLanes;
      for (std::size_t i = 0; i < kLanes; ++i) std::memcpy(&out[i], base + address[i], 4);
    }
    return;
  }
  for (u64 m = p.lanes; m != 0; m &= m - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(m));
    for (std::size_t k = 0; k < Words * Parts; ++k) {
      const u64 at = address[i] + offsets[k / Words] + 4 * (k % Words);
      u32 word = 0;
      if (at + 4 <= size) std::memcpy(&word, lds + at, 4);
      p.data[k * kLanes + i] = word;
    }
  }
}

template <u8 Words, std::size_t Parts, u32 Scale>
void lds_write(Wave& w, const Step& s) {
  const u32* address = w.v + s.src[0].index * kLanes;
  const u64 offsets[2] = {u64{static_cast<u32>(s.imm0)} * Scale,
                          u64{static_cast<u32>(s.imm1)} * Scale};
  u8* lds = w.group->lds();
  const u64 size = w.group->lds_bytes();
  w.land_lds_loads();
  w.issue_lgkm(1).kind = Pending::Kind::kStore;
  for (std::size_t part = 0; part < Parts; ++part) {
    const u32* data = w.v + s.src[1 + part].index * kLanes;
    for (u64 m = w.active(); m != 0; m &= m - 1) {
      const auto i = static_cast<std::size_t>(std::countr_zero(m));
      for (std::size_t k = 0; k < Words; ++k) {
        const u64 at = address[i] + offsets[part] + 4 * k;
        if (at + 4 <= size) std::memcpy(lds + at, &data[k * kLanes + i], 4);
      }
    }
  }
  if (w.trace != nullptr) trace_lds(w, address, offsets, Parts, Words, true);
}

// Both gather at issue. A lane that EXEC disables is never read: its value counts as 0.
template <bool Forward>
void permute_lanes(Wave& w, const Step& s) {
  const u32* address = w.v + s.src[0].index * kLanes;
  const u32* data = w.v + s.src[1].index * kLanes;
  const u32 offset = static_cast<u32>(s.imm0);
  const u64 active = w.active();
  Pending& p = w.issue_lgkm(1);
  p.kind = Pending::Kind::kVector;
  p.words = 1;
  p.dst = s.dst;
  p.lanes = active;
  std::fill_n(p.data.data(), kLanes, 0u);
  for (u64 m = active; m != 0; m &= m - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(m));
    const std::size_t other = ((address[i] + offset) / 4) & 63;
    if constexpr (Forward) {
      p.data[other] = data[i];  // of several writers the highest lane wins
    } else if ((active >> other) & 1) {
      p.data[i] = data[other];
    }
  }
}

#define SCALAR_LOAD(name, n) \
  {name, Shape::kScalarLoad, n, {2, 1, 0}, kNoTraits, scalar_load<n>}
#define BUFFER(suffix, n) \
  {"buffer_load_" suffix, Shape::kBuffer, n, {2, 4, 1}, kNoTraits, buffer<n, false>}, \
  {"buffer_store_" suffix, Shape::kBuffer, n, {2, 4, 1}, kStore, buffer<n, true>}
#define GLOBAL(suffix, n) \
  {"global_load_" suffix, Shape::kGlobal, n, {2, 2, 0}, kNoTraits, global<n, false>}, \
  {"global_store_" suffix, Shape::kGlobal, n, {2, 2, 0}, kStore, global<n, true>}
#define LDS(suffix, n) \
  {"ds_read_" suffix, Shape::kLds, n, {1, 0, 0}, kNoTraits, lds_read<n, 1, 1>}, \
  {"ds_write_" suffix, Shape::kLds, 0, {1, n, 0}, kNoTraits, lds_write<n, 1, 1>}
#define LDS2(infix, suffix, n, scale) \
  {"ds_read2" infix suffix, Shape::kLds, 2 * n, {1, 0, 0}, kNoTraits, lds_read<n, 2, scale>}, \
  {"ds_write2" infix suffix, Shape::kLds, 0, {1, n, n}, kNoTraits, lds_write<n, 2, scale>}

#define SCALAR_STORE(name, n) \
  {name, Shape::kScalarLoad, n, {2, 1, 0}, kStore, scalar_store<n>}
#define ATOMIC(suffix, T, ...) \
  {"buffer_atomic_" suffix, Shape::kBuffer, sizeof(T) / 4, {2, 4, 1}, kStore | kAtomic, \
   buffer_atomic<T, __VA_ARGS__>}, \
  {"global_atomic_" suffix, Shape::kGlobal, sizeof(T) / 4, {2, 2, 0}, kStore | kAtomic, \
   global_atomic<T, __VA_ARGS__>}
#define INTEGER_ATOMIC(name) \
  ATOMIC(#name, u32, atomic_##name<u32>), ATOMIC(#name "_x2", u64, atomic_##name<u64>)

constexpr Operation kTable[] = {
    SCALAR_STORE("s_store_dword", 1), SCALAR_STORE("s_store_dwordx2", 2),
    SCALAR_STORE("s_store_dwordx4", 4),
    {"s_atomic_inc", Shape::kScalarLoad, 1, {2, 1, 0}, kStore | kAtomic,
     scalar_atomic<atomic_inc<u32>>},
    ATOMIC("add_f32", u32, add_f32), ATOMIC("pk_add_f16", u32, add_pk_f16),
    {"global_atomic_pk_add_bf16", Shape::kGlobal, 1, {2, 2, 0}, kStore | kAtomic,
     global_atomic<u32, add_pk_bf16>},
    INTEGER_ATOMIC(add), INTEGER_ATOMIC(sub), INTEGER_ATOMIC(swap), INTEGER_ATOMIC(and),
    INTEGER_ATOMIC(or), INTEGER_ATOMIC(xor), INTEGER_ATOMIC(umin), INTEGER_ATOMIC(umax),
    INTEGER_ATOMIC(smin), INTEGER_ATOMIC(smax), INTEGER_ATOMIC(inc), INTEGER_ATOMIC(dec),
    {"ds_permute_b32", Shape::kLds, 1, {1, 1, 0}, kNoTraits, permute_lanes<true>},
    {"ds_bpermute_b32", Shape::kLds, 1, {1, 1, 0}, kNoTraits, permute_lanes<false>},
    SCALAR_LOAD("s_load_dword", 1),    SCALAR_LOAD("s_load_dwordx2", 2),
    SCALAR_LOAD("s_load_dwordx4", 4),  SCALAR_LOAD("s_load_dwordx8", 8),
    SCALAR_LOAD("s_load_dwordx16", 16),
    BUFFER("dword", 1), BUFFER("dwordx2", 2), BUFFER("dwordx3", 3), BUFFER("dwordx4", 4),
    GLOBAL("dword", 1), GLOBAL("dwordx2", 2), GLOBAL("dwordx3", 3), GLOBAL("dwordx4", 4),
    LDS("b32", 1), LDS("b64", 2), LDS("b128", 4),
    LDS2("_", "b32", 1, 4), LDS2("_", "b64", 2, 8),
    LDS2("st64_", "b32", 1, 256), LDS2("st64_", "b64", 2, 512),
};

}  // namespace

std::span<const Operation> memory_operations() { return kTable; }

}  // namespace asmevo
