#include "operation.hpp"

#include <vector>

namespace asmevo {

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
    return all;
  }();
  return table;
}

}  // namespace asmevo
