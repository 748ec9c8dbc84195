// What the sanitizer found: one entry per kind, instruction and producer, with the first instance.
#pragma once

#include <array>
#include <map>
#include <tuple>
#include <vector>

#include "wave.hpp"

namespace asmevo {

enum class Finding : u8 {
  kUninitialisedRegister,
  kUninitialisedLds,
  kUninitialisedMemory,
  kUseBeforeWait,
  kHazard,
  kOutOfBounds,
  kReadOnly,
  kLdsOutOfBounds,
  kLdsRace,
  kLdsOrder,       // relied on: a load to LDS lands before the wave's own later write
  kCrossWorkgroup,
  kAtomicOrder,    // information: float atomics of several workgroups on one address
};
inline constexpr std::array kFindingNames{
    "uninitialised-register", "uninitialised-lds", "uninitialised-memory", "use-before-wait",
    "hazard", "out-of-bounds", "store-to-input", "lds-out-of-bounds", "lds-race", "lds-order",
    "cross-workgroup", "atomic-order"};

inline constexpr i32 kProducedByLaunch = -1;

struct Report {
  Finding kind;
  u32 pc;                        // instruction index
  i32 producer = kProducedByLaunch;
  u32 workgroup = 0;
  u16 wave = 0;
  std::int16_t lane = -1;
  u16 reg = kAbsent;             // register number, where the finding is about one
  u16 origin = kAbsent;          // the register that was undefined at launch
  u64 address = 0;               // global or LDS byte address
  u32 size = 0;                  // bytes of an access
  u32 other_workgroup = ~0u;     // of the producer, when it is another one
  u16 other_wave = 0xffff;
  u16 needed = 0, found = 0;     // wait states
  bool write = false;            // what the consumer did: whether it wrote
  bool other_write = false;
  u64 count = 1;
};

class Findings {
 public:
  static constexpr std::size_t kLimit = 1000;

  void add(const Report& r) {
    const auto [at, inserted] = index_.try_emplace({r.kind, r.pc, r.producer}, reports_.size());
    if (!inserted) {
      ++reports_[at->second].count;
    } else if (reports_.size() < kLimit) {
      reports_.push_back(r);
    } else {
      index_.erase(at);
      ++dropped_;
    }
  }
  const std::vector<Report>& reports() const { return reports_; }
  u64 dropped() const { return dropped_; }

 private:
  std::map<std::tuple<Finding, u32, i32>, std::size_t> index_;
  std::vector<Report> reports_;
  u64 dropped_ = 0;
};

}  // namespace asmevo
