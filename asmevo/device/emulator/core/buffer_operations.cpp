// MUBUF loads and stores.
#include "buffer_resource.hpp"

namespace asmevo {

namespace {

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

#define BUFFER(suffix, n) \
  {"buffer_load_" suffix, Shape::kBuffer, n, {2, 4, 1}, kNoTraits, buffer<n, false>}, \
  {"buffer_store_" suffix, Shape::kBuffer, n, {2, 4, 1}, kStore, buffer<n, true>}

constexpr Operation kTable[] = {
    BUFFER("dword", 1), BUFFER("dwordx2", 2), BUFFER("dwordx3", 3), BUFFER("dwordx4", 4),
};

}  // namespace

std::span<const Operation> buffer_operations() { return kTable; }

}  // namespace asmevo
