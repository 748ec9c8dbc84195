// In-order issue model of one gfx942 compute unit: consumes a trace, gives cycles and stalls.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "trace.hpp"

namespace asmevo::timing {

inline constexpr std::uint32_t kSimds = 4;      // SIMD16 units of a CU (CDNA3 white paper)
inline constexpr std::uint32_t kTurn = 4;       // clk between two issue turns of one SIMD
inline constexpr std::uint32_t kMaxSlots = 8;   // wave slots of a SIMD
inline constexpr std::uint32_t kVmcntMax = 63;  // 6-bit and 4-bit counters (CDNA3 ISA, s_waitcnt)
inline constexpr std::uint32_t kLgkmcntMax = 15;
inline constexpr std::uint32_t kMaxUnits = 4096;       // more than any device has
inline constexpr std::uint32_t kMaxWorkgroups = 1024;  // on one CU
inline constexpr std::uint8_t kNoWait = 0xff;
inline constexpr std::uint8_t kNoPriority = 0xff;

// What decides how an instruction issues.
enum class IssueClass : std::uint8_t {
  Salu, Smem, Valu, Vmem, Lds, Branch, Wait, Nop, Barrier, End
};
inline constexpr std::uint8_t kIssueClasses = 10;

// What a memory instruction does in the caches.
enum class AccessKind : std::uint8_t { Load, Store, Atomic, LoadToLds, WriteBack, Invalidate };
inline constexpr std::uint8_t kAccessKinds = 6;
inline constexpr std::uint8_t kPriorities = 4;  // s_setprio 0..3

// Why a wave could not issue; the order of the rows of Result::stalls.
enum class StallCause : std::uint8_t {
  Vmcnt, Lgkmcnt, Dependency, UnitBusy, Barrier, Fetch, Nop, Occupancy
};
inline constexpr std::uint32_t kStallCauses = 8;
inline constexpr std::uint8_t kNoCause = 0xff;

// Where a line was found; the order of the rows of Result::lines.
enum class MemoryLevel : std::uint8_t { L1, L2, Mall, Hbm };
inline constexpr std::uint32_t kMemoryLevels = 4;

// What the model needs to know of one instruction of the program.
struct InstructionTiming {
  IssueClass unit = IssueClass::Salu;
  std::uint16_t busy = kTurn;   // Valu: clk the SIMD's ALU is taken; Nop: clk of all wait states
  std::uint8_t vmcnt = 0;       // by how much issuing raises a counter
  std::uint8_t lgkmcnt = 0;
  std::uint8_t wait_vmcnt = kNoWait;  // Wait: upper bounds, or kNoWait
  std::uint8_t wait_lgkmcnt = kNoWait;
  std::uint8_t fetch_debt = 0;  // clk by which fetching it falls behind issue
  AccessKind access = AccessKind::Load;  // of a memory instruction
  std::uint16_t matrix = 0;     // Valu: clk the SIMD's matrix pipe is taken
  bool beside_matrix = true;    // Valu: may start while the matrix pipe works
  std::uint8_t priority = kNoPriority;  // of the wave from here on, or kNoPriority
  std::uint32_t code_line = 0;  // which line of the code it is in
  bool uses_matrix = false;     // the result of the wave's last matrix operation
};

// Times in clk, capacities in lines of 128 bytes; rates as clk/256 a line, of the simulated share of
// what several compute units have in common.
struct Parameters {
  std::uint32_t branch_taken = 0;
  std::uint32_t branch_not_taken = 0;
  std::uint32_t barrier_release = 0;
  std::uint32_t matrix_latency = 0;    // from the issue of a matrix operation to a use of its result
  std::uint32_t beside_other = 0;      // more for what cannot run beside another wave's operation
  std::uint32_t wave_launch = 0;       // between two waves that an XCD launches
  std::uint32_t code_miss_latency = 0; // of the L1I; 0: code is always there
  std::uint32_t code_lines = 0;        // capacity of the L1I
  std::uint32_t code_lines_ahead = 0;  // lines that are fetched before they are needed
  std::uint32_t vmem_minimum = 0;      // address processing of one instruction
  std::uint32_t vmem_bytes_per_clk = 0;
  std::uint32_t vl1d_bytes_per_clk = 0;
  std::uint32_t vmem_to_lds = 0;       // the pipe's clk for one load to LDS, at least
  std::uint32_t atomic_factor = 0;     // how many times as long as a store an atomic takes
  std::uint32_t vmem_queue = 0;        // instructions the CU holds before address processing
  std::uint32_t vl1d_latency = 0;
  std::uint32_t vl1d_lines = 0;
  std::uint32_t sl1d_latency = 0;
  std::uint32_t sl1d_miss_latency = 0;  // on top of a hit
  std::uint32_t sl1d_lines = 0;
  std::uint32_t l2_latency = 0;
  std::uint32_t mall_latency = 0;
  std::uint32_t hbm_latency = 0;
  std::uint32_t store_latency = 0;
  std::uint32_t atomic_latency = 0;
  std::uint32_t l2_channels = 0;          // of an XCD
  std::uint32_t l2_lines = 0;             // of an XCD
  std::uint32_t mall_lines = 0;           // of the device
  std::uint32_t cu_fill_q8 = 0;           // L2 to one CU
  std::uint32_t l2_read_q8 = 0;           // one channel
  std::uint32_t l2_write_q8 = 0;
  std::uint32_t mall_q8 = 0;              // the device
  std::uint32_t hbm_read_q8 = 0;
  std::uint32_t hbm_write_q8 = 0;
  std::uint32_t lds_latency = 0;        // without data cycles
  std::uint32_t lds_pair_bytes_per_clk = 0;
  std::uint32_t lds_bytes_per_clk = 0;
  std::uint32_t lds_store_overhead = 0;
};

// How much of a launch fits on a compute unit at once.
struct Residency {
  std::uint32_t slots = 0;       // waves a SIMD
  std::uint32_t workgroups = 0;  // workgroups a CU
};

// Lines of a buffer.
struct LineRange {
  std::uint64_t first;
  std::uint64_t count;
};

// What is simulated of a launch: `units` compute units of one XCD, which run `workgroups` between
// them in that order, while `busy_units_of_xcd` and `busy_units` of the device are at work.
struct Launch {
  Residency residency;
  std::uint32_t units = 1;
  std::uint32_t busy_units_of_xcd = 1;
  std::uint32_t busy_units = 1;
  std::span<const std::uint32_t> workgroups;  // ids, each in the trace; empty: all of the trace
  std::span<const LineRange> buffers;         // of the launch, where they are known
  std::size_t timeline_limit = 0;             // events to record at most, over all waves
  // Called now and then, so that the caller can give up by throwing.
  std::function<void()> poll;
};

// One issued instruction of a wave: it was next at `ready`, waited for `cause` until `held` and for
// its unit until `issue`; the wave went on at `resume`, having waited for `after`.
struct Event {
  std::uint64_t ready;
  std::uint64_t held;
  std::uint64_t issue;
  std::uint64_t resume;
  std::uint32_t instruction;
  std::uint8_t cause;
  std::uint8_t after;
};

struct WaveResult {
  std::uint32_t unit = 0;
  std::uint32_t simd = 0;
  std::uint32_t slot = 0;
  std::uint32_t workgroup = 0;
  std::uint32_t wave = 0;
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint64_t issued = 0;
  std::array<std::uint64_t, kStallCauses> stalls{};
  std::vector<Event> events;
};

struct Result {
  std::uint64_t cycles = 0;           // first launch to last completion, stores included
  std::uint64_t written = 0;          // lines that leave for HBM
  std::vector<std::uint64_t> issued;  // by instruction
  std::vector<std::uint64_t> stalls;  // kStallCauses rows by instruction
  std::vector<std::uint64_t> lines;   // kMemoryLevels rows by instruction
  std::vector<std::uint64_t> bytes;   // by instruction
  std::vector<std::uint64_t> conflicts;  // clk of LDS bank conflicts by instruction
  std::vector<WaveResult> waves;      // in order of launch
  std::size_t events = 0;             // of all waves
  bool timeline_complete = true;
};

// Throws std::invalid_argument if the table, the trace, the parameters and the launch do not fit
// together.
Result simulate(std::span<const InstructionTiming> program, const Trace& trace,
                const Parameters& parameters, const Launch& launch);

}  // namespace asmevo::timing
