// SMEM operations: loads, stores, atomics, timers and the scalar cache.
#include <algorithm>

#include "atomic_function.hpp"
#include "line_tracer.hpp"
#include "operation.hpp"

namespace asmevo {

namespace {

// Where an operation goes, and how many of its bytes are in range.
struct ScalarAccess {
  u64 address;
  u64 valid;
};

u64 scalar_offset(Wave& w, const Step& s) {
  const u64 immediate = static_cast<u64>(i64{s.imm0});
  return s.src[1].kind == Operand::Kind::kAbsent ? immediate : immediate + w.read32(s.src[1]);
}

// SGPR pair plus offset; the low two bits are ignored (CDNA3 ISA, "Scalar Memory Addressing").
struct Plain {
  static ScalarAccess at(Wave& w, const Step& s, u64 size) {
    return {(w.read64(s.src[0]) + scalar_offset(w, s)) & ~u64{3}, size};
  }
};

// s_scratch_*: the register offset counts units of 64 bytes.
struct Scratch {
  static ScalarAccess at(Wave& w, const Step& s, u64 size) {
    u64 address = w.read64(s.src[0]) + static_cast<u64>(i64{s.imm0});
    if (s.src[1].kind != Operand::Kind::kAbsent) address += 64 * u64{w.read32(s.src[1])};
    return {address & ~u64{3}, size};
  }
};

// A buffer resource's base, stride and size; dwords past the end read 0 and are not written. The
// stride only scales the size (CDNA3 ISA, "Reads/Writes/Atomics using Buffer Constant").
struct Resource {
  static ScalarAccess at(Wave& w, const Step& s, u64 size) {
    const u32* resource = &w.s[s.src[0].index];
    const u64 base = (resource[0] | (u64{resource[1] & 0xffffu} << 32)) & ~u64{3};
    const u64 stride = (resource[1] >> 16) & 0x3fffu;
    const u64 bytes = stride == 0 ? u64{resource[2]} : stride * resource[2];
    const u64 offset = scalar_offset(w, s) & ~u64{3};
    const u64 room = offset < bytes ? (bytes - offset) & ~u64{3} : 0;
    return {base + offset, std::min(room, size)};
  }
};

void trace_scalar(Wave& w, const ScalarAccess& access) {
  Tracer tracer(*w.trace);
  if (access.valid != 0) tracer.touch(access.address, access.valid);
  tracer.finish();
}

template <u8 Words, class Space>
void scalar_load(Wave& w, const Step& s) {
  const ScalarAccess access = Space::at(w, s, 4 * Words);
  const u8* bytes =
      access.valid != 0 ? w.memory->access(access.address, access.valid, false, 0) : nullptr;
  Pending& p = w.issue_lgkm(Words > 1 ? 2 : 1);
  p.kind = Pending::Kind::kScalar;
  p.words = Words;
  p.dst = s.dst;
  std::fill_n(p.data.begin(), Words, 0u);
  if (bytes != nullptr) std::memcpy(p.data.data(), bytes, access.valid);
  if (w.trace != nullptr) trace_scalar(w, access);
}

Pending& issue_scalar(Wave& w, unsigned weight, u8 words, u16 dst) {
  Pending& p = w.issue_lgkm(weight);
  p.kind = Pending::Kind::kScalar;
  p.words = words;
  p.dst = dst;
  return p;
}

// SMEM writes take effect at issue; like its reads they may complete in any order.
template <u8 Words, class Space>
void scalar_store(Wave& w, const Step& s) {
  const ScalarAccess access = Space::at(w, s, 4 * Words);
  if (access.valid != 0) {
    std::memcpy(w.memory->access(access.address, access.valid, true, 0), &w.s[s.dst], access.valid);
  }
  issue_scalar(w, Words > 1 ? 2 : 1, 0, 0);
  if (w.trace != nullptr) trace_scalar(w, access);
}

template <class T, auto F, class Space>
void scalar_atomic(Wave& w, const Step& s) {
  constexpr u8 kWords = sizeof(T) / 4;
  const ScalarAccess access = Space::at(w, s, sizeof(T));
  if (access.address % sizeof(T) != 0) {
    throw Fault(FaultKind::kIllegal, "an atomic's address is not a multiple of its size");
  }
  T data[2] = {};
  std::memcpy(data, &w.s[s.dst], operand_count<F, T>() * sizeof(T));
  T old = 0;
  if (access.valid == sizeof(T)) {
    u8* bytes = w.memory->access(access.address, sizeof(T), true, 0);
    std::memcpy(&old, bytes, sizeof old);
    const T updated = apply_atomic<F, T>(w.fp, old, data[0], data[1]);
    std::memcpy(bytes, &updated, sizeof updated);
  }
  Pending& p = issue_scalar(w, kWords, s.flags & kFlagReturn ? kWords : 0, s.dst);
  std::memcpy(p.data.data(), &old, sizeof old);
  if (w.trace != nullptr) trace_scalar(w, access);
}

// Timers advance with the instructions that the wave executes, four cycles each, so that they are
// the same in every run. s_memrealtime ticks at 100 MHz next to a core clock of 2100 MHz (MI300X).
template <u64 Divisor>
void timer(Wave& w, const Step& s) {
  const u64 now = w.clock() / Divisor;
  Pending& p = issue_scalar(w, 2, 2, s.dst);
  std::memcpy(p.data.data(), &now, sizeof now);
}

// Every access of the emulator is coherent: there is nothing to write back or to invalidate.
void scalar_cache(Wave& w, const Step&) { issue_scalar(w, 1, 0, 0); }

#define LOAD(name, n, words, Space) \
  {name, Shape::kScalarLoad, n, {words, 1, 0}, kNoTraits, scalar_load<n, Space>}
#define STORE(name, n, words, Space) \
  {name, Shape::kScalarLoad, n, {words, 1, 0}, kStore, scalar_store<n, Space>}
#define ATOMIC_ROW(name, T, words, Space, ...) \
  {name, Shape::kScalarLoad, sizeof(T) / 4 * operand_count<__VA_ARGS__, T>(), {words, 1, 0}, \
   kStore | kAtomic, scalar_atomic<T, __VA_ARGS__, Space>}
#define ATOMIC(name) \
  ATOMIC_ROW("s_atomic_" #name, u32, 2, Plain, atomic_##name<u32>), \
  ATOMIC_ROW("s_atomic_" #name "_x2", u64, 2, Plain, atomic_##name<u64>), \
  ATOMIC_ROW("s_buffer_atomic_" #name, u32, 4, Resource, atomic_##name<u32>), \
  ATOMIC_ROW("s_buffer_atomic_" #name "_x2", u64, 4, Resource, atomic_##name<u64>)

constexpr Operation kTable[] = {
    LOAD("s_load_dword", 1, 2, Plain), LOAD("s_load_dwordx2", 2, 2, Plain),
    LOAD("s_load_dwordx4", 4, 2, Plain), LOAD("s_load_dwordx8", 8, 2, Plain),
    LOAD("s_load_dwordx16", 16, 2, Plain),
    LOAD("s_buffer_load_dword", 1, 4, Resource), LOAD("s_buffer_load_dwordx2", 2, 4, Resource),
    LOAD("s_buffer_load_dwordx4", 4, 4, Resource), LOAD("s_buffer_load_dwordx8", 8, 4, Resource),
    LOAD("s_buffer_load_dwordx16", 16, 4, Resource),
    LOAD("s_scratch_load_dword", 1, 2, Scratch), LOAD("s_scratch_load_dwordx2", 2, 2, Scratch),
    LOAD("s_scratch_load_dwordx4", 4, 2, Scratch),
    STORE("s_store_dword", 1, 2, Plain), STORE("s_store_dwordx2", 2, 2, Plain),
    STORE("s_store_dwordx4", 4, 2, Plain),
    STORE("s_buffer_store_dword", 1, 4, Resource), STORE("s_buffer_store_dwordx2", 2, 4, Resource),
    STORE("s_buffer_store_dwordx4", 4, 4, Resource),
    STORE("s_scratch_store_dword", 1, 2, Scratch), STORE("s_scratch_store_dwordx2", 2, 2, Scratch),
    STORE("s_scratch_store_dwordx4", 4, 2, Scratch),
    ATOMIC(add), ATOMIC(sub), ATOMIC(swap), ATOMIC(cmpswap), ATOMIC(and), ATOMIC(or), ATOMIC(xor),
    ATOMIC(umin), ATOMIC(umax), ATOMIC(smin), ATOMIC(smax), ATOMIC(inc), ATOMIC(dec),
    {"s_memtime", Shape::kScalar, 2, {0, 0, 0}, kNoTraits, timer<1>},
    {"s_memrealtime", Shape::kScalar, 2, {0, 0, 0}, kNoTraits, timer<21>},
    {"s_dcache_inv", Shape::kCache, 0, {0, 0, 0}, kNoTraits, scalar_cache},
    {"s_dcache_inv_vol", Shape::kCache, 0, {0, 0, 0}, kNoTraits, scalar_cache},
    {"s_dcache_wb", Shape::kCache, 0, {0, 0, 0}, kNoTraits, scalar_cache},
    {"s_dcache_wb_vol", Shape::kCache, 0, {0, 0, 0}, kNoTraits, scalar_cache},
};

}  // namespace

std::span<const Operation> scalar_memory_operations() { return kTable; }

}  // namespace asmevo
