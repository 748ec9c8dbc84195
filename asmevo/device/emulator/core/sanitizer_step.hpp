// One instruction of one wave under the sanitizer.
#pragma once

#include "sanitizer.hpp"

namespace asmevo {

// Undefined bits of a value, and the value.
struct Bits {
  u64 value = 0;
  u64 undefined = 0;
};

class CheckedStep {
 public:
  using Item = Sanitizer::Item;

  CheckedStep(Sanitizer& sanitizer, Wave& wave, std::size_t pc, const Item& item, const Step& step)
      : sanitizer_(sanitizer), wave_(wave), shadow_(*wave.shadow), group_(*shadow_.group),
        number_(shadow_.number), pc_(static_cast<u32>(pc)), item_(item), record_(item.record),
        step_(step), active_(record_.flags & kCheckMasked ? wave.exec() : kAllLanes) {}

  void check_hazards();
  void check_flights();
  void wait();
  void pass_barrier();
  void values();
  void memory();

 private:
  // A vector memory access.
  struct Access {
    u64 address[kLanes];
    u8 bytes[kLanes];  // in range; a buffer's bounds cut off the rest, which is legal
    u64 lanes;         // with any byte in range
  };

  const CheckOperand& operand(std::size_t at) const { return record_.operands[at]; }
  static bool is_vector(const CheckOperand& o) { return o.reg >= kVgpr0 && o.reg < kRegisterEnd; }
  static bool is_scalar(const CheckOperand& o) { return o.reg <= kShadowScc; }
  u16 row_of(const CheckOperand& o) const { return row_of(o.reg); }
  u16 row_of(u16 reg) const {
    return static_cast<u16>(reg < kAgpr0 ? reg - kVgpr0
                                         : sanitizer_.program_.vgprs() + (reg - kAgpr0));
  }
  u32 scalar_value(u16 reg) const { return reg == kShadowScc ? wave_.scc : wave_.s[reg]; }

  // Whether any bit of a source may be undefined, looking at whole registers only.
  bool is_dirty(const CheckOperand& o) const;
  u32 undefined_bits(u16 row, std::size_t lane) const;
  Bits lane_bits(const CheckOperand& o, std::size_t lane) const;
  Bits scalar_bits(const CheckOperand& o) const;
  Origin origin_of(const CheckOperand& o) const;
  Origin origin_of_sources() const;

  Report report(Finding kind) const;
  void report_undefined(const CheckOperand& o, const Origin& origin, int lane);
  // Report the undefined bits of a source that some lane of `lanes` looks at; whether there were any.
  bool use(const CheckOperand& o, u64 lanes);

  void write_defined(const CheckOperand& o, u64 lanes);
  void write_lane(const CheckOperand& o, std::size_t word, std::size_t lane, u32 undefined);
  void finish_rows(const CheckOperand& o, const Origin& origin);
  void write_scalar(const CheckOperand& o, u64 undefined, const Origin& origin);
  void settle(u16 row);

  void lane_values();
  void scalar_values();
  void matrix_values();
  void read_lane();
  void write_one_lane();
  bool permuted_lane(std::size_t lane, std::size_t& from) const;
  u64 written_lanes() const;

  void check_registers(const CheckOperand& o, bool writes);
  void retire(const Flight& f);
  void issue(bool vm, Flight f);
  void issue_flights();

  void scalar_access();
  void global_access();
  void lds_access();
  void lane_exchange();
  Access lanes() const;
  void load_to_lds();
  void global_words(const Access& a, ShadowMemory::Region& region, std::size_t lane);
  void out_of_bounds(Finding kind, u64 address, u64 bytes, int lane, bool write);
  void write_loaded(const Access& a);
  u64 stored_bytes(std::size_t lane, u64 at) const;
  void check_store_data(const CheckOperand& data, u64 lanes);
  struct Horizon {
    u32 until[2 * kMaxWaves];
  };
  Horizon horizon() const;
  void lds_read(u64 at, u32 bytes, std::size_t lane, u32 op, const Horizon& horizon);
  bool lds_keeps(u64 first, u64 end, u64 at, std::size_t lane) const;
  bool lds_fills_quietly(std::size_t first, u32 op, const Horizon& horizon);
  bool lds_reads_quietly(const u32* base, u32 op, const Horizon& horizon);
  void lds_write(u64 at, u32 bytes, std::size_t lane, u32 op, bool dma, bool atomic,
                 const Horizon& horizon);
  u32 lds_undefined(u64 at, u32 bytes, Origin& origin) const;
  u32 new_lds_op();
  void race(std::size_t word, std::size_t other, u32 op, std::size_t lane, bool write,
            bool other_write);

  Sanitizer& sanitizer_;
  Wave& wave_;
  WaveShadow& shadow_;
  ShadowGroup& group_;
  std::size_t number_;
  u32 pc_;
  const Item& item_;
  const CheckRecord& record_;
  const Step& step_;
  u64 active_;
  u32 lds_op_ = 0;
};

}  // namespace asmevo
