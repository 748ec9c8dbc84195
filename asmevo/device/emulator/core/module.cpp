// The Python module `asmevo_core`.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#if defined(__AVX2__)
#include <cpuid.h>
#endif

#include <algorithm>

#include "address_space.hpp"
#include "launch.hpp"
#include "sanitizer.hpp"

namespace nb = nanobind;

void bind_timing(nb::module_& m);

namespace asmevo {

void bind_sanitizer(nb::module_& m);

namespace {

using Bytes = nb::ndarray<u8, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstBytes = nb::ndarray<const u8, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Ids = nb::ndarray<const u32, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

#if defined(__AVX2__)
// CPUID itself: __builtin_cpu_supports answers no for everything in a library that zig links.
bool cpu_has_avx2_and_fma() {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return false;
  const bool fma = (c >> 12) & 1, os_saves_ymm = (c >> 27) & 1;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  return fma && os_saves_ymm && ((b >> 5) & 1);
}
#endif

const char* shape_name(Shape shape) {
  switch (shape) {
    case Shape::kScalar: return "scalar";
    case Shape::kBranch: return "branch";
    case Shape::kControl: return "control";
    case Shape::kScalarLoad: return "scalar_load";
    case Shape::kVector: return "vector";
    case Shape::kCompare: return "compare";
    case Shape::kReadLane: return "read_lane";
    case Shape::kWriteLane: return "write_lane";
    case Shape::kMatrix: return "matrix";
    case Shape::kBuffer: return "buffer";
    case Shape::kGlobal: return "global";
    case Shape::kLds: return "lds";
    case Shape::kFlat: return "flat";
    case Shape::kScratch: return "scratch";
    case Shape::kCache: return "cache";
    case Shape::kProgramCounter: return "program_counter";
  }
  return "";
}

const char* fault_kind(FaultKind kind) {
  switch (kind) {
    case FaultKind::kMemory: return "memory";
    case FaultKind::kBudget: return "budget";
    case FaultKind::kIllegal: return "illegal";
    case FaultKind::kTimeout: return "timeout";
  }
  return "";
}

nb::list operation_list() {
  nb::list out;
  for (const Operation& op : operations()) {
    out.append(nb::make_tuple(op.name, shape_name(op.shape), op.dst_words,
                              nb::make_tuple(op.src_words[0], op.src_words[1], op.src_words[2]),
                              op.traits));
  }
  return out;
}

nb::list record_fields() {
  nb::list out;
  for (const RecordField& f : kRecordFields) {
    out.append(nb::make_tuple(f.name, f.offset, f.size, f.is_signed));
  }
  return out;
}

// Holds the arrays that back the regions for as long as the memory lives.
struct BoundMemory {
  std::vector<ConstBytes> arrays;
  Memory memory;

