// One launch: workgroups in a given order, their waves round-robin between barriers.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <vector>

#include "program.hpp"
#include "trace.hpp"

namespace asmevo {

struct Launch {
  std::array<u32, 3> grid;        // workgroups
  std::array<u32, 3> workgroup;   // work-items
  std::vector<u32> user_sgprs;    // values of s0, s1, ...
  std::array<int, 3> group_id_sgprs;  // register that holds the workgroup id x, y, z, or -1
  u32 work_item_dimensions;       // how many of x, y, z are in v0 (1 to 3)
  u32 lds_bytes;
  u32 private_bytes;              // scratch of a work-item
  u32 entry;                      // index of the first instruction
  u64 poison;                     // seed of every undefined register and LDS word
  u64 instruction_budget;
};

// Runs `order`, a list of linear workgroup ids, and returns the wave-instructions executed.
// `poll` is called every few million instructions and may throw. Workgroups are traced when `trace`
// is given. Throws `Fault`.
u64 run(const Program& program, Memory& memory, const Launch& launch,
        std::span<const u32> order, Trace* trace, const std::function<void()>& poll);

}  // namespace asmevo
