// SMEM operations.
#include "atomic_function.hpp"
#include "line_tracer.hpp"
#include "operation.hpp"

namespace asmevo {

namespace {

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

#define SCALAR_LOAD(name, n) \
  {name, Shape::kScalarLoad, n, {2, 1, 0}, kNoTraits, scalar_load<n>}

#define SCALAR_STORE(name, n) \
  {name, Shape::kScalarLoad, n, {2, 1, 0}, kStore, scalar_store<n>}

constexpr Operation kTable[] = {
    SCALAR_STORE("s_store_dword", 1), SCALAR_STORE("s_store_dwordx2", 2),
    SCALAR_STORE("s_store_dwordx4", 4),
    {"s_atomic_inc", Shape::kScalarLoad, 1, {2, 1, 0}, kStore | kAtomic,
     scalar_atomic<atomic_inc<u32>>},
    SCALAR_LOAD("s_load_dword", 1),    SCALAR_LOAD("s_load_dwordx2", 2),
    SCALAR_LOAD("s_load_dwordx4", 4),  SCALAR_LOAD("s_load_dwordx8", 8),
    SCALAR_LOAD("s_load_dwordx16", 16),
};

}  // namespace

std::span<const Operation> scalar_memory_operations() { return kTable; }

}  // namespace asmevo