  using Regions = std::vector<std::tuple<std::string, u64, nb::object, bool>>;
  static BoundMemory make(const Regions& regions, const std::vector<std::optional<ConstBytes>>& initial) {
    if (!initial.empty() && initial.size() != regions.size()) {
      throw std::invalid_argument("initial bytes are given for each region or for none");
    }
    std::vector<ConstBytes> arrays;
    std::vector<MappedRegion> mapped;
    for (std::size_t i = 0; i < regions.size(); ++i) {
      const auto& [name, base, object, writable] = regions[i];
      // Only what a kernel may write has to be a writable array.
      if (writable) nb::cast<Bytes>(object);
      arrays.push_back(nb::cast<ConstBytes>(object));
      MappedRegion region{name, base, arrays.back().size(), const_cast<u8*>(arrays.back().data()),
                          writable};
      if (!initial.empty() && initial[i]) {
        if (initial[i]->size() != region.size) {
          throw std::invalid_argument("the initial bytes of region '" + name + "' are of another size");
        }
        arrays.push_back(*initial[i]);
        region.initial = initial[i]->data();
      }
      mapped.push_back(std::move(region));
    }
    return {std::move(arrays), Memory(std::move(mapped))};
  }
};

std::vector<Record> copy_records(const ConstBytes& bytes) {
  if (bytes.size() % sizeof(Record) != 0) {
    throw std::invalid_argument("the record array is not a whole number of records");
  }
  std::vector<Record> records(bytes.size() / sizeof(Record));
  if (!records.empty()) std::memcpy(records.data(), bytes.data(), bytes.size());
  return records;
}

const char* type_name(Type type) {
  switch (type) {
    case Type::kWord: return "word";
    case Type::kShort: return "short";
    case Type::kHalf: return "half";
    case Type::kPair: return "pair";
    case Type::kSingles: return "singles";
    case Type::kMixed: return "mixed";
    case Type::kUnsigned64: return "unsigned64";
    case Type::kSigned64: return "signed64";
    case Type::kWide: return "wide";
  }
  return "";
}

nb::list operation_types() {
  nb::list out;
  for (const Operation& op : operations()) {
    out.append(nb::make_tuple(type_name(op.types[0]), type_name(op.types[1]),
                              type_name(op.types[2])));
  }
  return out;
}

u64 launch(const Program& program, BoundMemory& memory, const Ids& order, std::array<u32, 3> grid,
           std::array<u32, 3> workgroup, const std::vector<u32>& user_sgprs,
           std::array<int, 3> group_id_sgprs, u32 work_item_dimensions, u32 lds_bytes, u64 poison,
           u64 instruction_budget, u32 resident, u32 threads, double seconds, Trace* trace,
           u32 private_bytes, u32 entry, bool prompt_returns, Sanitizer* sanitizer,
           const std::optional<Ids>& everyone, bool together, u8 nan) {
  if (nan > (kNanNegative | kNanFull)) throw std::invalid_argument("nan is 0 to 3");
  const Launch parameters{grid, workgroup, user_sgprs, group_id_sgprs, work_item_dimensions,
                          lds_bytes, private_bytes, entry, poison, nan, instruction_budget, resident,
                          threads, seconds, prompt_returns, sanitizer,
                          everyone ? std::vector<u32>(everyone->data(),
                                                      everyone->data() + everyone->size())
                                   : std::vector<u32>{},
                          together};
  const std::span<const u32> ids(order.data(), order.size());
  nb::gil_scoped_release released;
  const auto poll = [] {
    nb::gil_scoped_acquire acquired;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  };
  return run(program, memory.memory, parameters, ids, trace, poll);
}

u64 entry_count(const Trace& trace) {
  u64 n = 0;
  for (const WaveTrace& w : trace.waves) n += w.entries.size();
  return n;
}

nb::ndarray<nb::numpy, u64, nb::ndim<1>> issue_counts(const Trace& trace, std::size_t size) {
  auto* counts = new std::vector<u64>(size);
  nb::capsule owner(counts, [](void* p) noexcept { delete static_cast<std::vector<u64>*>(p); });
  for (const WaveTrace& w : trace.waves) {
    for (const TraceEntry& e : w.entries) {
      if (e.instruction < size) ++(*counts)[e.instruction];
    }
  }
  return {counts->data(), {size}, owner};
}

// (instruction, lines, LDS cycles, bytes) of every memory access of one wave.
nb::list accesses(const Trace& trace, std::size_t wave) {
  if (wave >= trace.waves.size()) throw nb::index_error("no such wave");
  const WaveTrace& t = trace.waves[wave];
  nb::list out;
  for (const TraceEntry& e : t.entries) {
    if (e.access == kNoAccess) continue;
    const Access& a = t.accesses[e.access];
    out.append(nb::make_tuple(e.instruction, a.line_count, a.lds_cycles, a.bytes));
  }
  return out;
}

// The distinct memory lines that any wave touched, ascending.
nb::ndarray<nb::numpy, u64, nb::ndim<1>> touched_lines(const Trace& trace) {
  auto* lines = new std::vector<u64>;
  nb::capsule owner(lines, [](void* p) noexcept { delete static_cast<std::vector<u64>*>(p); });
  std::size_t distinct = 0;
  const auto settle = [&] {
    std::sort(lines->begin(), lines->end());
    lines->erase(std::unique(lines->begin(), lines->end()), lines->end());
    distinct = lines->size();
  };
  for (const WaveTrace& w : trace.waves) {
    lines->insert(lines->end(), w.lines.begin(), w.lines.end());
    // Waves share most of their lines, so that few are kept of many.
    if (lines->size() > 2 * distinct + (1u << 20)) settle();
  }
  settle();
  return {lines->data(), {lines->size()}, owner};
}

}  // namespace

NB_MODULE(asmevo_core, m) {
#if defined(__AVX2__)
  if (!cpu_has_avx2_and_fma()) {
    throw std::runtime_error(
        "asmevo_core was built for x86-64-v3, but this CPU has no AVX2 and FMA; rebuild it with "
        "-C cmake.define.ASMEVO_MARCH=x86-64");
  }
#endif
  m.attr("OPERATIONS") = operation_list();
  m.attr("SOURCE_TYPES") = operation_types();
  m.attr("RECORD_FIELDS") = record_fields();
  m.attr("RECORD_SIZE") = sizeof(Record);
  m.attr("CONSTANT") = kConstant;
  m.attr("ABSENT") = kAbsent;
  m.attr("SHARED_APERTURE") = kSharedAperture;
  m.attr("PRIVATE_APERTURE") = kPrivateAperture;
  m.attr("LINE_BYTES") = kLineBytes;
  m.attr("FLAGS") = nb::make_tuple(
      nb::make_tuple("clamp", int{kFlagClamp}), nb::make_tuple("dpp", int{kFlagDpp}),
      nb::make_tuple("bound_ctrl", int{kFlagBoundCtrl}), nb::make_tuple("offen", int{kFlagOffen}),
      nb::make_tuple("idxen", int{kFlagIdxen}), nb::make_tuple("sdwa", int{kFlagSdwa}),
      nb::make_tuple("lds", int{kFlagLds}), nb::make_tuple("return", int{kFlagReturn}));
  m.attr("TRAITS") = nb::make_tuple(
      nb::make_tuple("mods", int{kMods}), nb::make_tuple("clamp", int{kClamp}),
      nb::make_tuple("carry_out", int{kCarryOut}), nb::make_tuple("carry_in", int{kCarryIn}),
      nb::make_tuple("accumulate", int{kAccumulate}), nb::make_tuple("packed", int{kPacked}),
      nb::make_tuple("store", int{kStore}), nb::make_tuple("simm16", int{kSimm16}),
      nb::make_tuple("reads_dst", int{kReadsDst}), nb::make_tuple("atomic", int{kAtomic}),
      nb::make_tuple("op_sel", int{kOpSel}), nb::make_tuple("broadcasts_a", int{kBroadcastsA}),
      nb::make_tuple("permutes_b", int{kPermutesB}),
      nb::make_tuple("returns_half", int{kReturnsHalf}), nb::make_tuple("omod", int{kOmod}),
      nb::make_tuple("keeps_dst", int{kKeepsDst}), nb::make_tuple("swaps", int{kSwaps}));

  static nb::exception<Fault> fault_type(m, "FaultError");
  nb::register_exception_translator(
      [](const std::exception_ptr& p, void*) {
        try {
          std::rethrow_exception(p);
        } catch (const Fault& f) {
          nb::object args = nb::make_tuple(fault_kind(f.kind), f.message, f.instruction, f.workgroup,
                                           f.lane, f.address);
          PyErr_SetObject(fault_type.ptr(), args.ptr());
        }
      },
      nullptr);
  static nb::exception<InvalidRecord> invalid_type(m, "InvalidRecordError", PyExc_ValueError);
  nb::register_exception_translator(
      [](const std::exception_ptr& p, void*) {
        try {
          std::rethrow_exception(p);
        } catch (const InvalidRecord& e) {
          nb::object args = nb::make_tuple(e.index, e.what());
          PyErr_SetObject(invalid_type.ptr(), args.ptr());
        }
      },
      nullptr);

  nb::class_<Program>(m, "Program")
      .def("__init__",
           [](Program* self, const ConstBytes& records, u32 vgprs, u32 agprs, u32 mode, bool fused,
              bool narrow, std::vector<u64> addresses,
              std::optional<std::pair<std::size_t, std::size_t>> own) {
             if ((mode & ~kModeFloat) != 0) throw std::invalid_argument("unknown bits of MODE");
             new (self) Program(copy_records(records), vgprs, agprs, FpMode::from(mode),
                                Choices{narrow, fused}, std::move(addresses),
                                own ? RecordRange{own->first, own->second} : RecordRange{});
           },
           nb::arg("records"), nb::kw_only(), nb::arg("vgprs"), nb::arg("agprs"), nb::arg("mode"),
           nb::arg("fused_matrix_sums") = false, nb::arg("narrow") = false,
           nb::arg("addresses") = std::vector<u64>{}, nb::arg("own") = nb::none())
      .def_prop_ro("refused", &Program::refused)
      .def("__len__", &Program::size);

  nb::class_<BoundMemory>(m, "Memory")
      .def("__init__",
           [](BoundMemory* self, const BoundMemory::Regions& regions,
              const std::vector<std::optional<ConstBytes>>& initial) {
             new (self) BoundMemory(BoundMemory::make(regions, initial));
           },
           nb::arg("regions"), nb::arg("initial") = std::vector<std::optional<ConstBytes>>{});

  nb::class_<Trace>(m, "Trace")
      .def("__init__",
           [](Trace* self, std::optional<std::size_t> limit) {
             new (self) Trace;
             if (limit) self->limit_in_bytes = *limit;
           },
           nb::arg("limit") = nb::none())
      .def_prop_ro("waves_per_workgroup", [](const Trace& t) { return t.waves_per_workgroup; })
      .def_prop_ro("wave_count", [](const Trace& t) { return t.waves.size(); })
      .def_prop_ro("entry_count", &entry_count)
      .def("issue_counts", &issue_counts, nb::arg("size"))
      .def("accesses", &accesses, nb::arg("wave"))
      .def("touched_lines", &touched_lines);

  m.def("launch", &launch, nb::arg("program"), nb::arg("memory"), nb::arg("order"), nb::kw_only(),
        nb::arg("grid"), nb::arg("workgroup"), nb::arg("user_sgprs"), nb::arg("group_id_sgprs"),
        nb::arg("work_item_dimensions"), nb::arg("lds_bytes"), nb::arg("poison"),
        nb::arg("instruction_budget"), nb::arg("resident") = 1, nb::arg("threads") = 1,
        nb::arg("seconds") = 0.0, nb::arg("trace").none() = nullptr,
        nb::arg("private_bytes") = 0, nb::arg("entry") = 0,
        nb::arg("prompt_returns") = false, nb::arg("sanitizer").none() = nullptr,
        nb::arg("everyone").none() = nb::none(), nb::arg("together") = false,
        nb::arg("nan") = 0);
  bind_timing(m);
  bind_sanitizer(m);
}

}  // namespace asmevo
