// A checked execution: shadow state next to every wave, told of each instruction before it runs.
//
// The sanitizer reads a wave's registers and never changes them, so a checked launch computes what
// an unchecked one does. It works out addresses and effects by itself, from records that Python
// makes of the instruction model; the operations of the emulator know nothing of it.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "program.hpp"
#include "sanitizer_record.hpp"
#include "sanitizer_report.hpp"
#include "sanitizer_state.hpp"

namespace asmevo {

struct Launch;

// Wait states that must pass between two instructions: what asmevo/isa/hazards.py finds missing on
// some path. The sanitizer reports those that an executed path really lacks.
struct HazardPair {
  u32 producer, consumer;
  u16 needed;
};

struct CheckedRegion {
  u64 base, size;         // mapped bytes, guards included
  u64 data, data_size;    // what the kernel may touch
  bool writable;
  bool undefined;         // no content before the launch: an output
  bool guarded;           // bytes outside the data may not be touched, rather than being undefined
};

class Sanitizer {
 public:
  // Throws InvalidRecord for a record that does not fit the program.
  Sanitizer(const Program& program, std::span<const CheckRecord> records,
            std::vector<HazardPair> hazards, std::vector<CheckedRegion> regions, u32 lds_bytes);
  Sanitizer(const Sanitizer&) = delete;
  Sanitizer& operator=(const Sanitizer&) = delete;

  // The only program whose launches it can check.
  const Program& program() const { return program_; }

  void begin_workgroup(ShadowGroup& group, u32 id, std::size_t waves, const Launch& launch);

  // What happens when a wave issues instruction `pc`, whose step is `s`. Throws `Fault` where the
  // instruction itself does.
  void before(Wave& w, std::size_t pc, const Step& s);
  // The launch starts over: forget all that was found.
  void restart();

  const Findings& findings() const { return findings_; }

 private:
  friend class CheckedStep;

  struct Item {  // a record, resolved
    CheckRecord record;
    bool has_uses;
    u8 registers;  // operands that are registers
    u8 register_at[kCheckOperands];
    u16 first_hazard, hazards;  // that end here, in hazards_
    bool starts_hazard;
  };

  Item resolve(const CheckRecord& r, std::size_t index) const;
  void check_memory(const CheckRecord& r, const Step& s, std::size_t index) const;

  const Program& program_;
  std::vector<Item> items_;
  std::vector<HazardPair> hazards_;  // by consumer
  ShadowMemory memory_;
  u32 lds_bytes_;
  Findings findings_;
};

}  // namespace asmevo
