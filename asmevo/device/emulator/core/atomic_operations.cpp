// Vector atomics in global memory.
#include "atomic_function.hpp"
#include "buffer_resource.hpp"
#include "flat_address.hpp"

namespace asmevo {

namespace {

template <class T, auto F>
void apply(u8* bytes, u64 operand) {
  T old;
  std::memcpy(&old, bytes, sizeof old);
  const T updated = F(old, static_cast<T>(operand));
  std::memcpy(bytes, &updated, sizeof updated);
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
      if (!returns) {
        w.memory->update(access.address[i], sizeof(T), static_cast<int>(i), apply<T, F>, operand);
        continue;
      }
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

#define ATOMIC(suffix, T, ...) \
  {"buffer_atomic_" suffix, Shape::kBuffer, sizeof(T) / 4, {2, 4, 1}, kStore | kAtomic, \
   buffer_atomic<T, __VA_ARGS__>}, \
  {"global_atomic_" suffix, Shape::kGlobal, sizeof(T) / 4, {2, 2, 0}, kStore | kAtomic, \
   global_atomic<T, __VA_ARGS__>}
#define INTEGER_ATOMIC(name) \
  ATOMIC(#name, u32, atomic_##name<u32>), ATOMIC(#name "_x2", u64, atomic_##name<u64>)

constexpr Operation kTable[] = {
    ATOMIC("add_f32", u32, add_f32), ATOMIC("pk_add_f16", u32, add_pk_f16),
    {"global_atomic_pk_add_bf16", Shape::kGlobal, 1, {2, 2, 0}, kStore | kAtomic,
     global_atomic<u32, add_pk_bf16>},
    INTEGER_ATOMIC(add), INTEGER_ATOMIC(sub), INTEGER_ATOMIC(swap), INTEGER_ATOMIC(and),
    INTEGER_ATOMIC(or), INTEGER_ATOMIC(xor), INTEGER_ATOMIC(umin), INTEGER_ATOMIC(umax),
    INTEGER_ATOMIC(smin), INTEGER_ATOMIC(smax), INTEGER_ATOMIC(inc), INTEGER_ATOMIC(dec),
};

}  // namespace

std::span<const Operation> atomic_operations() { return kTable; }

}  // namespace asmevo
