// The sanitizer's part of the Python module.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "sanitizer.hpp"

namespace nb = nanobind;

namespace asmevo {

namespace {

using Bytes = nb::ndarray<const u8, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class Names>
nb::tuple names(const Names& all) {
  nb::list out;
  for (const char* name : all) out.append(name);
  return nb::tuple(out);
}
template <class Names>
nb::tuple flags(const Names& all) {
  nb::list out;
  for (const auto& [name, bit] : all) out.append(nb::make_tuple(name, int{bit}));
  return nb::tuple(out);
}

// A sanitizer keeps its program alive.
Sanitizer* make(const Program& program, const Bytes& records,
                const std::vector<std::tuple<u32, u32, u32>>& hazards,
                const std::vector<std::tuple<u64, u64, u64, u64, bool, bool, bool>>& regions,
                u32 lds_bytes) {
  if (records.size() % sizeof(CheckRecord) != 0) {
    throw std::invalid_argument("the array is not a whole number of check records");
  }
  std::vector<CheckRecord> copies(records.size() / sizeof(CheckRecord));
  if (!copies.empty()) std::memcpy(copies.data(), records.data(), records.size());
  std::vector<HazardPair> pairs;
  for (const auto& [producer, consumer, needed] : hazards) {
    pairs.push_back({producer, consumer, static_cast<u16>(needed)});
  }
  std::vector<CheckedRegion> checked;
  for (const auto& [base, size, data, data_size, writable, undefined, guarded] : regions) {
    checked.push_back({base, size, data, data_size, writable, undefined, guarded});
  }
  return new Sanitizer(program, copies, std::move(pairs), std::move(checked), lds_bytes);
}

}  // namespace

void bind_sanitizer(nb::module_& m) {
  m.attr("CHECK_RECORD_SIZE") = sizeof(CheckRecord);
  m.attr("CHECK_OPERANDS") = kCheckOperands;
  m.attr("CHECK_FLOWS") = names(kFlowNames);
  m.attr("CHECK_SPACES") = names(kSpaceNames);
  m.attr("CHECK_FLAGS") = flags(kCheckFlagNames);
  m.attr("CHECK_OPERAND_FLAGS") = flags(kCheckOperandFlagNames);

  nb::class_<Report>(m, "Report")
      .def_prop_ro("kind", [](const Report& r) { return kFindingNames[static_cast<u8>(r.kind)]; })
      .def_ro("pc", &Report::pc)
      .def_ro("producer", &Report::producer)
      .def_ro("workgroup", &Report::workgroup)
      .def_ro("wave", &Report::wave)
      .def_ro("lane", &Report::lane)
      .def_ro("register", &Report::reg)
      .def_ro("origin", &Report::origin)
      .def_ro("address", &Report::address)
      .def_ro("size", &Report::size)
      .def_ro("other_workgroup", &Report::other_workgroup)
      .def_ro("other_wave", &Report::other_wave)
      .def_ro("needed", &Report::needed)
      .def_ro("found", &Report::found)
      .def_ro("write", &Report::write)
      .def_ro("other_write", &Report::other_write)
      .def_ro("count", &Report::count);

  nb::class_<Sanitizer>(m, "Sanitizer")
      .def(nb::new_(&make), nb::arg("program"), nb::arg("records"), nb::kw_only(),
           nb::arg("hazards"), nb::arg("regions"), nb::arg("lds_bytes"), nb::keep_alive<0, 1>())
      .def_prop_ro("reports", [](const Sanitizer& s) { return s.findings().reports(); })
      .def_prop_ro("dropped", [](const Sanitizer& s) { return s.findings().dropped(); });
}

}  // namespace asmevo
