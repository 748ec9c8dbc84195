// What `simulate` checks before it trusts its input; std::invalid_argument otherwise.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>

#include "timing.hpp"
#include "trace.hpp"

namespace asmevo::timing {

inline constexpr std::uint64_t kLastLine = ~0ull / kLineBytes;

inline void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

inline void validate(std::span<const InstructionTiming> program) {
  for (const InstructionTiming& in : program) {
    require(in.busy >= kTurn, "an instruction takes at least one issue turn");
    require(in.vmcnt <= 1, "an instruction raises vmcnt by at most 1");
    require(in.lgkmcnt <= 2, "an instruction raises lgkmcnt by at most 2");
    require(in.fetch_debt < kTurn, "fetch debt is less than one issue turn");
    require(in.matrix == 0 || in.matrix >= kTurn, "a matrix instruction takes at least one pass");
    require(static_cast<std::uint8_t>(in.access) < kAccessKinds, "an instruction's access is unknown");
    require(in.priority < kPriorities || in.priority == kNoPriority,
            "an instruction sets a priority of 0 to 3");
  }
}

inline void validate(const Parameters& p) {
  constexpr std::uint32_t kLimit = 1u << 20;
  for (const std::uint32_t rate :
       {p.vmem_minimum, p.vmem_bytes_per_clk, p.vl1d_bytes_per_clk, p.vmem_queue, p.vl1d_lines,
        p.vmem_to_lds, p.sl1d_lines, p.code_lines, p.l2_lines, p.lds_pair_bytes_per_clk,
        p.lds_bytes_per_clk}) {
    require(rate >= 1 && rate <= kLimit, "a rate or capacity is outside 1..2^20");
  }
  require(p.mall_lines >= 1 && p.mall_lines <= (1u << 24), "the MALL holds 1..2^24 lines");
  require(p.atomic_factor >= 1 && p.atomic_factor <= 1024,
          "an atomic takes 1..1024 times as long as a store");
  require(p.l2_channels >= 1 && p.l2_channels <= 256, "an L2 has 1..256 channels");
  require(p.code_lines_ahead <= 64, "at most 64 lines of code are fetched ahead");
  for (const std::uint32_t latency :
       {p.matrix_latency, p.beside_other, p.atomic_latency, p.barrier_release, p.wave_launch, p.code_miss_latency,
        p.vl1d_latency, p.sl1d_latency, p.sl1d_miss_latency, p.l2_latency, p.mall_latency,
        p.hbm_latency, p.store_latency, p.cu_fill_q8, p.l2_read_q8, p.l2_write_q8, p.mall_q8,
        p.hbm_read_q8, p.hbm_write_q8, p.lds_latency, p.lds_store_overhead}) {
    require(latency <= kLimit, "a latency is outside 0..2^20");
  }
  for (const std::uint32_t branch : {p.branch_taken, p.branch_not_taken}) {
    require(branch >= kTurn && branch <= kLimit, "a branch takes at least one issue turn");
  }
}

inline void validate(const Trace& trace, std::size_t program_size) {
  const std::uint32_t per_group = trace.waves_per_workgroup;
  require(per_group >= 1 && trace.waves.size() % per_group == 0,
          "the trace does not hold whole workgroups");
  for (std::size_t w = 0; w < trace.waves.size(); ++w) {
    const WaveTrace& wave = trace.waves[w];
    require(wave.workgroup == trace.waves[w - w % per_group].workgroup,
            "the trace's waves are not sorted by workgroup");
    require(!wave.entries.empty(), "a wave of the trace is empty");
    for (const TraceEntry& entry : wave.entries) {
      require(entry.instruction < program_size, "the trace names an instruction out of range");
      require(entry.access == kNoAccess || entry.access == kSkipped ||
                  entry.access < wave.accesses.size(),
              "the trace names a memory access out of range");
    }
    for (const std::uint64_t line : wave.lines) {
      require(line <= kLastLine, "the trace names a line beyond the address space");
    }
    for (const Access& access : wave.accesses) {
      require(std::uint64_t{access.first_line} + access.line_count <= wave.lines.size(),
              "the trace names a memory line out of range");
    }
  }
}

}  // namespace asmevo::timing
