// Loads and stores of the flat encoding.
#include "flat_address.hpp"

namespace asmevo {

namespace {

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

#define GLOBAL(suffix, n) \
  {"global_load_" suffix, Shape::kGlobal, n, {2, 2, 0}, kNoTraits, global<n, false>}, \
  {"global_store_" suffix, Shape::kGlobal, n, {2, 2, 0}, kStore, global<n, true>}

constexpr Operation kTable[] = {
    GLOBAL("dword", 1), GLOBAL("dwordx2", 2), GLOBAL("dwordx3", 3), GLOBAL("dwordx4", 4),
};

}  // namespace

std::span<const Operation> flat_operations() { return kTable; }

}  // namespace asmevo
