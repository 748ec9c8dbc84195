// Python face of the cycle model; `asmevo.device.emulator.timing` is its only user besides tests.
// The module registers asmevo::Trace before it calls bind_timing.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
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

constexpr auto kPollInterval = std::chrono::milliseconds(20);

// The simulation took longer than its caller waits.
class TimedOut : public std::runtime_error {
 public:
  TimedOut() : std::runtime_error("the simulation took too long") {}
};

template <typename T>
nb::ndarray<nb::numpy, T> to_numpy(std::vector<T> values, std::vector<std::size_t> shape) {
  auto* owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::ndarray<nb::numpy, T>(owned->data(), shape.size(), shape.data(), owner);
}

Result run(const std::vector<InstructionTiming>& program, const Trace& trace,
           const Parameters& parameters, std::uint32_t slots, std::uint32_t resident,
           std::uint32_t units, std::uint32_t busy_units_of_xcd, std::uint32_t busy_units,
           const std::vector<std::uint32_t>& workgroups,
           const std::vector<std::pair<std::uint64_t, std::uint64_t>>& buffers,
           std::size_t timeline_limit, double seconds) {
  nb::gil_scoped_release unlocked;
  const auto started = std::chrono::steady_clock::now();
  auto polled = started;
  const auto poll = [&] {
    const auto now = std::chrono::steady_clock::now();
    if (now - polled < kPollInterval) return;
    polled = now;
    if (seconds > 0 && std::chrono::duration<double>(now - started).count() > seconds) {
      throw TimedOut();
    }
    nb::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  };
  std::vector<LineRange> ranges;
  for (const auto& [first, count] : buffers) {
    if (count != 0) ranges.push_back({first, count});
  }
  return simulate(program, trace, parameters,
                  Launch{{slots, resident}, units, busy_units_of_xcd, busy_units, workgroups,
                         ranges, timeline_limit, poll});
}

// The arrays own copies: nothing of the result has to outlive them.
constexpr auto kOwned = nb::rv_policy::move;

// One row a wave: unit, simd, slot, workgroup, wave, start, end, issued, stalls by cause.
constexpr std::size_t kWaveColumns = 8 + kStallCauses;

nb::ndarray<nb::numpy, std::uint64_t> waves_of(const Result& result) {
  std::vector<std::uint64_t> rows;
  rows.reserve(result.waves.size() * kWaveColumns);
  for (const WaveResult& w : result.waves) {
    rows.insert(rows.end(), {w.unit, w.simd, w.slot, w.workgroup, w.wave, w.start, w.end, w.issued});
    rows.insert(rows.end(), w.stalls.begin(), w.stalls.end());
  }
  return to_numpy(std::move(rows), {result.waves.size(), kWaveColumns});
}

