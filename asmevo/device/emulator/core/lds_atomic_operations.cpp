// Atomics in LDS.
#include <bit>

#include "atomic_function.hpp"
#include "lane_rows.hpp"
#include "lds_banks.hpp"
#include "line_tracer.hpp"
#include "operation.hpp"

namespace asmevo {

namespace {

// Replaces a value in LDS; one beyond the allocated LDS is dropped and reads 0.
template <class T, class Function>
T update(Wave& w, u32 at, Function&& function) {
  if (at % sizeof(T) != 0) {
    throw Fault(FaultKind::kIllegal, "an atomic's address is not a multiple of its size");
  }
  if (u64{at} + sizeof(T) > w.group->lds_bytes()) return 0;
  T old;
  std::memcpy(&old, w.group->lds() + at, sizeof old);
  const T updated = function(old);
  std::memcpy(w.group->lds() + at, &updated, sizeof updated);
  return old;
}

// The result rows of a returning operation; words 0 returns nothing.
Pending& begin(Wave& w, const Step& s) {
  Pending& p = w.issue_lgkm(1);
  p.kind = s.dst_words != 0 ? Pending::Kind::kVector : Pending::Kind::kStore;
  p.words = s.dst_words;
  p.dst = s.dst;
  p.lanes = w.active();
  return p;
}

void trace_atomic(Wave& w, const u32* address, const u32* offsets, std::size_t parts, u32 words) {
  Tracer tracer(*w.trace);
  u32 cycles = 0;
  for (std::size_t part = 0; part < parts; ++part) {
    cycles += lds_cycles(address, offsets[part], w.active(), words, true, true);
  }
  tracer.add_bytes(u64{static_cast<u32>(std::popcount(w.active()))} * 4 * words * parts);
  tracer.finish(cycles);
}

// Lanes take effect one after another, in rising order, like those of atomics in memory. Two parts
// are ds_wrxchg2, whose offsets count Scale bytes.
template <class T, auto F, std::size_t Parts = 1, u32 Scale = 1>
void lds_atomic(Wave& w, const Step& s) {
  constexpr std::size_t kWords = sizeof(T) / 4;
  const u32* address = w.v + s.src[0].index * kLanes;
  const u32 offsets[2] = {static_cast<u32>(s.imm0) * Scale, static_cast<u32>(s.imm1) * Scale};
  Pending& p = begin(w, s);
  if (w.trace != nullptr) trace_atomic(w, address, offsets, Parts, kWords);
  for (u64 m = p.lanes; m != 0; m &= m - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(m));
    for (std::size_t part = 0; part < Parts; ++part) {
      const T data = read_rows<T>(w.v + s.src[1 + part].index * kLanes, i);
      T second = 0;
      if constexpr (operand_count<F, T>() == 2) {
        second = read_rows<T>(w.v + s.src[2].index * kLanes, i);
      }
      const T old = update<T>(w, address[i] + offsets[part], [&](T x) {
        return apply_atomic<F, T>(w.fp, x, data, second);
      });
      if (s.dst_words != 0) write_rows(p.data.data() + part * kWords * kLanes, i, old);
    }
  }
}

// Either dword is replaced when bit 31 of its data is set, without that bit.
u32 conditional_exchange(u32 old, u32 data) { return data >> 31 ? data & 0x7fffffffu : old; }
void conditional_exchange_pair(Wave& w, const Step& s) {
  const u32* address = w.v + s.src[0].index * kLanes;
  const u32* data = w.v + s.src[1].index * kLanes;
  Pending& p = begin(w, s);
  const u32 offset = static_cast<u32>(s.imm0);
  if (w.trace != nullptr) trace_atomic(w, address, &offset, 1, 2);
  for (u64 m = p.lanes; m != 0; m &= m - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(m));
    const u32 at = (address[i] + static_cast<u32>(s.imm0)) & 0xfff8u;
    for (u32 k = 0; k < 2; ++k) {
      p.data[k * kLanes + i] = update<u32>(w, at + 4 * k, [&](u32 old) {
        return conditional_exchange(old, data[k * kLanes + i]);
      });
    }
  }
}

