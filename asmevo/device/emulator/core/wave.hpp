// The state of one wave64 and how operations read and write it.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "fp_mode.hpp"
#include "memory.hpp"
#include "pending.hpp"
#include "record.hpp"
#include "trace.hpp"

#if defined(__clang__)
#define ASMEVO_LANES(i) \
  _Pragma("clang loop vectorize(assume_safety)") for (std::size_t i = 0; i < kLanes; ++i)
#else
#define ASMEVO_LANES(i) _Pragma("GCC ivdep") for (std::size_t i = 0; i < kLanes; ++i)
#endif

namespace asmevo {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

inline constexpr u64 kAllLanes = ~u64{0};
inline constexpr u32 kSignBit = 0x80000000u;

// A source as handlers see it.
struct Operand {
  enum class Kind : u8 { kAbsent, kScalar, kVector, kConstant, kPermuted, kStatus };
  Kind kind = Kind::kAbsent;
  bool neg = false;
  bool abs = false;
  u16 index = 0;               // scalar register, vector or permuted row
  u64 value = 0;               // constant
  const u32* rows = nullptr;   // constant broadcast over the lanes: low row, high row
};

// How SDWA feeds and merges an operation: byte and word selects of CDNA3 ISA, "SDWA". The record
// holds src0_sel in bits 0 to 2, src1_sel in 3 to 5, dst_sel in 6 to 8, dst_unused in 9 and 10, and
// the sign extension of each source in 11 and 12.
struct SdwaPattern {
  u8 select[2];
  bool extend[2];
  u8 dst_select;
  u8 dst_unused;
};
inline constexpr u8 kSelectWord0 = 4, kSelectDword = 6;
inline constexpr u8 kUnusedPad = 0, kUnusedSext = 1, kUnusedPreserve = 2;

// How DPP feeds source 0 of an operation.
struct DppPattern {
  u8 source[kLanes];
  u64 valid;  // lanes whose source exists
  u64 write;  // lanes that row_mask and bank_mask enable
  bool bound_ctrl;
  bool near;  // no lane's source lies outside its own row of 16
};

// Where indirect jumps can go: the address of every instruction, in order.
struct CodeMap {
  std::vector<u64> addresses;
  // The index of the instruction at an address; throws a fault when there is none.
  std::size_t find(u64 address) const;
};

struct Wave;
struct WaveShadow;
struct Step;
using Handler = void (*)(Wave&, const Step&);

// When a load may write its registers (early_return.hpp): when what guarantees it does, at issue, or at
// issue if no older operation of its counter has yet to write them.
enum class Early : u8 { kNo, kAtIssue, kUnlessOverwritten };

// A validated, resolved instruction.
struct Step {
  Handler handler;
  Operand src[3];
  u16 dst;
  u16 sdst;
  u16 flags;
  u8 op_sel, op_sel_hi, neg_lo, neg_hi;
  u8 omod;  // 1: mul:2, 2: mul:4, 3: div:2
  u8 dst_words;
  u8 src_words[3];
  bool dst_is_vector;
  bool is_vector;  // subject to GPR indexing
  bool skippable;  // not issued while MODE.VSKIP is set
  Early early;
  i32 target;
  i32 imm0, imm1;
  const DppPattern* dpp;
  const SdwaPattern* sdwa;
  const CodeMap* code;
  const Step* inner;  // DPP, SDWA: the operation itself, reading the permuted rows
};

// What a wave does when it stops running. kInStep: it lets the waves of its workgroup catch up.
enum class Stop : u8 { kNone, kBarrier, kEnd, kInStep };

inline constexpr u32 kGprIndexSrc0 = 1, kGprIndexSrc1 = 2, kGprIndexSrc2 = 4, kGprIndexDst = 8;

// LDS of a workgroup, in whole dwords.
struct Workgroup {
  std::vector<u32> words;
  u8* lds() { return reinterpret_cast<u8*>(words.data()); }
  std::size_t lds_bytes() const { return words.size() * sizeof(u32); }
};

struct Wave {
  alignas(64) u32 scratch[6][kLanes];  // broadcast or modified sources: two rows per source
  alignas(64) u32 staging[2][kLanes];  // results under a partial EXEC
  alignas(64) u32 permuted[2][kLanes];  // DPP and SDWA sources
  alignas(8) u32 s[kScalarFile + kStatusSlots];
  u32 scc = 0;
  u32* v = nullptr;      // vector rows, kLanes words each: v0.., then a0..
  u32 vgprs = 0;         // architectural rows
  u64 write_mask = kAllLanes;
  std::size_t pc = 0;
  bool gpr_index_enabled = false;
  bool vskip = false;
  unsigned flat_accesses = 0;  // outstanding in vm
  u32 flat_number = 0;
  std::vector<u32> flat_arrived;  // numbers of flat accesses of which one entry arrived
  u32* private_segment = nullptr;  // private_words dwords a lane, one lane after another
  u64 private_words = 0;
  u64 turns_clock = 0, timer_reads = 0;
  u32 turn = 0;  // number of the current turn
  Stop stop = Stop::kNone;
  FpMode fp;
  Memory* memory = nullptr;
  Workgroup* group = nullptr;
  WaveTrace* trace = nullptr;
  WaveShadow* shadow = nullptr;  // under the sanitizer
  PendingQueue<63> vm;
  PendingQueue<15> lgkm;

