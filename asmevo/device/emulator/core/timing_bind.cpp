// Python face of the cycle model; `asmevo.device.emulator.timing` is its only user besides tests.
// The module registers asmevo::Trace before it calls bind_timing.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "timing.hpp"
#include "trace.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace asmevo::timing {
namespace {

using Array = nb::ndarray<nb::numpy, std::uint64_t>;

Array to_numpy(std::vector<std::uint64_t> values, std::vector<std::size_t> shape) {
  auto* owned = new std::vector<std::uint64_t>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept {
    delete static_cast<std::vector<std::uint64_t>*>(p);
  });
  return Array(owned->data(), shape.size(), shape.data(), owner);
}

std::tuple<std::uint64_t, Array, Array> run(const std::vector<InstructionTiming>& program,
                                            const Trace& trace, const Parameters& parameters,
                                            std::uint32_t slots, std::uint32_t workgroups) {
  Result result;
  {
    nb::gil_scoped_release unlocked;
    result = simulate(program, trace, parameters, Residency{slots, workgroups});
  }
  const std::size_t n = program.size();
  return {result.cycles, to_numpy(std::move(result.issued), {n}),
          to_numpy(std::move(result.stalls), {kStallCauses, n})};
}

// (lines, LDS data cycles, bytes) of one memory instruction.
using AccessRow = std::tuple<std::vector<std::uint64_t>, std::uint16_t, std::uint32_t>;
// (workgroup, [(instruction, access, -1 without or -2 skipped)], accesses) of one wave.
using WaveRow = std::tuple<std::uint32_t, std::vector<std::pair<std::uint32_t, std::int64_t>>,
                           std::vector<AccessRow>>;

Trace trace_from_waves(std::uint32_t waves_per_workgroup, const std::vector<WaveRow>& rows) {
  Trace trace;
  trace.waves_per_workgroup = waves_per_workgroup;
  for (const auto& [workgroup, entries, accesses] : rows) {
    WaveTrace wave;
    wave.workgroup = workgroup;
    wave.wave = waves_per_workgroup ? trace.waves.size() % waves_per_workgroup : 0;
    for (const auto& [instruction, access] : entries) {
      if (access < -2 || access >= static_cast<std::int64_t>(accesses.size())) {
        throw std::invalid_argument("an entry names a memory access out of range");
      }
      wave.entries.push_back(
          {instruction, access == -2   ? kSkipped
                        : access == -1 ? kNoAccess
                                       : static_cast<std::uint32_t>(access)});
    }
    for (const auto& [lines, lds_cycles, bytes] : accesses) {
      if (lines.size() > std::numeric_limits<std::uint16_t>::max()) {
        throw std::invalid_argument("a memory access touches too many lines");
      }
      wave.accesses.push_back({static_cast<std::uint32_t>(wave.lines.size()),
                               static_cast<std::uint16_t>(lines.size()), lds_cycles, bytes});
      wave.lines.insert(wave.lines.end(), lines.begin(), lines.end());
    }
    trace.waves.push_back(std::move(wave));
  }
  return trace;
}

}  // namespace
}  // namespace asmevo::timing

