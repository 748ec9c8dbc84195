// In-order issue of one compute unit: four SIMDs take turns, waves wait for what they need.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "timing.hpp"
#include "timing_counters.hpp"
#include "timing_memory.hpp"
#include "trace.hpp"

namespace asmevo::timing {

inline constexpr std::uint64_t kNever = ~0ull;

// Who hands out workgroups.
class Dispatcher {
 public:
  // A unit has room for a workgroup from `clk` on.
  virtual void room(std::uint32_t unit, std::uint64_t clk) = 0;

 protected:
  ~Dispatcher() = default;
};

class ComputeUnit {
 public:
  ComputeUnit(std::uint32_t number, std::span<const InstructionTiming> program, const Trace& trace,
              const Parameters& parameters, const Launch& launch, SharedMemory& shared,
              Dispatcher& dispatcher, Result& result);

  // Whether a whole workgroup fits.
  bool has_room() const;
  std::uint32_t resident() const { return resident_; }
  // Launches workgroup `group` of the trace, its waves at the given clks.
  void launch(std::uint32_t group, std::span<const std::uint64_t> clks);

  // The next turn at which something may issue, or kNever.
  std::uint64_t event() const;
  // Takes the turns before `clk`.
  void run(std::uint64_t clk);

 private:
  struct Wave {
    const WaveTrace* trace = nullptr;
    WaveResult* result = nullptr;
    std::size_t position = 0;
    std::uint32_t group = 0;  // slot in groups_
    std::uint32_t fetch_debt = 0;
    std::uint32_t code_line = kNoLine;
    std::uint8_t cause = kNoCause;
    std::uint64_t next = 0;  // first turn after the previous instruction
    std::uint64_t lds_done = 0;
    std::uint64_t matrix_result = 0;  // when that of its last matrix operation can be used
    VmQueue vm;
    LgkmQueue lgkm;
  };

  struct Simd {
    std::array<Wave, kMaxSlots> waves;
    std::array<std::uint64_t, kMaxSlots> ready;  // kNever: at a barrier, or slot empty
    std::array<IssueClass, kMaxSlots> unit{};
    std::array<bool, kMaxSlots> occupied{};
    std::array<bool, kMaxSlots> whole{};  // what is next needs the matrix pipe idle
    std::array<std::uint8_t, kMaxSlots> priority{};
    bool prioritised = false;  // some wave has ever had a priority above 0
    std::uint32_t free = 0;
    std::uint32_t first = 0;  // where the next round-robin scan starts
    std::uint64_t alu_free = 0;
    std::uint64_t matrix_free = 0;
    std::uint32_t matrix_slot = 0;  // of the wave whose operation was the last
    std::uint32_t alternation = 0;  // clk owed for instructions that alternate with it, below a turn
    std::uint64_t event = kNever;

    Simd() { ready.fill(kNever); }
  };

  struct Place {
    std::uint32_t simd;
    std::uint32_t slot;
  };

  struct Group {
    std::uint32_t live = 0;  // waves; 0: free for another workgroup
    std::vector<Place> at_barrier;
    std::uint64_t last_arrival = 0;
  };

  static constexpr std::uint32_t kNoLine = 0xffffffffu;

  const InstructionTiming& timing_of(const TraceEntry& entry) const;
  void stall(Wave& wave, std::uint32_t instruction, StallCause cause, std::uint64_t clk);
  void complete(std::uint64_t clk);
  void launch_wave(const WaveTrace& trace, std::uint32_t group, std::uint64_t clk);
  std::uint64_t unit_free(const Simd& simd, std::uint32_t slot) const;
  void turn(std::uint32_t s, std::uint64_t clk);
  void wake(std::uint32_t s, std::uint64_t clk, std::uint64_t earliest);
  void prepare(std::uint32_t s, std::uint32_t slot, std::uint64_t next);
  void issue(std::uint32_t s, std::uint32_t slot, std::uint64_t clk);
  void record(Wave& wave, std::uint32_t instruction, std::uint64_t held, std::uint64_t clk,
              std::uint64_t resume, std::uint8_t after);
  void scalar_memory(Wave& wave, const TraceEntry& entry, const InstructionTiming& in,
                     std::uint64_t clk);
  void vector_memory(Wave& wave, const TraceEntry& entry, const InstructionTiming& in,
                     std::uint64_t clk);
  SharedMemory::Found move_line(AccessKind kind, std::uint64_t line, std::uint64_t clk);
  void count(std::uint32_t instruction, MemoryLevel level);
  void local_memory(std::uint32_t s, Wave& wave, const TraceEntry& entry,
                    const InstructionTiming& in, std::uint64_t clk);
  void arrive(std::uint32_t s, std::uint32_t slot, std::uint64_t clk);
  void release(Group& group);
  void finish(std::uint32_t s, std::uint32_t slot, std::uint64_t clk);

  std::uint32_t number_;
  std::span<const InstructionTiming> program_;
  const Trace& trace_;
  const Parameters& p_;
  const Launch& launch_;
  Dispatcher& dispatcher_;
  Result& result_;
  UnitMemory memory_;
  std::array<Simd, kSimds> simds_;
  std::vector<Group> groups_;
  std::uint32_t resident_ = 0;  // workgroups
  std::uint64_t vmem_free_ = 0;
  std::vector<std::uint64_t> vmem_starts_;  // of the last instructions, a ring
  std::uint64_t vmem_count_ = 0;
  std::array<std::uint64_t, kSimds / 2> lds_path_free_{};
  std::uint64_t lds_free_ = 0;
};

}  // namespace asmevo::timing
