// Vector atomics outside the LDS operations.
#include "atomic_function.hpp"
#include "buffer_resource.hpp"
#include "flat_address.hpp"
#include "lane_rows.hpp"

namespace asmevo {

namespace {

template <class T, auto F>
void apply(u8* bytes, u64 operand) {
  T old;
  std::memcpy(&old, bytes, sizeof old);
  const T updated = F(old, static_cast<T>(operand));
  std::memcpy(bytes, &updated, sizeof updated);
}

// Does what it can of an atomic that returns nothing for lanes side by side, and says which are left.
// What is left of them faults, or all of them are: the order in which lanes take effect stays.
template <auto F>
u64 update_runs(Wave& w, const LaneAccess& access, const u32* data) {
  u64 left = access.active;
  for (u64 m = access.active; m != 0;) {
    const auto first = static_cast<std::size_t>(std::countr_zero(m));
    std::size_t end = first + 1;
    while (end < kLanes && ((m >> end) & 1) && access.words[end] == 1 &&
           access.address[end] == access.address[end - 1] + sizeof(u32)) {
      ++end;
    }
    const u64 lanes = (end == kLanes ? ~u64{0} : (u64{1} << end) - 1) & ~((u64{1} << first) - 1);
    m &= ~lanes;
    const u64 address = access.address[first];
    if (access.words[first] != 1 || address % sizeof(u32) != 0) continue;
    u8* bytes = w.memory->update_run(address, sizeof(u32) * (end - first));
    if (bytes == nullptr) return left;
    RawDword* words = reinterpret_cast<RawDword*>(bytes);
    for (std::size_t i = first; i < end; ++i) words[i - first] = F(words[i - first], data[i]);
    left &= ~lanes;
  }
  return left;
}

// The lanes of an atomic take effect one after another, in rising order, when it issues; with waves
// and workgroups in the launch's own order that makes every result reproducible.
template <class T, auto F, class Space>
void atomic(Wave& w, const Step& s, const LaneAccess& access) {
  constexpr u8 kWords = sizeof(T) / 4;
  const u32* data = w.v + s.dst * kLanes;
  Pending& p = Space::issue(w);
  const bool returns = s.flags & kFlagReturn;
  p.kind = returns ? Pending::Kind::kVector : Pending::Kind::kStore;
  p.words = kWords;
  p.dst = s.sdst;
  p.lanes = access.active;
  u64 left = access.active;
  if constexpr (std::is_same_v<Space, GlobalSpace> && std::is_same_v<T, u32> &&
                operand_count<F, T>() == 1) {
    if (!returns) left = update_runs<F>(w, access, data);
  }
  for (u64 m = left; m != 0; m &= m - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(m));
    T old = 0;
    if (access.words[i] == kWords) {
      if (access.address[i] % sizeof(T) != 0) {
        throw Fault(FaultKind::kIllegal, "an atomic's address is not a multiple of its size");
      }
      const T operand = read_rows<T>(data, i);
      if constexpr (std::is_same_v<Space, GlobalSpace> && operand_count<F, T>() == 1) {
        if (!returns) {
          w.memory->update(access.address[i], sizeof(T), static_cast<int>(i), apply<T, F>, operand);
          continue;
        }
      }
      T second = 0;
      if constexpr (operand_count<F, T>() == 2) second = read_rows<T>(data + kWords * kLanes, i);
      u8* bytes = Space::bytes(w, access.address[i], sizeof(T), true, i);
      std::memcpy(&old, bytes, sizeof old);
      const T updated = apply_atomic<F, T>(w.fp, old, operand, second);
      std::memcpy(bytes, &updated, sizeof updated);
    }
    if (returns) write_rows(p.data.data(), i, old);
  }
  Space::issued(w, p);
  if (w.trace != nullptr) trace_lanes<Space>(w, access, 4);
}

template <class T, auto F>
void buffer_atomic(Wave& w, const Step& s) {
  atomic<T, F, GlobalSpace>(w, s, Buffer(w, s).lanes<Field{sizeof(T) / 4}>(w.active()));
}
template <class T, auto F>
void global_atomic(Wave& w, const Step& s) {
  atomic<T, F, GlobalSpace>(w, s, global_lanes(w, s, sizeof(T) / 4));
}
template <class T, auto F>
void flat_atomic(Wave& w, const Step& s) {
  atomic<T, F, FlatSpace>(w, s, global_lanes(w, s, sizeof(T) / 4));
}

// Data of a compare-and-swap is twice what it returns.
#define ROW(name, shape, T, handler, ...) \
  {name, shape, sizeof(T) / 4 * operand_count<__VA_ARGS__, T>(), \
   {2, shape == Shape::kFlat ? 0 : shape == Shape::kGlobal ? 2 : 4, shape == Shape::kBuffer ? 1 : 0}, \
   kStore | kAtomic | (operand_count<__VA_ARGS__, T>() == 2 ? kReturnsHalf : kNoTraits), \
   handler<T, __VA_ARGS__>}
#define FLAT_AND_GLOBAL(suffix, T, ...) \
  ROW("global_atomic_" suffix, Shape::kGlobal, T, global_atomic, __VA_ARGS__), \
  ROW("flat_atomic_" suffix, Shape::kFlat, T, flat_atomic, __VA_ARGS__)
#define ATOMIC(suffix, T, ...) \
  ROW("buffer_atomic_" suffix, Shape::kBuffer, T, buffer_atomic, __VA_ARGS__), \
  FLAT_AND_GLOBAL(suffix, T, __VA_ARGS__)
#define INTEGER_ATOMIC(name) \
  ATOMIC(#name, u32, atomic_##name<u32>), ATOMIC(#name "_x2", u64, atomic_##name<u64>)

constexpr Operation kTable[] = {
    ATOMIC("add_f32", u32, atomic_fadd<u32>), ATOMIC("pk_add_f16", u32, add_pk_f16),
    FLAT_AND_GLOBAL("pk_add_bf16", u32, add_pk_bf16),
    ATOMIC("add_f64", u64, atomic_fadd<u64>), ATOMIC("min_f64", u64, atomic_fmin<u64>),
    ATOMIC("max_f64", u64, atomic_fmax<u64>),
    INTEGER_ATOMIC(add), INTEGER_ATOMIC(sub), INTEGER_ATOMIC(swap), INTEGER_ATOMIC(cmpswap),
    INTEGER_ATOMIC(and), INTEGER_ATOMIC(or), INTEGER_ATOMIC(xor), INTEGER_ATOMIC(umin),
    INTEGER_ATOMIC(umax), INTEGER_ATOMIC(smin), INTEGER_ATOMIC(smax), INTEGER_ATOMIC(inc),
    INTEGER_ATOMIC(dec),
};

}  // namespace

std::span<const Operation> atomic_operations() { return kTable; }

}  // namespace asmevo
