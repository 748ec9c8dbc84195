// Outstanding memory operations of one wave: results read at issue, written to registers only when
// a wait guarantees them, which is the latest moment the ISA allows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "record.hpp"

namespace asmevo {

inline constexpr std::size_t kMaxWords = 16;  // s_load_dwordx16

struct Pending {
  enum class Kind : std::uint8_t { kStore, kVector, kScalar };
  Kind kind;
  std::uint8_t words;
  std::uint8_t weight;  // by how much it raised the counter
  std::uint16_t dst;    // vector row or scalar register
  std::uint64_t lanes;
  alignas(64) std::array<std::uint32_t, 4 * kLanes> data;
};

// A FIFO of the operations that one counter counts; Limit is the largest counter value.
template <std::size_t Limit>
class PendingQueue {
 public:
  static constexpr unsigned kLimit = Limit;

  std::size_t size() const { return size_; }
  unsigned count() const { return count_; }
  Pending& at(std::size_t i) { return slots_[(head_ + i) % slots_.size()]; }

  // The caller makes room first: count() + weight must not exceed the limit.
  Pending& push(unsigned weight) {
    Pending& p = at(size_++);
    p.weight = static_cast<std::uint8_t>(weight);
    count_ += weight;
    return p;
  }
  void pop() {
    count_ -= at(0).weight;
    head_ = (head_ + 1) % slots_.size();
    --size_;
  }
  void clear() { head_ = size_ = 0, count_ = 0; }

  // Remove the entries that `deliver` accepts, keeping the order of the others.
  template <class Deliver>
  void remove_if(Deliver&& deliver) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      if (deliver(at(i))) {
        count_ -= at(i).weight;
      } else {
        if (kept != i) at(kept) = at(i);
        ++kept;
      }
    }
    size_ = kept;
  }

 private:
  std::array<Pending, Limit + 1> slots_;
  std::size_t head_ = 0;
  std::size_t size_ = 0;
  unsigned count_ = 0;
};

}  // namespace asmevo
