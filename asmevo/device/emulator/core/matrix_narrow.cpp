// Matrix operations with vectors of 8 elements: AVX2 and FMA, or whatever the host has.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "float8.hpp"
#include "matrix_operations.hpp"
#include "matrix_table.hpp"

#define ASMEVO_MATRIX_WIDTH narrow
#define ASMEVO_MATRIX_LANES 8
#include "matrix_element.hpp"
#include "matrix_dense.hpp"
#include "matrix_fused.hpp"
#include "matrix_sparse.hpp"
#include "matrix_handlers.hpp"

namespace asmevo {

MatrixHandlers narrow_matrix_handlers() { return {narrow::kHandlers, narrow::kFusedHandlers}; }

}  // namespace asmevo