void bind_timing(nb::module_& m) {
  using namespace asmevo::timing;

  nb::enum_<IssueClass>(m, "IssueClass")
      .value("SALU", IssueClass::Salu)
      .value("SMEM", IssueClass::Smem)
      .value("VALU", IssueClass::Valu)
      .value("VMEM", IssueClass::Vmem)
      .value("LDS", IssueClass::Lds)
      .value("BRANCH", IssueClass::Branch)
      .value("WAIT", IssueClass::Wait)
      .value("NOP", IssueClass::Nop)
      .value("BARRIER", IssueClass::Barrier)
      .value("END", IssueClass::End);

  nb::enum_<AccessKind>(m, "AccessKind")
      .value("LOAD", AccessKind::Load)
      .value("STORE", AccessKind::Store)
      .value("ATOMIC", AccessKind::Atomic)
      .value("LOAD_TO_LDS", AccessKind::LoadToLds)
      .value("WRITE_BACK", AccessKind::WriteBack)
      .value("INVALIDATE", AccessKind::Invalidate);

  nb::class_<InstructionTiming>(m, "InstructionTiming")
      .def(
          "__init__",
          [](InstructionTiming* self, IssueClass unit, std::uint16_t busy, std::uint8_t vmcnt,
             std::uint8_t lgkmcnt, std::uint8_t wait_vmcnt, std::uint8_t wait_lgkmcnt,
             std::uint8_t fetch_debt, AccessKind access, std::uint16_t matrix, bool beside_matrix,
             std::uint8_t priority) {
            new (self) InstructionTiming{unit,         busy,       vmcnt,  lgkmcnt,
                                         wait_vmcnt,   wait_lgkmcnt, fetch_debt, access,
                                         matrix,       beside_matrix, priority};
          },
          "unit"_a, nb::kw_only(), "busy"_a = kTurn, "vmcnt"_a = 0, "lgkmcnt"_a = 0,
          "wait_vmcnt"_a = kNoWait, "wait_lgkmcnt"_a = kNoWait, "fetch_debt"_a = 0,
          "access"_a = AccessKind::Load, "matrix"_a = 0, "beside_matrix"_a = true,
          "priority"_a = kNoPriority);

  nb::class_<Parameters>(m, "TimingParameters")
      .def(nb::init<>())
      .def_rw("branch_taken", &Parameters::branch_taken)
      .def_rw("branch_not_taken", &Parameters::branch_not_taken)
      .def_rw("barrier_release", &Parameters::barrier_release)
      .def_rw("after_matrix", &Parameters::after_matrix)
      .def_rw("atomic_factor", &Parameters::atomic_factor)
      .def_rw("atomic_latency", &Parameters::atomic_latency)
      .def_rw("vmem_to_lds", &Parameters::vmem_to_lds)
      .def_rw("vmem_minimum", &Parameters::vmem_minimum)
      .def_rw("vmem_bytes_per_clk", &Parameters::vmem_bytes_per_clk)
      .def_rw("vl1d_bytes_per_clk", &Parameters::vl1d_bytes_per_clk)
      .def_rw("vmem_queue", &Parameters::vmem_queue)
      .def_rw("vl1d_latency", &Parameters::vl1d_latency)
      .def_rw("vl1d_lines", &Parameters::vl1d_lines)
      .def_rw("sl1d_latency", &Parameters::sl1d_latency)
      .def_rw("sl1d_miss_latency", &Parameters::sl1d_miss_latency)
      .def_rw("sl1d_lines", &Parameters::sl1d_lines)
      .def_rw("l2_latency", &Parameters::l2_latency)
      .def_rw("hbm_latency", &Parameters::hbm_latency)
      .def_rw("store_latency", &Parameters::store_latency)
      .def_rw("l2_clk_per_line_q8", &Parameters::l2_clk_per_line_q8)
      .def_rw("hbm_clk_per_line_q8", &Parameters::hbm_clk_per_line_q8)
      .def_rw("lds_latency", &Parameters::lds_latency)
      .def_rw("lds_pair_bytes_per_clk", &Parameters::lds_pair_bytes_per_clk)
      .def_rw("lds_bytes_per_clk", &Parameters::lds_bytes_per_clk)
      .def_rw("lds_store_overhead", &Parameters::lds_store_overhead);

  m.def("trace_from_waves", &trace_from_waves, "waves_per_workgroup"_a, "waves"_a,
        "Build a trace from (workgroup, [(instruction, access or -1)], "
        "[(lines, LDS data cycles, bytes)]) a wave.");
  m.def("simulate_timing", &run, "program"_a, "trace"_a, "parameters"_a, nb::kw_only(),
        "slots"_a, "workgroups"_a,
        "Cycles, times issued by instruction, stalled cycles by cause and instruction.");
}
