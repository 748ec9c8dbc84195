// What the matrix operations share, whatever the width of the host's vectors.
#pragma once

#include "operation.hpp"

namespace asmevo {

// The registers of A (slot 0) or B (slot 1). Throws a fault under GPR indexing.
const u32* matrix_rows(const Wave& w, const Step& s, std::size_t slot);

// The same, moved to `moved` when CBSZ and ABID hand one block of A to others, or BLGP moves the
// lanes of B: `words` registers; blocks are of `lanes` lanes.
const u32* matrix_rows(const Wave& w, const Step& s, std::size_t slot, std::size_t lanes,
                       std::size_t words, u32* moved);

extern const Handler kMatrixDouble16, kMatrixDouble4;

// Handlers of every row of matrix_table.hpp, in its order: with vectors of 8 elements, and of 16 on
// hosts that have them (empty elsewhere).
struct MatrixHandlers {
  std::span<const Handler> sequential, fused;
};
MatrixHandlers narrow_matrix_handlers();
MatrixHandlers wide_matrix_handlers();

}  // namespace asmevo