  u64 scalar64(u16 index) const {
    return s[index] | (u64{s[index + 1]} << 32);
  }
  void set_scalar64(u16 index, u64 value) {
    s[index] = static_cast<u32>(value);
    s[index + 1] = static_cast<u32>(value >> 32);
  }
  u64 exec() const { return scalar64(kExec); }
  u64 active() const { return exec() & write_mask; }

  u32 read32(const Operand& o) const {
    return o.kind == Operand::Kind::kConstant ? static_cast<u32>(o.value) : s[o.index];
  }
  u64 read64(const Operand& o) const {
    return o.kind == Operand::Kind::kConstant ? o.value : scalar64(o.index);
  }

  // The 64 lanes of word `word` of source `slot`, broadcast when it is scalar.
  const u32* row(const Operand& o, std::size_t slot, std::size_t word = 0) {
    if (o.kind == Operand::Kind::kVector && !o.neg && !o.abs) [[likely]] {
      return v + (o.index + word) * kLanes;
    }
    if (o.kind == Operand::Kind::kConstant && !o.neg && !o.abs) return o.rows + word * kLanes;
    return prepare(o, slot * 2 + word, word);
  }
  const u32* prepare(const Operand& o, std::size_t scratch_row, std::size_t word);

  // Where a handler writes `words` result rows, and the merge that ends the write.
  u32* begin_write(u16 dst) {
    return active() == kAllLanes ? v + dst * kLanes : &staging[0][0];
  }
  void end_write(u16 dst, std::size_t words = 1) {
    if (const u64 mask = active(); mask != kAllLanes) merge(dst, words, &staging[0][0], mask);
  }
  void merge(u16 dst, std::size_t words, const u32* from, u64 mask);

  // Deliver what `s_waitcnt` guarantees.
  void wait_vm(unsigned newest_outstanding);
  void wait_lgkm(unsigned newest_outstanding);
  // Deliver what has returned by now without a wait (Launch::prompt_returns): LDS and SMEM operations of
  // earlier turns, vector memory operations of more than kMemoryTurns ago, each counter's in order.
  void deliver_prompt_returns();
  static constexpr u32 kMemoryTurns = 3;
  // The number of cycles this wave has spent, four an instruction; within a turn it only counts the
  // reads. Never goes back.
  u64 clock() { return turns_clock + ++timer_reads; }
  void end_turn(u64 instructions) {
    turns_clock += 4 * instructions;
    timer_reads = 0;
    ++turn;
  }

  // Gives an access that was issued to vm its entry in lgkm.
  void pair_flat(Pending& vm_entry);
  // Where a load of whole rows puts its result; `p` is the newest of `queue`.
  template <std::size_t Limit>
  u32* result_rows(PendingQueue<Limit>& queue, Pending& p, const Step& s) {
    if (s.early == Early::kNo || (s.early == Early::kUnlessOverwritten && overwritten(queue, p))) {
      return p.data.data();
    }
    p.kind = Pending::Kind::kStore;  // nothing is left to deliver
    return v + s.dst * kLanes;
  }
  Pending& issue_vm();
  Pending& issue_lgkm(unsigned weight);

 private:
  void deliver(const Pending& p);
  void return_oldest_vm();
  void return_oldest_lgkm();
  void write_rows(const Pending& p);
  // Whether an older operation of a queue has yet to write registers of its newest.
  template <std::size_t Limit>
  static bool overwritten(PendingQueue<Limit>& queue, const Pending& newest) {
    for (std::size_t i = 0; i + 1 < queue.size(); ++i) {
      const Pending& p = queue.at(i);
      const bool vector = p.kind == Pending::Kind::kVector || p.kind == Pending::Kind::kFlat;
      if (vector && p.dst < newest.dst + newest.words && newest.dst < p.dst + p.words) return true;
    }
    return false;
  }
  template <std::size_t Limit>
  void wait_unordered(PendingQueue<Limit>& queue, unsigned newest_outstanding);
};

}  // namespace asmevo
