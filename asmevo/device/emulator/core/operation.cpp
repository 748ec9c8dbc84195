#include "operation.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace asmevo {

namespace {

// Tables that were compiled for wider vectors, if the host has those.
std::vector<std::span<const Operation>> wide_tables() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return {wide_integer_operations(), wide_float_operations(), wide_compare_operations()};
  }
#endif
  return {};
}

}  // namespace

std::span<const Operation> operations() {
  static const std::vector<Operation> table = [] {
    std::vector<Operation> all;
    for (auto part : {scalar_operations(), control_operations(), mode_operations(), integer_operations(),
                      short_operations(), byte_operations(), dot_operations(), float_operations(),
                      half_operations(), packed_operations(), double_operations(),
                      conversion_operations(), division_operations(),
                      transcendental_operations(), compare_operations(), matrix_operations(),
                      scalar_memory_operations(), buffer_operations(), flat_operations(),
                      atomic_operations(), lds_operations(), lds_permute_operations(),
                      lds_atomic_operations()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    for (const auto part : wide_tables()) {
      const auto first = std::find_if(all.begin(), all.end(), [&](const Operation& op) {
        return op.name == std::string_view(part.front().name);
      });
      std::transform(part.begin(), part.end(), first, first, [](const Operation& wide, Operation op) {
        op.wide = wide.handler;
        return op;
      });
    }
    return all;
  }();
  return table;
}

}  // namespace asmevo
