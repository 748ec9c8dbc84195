// vmcnt and lgkmcnt of one wave as the times at which they fall.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>

#include "timing.hpp"

namespace asmevo::timing {

// Outstanding lgkmcnt events of one wave, sorted by completion.
class LgkmQueue {
 public:
  // `now` is the time of issue: the counter had room for `weight` by then.
  void push(std::uint64_t now, std::uint64_t done, std::uint8_t weight, bool unordered) {
    drop_done(now);
    if (size_ == events_.size()) throw std::logic_error("lgkmcnt overflow");
    std::uint32_t at = size_++;
    for (; at > 0 && events_[at - 1].done > done; --at) events_[at] = events_[at - 1];
    events_[at] = {done, weight, unordered};
    sum_ += weight;
  }

  // When a wait for at most `bound` ends. LDS returns in order. Scalar loads do not: a wait for
  // anything but 0 says nothing about which of them are back, so the model never lets it end
  // before all are (CDNA3 ISA, "Data Dependency Resolution").
  std::uint64_t bounded(std::uint32_t bound, std::uint64_t now) {
    drop_done(now);
    if (sum_ <= bound) return now;
    for (std::uint32_t i = 0; i < size_; ++i) {
      if (events_[i].unordered) return events_[size_ - 1].done;
    }
    return counted(bound, now);
  }

  // When the counter itself is at most `bound`.
  std::uint64_t counted(std::uint32_t bound, std::uint64_t now) {
    drop_done(now);
    std::uint32_t left = sum_;
    for (std::uint32_t i = 0; left > bound; ++i) {
      now = events_[i].done;
      left -= events_[i].weight;
    }
    return now;
  }

 private:
  struct Event {
    std::uint64_t done;
    std::uint8_t weight;
    bool unordered;
  };

  void drop_done(std::uint64_t now) {
    std::uint32_t done = 0;
    while (done < size_ && events_[done].done <= now) sum_ -= events_[done++].weight;
    if (done == 0) return;
    std::copy(events_.begin() + done, events_.begin() + size_, events_.begin());
    size_ -= done;
  }

  std::array<Event, kLgkmcntMax> events_{};
  std::uint32_t size_ = 0;
  std::uint32_t sum_ = 0;
};

// Completion times of a wave's last vmcnt events: they return in issue order.
class VmQueue {
 public:
  std::uint64_t push(std::uint64_t done) {
    last_ = std::max(last_, done);
    done_[issued_++ % done_.size()] = last_;
    return last_;
  }

  // When at most `bound` (< 64) of the events are outstanding.
  std::uint64_t bounded(std::uint32_t bound, std::uint64_t now) const {
    if (issued_ <= bound) return now;
    return std::max(now, done_[(issued_ - 1 - bound) % done_.size()]);
  }

 private:
  std::array<std::uint64_t, kVmcntMax + 1> done_{};
  std::uint64_t issued_ = 0;
  std::uint64_t last_ = 0;
};

}  // namespace asmevo::timing