// One addition or subtraction of the number of active lanes for the whole wave, at M0[15:0] plus the
// offset; every lane receives the old value (CDNA3 ISA, "DS_APPEND"; LLVM keeps the LDS address in
// M0: SelectDSAppendConsume).
template <int Sign>
void append(Wave& w, const Step& s) {
  Pending& p = begin(w, s);
  if (p.lanes == 0) return;
  const u32 count = static_cast<u32>(std::popcount(p.lanes));
  const u32 old = update<u32>(w, (w.s[kM0] & 0xffffu) + static_cast<u32>(s.imm0), [&](u32 x) {
    return Sign > 0 ? x + count : x - count;
  });
  for (std::size_t i = 0; i < kLanes; ++i) p.data[i] = old;
}

#define PLAIN(name, kind, T, ...) \
  {"ds_" name "_" kind, Shape::kLds, 0, \
   {1, sizeof(T) / 4, operand_count<__VA_ARGS__, T>() == 2 ? sizeof(T) / 4 : 0}, kNoTraits, \
   lds_atomic<T, __VA_ARGS__>}
#define RETURNING(name, kind, T, ...) \
  {"ds_" name "_rtn_" kind, Shape::kLds, sizeof(T) / 4, \
   {1, sizeof(T) / 4, operand_count<__VA_ARGS__, T>() == 2 ? sizeof(T) / 4 : 0}, kNoTraits, \
   lds_atomic<T, __VA_ARGS__>}
#define ATOMIC(name, kind, T, ...) \
  PLAIN(name, kind, T, __VA_ARGS__), RETURNING(name, kind, T, __VA_ARGS__)
#define INTEGER(name, kind, function) \
  ATOMIC(name, kind "32", u32, function<u32>), ATOMIC(name, kind "64", u64, function<u64>)
#define EXCHANGE2(infix, kind, T, scale) \
  {"ds_wrxchg2" infix "_rtn_" kind, Shape::kLds, sizeof(T) / 2, \
   {1, sizeof(T) / 4, sizeof(T) / 4}, kNoTraits, lds_atomic<T, atomic_swap<T>, 2, scale>}

constexpr Operation kTable[] = {
    INTEGER("add", "u", atomic_add), INTEGER("sub", "u", atomic_sub),
    INTEGER("rsub", "u", atomic_rsub), INTEGER("inc", "u", atomic_inc),
    INTEGER("dec", "u", atomic_dec), INTEGER("min", "i", atomic_smin),
    INTEGER("max", "i", atomic_smax), INTEGER("min", "u", atomic_umin),
    INTEGER("max", "u", atomic_umax), INTEGER("and", "b", atomic_and),
    INTEGER("or", "b", atomic_or), INTEGER("xor", "b", atomic_xor),
    INTEGER("mskor", "b", atomic_mskor), INTEGER("cmpst", "b", atomic_cmpst),
    ATOMIC("add", "f32", u32, lds_add_f32), ATOMIC("add", "f64", u64, atomic_fadd<u64>),
    ATOMIC("min", "f32", u32, lds_select<u32, false>),
    ATOMIC("min", "f64", u64, lds_select<u64, false>),
    ATOMIC("max", "f32", u32, lds_select<u32, true>),
    ATOMIC("max", "f64", u64, lds_select<u64, true>),
    ATOMIC("cmpst", "f32", u32, lds_cmpst<u32>), ATOMIC("cmpst", "f64", u64, lds_cmpst<u64>),
    ATOMIC("pk_add", "f16", u32, lds_add_pk_f16), ATOMIC("pk_add", "bf16", u32, lds_add_pk_bf16),
    RETURNING("wrxchg", "b32", u32, atomic_swap<u32>),
    RETURNING("wrxchg", "b64", u64, atomic_swap<u64>),
    RETURNING("wrap", "b32", u32, atomic_wrap),
    EXCHANGE2("", "b32", u32, 4), EXCHANGE2("", "b64", u64, 8),
    EXCHANGE2("st64", "b32", u32, 256), EXCHANGE2("st64", "b64", u64, 512),
    {"ds_condxchg32_rtn_b64", Shape::kLds, 2, {1, 2, 0}, kNoTraits, conditional_exchange_pair},
    {"ds_append", Shape::kLds, 1, {0, 0, 0}, kNoTraits, append<1>},
    {"ds_consume", Shape::kLds, 1, {0, 0, 0}, kNoTraits, append<-1>},
};

}  // namespace

std::span<const Operation> lds_atomic_operations() { return kTable; }

}  // namespace asmevo