// One row an event: instruction, ready, held, issue, resume, cause, after (255: none).
nb::ndarray<nb::numpy, std::uint64_t> events_of(const Result& result, std::size_t wave) {
  const auto& events = result.waves.at(wave).events;
  std::vector<std::uint64_t> rows;
  rows.reserve(events.size() * 7);
  for (const Event& e : events) {
    rows.insert(rows.end(), {e.instruction, e.ready, e.held, e.issue, e.resume, e.cause, e.after});
  }
  return to_numpy(std::move(rows), {events.size(), 7});
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

  nb::exception<TimedOut>(m, "TimingTimeoutError", PyExc_TimeoutError);

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
             std::uint8_t priority, std::uint32_t code_line, bool uses_matrix) {
            new (self) InstructionTiming{unit,         busy,       vmcnt,  lgkmcnt,
                                         wait_vmcnt,   wait_lgkmcnt, fetch_debt, access,
                                         matrix,       beside_matrix, priority, code_line,
                                         uses_matrix};
          },
          "unit"_a, nb::kw_only(), "busy"_a = kTurn, "vmcnt"_a = 0, "lgkmcnt"_a = 0,
          "wait_vmcnt"_a = kNoWait, "wait_lgkmcnt"_a = kNoWait, "fetch_debt"_a = 0,
          "access"_a = AccessKind::Load, "matrix"_a = 0, "beside_matrix"_a = true,
          "priority"_a = kNoPriority, "code_line"_a = 0,
          "uses_matrix"_a = false);

  nb::class_<Parameters>(m, "TimingParameters")
      .def(nb::init<>())
      .def_rw("branch_taken", &Parameters::branch_taken)
      .def_rw("branch_not_taken", &Parameters::branch_not_taken)
      .def_rw("barrier_release", &Parameters::barrier_release)
      .def_rw("matrix_latency", &Parameters::matrix_latency)
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
      .def_rw("beside_other", &Parameters::beside_other)
      .def_rw("wave_launch", &Parameters::wave_launch)
      .def_rw("code_miss_latency", &Parameters::code_miss_latency)
      .def_rw("code_lines", &Parameters::code_lines)
      .def_rw("code_lines_ahead", &Parameters::code_lines_ahead)
      .def_rw("mall_latency", &Parameters::mall_latency)
      .def_rw("l2_channels", &Parameters::l2_channels)
      .def_rw("l2_lines", &Parameters::l2_lines)
      .def_rw("mall_lines", &Parameters::mall_lines)
      .def_rw("cu_fill_q8", &Parameters::cu_fill_q8)
      .def_rw("l2_read_q8", &Parameters::l2_read_q8)
      .def_rw("l2_write_q8", &Parameters::l2_write_q8)
      .def_rw("mall_q8", &Parameters::mall_q8)
      .def_rw("hbm_read_q8", &Parameters::hbm_read_q8)
      .def_rw("hbm_write_q8", &Parameters::hbm_write_q8)
      .def_rw("lds_latency", &Parameters::lds_latency)
      .def_rw("lds_pair_bytes_per_clk", &Parameters::lds_pair_bytes_per_clk)
      .def_rw("lds_bytes_per_clk", &Parameters::lds_bytes_per_clk)
      .def_rw("lds_store_overhead", &Parameters::lds_store_overhead);

  nb::class_<Result>(m, "TimingResult")
      .def_ro("cycles", &Result::cycles)
      .def_ro("written", &Result::written)
      .def_ro("timeline_complete", &Result::timeline_complete)
      .def_prop_ro(
          "issued", [](const Result& r) { return to_numpy(r.issued, {r.issued.size()}); }, kOwned)
      .def_prop_ro(
          "stalls", [](const Result& r) { return to_numpy(r.stalls, {kStallCauses, r.issued.size()}); }, kOwned)
      .def_prop_ro(
          "lines", [](const Result& r) { return to_numpy(r.lines, {kMemoryLevels, r.issued.size()}); }, kOwned)
      .def_prop_ro(
          "bytes", [](const Result& r) { return to_numpy(r.bytes, {r.bytes.size()}); }, kOwned)
      .def_prop_ro(
          "conflicts", [](const Result& r) { return to_numpy(r.conflicts, {r.conflicts.size()}); }, kOwned)
      .def_prop_ro(
          "waves", [](const Result& r) { return waves_of(r); }, kOwned)
      .def("events", &events_of, "wave"_a);

  m.def("trace_from_waves", &trace_from_waves, "waves_per_workgroup"_a, "waves"_a,
        "Build a trace from (workgroup, [(instruction, access or -1)], "
        "[(lines, LDS data cycles, bytes)]) a wave.");
  m.def("simulate_timing", &run, "program"_a, "trace"_a, "parameters"_a, nb::kw_only(),
        "slots"_a, "resident"_a, "units"_a = 1, "busy_units_of_xcd"_a = 1, "busy_units"_a = 1,
        "workgroups"_a = std::vector<std::uint32_t>{},
        "buffers"_a = std::vector<std::pair<std::uint64_t, std::uint64_t>>{},
        "timeline_limit"_a = 0, "seconds"_a = 0.0);
}
