#include "wave.hpp"

namespace asmevo {

const u32* Wave::prepare(const Operand& o, std::size_t scratch_row, std::size_t word) {
  u32* out = scratch[scratch_row];
  const u32 clear = o.abs ? ~kSignBit : ~0u;
  const u32 flip = o.neg ? kSignBit : 0u;
  const bool is_permuted = o.kind == Operand::Kind::kPermuted;
  if (is_permuted && !o.neg && !o.abs) return permuted[o.index + word];
  if (is_permuted || o.kind == Operand::Kind::kVector) {
    const u32* in = is_permuted ? permuted[o.index + word] : v + (o.index + word) * kLanes;
    ASMEVO_LANES(i) out[i] = (in[i] & clear) ^ flip;
    return out;
  }
  const u32 raw = o.kind == Operand::Kind::kConstant ? static_cast<u32>(o.value >> (32 * word))
                                                     : s[o.index + word];
  const u32 value = (raw & clear) ^ flip;
  ASMEVO_LANES(i) out[i] = value;
  return out;
}

void Wave::merge(u16 dst, std::size_t words, const u32* from, u64 mask) {
  const u32 half[2] = {static_cast<u32>(mask), static_cast<u32>(mask >> 32)};
  for (std::size_t word = 0; word < words; ++word) {
    for (std::size_t h = 0; h < 2; ++h) {
      u32* to = v + (dst + word) * kLanes + 32 * h;
      const u32* in = from + word * kLanes + 32 * h;
      for (u32 i = 0; i < 32; ++i) {
        const u32 select = 0u - ((half[h] >> i) & 1u);
        to[i] = (to[i] & ~select) | (in[i] & select);
      }
    }
  }
}

void Wave::deliver(const Pending& p) {
  switch (p.kind) {
    case Pending::Kind::kStore:
      return;
    case Pending::Kind::kLds:
      --lds_loads;
      if (p.lanes == kAllLanes && p.data[kLanes] + 4 * kLanes <= group->lds_bytes()) {
        std::memcpy(group->lds() + p.data[kLanes], p.data.data(), 4 * kLanes);
        return;
      }
      for (std::size_t i = 0; i < kLanes; ++i) {
        const std::size_t at = p.data[kLanes] + 4 * i;
        if (((p.lanes >> i) & 1) && at + 4 <= group->lds_bytes()) {
          std::memcpy(group->lds() + at, &p.data[i], 4);
        }
      }
      return;
    case Pending::Kind::kScalar:
      std::memcpy(&s[p.dst], p.data.data(), p.words * sizeof(u32));
      return;
    case Pending::Kind::kVector:
      if (p.lanes == kAllLanes) {
        std::memcpy(v + p.dst * kLanes, p.data.data(), p.words * kLanes * sizeof(u32));
      } else {
        merge(p.dst, p.words, p.data.data(), p.lanes);
      }
      return;
  }
}

void Wave::wait_vm(unsigned newest_outstanding) {
  while (vm.count() > newest_outstanding) {
    deliver(vm.at(0));
    vm.pop();
  }
}

// SMEM returns out of order, so only a wait for zero guarantees any of it; LDS operations return in
// order, and in the worst case every SMEM operation returned before them (CDNA3 ISA, "LGKM_CNT").
void Wave::wait_lgkm(unsigned newest_outstanding) {
  if (newest_outstanding == 0) {
    while (lgkm.size() > 0) {
      deliver(lgkm.at(0));
      lgkm.pop();
    }
    return;
  }
  unsigned in_order = 0;
  for (std::size_t i = 0; i < lgkm.size(); ++i) {
    if (lgkm.at(i).kind != Pending::Kind::kScalar) in_order += lgkm.at(i).weight;
  }
  lgkm.remove_if([&](const Pending& p) {
    if (p.kind == Pending::Kind::kScalar || in_order <= newest_outstanding) return false;
    in_order -= p.weight;
    deliver(p);
    return true;
  });
}

void Wave::land_lds_loads() {
  for (std::size_t i = 0; lds_loads != 0 && i < vm.size(); ++i) {
    Pending& p = vm.at(i);
    if (p.kind != Pending::Kind::kLds) continue;
    deliver(p);
    p.kind = Pending::Kind::kStore;  // still counted until a wait retires it
  }
}

// A full counter stalls issue until the oldest operation returns.
Pending& Wave::issue_vm() {
  if (vm.count() + 1 > vm.kLimit) wait_vm(vm.kLimit - 1);
  return vm.push(1);
}

Pending& Wave::issue_lgkm(unsigned weight) {
  while (lgkm.count() + weight > lgkm.kLimit) {
    deliver(lgkm.at(0));
    lgkm.pop();
  }
  return lgkm.push(weight);
}

}  // namespace asmevo
