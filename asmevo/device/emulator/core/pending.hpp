// Outstanding memory operations of one wave: results read at issue, written to registers only when
// a wait guarantees them, which is the latest moment the ISA allows, or, in a launch that
// relies on time, some turns later (Wave::deliver_prompt_returns).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "record.hpp"

namespace asmevo {

inline constexpr std::size_t kMaxWords = 16;  // s_load_dwordx16

struct Pending {
  // kLds: data[i] goes to the LDS address data[kLanes] + 4 i. kFlat: one of the two entries of a flat
  // access, one in each queue with the same `flat` number; the later to arrive delivers.
  enum class Kind : std::uint8_t { kStore, kVector, kScalar, kLds, kFlat };
  Kind kind;
  std::uint8_t words;
  std::uint8_t weight;  // by how much it raised the counter
  std::uint16_t dst;    // vector row or scalar register
  std::uint32_t flat;
  std::uint32_t turn;   // of its wave, in which it was issued
  std::uint64_t lanes;
  alignas(64) std::array<std::uint32_t, 4 * kLanes> data;
};

// A FIFO of the operations that one counter counts; Limit is the largest counter value. Slots are
// handed out last-freed first, so that a wave with few outstanding operations stays in the cache.
template <std::size_t Limit>
class PendingQueue {
 public:
  static constexpr unsigned kLimit = Limit;

  PendingQueue() { clear(); }

  std::size_t size() const { return size_; }
  unsigned count() const { return count_; }
  Pending& at(std::size_t i) { return slots_[order_[(head_ + i) % order_.size()]]; }

  // The caller makes room first: count() + weight must not exceed the limit.
  Pending& push(unsigned weight) {
    order_[(head_ + size_++) % order_.size()] = free_[--free_count_];
    Pending& p = at(size_ - 1);
    p.weight = static_cast<std::uint8_t>(weight);
    count_ += weight;
    return p;
  }
  void pop() {
    release(0);
    head_ = (head_ + 1) % order_.size();
    --size_;
  }
  void clear() {
    head_ = size_ = count_ = 0;
    free_count_ = slots_.size();
    for (std::size_t i = 0; i < slots_.size(); ++i) free_[i] = static_cast<std::uint8_t>(i);
  }

  // Remove the entries that `deliver` accepts, keeping the order of the others.
  template <class Deliver>
  void remove_if(Deliver&& deliver) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      if (deliver(at(i))) {
        release(i);
      } else {
        order_[(head_ + kept++) % order_.size()] = order_[(head_ + i) % order_.size()];
      }
    }
    size_ = kept;
  }

 private:
  void release(std::size_t i) {
    count_ -= at(i).weight;
    free_[free_count_++] = order_[(head_ + i) % order_.size()];
  }

  std::array<Pending, Limit + 1> slots_;
  std::array<std::uint8_t, Limit + 1> order_;  // slots, oldest first, from head_
  std::array<std::uint8_t, Limit + 1> free_;
  std::size_t free_count_;
  std::size_t head_;
  std::size_t size_;
  unsigned count_;
};

}  // namespace asmevo
