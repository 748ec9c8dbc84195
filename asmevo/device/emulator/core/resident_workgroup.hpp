// A workgroup that is running: its waves, their registers and LDS.
#pragma once

#include <memory>
#include <vector>

#include "launch.hpp"
#include "live_rows.hpp"

namespace asmevo {

// What one host thread may still execute, and what it looks at now and then.
struct Allowance {
  u64 instructions;                    // wave-instructions left
  const std::function<void()>& poll;   // may throw
  u64 since_poll = 0;

  void spend(u64 used) {
    instructions -= used;
    pass(used);
  }
  // Host time of about as many instructions.
  void pass(u64 used) {
    since_poll += used;
    if (since_poll >= kSlice) {
      since_poll = 0;
      poll();
    }
  }
  // Wave-instructions between two polls: the slowest, matrix operations with fused sums, take some
  // hundred microseconds.
  static constexpr u64 kSlice = 1 << 14;
};

struct ShadowGroup;

class ResidentWorkgroup {
 public:
  ResidentWorkgroup(const Program& program, const Launch& launch);
  ~ResidentWorkgroup();

  // Filling the registers and the scratch of a workgroup may take longer than running it.
  void begin(u32 id, Memory& memory, bool traced, Allowance& allowance);
  // One turn of every wave that can go on. Throws `Fault`, with its place.
  void take_turns(Allowance& allowance);
  bool ended() const { return ended_ == waves_.size(); }
  u64 executed() const { return executed_; }
  std::vector<WaveTrace>& traces() { return traces_; }

 private:
  struct alignas(64) Row {
    u32 lane[kLanes];
  };

  void begin_wave(std::size_t i, Memory& memory);
  u32 packed_item(std::size_t item) const;
  bool in_step(const Wave& w) const;
  void run_wave(Wave& w, u64 turn, Allowance& allowance);
  template <bool Traced, bool Checked>
  u64 execute(Wave& w, u64 limit);

  const Program& program_;
  const Launch& launch_;
  std::size_t items_;
  std::vector<Rows> live_rows_, live_rows_if_full_;  // of a wave that starts with all lanes
  u32 id_ = 0;
  u32 seed_ = 0;
  bool first_turn_ = true;
  std::size_t ended_ = 0;
  std::size_t waiting_ = 0;
  u64 executed_ = 0;
  Workgroup group_;
  std::vector<std::unique_ptr<Wave>> waves_;
  std::vector<std::unique_ptr<Row[]>> registers_;
  std::vector<std::vector<u32>> private_segments_;
  std::vector<WaveTrace> traces_;
  std::unique_ptr<ShadowGroup> shadow_;  // under the sanitizer
};

}  // namespace asmevo
