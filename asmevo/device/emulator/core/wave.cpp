#include "wave.hpp"

#include <algorithm>

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
      write_rows(p);
      return;
    case Pending::Kind::kFlat: {
      const auto other = std::find(flat_arrived.begin(), flat_arrived.end(), p.flat);
      if (other == flat_arrived.end()) {
        flat_arrived.push_back(p.flat);
        return;
      }
      flat_arrived.erase(other);
      if (p.words != 0) write_rows(p);
      return;
    }
  }
}

void Wave::write_rows(const Pending& p) {
  if (p.lanes == kAllLanes) {
    std::memcpy(v + p.dst * kLanes, p.data.data(), p.words * kLanes * sizeof(u32));
  } else {
    merge(p.dst, p.words, p.data.data(), p.lanes);
  }
}

void Wave::wait_vm(unsigned newest_outstanding) {
  if (flat_accesses != 0) {
    wait_unordered(vm, newest_outstanding);
    if (newest_outstanding == 0) flat_accesses = 0;
    return;
  }
  while (vm.count() > newest_outstanding) {
    // Only a barrier guarantees that the parts of LDS which other waves load are there as well, but
    // waves in step have them at the same time, and AITER's i8gemm 192x128 reads them without one.
    if (vm.at(0).kind == Pending::Kind::kLds) stop = Stop::kInStep;
    deliver(vm.at(0));
    vm.pop();
  }
}

// SMEM and flat accesses return out of order, so only a wait for zero guarantees any of them. The
// others return in order among themselves, in the worst case after all of those (CDNA3 ISA,
// "LGKM_CNT" and "Flat Memory Instructions: Ordering").
template <std::size_t Limit>
void Wave::wait_unordered(PendingQueue<Limit>& queue, unsigned newest_outstanding) {
  if (newest_outstanding == 0) {
    while (queue.size() > 0) {
      deliver(queue.at(0));
      queue.pop();
    }
    return;
  }
  const auto is_unordered = [](const Pending& p) {
    return p.kind == Pending::Kind::kScalar || p.kind == Pending::Kind::kFlat;
  };
  unsigned in_order = 0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    if (!is_unordered(queue.at(i))) in_order += queue.at(i).weight;
  }
  queue.remove_if([&](const Pending& p) {
    if (is_unordered(p) || in_order <= newest_outstanding) return false;
    in_order -= p.weight;
    deliver(p);
    return true;
  });
}

void Wave::wait_lgkm(unsigned newest_outstanding) {
  wait_unordered(lgkm, newest_outstanding);
}

void Wave::pair_flat(Pending& vm_entry) {
  if (vm_entry.kind == Pending::Kind::kStore) vm_entry.words = 0;
  vm_entry.kind = Pending::Kind::kFlat;
  vm_entry.flat = flat_number++;
  ++flat_accesses;
  Pending& p = issue_lgkm(1);
  p.kind = Pending::Kind::kFlat;
  p.words = vm_entry.words;
  p.dst = vm_entry.dst;
  p.flat = vm_entry.flat;
  p.lanes = vm_entry.lanes;
  std::memcpy(p.data.data(), vm_entry.data.data(), p.words * kLanes * sizeof(u32));
}

void Wave::return_oldest_vm() {
  flat_accesses -= vm.at(0).kind == Pending::Kind::kFlat;
  deliver(vm.at(0));
  vm.pop();
}

void Wave::return_oldest_lgkm() {
  deliver(lgkm.at(0));
  lgkm.pop();
}

void Wave::deliver_prompt_returns() {
  while (lgkm.size() > 0 && lgkm.at(0).turn != turn) return_oldest_lgkm();
  while (vm.size() > 0 && turn - vm.at(0).turn > kMemoryTurns) return_oldest_vm();
}

// A full counter stalls issue until the oldest operation returns.
Pending& Wave::issue_vm() {
  if (vm.count() + 1 > vm.kLimit) return_oldest_vm();
  Pending& p = vm.push(1);
  p.turn = turn;
  return p;
}

Pending& Wave::issue_lgkm(unsigned weight) {
  while (lgkm.count() + weight > lgkm.kLimit) return_oldest_lgkm();
  Pending& p = lgkm.push(weight);
  p.turn = turn;
  return p;
}

}  // namespace asmevo
