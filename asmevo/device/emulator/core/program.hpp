// A validated program: whatever the records hold, running it cannot touch memory outside its state.
#pragma once

#include <array>
#include <deque>
#include <span>
#include <stdexcept>
#include <vector>

#include "operation.hpp"

namespace asmevo {

// A record that cannot be run; `index` says which.
struct InvalidRecord : std::invalid_argument {
  InvalidRecord(std::size_t i, const std::string& what) : std::invalid_argument(what), index(i) {}
  std::size_t index;
};

// Which handlers run.
struct Choices {
  bool narrow = false;  // vectors that every host of the build has; no result depends on it
  bool fused = false;   // matrix sums as CDNA3 takes them (matrix_fused.hpp)
};

class Program {
 public:
  // `vgprs` and `agprs` are the registers the descriptor allocates to a wave, at most 256 each.
  // `addresses` of the records, ascending, are where indirect jumps find them; none for a program
  // that has no such jumps.
  Program(std::span<const Record> records, u32 vgprs, u32 agprs, FpMode fp, Choices choices = {},
          std::vector<u64> addresses = {});

  // Steps point into their program.
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // One step a record, and one past the end that faults.
  const std::vector<Step>& steps() const { return steps_; }
  std::size_t size() const { return steps_.size() - 1; }
  u32 vgprs() const { return vgprs_; }
  u32 rows() const { return vgprs_ + agprs_; }
  // Rows that the program can reach: poisoning the others would cost time and change nothing.
  u32 reachable_vgprs() const { return reachable_vgprs_; }
  u32 reachable_agprs() const { return reachable_agprs_; }
  // Of every record; and whether any of them turns GPR indexing on.
  const std::vector<const Operation*>& operations() const { return operations_; }
  bool indexes_gprs() const { return indexes_gprs_; }
  const std::vector<bool>& rows_read() const { return rows_read_; }
  FpMode fp() const { return fp_; }

 private:
  Step resolve(const Record& r);
  Handler handler(const Operation& op) const;
  Operand source(u16 reg, u64 value, u8 words);
  u16 scalar(u16 reg, u8 words) const;
  u16 vector(u16 reg, u8 words);
  const DppPattern* dpp(const Record& r);
  const SdwaPattern* sdwa(const Record& r);

  std::vector<Step> steps_;
  std::vector<const Operation*> operations_;
  bool indexes_gprs_ = false;
  std::vector<bool> rows_read_;
  CodeMap code_;
  std::deque<std::array<u32, 2 * kLanes>> constants_;
  std::deque<DppPattern> patterns_;
  std::deque<SdwaPattern> sdwa_patterns_;
  std::deque<Step> inner_;
  std::size_t count_;
  u32 vgprs_;
  u32 agprs_;
  u32 reachable_vgprs_ = 1;  // v0 is written at launch
  u32 reachable_agprs_ = 0;
  FpMode fp_;
  Choices choices_;
};

}  // namespace asmevo
