// The sanitizer's shadow of registers, counters, LDS and memory.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <memory>
#include <new>
#include <vector>

#include "sanitizer_record.hpp"

namespace asmevo {

struct CheckedRegion;

// Where undefined bits come from: an instruction that loaded them, or a register at launch.
struct Origin {
  enum class Kind : u8 { kLaunch, kLds, kMemory };
  Kind kind = Kind::kLaunch;
  u16 reg = kAbsent;
  u32 pc = 0;
};

// An issued memory operation that no wait has covered yet.
struct Flight {
  u32 pc;
  u32 lds_op = 0;      // in WaveShadow::lds_ops, or 0
  u64 lanes = 0;
  u16 reg = kAbsent;   // row or scalar register that it will write
  u8 words = 0;
  bool vector = false;
  bool ordered = true;
  bool vm = false;     // counted by vmcnt
};

// One LDS operation of a wave; its index tells the wave's operations apart and orders them.
struct LdsOp {
  u32 pc;
  u32 barriers;  // that the workgroup had passed
};

// Definedness of one wave's registers, one bit a bit: set means undefined. Rows that are wholly
// defined or wholly undefined, which is most of them, have no bits of their own.
// A set of vector rows.
class RowSet {
 public:
  void add(std::size_t row) { words_[row / 64] |= u64{1} << (row % 64); }
  void remove(std::size_t row) { words_[row / 64] &= ~(u64{1} << (row % 64)); }
  void clear() { std::fill(std::begin(words_), std::end(words_), u64{0}); }
  // Whether any of `count` rows, at most 63, is in the set.
  bool any(std::size_t first, std::size_t count) const {
    const std::size_t shift = first % 64;
    u64 bits = words_[first / 64] >> shift;
    if (shift != 0) bits |= words_[first / 64 + 1] << (64 - shift);
    return (bits & ((u64{1} << count) - 1)) != 0;
  }

 private:
  u64 words_[2 * 256 / 64 + 1] = {};
};

struct ShadowGroup;

struct WaveShadow {
  enum class Row : u8 { kDefined, kUndefined, kMixed };

  ShadowGroup* group = nullptr;
  u16 number = 0;            // within the workgroup

  std::vector<u32> bits;     // kLanes a row, valid for kMixed
  std::vector<Row> rows;     // changed by `set` alone
  RowSet dirty;              // those that are not kDefined
  std::vector<Origin> row_origin;
  u32 scalar[kShadowScc + 1];      // undefined bits
  Origin scalar_origin[kShadowScc + 1];

  struct Queue : std::deque<Flight> {
    std::size_t ordered = 0;  // how many return in order
  };
  Queue vm, lgkm;
  std::vector<u8> row_flights;  // how many flights will write a row
  RowSet flying;                // rows with any
  u8 scalar_flights[kShadowScc + 1];
  unsigned register_flights = 0;

  std::vector<LdsOp> lds_ops;  // from 1
  // The newest operation that a wait covers, of each kind, and what of it the others may rely on:
  // what was covered when the wave last arrived at a barrier that all have passed.
  struct Progress {
    u32 lds = 0, dma = 0;
  };
  Progress done, arrived, visible;
  u32 barriers = 0;          // arrived at
  bool at_barrier = false;

  u64 clock = 0;             // wait states that have passed
  std::vector<u64> issued;   // per instruction that starts a hazard: the clock after it, or 0

  void reset(std::size_t row_count, std::size_t instructions, bool hazards);
  void set(std::size_t row, Row state) {
    rows[row] = state;
    if (state == Row::kDefined) dirty.remove(row); else dirty.add(row);
  }
  // Turn a row into one with bits of its own.
  u32* mixed(u16 row);
};

inline constexpr u32 kAllBits = ~u32{0};
inline constexpr std::size_t kMaxWaves = 16;  // of a workgroup of 1024 work-items

struct ShadowLds {
  struct Write {
    u32 op;     // of its wave, 0: nobody has written
    u8 source;  // 2 * wave, plus 1 for a load to LDS
    u8 bytes;   // mask
    bool atomic;
    std::size_t wave() const { return source / 2; }
    bool dma() const { return source & 1; }
  };

  u32 limit = 0;  // bytes that the kernel asked for
  std::vector<u32> undefined;  // bits
  std::vector<Origin> origin;
  std::vector<Write> last_write;
  std::vector<u32> last_read;  // operation, by wave and dword
  std::size_t words = 0;

  void reset(u32 bytes, std::size_t waves);
  u32& read_by(std::size_t wave, std::size_t word) { return last_read[wave * words + word]; }
};

// A running workgroup.
struct ShadowGroup {
  u32 id = 0;
  u32 barriers = 0;  // passed
  ShadowLds lds;
  std::vector<WaveShadow> waves;
};

// One entry a dword of memory that the launch may write.
struct MemoryWord {
  u32 writer = 0;     // workgroup + 1; 0: content from before the launch
  u32 write_pc = 0;   // instruction
  u32 reader = 0;     // workgroup + 1
  u32 read_pc = 0;
  static constexpr u32 kPcMask = 0xffffff;
  static constexpr u32 kAtomic = 1u << 28;  // in write_pc; the bytes written are in bits 24 to 27
};

// Shadows come zeroed from calloc, so that untouched pages cost nothing.
struct FreeShadow {
  void operator()(MemoryWord* p) const { std::free(p); }
};

class ShadowMemory {
 public:
  struct Region {
    u64 base, size, data, data_size;
    bool writable, undefined, guarded;
    std::unique_ptr<MemoryWord[], FreeShadow> words;  // of the data, when writable

    bool maps(u64 address, u64 bytes) const {
      return address - base < size && bytes <= size - (address - base);
    }
    bool holds(u64 address, u64 bytes) const {
      return address - data < data_size && bytes <= data_size - (address - data);
    }
    MemoryWord& word(u64 address) { return words[(address - data) / 4]; }
  };

  explicit ShadowMemory(const std::vector<CheckedRegion>& regions);
  // The region that maps all of an access, or null.
  Region* find(u64 address, u64 bytes);
  // Forget every access.
  void clear();

 private:
  std::vector<Region> regions_;
  Region* last_ = nullptr;
};

}  // namespace asmevo
