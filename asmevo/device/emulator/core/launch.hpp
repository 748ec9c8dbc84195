// One launch: which workgroups run, in which order, on how many host threads.
//
// The definition of a launch's result. First every workgroup runs as if it were alone, one after
// another in launch order, atomics without return included. When two of them turn out to depend on
// one another (`Conflict`), or one runs for suspiciously long, or takes much of a small budget when
// that ends, and may be waiting for another, memory is put back and the launch runs again with as
// many workgroups resident as the device holds, which take turns as the waves of a workgroup do:
// what hardware does, and what kernels need that zero
// a part of their output each before all of them add to it, or that wait for one another. Whether
// there is a conflict does not depend on a schedule, so neither does the result on the number of
// host threads: independent workgroups run on all of them, dependent ones on one.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <vector>

#include "program.hpp"
#include "trace.hpp"

namespace asmevo {

class Sanitizer;

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
  u8 nan;                         // which NaN arithmetic gives (FpMode)
  u64 instruction_budget;
  u32 resident = 1;               // workgroups that run at the same time when they depend on each other
  u32 threads = 1;                // host threads for workgroups that do not
  double seconds = 0;             // host time after which the launch is given up; 0 for never
  // Results return some time after issue even when nothing waits for them, as on hardware; otherwise at
  // the last moment that the waits allow. Either is a run that hardware might do.
  bool prompt_returns = false;
  Sanitizer* sanitizer = nullptr;  // told of every instruction before it runs
  // Under trace, the whole launch in its order: it runs instead of the traced workgroups alone where
  // these may depend on the others.
  std::vector<u32> everyone{};
  bool together = false;  // they do: run everyone at once
};

// Wave-instructions after which a workgroup may be waiting for another one. A workgroup of the
// production kernels takes a few hundred thousand.
inline constexpr u64 kPatience = 8'000'000;

// Runs `order`, a list of linear workgroup ids, and returns the wave-instructions executed.
// `poll` is called on the calling thread some ten times a second at least and may throw. When
// `trace` is given, the workgroups of `order` are traced. They run one after another, and no others;
// with `together`, or when one runs for as long as one that waits, `everyone` runs as resident
// workgroups. Throws `Fault`.
u64 run(const Program& program, Memory& memory, const Launch& launch,
        std::span<const u32> order, Trace* trace, const std::function<void()>& poll);

}  // namespace asmevo
