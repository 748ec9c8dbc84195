// Matrix operations with vectors of 16 elements, on x86 hosts with AVX-512 and VNNI.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "float8.hpp"
#include "matrix_operations.hpp"
#include "matrix_table.hpp"

#if defined(__x86_64__)

// Only what follows may use these instructions: the rest of the module runs on any host.
#if defined(__clang__)
#pragma clang attribute push( \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")
#endif

#define ASMEVO_MATRIX_WIDTH wide
#define ASMEVO_MATRIX_LANES 16
#include "matrix_element.hpp"
#include "matrix_dense.hpp"
#include "matrix_fused.hpp"
#include "matrix_sparse.hpp"
#include "matrix_handlers.hpp"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace asmevo {

MatrixHandlers wide_matrix_handlers() {
  const bool usable = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512vnni");
  return usable ? MatrixHandlers{wide::kHandlers, wide::kFusedHandlers} : MatrixHandlers{};
}

}  // namespace asmevo

#else

namespace asmevo {

MatrixHandlers wide_matrix_handlers() { return {}; }

}  // namespace asmevo

#endif
